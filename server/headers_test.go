package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/server"
)

// Browsers that have come by TLS once come by nothing else.
func TestTLSIsAskedForFromThenOn(t *testing.T) {
	for publicURL, want := range map[string]string{"https://memory.example": "max-age=31536000", publicAt: ""} {
		w := newWorld(t, server.Options{PublicURL: publicURL})
		for _, path := range []string{"/health", "/login", "/static/souvenir.css", "/nothing", "/profile", "/api/files"} {
			if got := w.browser().get(path).header.Get("Strict-Transport-Security"); got != want {
				t.Errorf("%s at %s: Strict-Transport-Security is %q, want %v", path, publicURL, got, want)
			}
		}
	}
}

// Scripts of other origins can neither read a page nor send what only they can send.
func TestPagesAreNotForScriptsOfOtherOrigins(t *testing.T) {
	w := newWorld(t, server.Options{})
	for _, rt := range server.PageRoutes() {
		path := strings.NewReplacer("{$}", "", "{file...}", "souvenir.css").Replace(rt.Path)
		for _, method := range []string{http.MethodOptions, rt.Method} {
			r := w.request(guest, method, path, nil)
			r.Header.Set("Origin", "https://evil.example")
			r.Header.Set("Access-Control-Request-Method", rt.Method)
			for name := range w.browser().send(r).header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("%s %s has the header %s", method, path, name)
				}
			}
		}
	}
}
