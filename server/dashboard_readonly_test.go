package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

// With a read-only file, no snippets and no recorded calls, all pages can be read, and forms say why they cannot change
// anything.
func TestPagesOfAReadOnlyStore(t *testing.T) {
	first := servertest.New(t, server.Options{})
	paths := furnish(first)
	b := first.SignedIn(servertest.Admin)
	cookie := b.Cookie("auth_token")
	store := first.Database.Open(t, &souvenir.Options{ReadOnly: true})
	w := servertest.Serve(t, first.Plan, store, server.Options{NoActivity: true})
	b = w.Browser()
	b.SetCookie("auth_token", cookie)
	csrf := b.Get("/profile").Expect(http.StatusOK).Hidden().Get("csrf")
	for _, pattern := range longtest.Keys(paths, 1, 3) {
		if p := b.Get(paths[pattern]); p.Status >= http.StatusInternalServerError {
			t.Errorf("%s: got %d %.300s, want less than %v", pattern, p.Status, p.Body, http.StatusInternalServerError)
		}
	}
	for i, rt := range server.PageRoutes() {
		if rt.Method != http.MethodPost || !longtest.Part(i, 1, 3) || strings.HasPrefix(rt.Path, "/login") ||
			strings.HasPrefix(rt.Path, "/logout") {
			continue
		}
		path := rt.Path
		for pattern, known := range paths {
			if prefix, ok := strings.CutSuffix(pattern, "}"); ok && strings.HasPrefix(path, prefix+"}") {
				known, _, _ = strings.Cut(known, "?")
				path = known + strings.TrimPrefix(path, pattern)
			}
		}
		p := b.Post(path, url.Values{"csrf": {csrf}, "name": {"n"}, "access": {"write"}, "key": {"state"},
			"value": {"archived"}, "content": {"x"}, "base": {"1"}, "text": {"do"},
			"work": {"purge"}, "action": {"archive"}, "change": {"end"}, "typed": {"p"}, "days": {"3"},
			"client": {"Another client"}, "redirect_uris": {"https://a.example/"}, "revision": {"1"}, "section": {"tasks"}})
		if p.Status >= http.StatusInternalServerError {
			t.Errorf("POST %s: %d %.3000s, want less than %v", path, p.Status, p.Body, http.StatusInternalServerError)
		}
		if strings.HasSuffix(path, "/set") || path == "/tokens" {
			p.Expect(http.StatusForbidden, "opened read-only")
		}
	}
	// The typed text is still there.
	p := b.Post("/memories/new", url.Values{"csrf": {csrf}, "content": {"typed in vain"}}).Expect(http.StatusForbidden,
		"opened read-only", "typed in vain</textarea>")
	servertest.CheckPage(w, p)
}
