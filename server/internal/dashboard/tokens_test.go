package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

func TestTokensPage(t *testing.T) {
	w := servertest.New(t, server.Options{Snippets: servertest.Snippets})
	b := w.SignedIn(servertest.Owner)
	p := b.Get("/tokens").Expect(http.StatusOK, servertest.Limited, "in 30 days", "The shop")
	for name, wrong := range map[string]url.Values{
		"Name is": {"name": {""}}, "days is": {"name": {"x"}, "days": {"0"}}, "access is": {"name": {"x"}, "access": {"all"}},
		"nowhere": {"name": {"x"}, "project": {"nowhere"}},
	} {
		if again := b.Submit(p, "/tokens", wrong); again.Status != http.StatusBadRequest &&
			again.Status != http.StatusNotFound || !strings.Contains(strings.ToLower(again.Body), strings.ToLower(name)) {
			t.Errorf("%v: got %d %s, want status %v or status %v and %q in the body", wrong, again.Status, again.Body,
				http.StatusBadRequest, http.StatusNotFound, strings.ToLower(name))
		}
	}
	made := b.Submit(p, "/tokens",
		url.Values{"name": {"reads the shop"}, "access": {"read"}, "days": {"30"}, "project": {"shop"}}).Expect(http.StatusOK,
		"Your new token", "Sample")
	w.Tokens["made"] = made.Code("mcp_")
	w.Do("made", "GET", "/api/projects", "").Expect(http.StatusOK, "shop").Without("plot")
	w.Do("made", "POST", "/tools/call", servertest.StoreInShop).Expect(http.StatusForbidden)
	p = b.Get("/tokens").Expect(http.StatusOK, "reads the shop", "reads in The shop", "expires <time",
		"in 30 days").Without(w.Tokens["made"])
	all, err := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]}).Accounts().Tokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.Tokens["application"], _ = w.AccessTokenOf(servertest.Owner, "Kite",
		souvenir.Authorization{Scopes: []souvenir.Scope{souvenir.ScopeMemoryWrite, souvenir.ScopeAccount}})
	w.Do("application", "POST", "/api/mcp-tokens", `{"name": "of an application"}`).Expect(http.StatusOK)
	if page := b.Get("/tokens").Expect(http.StatusOK, "with Kite"); strings.Count(page.Body, " with Kite") != 1 {
		t.Errorf("not one token was made through an application: %s, want 1", page.Body)
	}
	id := all[len(all)-1].ID
	for _, token := range all {
		if token.Name == "reads the shop" {
			id = token.ID
		}
	}
	b.LeadsTo(b.Submit(p, "/tokens/end", url.Values{"id": {id}}), "/tokens?done=token").Expect(http.StatusOK,
		"Token revoked").Without("reads the shop")
	w.Do("made", "GET", "/api/projects", "").Expect(http.StatusUnauthorized)
}

// Only an admin can add a token with admin rights.
func TestTokensOfAdmins(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	ada, olivia := w.SignedIn(servertest.Admin), w.SignedIn(servertest.Owner)
	p := ada.Submit(ada.Get("/tokens"), "/tokens",
		url.Values{"name": {"watches"}, "access": {"read"}, "admin": {"yes"}}).Expect(http.StatusOK,
		"reads, manages the service")
	servertest.CheckPage(w, p)
	w.Tokens["watches"] = p.Code("mcp_")
	w.Do("watches", "GET", "/api/activity?user=*", "").Expect(http.StatusOK)
	w.Do("watches", "POST", "/tools/call", servertest.StoreInShop).Expect(http.StatusForbidden)
	page := olivia.Get("/tokens").Without("as an admin")
	olivia.Submit(page, "/tokens", url.Values{"name": {"watches"}, "admin": {"yes"}}).Expect(http.StatusForbidden)
	olivia.Get("/tokens").Without("watches")
}

func TestWithoutTokens(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	w.Do(servertest.Stranger, "DELETE", "/api/mcp-tokens/"+w.TokenIDs[servertest.Stranger], "").Expect(http.StatusOK)
	b := w.SignedIn(servertest.Stranger)
	p := b.Get("/tokens").Expect(http.StatusOK, "No tokens yet", servertest.PublicAt+"/mcp", "Create a token")
	servertest.CheckPage(w, p)
	b.LeadsTo(w.Browser().Get("/tokens"), "/login?next=%2Ftokens")
}
