package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/server"
)

// Where the server lies below a path, every address of every page does, too: of links and forms, and the ones that
// scripts see.
func TestAddressesOfPagesHaveThePrefix(t *testing.T) {
	w := newWorld(t, server.Options{PublicURL: publicAt + "/memory"})
	ada := w.signedIn(admin)
	for pattern, path := range w.furnish() {
		if pattern == "/login" || pattern == "/setup" || pattern == "/invite" || strings.HasSuffix(pattern, "authorize") {
			continue
		}
		addresses := []string{""}
		if pattern == "/graph" || pattern == "/map" {
			addresses = append(addresses, "?show=list")
		}
		for _, more := range addresses {
			p := ada.get(strings.TrimPrefix(path, "/memory") + more)
			if p.html == nil {
				continue // data
			}
			if p.status != http.StatusOK && p.status != http.StatusSeeOther {
				t.Errorf("%s: %d %.200s", path, p.status, p.body)
			}
			for _, e := range p.html.all() {
				for name, value := range e.attrs {
					if strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "/memory/") && name != "placeholder" {
						t.Errorf("%s: <%s %s=%q> leads out of the prefix", path, e.name, name, value)
					}
				}
			}
		}
	}
}
