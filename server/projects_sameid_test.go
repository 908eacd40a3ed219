package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

// Links distinguish two projects with one id: the user's own and a shared one.
func TestMemoriesOfProjectsOfOneID(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	if _, err := w.Store.As(souvenir.Access{User: w.Users[servertest.Reader]}).AddProject(t.Context(),
		souvenir.NewProject{ID: "shop", Name: "My shop"}); err != nil {
		t.Fatal(err)
	}
	w.AddMemory(servertest.Reader, souvenir.NewMemory{Content: "Of my own shop", ProjectID: w.Users[servertest.Reader] +
		"/shop"})
	b := w.SignedIn(servertest.Reader)
	for _, page := range []string{"/", "/memories", "/memories?view=reading"} {
		found := map[string]bool{}
		for _, link := range regexp.MustCompile(`href="((?:/memories)?\?[^"]*project=[^"]*shop[^"]*)"`).FindAllStringSubmatch(
			b.Get(page).Expect(http.StatusOK).Body, -1) {
			address := strings.ReplaceAll(link[1], "&amp;", "&")
			if strings.HasPrefix(address, "?") {
				address = "/memories" + address
			}
			if p := b.Get(address); p.Status != http.StatusOK {
				t.Errorf("%s leads to %s: %d, want %v", page, address, p.Status, http.StatusOK)
			} else if own, shared := strings.Contains(p.Body, "Of my own shop"),
				strings.Contains(p.Body, "opens at nine"); own == shared {
				t.Errorf("%s leads to %s with own %v and shared %v, want one of them", page, address, own, shared)
			} else {
				found[address] = true
			}
		}
		if len(found) < 2 {
			t.Errorf("%s leads to %v, want at least a length of 2", page, found)
		}
	}
}
