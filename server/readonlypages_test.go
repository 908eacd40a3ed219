package server_test

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// Over a file that is open for reading only, and with neither snippets nor recorded calls, all pages can be read, and
// what would change something says why it does not.
func TestPagesOfAFileThatIsOnlyRead(t *testing.T) {
	first := newWorld(t, server.Options{})
	paths := first.furnish()
	b := first.signedIn(admin)
	cookie := b.cookie("auth_token")
	path := filepath.Join(t.TempDir(), "copy.db")
	copied, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.store.Upkeep().BackupTo(t.Context(), copied, nil); err != nil {
		t.Fatal(err)
	}
	if err := copied.Close(); err != nil {
		t.Fatal(err)
	}
	store, err := souvenir.Open(t.Context(), path, &souvenir.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	w := serve(t, first.plan, store, server.Options{NoActivity: true})
	b = w.browser()
	b.setCookie("auth_token", cookie)
	csrf := b.get("/profile").expect(http.StatusOK).hidden().Get("csrf")
	for pattern, path := range paths {
		if p := b.get(path); p.status >= http.StatusInternalServerError {
			t.Errorf("%s: %d %.300s", pattern, p.status, p.body)
		}
	}
	for _, rt := range server.PageRoutes() {
		if rt.Method != http.MethodPost || strings.HasPrefix(rt.Path, "/login") || strings.HasPrefix(rt.Path, "/logout") {
			continue
		}
		path := rt.Path
		for pattern, known := range paths {
			if prefix, ok := strings.CutSuffix(pattern, "}"); ok && strings.HasPrefix(path, prefix+"}") {
				known, _, _ = strings.Cut(known, "?")
				path = known + strings.TrimPrefix(path, pattern)
			}
		}
		p := b.post(path, url.Values{"csrf": {csrf}, "name": {"n"}, "access": {"write"}, "key": {"state"},
			"value": {"archived"}, "content": {"x"}, "base": {"1"}, "text": {"do"},
			"work": {"purge"}, "action": {"archive"}, "change": {"end"}, "typed": {"p"}, "days": {"3"},
			"client": {"Another client"}, "redirect_uris": {"https://a.example/"}, "revision": {"1"}, "section": {"tasks"}})
		if p.status >= http.StatusInternalServerError {
			t.Errorf("POST %s: %d %.3000s", path, p.status, p.body)
		}
		if strings.HasSuffix(path, "/set") || path == "/tokens" {
			p.expect(http.StatusForbidden, "opened read-only")
		}
	}
}
