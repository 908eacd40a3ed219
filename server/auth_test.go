package server_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// places are where a credential may be, the one that decides first.
var places = []struct {
	name string
	put  func(r *http.Request, token string)
}{
	{"bearer", func(r *http.Request, token string) { r.Header.Set("Authorization", "bearer  "+token) }},
	{"header", func(r *http.Request, token string) { r.Header.Set("x-mcp-token", token) }},
	{"cookie", func(r *http.Request, token string) { r.AddCookie(&http.Cookie{Name: "auth_token", Value: token}) }},
	{"query", func(r *http.Request, token string) { r.URL.RawQuery = url.Values{"token": {token}}.Encode() }},
}

func TestTheFirstCredentialDecides(t *testing.T) {
	w := newWorld(t, server.Options{})
	for i, place := range places {
		alone := w.request(guest, "GET", "/api/owner-ids/me", nil)
		place.put(alone, w.tokens[owner])
		w.send(alone).expect(http.StatusOK, w.users[owner])
		for _, later := range places[i+1:] {
			both := w.request(guest, "GET", "/api/owner-ids/me", nil)
			place.put(both, w.tokens[stranger])
			later.put(both, w.tokens[owner])
			w.send(both).expect(http.StatusOK, w.users[stranger]).without(w.users[owner])

			bad := w.request(guest, "GET", "/api/owner-ids/me", nil)
			place.put(bad, w.tokens[revoked])
			later.put(bad, w.tokens[owner])
			if a := w.send(bad).expect(http.StatusUnauthorized); !strings.Contains(a.header.Get("WWW-Authenticate"),
				`error="invalid_token"`) {
				t.Errorf("%s, then %s: WWW-Authenticate is %q", place.name, later.name, a.header.Get("WWW-Authenticate"))
			}
		}
	}
	basic := w.request(guest, "GET", "/api/owner-ids/me", nil)
	basic.SetBasicAuth("olivia", "password")
	if a := w.send(basic).expect(http.StatusUnauthorized); strings.Contains(a.header.Get("WWW-Authenticate"), "error=") {
		t.Errorf("a scheme that is none of ours counts as a bad token: %q", a.header.Get("WWW-Authenticate"))
	}
	empty := w.request(guest, "GET", "/api/owner-ids/me", nil)
	empty.Header.Set("Authorization", "Bearer")
	w.send(empty).expect(http.StatusUnauthorized)
}

func TestQueryTokensCanBeSwitchedOff(t *testing.T) {
	w := newWorld(t, server.Options{NoQueryTokens: true})
	w.do(guest, "GET", "/api/owner-ids/me?token="+w.tokens[owner], "").expect(http.StatusUnauthorized)
	w.do(guest, "GET", "/openapi.json", "").expect(http.StatusOK).without("Discouraged")
	open := newWorld(t, server.Options{})
	open.do(guest, "GET", "/openapi.json", "").expect(http.StatusOK, "Discouraged")
}

// A page of another user's can make a browser send the cookie, but not make it change anything.
func TestCookiesAreForPagesOfThisOrigin(t *testing.T) {
	w := newWorld(t, server.Options{PublicURL: "https://memory.example"})
	for _, c := range []struct {
		name, method, header, value string
		status                      int
	}{
		{"another site", "PUT", "Sec-Fetch-Site", "cross-site", 403},
		{"a sibling", "PUT", "Sec-Fetch-Site", "same-site", 403},
		{"another origin, in an old browser", "PUT", "Origin", "https://evil.example", 403},
		{"a page without an origin", "PUT", "Origin", "null", 403},
		{"a page of ours", "PUT", "Sec-Fetch-Site", "same-origin", 200},
		{"a page of ours, behind a proxy", "PUT", "Origin", "https://memory.example", 200},
		{"no browser", "PUT", "User-Agent", "curl/8", 200},
		{"another site that only reads", "GET", "Sec-Fetch-Site", "cross-site", 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, place := range places {
				r := w.request(guest, c.method, "/api/user-preferences", strings.NewReader(`{}`))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set(c.header, c.value)
				place.put(r, w.tokens[owner])
				want := c.status
				if place.name != "cookie" {
					want = http.StatusOK
				}
				w.send(r).expect(want)
			}
		})
	}
}

// accessToken lets a client in for Olivia and returns an access token of it.
func (w *world) accessToken(audience string, scopes ...souvenir.Scope) (token, grant string) {
	w.t.Helper()
	return w.accessTokenOf(owner, "Client", souvenir.Authorization{Resource: audience, Scopes: scopes})
}

// accessTokenOf lets a client of a name in for a caller, as far as an authorization says.
func (w *world) accessTokenOf(caller, name string, a souvenir.Authorization) (token, grant string) {
	w.t.Helper()
	app := w.registerAs(name, "none")
	code := w.authorize(caller, app, a)
	return w.post("/oauth/token", app.codeForm(code.Code)).tokens().AccessToken, code.GrantID
}

