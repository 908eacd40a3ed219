package server_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// Two projects of one id, the user's own and one that someone shares, are distinguished by what leads to their
// memories.
func TestMemoriesOfProjectsOfOneID(t *testing.T) {
	w := newWorld(t, server.Options{})
	if _, err := w.store.As(souvenir.Access{User: w.users[reader]}).AddProject(t.Context(),
		souvenir.NewProject{ID: "shop", Name: "My shop"}); err != nil {
		t.Fatal(err)
	}
	w.addMemory(reader, souvenir.NewMemory{Content: "Of my own shop", ProjectID: w.users[reader] + "/shop"})
	b := w.signedIn(reader)
	for _, page := range []string{"/", "/memories", "/memories?view=reading"} {
		found := map[string]bool{}
		for _, link := range regexp.MustCompile(`href="((?:/memories)?\?[^"]*project=[^"]*shop[^"]*)"`).FindAllStringSubmatch(
			b.get(page).expect(http.StatusOK).body, -1) {
			address := strings.ReplaceAll(link[1], "&amp;", "&")
			if strings.HasPrefix(address, "?") {
				address = "/memories" + address
			}
			if p := b.get(address); p.status != http.StatusOK {
				t.Errorf("%s leads to %s: %d, want %v", page, address, p.status, http.StatusOK)
			} else if own, shared := strings.Contains(p.body, "Of my own shop"),
				strings.Contains(p.body, "opens at nine"); own == shared {
				t.Errorf("%s leads to %s with own %v, shared %v", page, address, own, shared)
			} else {
				found[address] = true
			}
		}
		if len(found) < 2 {
			t.Errorf("%s leads to %v, want at least a length of 2", page, found)
		}
	}
}
