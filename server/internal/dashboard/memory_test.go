package dashboard_test

import (
	"net/http"
	"testing"

	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// The page of a memory is for those who see the memory; of others it says what it says of one that does not exist.
func TestThePageOfAMemory(t *testing.T) {
	w := servertest.New(t, server.Options{})
	for _, caller := range []string{servertest.Owner, servertest.Reader, servertest.Writer} {
		w.SignedIn(caller).Get("/memories/"+w.Memory).Expect(http.StatusOK, "opens at nine", "shop", "menu.txt",
			"/api/files/"+w.File).Without(servertest.Secret)
	}
	w.SignedIn(servertest.Owner).Get("/memories/"+w.Private).Expect(http.StatusOK, "The word is "+servertest.Secret,
		servertest.Secret+".txt")
	for _, caller := range []string{servertest.Stranger, servertest.Admin} {
		w.SignedIn(caller).Get("/memories/" + w.Memory).Expect(http.StatusNotFound).Without("nine")
	}
	w.SignedIn(servertest.Reader).Get("/memories/" + w.Private).Expect(http.StatusNotFound).Without(servertest.Secret)
	if p := w.Browser().Get("/memories/" +
		w.Memory).Expect(http.StatusSeeOther); p.Header.Get("Location") != "/login?next=%2Fmemories%2F"+w.Memory {
		t.Errorf("who has not signed in is sent to %q, want %v", p.Header.Get("Location"), "/login?next=%2Fmemories%2F"+
			w.Memory)
	}
}
