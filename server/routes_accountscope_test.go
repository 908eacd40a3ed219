package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

// aboutContent are the routes that change something and need only a scope for memories or files. All other routes that
// change something decide who else can access a user's data, and need the scope account. Every new route belongs to one
// of the two.
var aboutContent = map[string]bool{
	"POST /api/trash/{id}/restore": true,
	"POST /tools/call":             true, "POST /mcp": true, "DELETE /mcp": true,
	"POST /api/files/upload": true, "DELETE /api/files/{id}": true, "PUT /api/files/{id}/metadata": true,
	"PUT /api/user-preferences": true, "PATCH /api/user-preferences": true,
}

func TestEveryRouteThatManagesNeedsTheScopeAccount(t *testing.T) {
	w := servertest.New(t, server.Options{})
	view := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]})
	without, err := view.Accounts().AddToken(t.Context(), souvenir.NewToken{Name: "without"})
	if err != nil {
		t.Fatal(err)
	}
	only, err := view.Accounts().AddToken(t.Context(),
		souvenir.NewToken{Name: "only", Scopes: []souvenir.Scope{souvenir.ScopeAccount}})
	if err != nil {
		t.Fatal(err)
	}
	access, _ := accessToken(w, servertest.PublicAt, souvenir.DefaultScopes()...)
	for caller, value := range map[string]string{"without": without.Value, "only": only.Value, "application": access} {
		w.Hold(caller, value)
	}
	managing := 0
	for _, rt := range server.InterfaceRoutes() {
		name := rt.Method + " " + rt.Path
		if rt.Method == http.MethodGet || aboutContent[name] {
			continue
		}
		managing++
		if rt.Needs != string(souvenir.ScopeAccount) {
			t.Errorf("%s needs %q; what it changes is no memory and no file, so it must need account; want %v", name, rt.Needs,
				string(souvenir.ScopeAccount))
			continue
		}
		path := strings.NewReplacer("{id}", "shop", "{user}", "rita", "{client_id}", "app").Replace(rt.Path)
		for _, caller := range []string{"without", "application", servertest.NoFiles, servertest.ReadOnly} {
			a := w.Do(caller, rt.Method, path, `{}`).Expect(http.StatusForbidden, "needs the scope account")
			if says := a.Header.Get("WWW-Authenticate"); !strings.Contains(says, "insufficient_scope") ||
				!strings.Contains(says, "account") {
				t.Errorf(`%s shows %s %q, want "insufficient_scope" and "account" in it`, name, caller, says)
			}
		}
		if a := w.Do("only", rt.Method, path, `{}`); strings.Contains(a.Body, "needs the scope") ||
			strings.Contains(a.Body, "read-only") {
			t.Errorf(`%s with the scope account: %d %s, want no "needs the scope" and no "read-only" in the body`,
				name, a.Status, a.Body)
		}
	}
	if managing < 8 {
		t.Errorf("only %d routes manage anything, want at least 8", managing)
	}
}

// The scope account is never granted by oversight: its box is unchecked, whatever was chosen the last time.
func TestConsentNeverTicksAccount(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	b, app := w.SignedIn(servertest.Owner), w.Register("none")
	asked := app.AuthorizeURL("scope", "memory:read memory:write account")
	p := b.Get(asked).Stays(http.StatusOK, "Manage your tokens", "It can give others access")
	for i, fieldset := range p.HTML.All("fieldset")[:2] { // it is a separate choice
		if got := strings.Contains(fieldset.Text, "Manage your tokens"); got != (i == 1) {
			t.Errorf("part %d of the form has the scope account: %v, want it in the second alone", i, got)
		}
	}
	if scopes := p.HTML.Fields()["scope"]; !slices.Equal(scopes, []string{"memory:read", "memory:write"}) {
		t.Errorf("ticked are %q, want %v", scopes, []string{"memory:read", "memory:write"})
	}
	if tokens := w.Redeem(app, b.Allow(asked, nil)); tokens.Scope != "memory:read memory:write" {
		t.Errorf("the unchanged form grants %q, want \"memory:read memory:write\"", tokens.Scope)
	}
	bare := b.Get(asked).Hidden()
	bare.Set("decision", "allow")
	if tokens := w.Redeem(app, b.Post("/oauth/authorize", bare)); tokens.Scope != "memory:read memory:write" {
		t.Errorf("a script that chooses nothing is granted %q, want \"memory:read memory:write\"", tokens.Scope)
	}
	ticked := url.Values{"scope": {"memory:read", "memory:write", "account"}}
	if tokens := w.Redeem(app, b.Allow(asked, ticked)); tokens.Scope != "memory:read memory:write account" {
		t.Errorf("a ticked box grants %q, want \"memory:read memory:write account\"", tokens.Scope)
	}
	if scopes := b.Get(asked).HTML.Fields()["scope"]; !slices.Equal(scopes, []string{"memory:read", "memory:write"}) {
		t.Errorf("ticked the next time are %q, want %v", scopes, []string{"memory:read", "memory:write"})
	}
	if tokens := w.Redeem(app, b.Allow(asked,
		url.Values{"scope": {"memory:write", "account"}, "access": {"read"}})); tokens.Scope != "memory:read" {
		t.Errorf("only reading is granted as %q, want \"memory:read\"", tokens.Scope)
	}
	if tokens := w.Redeem(app, b.Allow(app.AuthorizeURL(),
		url.Values{"scope": {"memory:read", "account"}})); tokens.Scope != "memory:read" {
		t.Errorf("more than requested is granted: %q, want \"memory:read\"", tokens.Scope)
	}
	b.Post("/oauth/authorize", form(b.Get(app.AuthorizeURL("scope", "account")), "decision",
		"allow")).Stays(http.StatusBadRequest,
		"No access is selected")
}

// form returns the form of a page with one changed field.
func form(p *servertest.Page, name, value string) url.Values {
	values := p.HTML.Fields()
	values.Set(name, value)
	return values
}
