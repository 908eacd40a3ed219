package server_test

import (
	"net/http"
	"testing"

	"github.com/souvenir-ai/souvenir/server"
)

// The page of a memory is for those who see the memory; of others it says what it says of one that there is not.
func TestThePageOfAMemory(t *testing.T) {
	w := newWorld(t, server.Options{})
	for _, caller := range []string{owner, reader, writer} {
		w.signedIn(caller).get("/memories/"+w.memory).expect(http.StatusOK, "opens at nine", "shop", "menu.txt", "/api/files/"+w.file).lacks(secret)
	}
	w.signedIn(owner).get("/memories/"+w.private).expect(http.StatusOK, "The word is "+secret, secret+".txt")
	for _, caller := range []string{stranger, admin} {
		w.signedIn(caller).get("/memories/" + w.memory).expect(http.StatusNotFound).lacks("nine")
	}
	w.signedIn(reader).get("/memories/" + w.private).expect(http.StatusNotFound).lacks(secret)
	if p := w.browser().get("/memories/" + w.memory).expect(http.StatusSeeOther); p.header.Get("Location") != "/login?next=%2Fmemories%2F"+w.memory {
		t.Errorf("who has not signed in is sent to %q", p.header.Get("Location"))
	}
}

// furnishMemory gives the pages something to show.
func (w *world) furnishMemory(paths map[string]string) {}