func TestAccessTokens(t *testing.T) {
	w := newWorld(t, server.Options{})
	me := func(token string) answer {
		r := w.request(guest, "GET", "/api/owner-ids/me", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		return w.send(r)
	}
	for _, audience := range []string{"", publicAt, publicAt + "/", publicAt + "/mcp"} {
		token, grant := w.accessToken(audience, souvenir.ScopeMemoryRead)
		me(token).expect(http.StatusOK, w.users[owner])
		if err := w.store.As(souvenir.Access{User: w.users[owner]}).Accounts().RevokeGrant(t.Context(), grant); err != nil {
			t.Fatal(err)
		}
		me(token).expect(http.StatusUnauthorized)
		if strings.Contains(w.log.String(), token) {
			t.Error("the log has the access token")
		}
	}
	elsewhere, _ := w.accessToken("https://other.example/mcp", souvenir.ScopeMemoryRead)
	me(elsewhere).expect(http.StatusUnauthorized)
	filesOnly, _ := w.accessToken("", souvenir.ScopeFilesRead)
	if a := me(filesOnly).expect(http.StatusForbidden, "memory:read"); !strings.Contains(a.header.Get("WWW-Authenticate"),
		`scope="memory:read files:read"`) {
		t.Errorf("WWW-Authenticate is %q", a.header.Get("WWW-Authenticate"))
	}
	for _, bad := range []string{"a.b.c", strings.Repeat("x", 9000), "mcp_", "\u00e9"} {
		me(bad).expect(http.StatusUnauthorized)
	}
}

// Without a public URL no one can have issued an access token.
func TestWithoutAPublicURLOnlyMCPTokensCount(t *testing.T) {
	before := newWorld(t, server.Options{}) // the server had one once
	token, _ := before.accessToken("", souvenir.ScopeMemoryRead)
	w := serve(t, before.plan, before.store, server.Options{PublicURL: "not a url"})
	if !strings.Contains(w.log.String(), "public_url") {
		t.Errorf("the log does not tell of the bad URL: %s", w.log.String())
	}
	w.do(owner, "GET", "/api/owner-ids/me", "").expect(http.StatusOK)
	r := w.request(guest, "GET", "/api/owner-ids/me", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	if a := w.send(r).expect(http.StatusUnauthorized); strings.Contains(a.header.Get("WWW-Authenticate"),
		"resource_metadata") {
		t.Errorf("WWW-Authenticate is %q", a.header.Get("WWW-Authenticate"))
	}
}

func TestCheckPublicURL(t *testing.T) {
	for _, good := range []string{"https://memory.example", "http://127.0.0.1:8377", "https://example.com/memory",
		"https://example.com/"} {
		if err := server.CheckPublicURL(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "memory.example", "ftp://memory.example", "https://", "https://a@b", "https://a/?b",
		"https://a/#b", "https://a//b", "https://a/../b", "https://[::1", "http://a b"} {
		if err := server.CheckPublicURL(bad); err == nil || !strings.Contains(err.Error(), "public_url") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// A prefix in the public URL lies behind the well-known path (RFC 9728, section 3.1), and the MCP endpoint is a
// resource of its own.
func TestResourceMetadataOfAPrefix(t *testing.T) {
	w := newWorld(t, server.Options{PublicURL: "https://example.com/memory/"})
	a := w.do(guest, "GET", "/api/projects", "")
	if got := a.header.Get("WWW-Authenticate"); !strings.Contains(got,
		`resource_metadata="https://example.com/.well-known/oauth-protected-resource/memory"`) {
		t.Errorf("WWW-Authenticate is %q", got)
	}
}

func TestTokensMadeWithTokens(t *testing.T) {
	w := newWorld(t, server.Options{})
	var made souvenir.AddedToken
	w.do(owner, "POST", "/api/mcp-tokens",
		`{"name": "short", "expires_in_days": 2, "scopes": ["memory:write", "files:read", "account"]}`).expect(
		http.StatusOK).decode(&made)
	w.tokens["short"] = made.Value
	for _, c := range []struct {
		name, caller, body string
		status             int
		has                string
	}{
		{"as much", "short", `{"name": "a", "expires_in_days": 1, "scopes": ["memory:read", "memory:write", "files:read", ` +
			`"account"]}`, 200, `"mcp_`},
		{"another scope", "short", `{"name": "a", "scopes": ["files:write"]}`, 403, "files:write"},
		{"longer", "short", `{"name": "a", "expires_in_days": 3}`, 403, "expires_in_days is 3"},
		{"no scope", owner, `{"name": "a", "scopes": []}`, 400, "scopes is empty"},
		{"an unknown scope", owner, `{"name": "a", "scopes": ["memory:all"]}`, 400, "memory:all"},
		{"no name", owner, `{}`, 400, "name"},
		{"no days", owner, `{"name": "a", "expires_in_days": 0}`, 400, "expires_in_days is 0"},
		{"days past", owner, `{"name": "a", "expires_in_days": -1}`, 400, "expires_in_days is -1"},
		{"too many days", owner, `{"name": "a", "expires_in_days": 9223372036854775807}`, 400, "expires_in_days"},
		{"whole days with a fraction", owner, `{"name": "whole", "expires_in_days": 560.0}`, 200, `"mcp_`},
		{"whole days with an exponent", owner, `{"name": "whole", "expires_in_days": 5.6e2}`, 200, `"mcp_`},
		{"days as text", owner, `{"name": "a", "expires_in_days": "560"}`, 400, "expires_in_days is of the JSON type string"},
		{"half days", owner, `{"name": "a", "expires_in_days": 1.5}`, 400, "expires_in_days"},
		{"another's project", owner, `{"name": "a", "projects": ["nowhere"]}`, 404, "nowhere"},
		{"a misspelt limit", owner, `{"name": "a", "scope": ["memory:read"]}`, 400, "scope"},
		{"a project", owner, `{"name": "a", "projects": ["shop"]}`, 200, `/shop"`},
	} {
		t.Run(c.name, func(t *testing.T) { w.do(c.caller, "POST", "/api/mcp-tokens", c.body).expect(c.status, c.has) })
	}
	var list struct{ Tokens []souvenir.Token }
	w.do(owner, "GET", "/api/mcp-tokens", "").expect(http.StatusOK).decode(&list)
	whole := 0
	for _, token := range list.Tokens {
		if token.Name == "whole" && token.ExpiresAt.Sub(token.CreatedAt).Round(time.Minute) == 560*24*time.Hour {
			whole++
		}
	}
	if whole != 2 {
		t.Errorf("%d tokens end in 560 days, not 2: %+v", whole, list.Tokens)
	}
	var inherited souvenir.AddedToken
	w.do("short", "POST", "/api/mcp-tokens", `{"name": "b"}`).expect(http.StatusOK).decode(&inherited)
	if !inherited.ExpiresAt.Equal(made.ExpiresAt) || len(inherited.Scopes) != 3 {
		t.Errorf("of %+v was made %+v", made.Token, inherited.Token)
	}
	w.do(owner, "DELETE", "/api/mcp-tokens/"+made.ID, "").expect(http.StatusOK)
	w.do("short", "POST", "/api/mcp-tokens", `{"name": "c"}`).expect(http.StatusUnauthorized)

	// An application that was let in leaves nothing behind for good.
	token, _ := w.accessToken("", souvenir.ScopeMemoryRead, souvenir.ScopeMemoryWrite, souvenir.ScopeAccount)
	w.tokens["client"] = token
	var left souvenir.AddedToken
	w.do("client", "POST", "/api/mcp-tokens", `{"name": "d"}`).expect(http.StatusOK).decode(&left)
	if left.ExpiresAt.IsZero() {
		t.Error("expiry of a token that an application made: got none, want one")
	}
	w.do("client", "POST", "/api/mcp-tokens", `{"name": "d", "expires_in_days": 31}`).expect(http.StatusForbidden)
}

func TestTokensOfAnApplicationEndWithIt(t *testing.T) {
	w := newWorld(t, server.Options{})
	access, grantID := w.accessToken("", souvenir.ScopeMemoryRead, souvenir.ScopeMemoryWrite, souvenir.ScopeAccount)
	w.tokens["application"] = access
	other, _ := w.accessToken("", souvenir.ScopeMemoryRead, souvenir.ScopeMemoryWrite, souvenir.ScopeAccount)
	w.tokens["another"] = other
	through := func(credential, name string) {
		t.Helper()
		var added souvenir.AddedToken
		w.do(credential, "POST", "/api/mcp-tokens", `{"name": "`+name+
			`", "scopes": ["memory:write", "account"]}`).expect(http.StatusOK).decode(&added)
		w.tokens[name] = added.Value
	}
	through("application", "first")
	through("first", "second") // a token of a token of the application
	through("another", "left")
	made := `"grant_id":"` + grantID + `","client_name":"Client"`
	if list := w.do("second", "GET", "/api/mcp-tokens", "").expect(http.StatusOK, made); strings.Count(list.body,
		made) != 2 {
		t.Errorf("%s is not twice in %s", made, list.body)
	}
	if err := w.store.As(souvenir.Access{User: w.users[owner]}).Accounts().RevokeGrant(t.Context(), grantID); err != nil {
		t.Fatal(err)
	}
	for _, ended := range []string{"application", "first", "second"} {
		w.do(ended, "GET", "/api/projects", "").expect(http.StatusUnauthorized)
		w.do(ended, "POST", "/api/mcp-tokens", `{"name": "late"}`).expect(http.StatusUnauthorized)
	}
	w.do("left", "GET", "/api/projects", "").expect(http.StatusOK)
}
