package dashboard_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// Only users who can see a memory see its page. For others, it is the page of a memory that does not exist.
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
		t.Errorf("a guest is sent to %q, want %v", p.Header.Get("Location"), "/login?next=%2Fmemories%2F"+
			w.Memory)
	}
}

func TestThePageOfAMemorySaysItsTextOnce(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	olivia := w.SignedIn(servertest.Owner)
	for content, heading := range map[string]string{
		"# The **otters**\n\nsleep":   "Decision in The shop", // a title without the markup
		"# Otter pier\n\nThey sleep.": "Otter pier",
		"Otter pier alone":            "Decision in The shop",
		"# Otter pier":                "Decision in The shop",
	} {
		id := fill(w, servertest.Owner, souvenir.NewMemory{Content: content, ProjectID: "shop", EventType: "decision"})[0]
		page := olivia.Get("/memories/"+id).Expect(http.StatusOK, "<h1>"+heading+"</h1>")
		_, main, _ := strings.Cut(page.Body, "<main")
		if n := strings.Count(main, "tter"); n != 1 {
			t.Errorf("%q: the page says it %d times, want once", content, n)
		}
	}
	id := fill(w, servertest.Owner, souvenir.NewMemory{Content: "# Otter pier\n\nThey sleep."})[0]
	olivia.Get("/memories/"+id+"?view=text").Expect(http.StatusOK, "<h1>Memory</h1>", "# Otter pier")
}
