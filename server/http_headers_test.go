package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"net/http"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/server"
)

// After one visit over TLS, browsers use only TLS.
func TestTLSIsAskedForFromThenOn(t *testing.T) {
	for publicURL, want := range map[string]string{"https://memory.example": "max-age=31536000", servertest.PublicAt: ""} {
		w := servertest.New(t, server.Options{PublicURL: publicURL})
		for _, path := range []string{"/health", "/login", "/static/souvenir.css", "/nothing", "/profile", "/api/files"} {
			if got := w.Browser().Get(path).Header.Get("Strict-Transport-Security"); got != want {
				t.Errorf("%s at %s: Strict-Transport-Security is %q, want %v", path, publicURL, got, want)
			}
		}
	}
}

// Scripts of other origins can neither read a page nor send requests that only scripts can send.
func TestPagesAreNotForScriptsOfOtherOrigins(t *testing.T) {
	w := servertest.New(t, server.Options{})
	for _, rt := range server.PageRoutes() {
		path := strings.NewReplacer("{$}", "", "{file...}", "souvenir.css").Replace(rt.Path)
		for _, method := range []string{http.MethodOptions, rt.Method} {
			r := w.Request(servertest.Guest, method, path, nil)
			r.Header.Set("Origin", "https://evil.example")
			r.Header.Set("Access-Control-Request-Method", rt.Method)
			for name := range w.Browser().Send(r).Header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf(`%s %s has the header %s, want no "Access-Control-" at the beginning of name`, method, path, name)
				}
			}
		}
	}
}
