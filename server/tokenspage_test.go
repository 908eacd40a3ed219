package server_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

func TestTokensPage(t *testing.T) {
	w := newWorld(t, server.Options{Snippets: snippets})
	b := w.signedIn(owner)
	p := b.get("/tokens").expect(http.StatusOK, limited, "in 30 days", "The shop")
	for name, wrong := range map[string]url.Values{
		"Name is": {"name": {""}}, "days is": {"name": {"x"}, "days": {"0"}}, "access is": {"name": {"x"}, "access": {"all"}},
		"nowhere": {"name": {"x"}, "project": {"nowhere"}},
	} {
		if again := b.submit(p, "/tokens", wrong); again.status != http.StatusBadRequest &&
			again.status != http.StatusNotFound || !strings.Contains(strings.ToLower(again.body), strings.ToLower(name)) {
			t.Errorf("%v: %d %s", wrong, again.status, again.body)
		}
	}
	made := b.submit(p, "/tokens",
		url.Values{"name": {"reads the shop"}, "access": {"read"}, "days": {"30"}, "project": {"shop"}}).expect(http.StatusOK,
		"Your new token", "Sample")
	w.tokens["made"] = made.code("mcp_")
	w.do("made", "GET", "/api/projects", "").expect(http.StatusOK, "shop").without("plot")
	w.do("made", "POST", "/tools/call", storeInShop).expect(http.StatusForbidden)
	p = b.get("/tokens").expect(http.StatusOK, "reads the shop", "reads in The shop", "expires <time",
		"in 30 days").without(w.tokens["made"])
	all, err := w.store.As(souvenir.Access{User: w.users[owner]}).Accounts().Tokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.tokens["application"], _ = w.accessTokenOf(owner, "Kite",
		souvenir.Authorization{Scopes: []souvenir.Scope{souvenir.ScopeMemoryWrite, souvenir.ScopeAccount}})
	w.do("application", "POST", "/api/mcp-tokens", `{"name": "of an application"}`).expect(http.StatusOK)
	if page := b.get("/tokens").expect(http.StatusOK, "with Kite"); strings.Count(page.body, " with Kite") != 1 {
		t.Errorf("not one token was made through an application: %s", page.body)
	}
	id := all[len(all)-1].ID
	for _, token := range all {
		if token.Name == "reads the shop" {
			id = token.ID
		}
	}
	b.leadsTo(b.submit(p, "/tokens/end", url.Values{"id": {id}}), "/tokens?done=token").expect(http.StatusOK,
		"Token revoked").without("reads the shop")
	w.do("made", "GET", "/api/projects", "").expect(http.StatusUnauthorized)
}

// Only an admin makes a token that speaks for an admin.
func TestTokensOfAdmins(t *testing.T) {
	w := newWorld(t, server.Options{})
	ada, olivia := w.signedIn(admin), w.signedIn(owner)
	p := ada.submit(ada.get("/tokens"), "/tokens",
		url.Values{"name": {"watches"}, "access": {"read"}, "admin": {"yes"}}).expect(http.StatusOK,
		"reads, manages the service")
	checkPage(w, p)
	w.tokens["watches"] = p.code("mcp_")
	w.do("watches", "GET", "/api/activity?user=*", "").expect(http.StatusOK)
	w.do("watches", "POST", "/tools/call", storeInShop).expect(http.StatusForbidden)
	page := olivia.get("/tokens").without("as an admin")
	olivia.submit(page, "/tokens", url.Values{"name": {"watches"}, "admin": {"yes"}}).expect(http.StatusForbidden)
	olivia.get("/tokens").without("watches")
}

func TestWithoutTokens(t *testing.T) {
	w := newWorld(t, server.Options{})
	w.do(stranger, "DELETE", "/api/mcp-tokens/"+w.tokenIDs[stranger], "").expect(http.StatusOK)
	b := w.signedIn(stranger)
	p := b.get("/tokens").expect(http.StatusOK, "No tokens yet", publicAt+"/mcp", "Create a token")
	checkPage(w, p)
	b.leadsTo(w.browser().get("/tokens"), "/login?next=%2Ftokens")
}
