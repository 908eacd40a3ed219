package server_test

import (
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/server"
)

// If the server is mounted below a path, so is every address on every page: of links, of forms, and in scripts.
func TestAddressesOfPagesHaveThePrefix(t *testing.T) {
	w := servertest.New(t, server.Options{PublicURL: servertest.PublicAt + "/memory"})
	ada := w.SignedIn(servertest.Admin)
	paths := furnish(w)
	for _, pattern := range longtest.Keys(paths, 1, 3) {
		path := paths[pattern]
		if slices.Contains([]string{"/login", "/setup", "/invite", "/sign-in"}, pattern) ||
			strings.HasSuffix(pattern, "authorize") {
			continue
		}
		addresses := []string{""}
		if pattern == "/graph" || pattern == "/map" {
			addresses = append(addresses, "?show=list")
		}
		for _, more := range addresses {
			p := ada.Get(strings.TrimPrefix(path, "/memory") + more)
			if p.HTML == nil {
				continue // data
			}
			if p.Status != http.StatusOK && p.Status != http.StatusSeeOther {
				t.Errorf("%s: got %d %.200s, want %v or %v", path, p.Status, p.Body, http.StatusOK, http.StatusSeeOther)
			}
			for _, e := range p.HTML.All() {
				for name, value := range e.Attrs {
					if strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "/memory/") && name != "placeholder" {
						t.Errorf("%s: <%s %s=%q> leads out of the prefix, want it within", path, e.Name, name, value)
					}
				}
			}
		}
	}
}
