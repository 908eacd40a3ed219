package server_test

import (
	"net/http"
	"testing"

	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// Pages whose searches would wait for the index come at once, say so, and name the address of the rest. Once it is
// loaded, they are whole.
func TestPagesDoNotWaitForTheIndex(t *testing.T) {
	w := servertest.New(t, server.Options{})
	server.SetLateFrom(w.Server, 1)
	olivia := w.SignedIn(servertest.Owner)
	olivia.Get("/memories").Expect(http.StatusOK, "swordfish")
	for path, without := range map[string]string{"/memories?q=swordfish": `id="found"`, "/find?q=swordfish": "No results",
		"/attention": "Nothing needs your attention"} {
		p := olivia.Get(path).Expect(http.StatusOK, `hx-trigger="load"`, "at-once=yes").Without(without)
		servertest.CheckPage(w, p)
	}
	olivia.Get("/memories?q=swordfish&event_type=none&page=2").Expect(http.StatusOK,
		`hx-get="/memories?at-once=yes&amp;event_type=none&amp;page=2&amp;q=swordfish"`)
	olivia.Get("/attention?at-once=yes").Expect(http.StatusOK, "Nothing needs your attention").Without("near duplicates")
	for _, path := range []string{"/memories?q=swordfish", "/find?q=swordfish"} {
		olivia.Get(path).Expect(http.StatusOK, "swordfish").Without("at-once")
	}
	olivia.Get("/attention").Expect(http.StatusOK, "Nothing needs your attention").Without("at-once")
}
