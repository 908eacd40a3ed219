package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

// places are where a credential may be, in order of precedence.
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
	w := servertest.New(t, server.Options{})
	for i, place := range places {
		alone := w.Request(servertest.Guest, "GET", "/api/owner-ids/me", nil)
		place.put(alone, w.Tokens[servertest.Owner])
		w.Send(alone).Expect(http.StatusOK, w.Users[servertest.Owner])
		for _, later := range places[i+1:] {
			both := w.Request(servertest.Guest, "GET", "/api/owner-ids/me", nil)
			place.put(both, w.Tokens[servertest.Stranger])
			later.put(both, w.Tokens[servertest.Owner])
			w.Send(both).Expect(http.StatusOK, w.Users[servertest.Stranger]).Without(w.Users[servertest.Owner])

			bad := w.Request(servertest.Guest, "GET", "/api/owner-ids/me", nil)
			place.put(bad, w.Tokens[servertest.Revoked])
			later.put(bad, w.Tokens[servertest.Owner])
			if a := w.Send(bad).Expect(http.StatusUnauthorized); !strings.Contains(a.Header.Get("WWW-Authenticate"),
				`error="invalid_token"`) {
				t.Errorf(`%s, then %s: WWW-Authenticate is %q, want error="invalid_token" in it`, place.name, later.name,
					a.Header.Get("WWW-Authenticate"))
			}
		}
	}
	basic := w.Request(servertest.Guest, "GET", "/api/owner-ids/me", nil)
	basic.SetBasicAuth("olivia", "password")
	if a := w.Send(basic).Expect(http.StatusUnauthorized); strings.Contains(a.Header.Get("WWW-Authenticate"), "error=") {
		t.Errorf(`an unknown scheme: WWW-Authenticate is %q, want no "error=" in it`, a.Header.Get("WWW-Authenticate"))
	}
	empty := w.Request(servertest.Guest, "GET", "/api/owner-ids/me", nil)
	empty.Header.Set("Authorization", "Bearer")
	w.Send(empty).Expect(http.StatusUnauthorized)
}

func TestQueryTokensCanBeSwitchedOff(t *testing.T) {
	w := servertest.New(t, server.Options{NoQueryTokens: true})
	w.Do(servertest.Guest, "GET", "/api/owner-ids/me?token="+w.Tokens[servertest.Owner],
		"").Expect(http.StatusUnauthorized)
	w.Do(servertest.Guest, "GET", "/openapi.json", "").Expect(http.StatusOK).Without("Discouraged")
	open := servertest.New(t, server.Options{})
	open.Do(servertest.Guest, "GET", "/openapi.json", "").Expect(http.StatusOK, "Discouraged")
}

// Another site's page can make a browser send the cookie, but cannot change anything with it.
func TestCookiesAreForPagesOfThisOrigin(t *testing.T) {
	w := servertest.New(t, server.Options{PublicURL: "https://memory.example"})
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
				r := w.Request(servertest.Guest, c.method, "/api/user-preferences", strings.NewReader(`{}`))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set(c.header, c.value)
				place.put(r, w.Tokens[servertest.Owner])
				want := c.status
				if place.name != "cookie" {
					want = http.StatusOK
				}
				w.Send(r).Expect(want)
			}
		})
	}
}

// accessToken authorizes a client for Olivia and returns its access token.
func accessToken(w *servertest.World, audience string, scopes ...souvenir.Scope) (token, grant string) {
	w.T.Helper()
	return w.AccessTokenOf(servertest.Owner, "Client", souvenir.Authorization{Resource: audience, Scopes: scopes})
}

func TestAccessTokens(t *testing.T) {
	w := servertest.New(t, server.Options{})
	me := func(token string) servertest.Answer {
		r := w.Request(servertest.Guest, "GET", "/api/owner-ids/me", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		return w.Send(r)
	}
	for _, audience := range []string{"", servertest.PublicAt, servertest.PublicAt + "/", servertest.PublicAt + "/mcp"} {
		token, grant := accessToken(w, audience, souvenir.ScopeMemoryRead)
		me(token).Expect(http.StatusOK, w.Users[servertest.Owner])
		if err := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]}).Accounts().RevokeGrant(t.Context(),
			grant); err != nil {
			t.Fatal(err)
		}
		me(token).Expect(http.StatusUnauthorized)
		if strings.Contains(w.Log.String(), token) {
			t.Errorf("the log has the access token: got %v, want no %q in the log", w.Log.String(), token)
		}
	}
	elsewhere, _ := accessToken(w, "https://other.example/mcp", souvenir.ScopeMemoryRead)
	me(elsewhere).Expect(http.StatusUnauthorized)
	filesOnly, _ := accessToken(w, "", souvenir.ScopeFilesRead)
	if a := me(filesOnly).Expect(http.StatusForbidden, "memory:read"); !strings.Contains(a.Header.Get("WWW-Authenticate"),
		`scope="memory:read files:read"`) {
		t.Errorf(`WWW-Authenticate is %q, want scope="memory:read files:read" in it`, a.Header.Get("WWW-Authenticate"))
	}
	for _, bad := range []string{"a.b.c", strings.Repeat("x", 9000), "mcp_", "\u00e9"} {
		me(bad).Expect(http.StatusUnauthorized)
	}
}

// Without a public URL, access tokens cannot be valid.
func TestWithoutAPublicURLOnlyMCPTokensCount(t *testing.T) {
	longtest.Only(t)
	before := servertest.New(t, server.Options{}) // the server once had one
	token, _ := accessToken(before, "", souvenir.ScopeMemoryRead)
	w := servertest.Serve(t, before.Plan, before.Store, server.Options{PublicURL: "not a url"})
	if !strings.Contains(w.Log.String(), "public_url") {
		t.Errorf(`the log does not name the bad URL: %s, want "public_url" in the log`, w.Log.String())
	}
	w.Do(servertest.Owner, "GET", "/api/owner-ids/me", "").Expect(http.StatusOK)
	r := w.Request(servertest.Guest, "GET", "/api/owner-ids/me", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	if a := w.Send(r).Expect(http.StatusUnauthorized); strings.Contains(a.Header.Get("WWW-Authenticate"),
		"resource_metadata") {
		t.Errorf(`WWW-Authenticate is %q, want no "resource_metadata" in it`, a.Header.Get("WWW-Authenticate"))
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
			t.Errorf(`%q: got %v, want an error and "public_url" in the error`, bad, err)
		}
	}
}

// A prefix in the public URL follows the well-known path (RFC 9728, section 3.1), and the MCP endpoint is a resource of
// its own.
func TestResourceMetadataOfAPrefix(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{PublicURL: "https://example.com/memory/"})
	a := w.Do(servertest.Guest, "GET", "/api/projects", "")
	if got := a.Header.Get("WWW-Authenticate"); !strings.Contains(got,
		`resource_metadata="https://example.com/.well-known/oauth-protected-resource/memory"`) {
		t.Errorf("WWW-Authenticate is %q, want the metadata of /memory", got)
	}
}

func TestTokensMadeWithTokens(t *testing.T) {
	w := servertest.New(t, server.Options{})
	var made souvenir.AddedToken
	w.Do(servertest.Owner, "POST", "/api/mcp-tokens",
		`{"name": "short", "expires_in_days": 2, "scopes": ["memory:write", "files:read", "account"]}`).Expect(
		http.StatusOK).Decode(&made)
	w.Tokens["short"] = made.Value
	for _, c := range []struct {
		name, caller, body string
		status             int
		has                string
	}{
		{"as much", "short", `{"name": "a", "expires_in_days": 1, "scopes": ["memory:read", "memory:write", "files:read", ` +
			`"account"]}`, 200, `"mcp_`},
		{"another scope", "short", `{"name": "a", "scopes": ["files:write"]}`, 403, "files:write"},
		{"longer", "short", `{"name": "a", "expires_in_days": 3}`, 403, "expires_in_days is 3"},
		{"no scope", servertest.Owner, `{"name": "a", "scopes": []}`, 400, "scopes is empty"},
		{"an unknown scope", servertest.Owner, `{"name": "a", "scopes": ["memory:all"]}`, 400, "memory:all"},
		{"no name", servertest.Owner, `{}`, 400, "name"},
		{"no days", servertest.Owner, `{"name": "a", "expires_in_days": 0}`, 400, "expires_in_days is 0"},
		{"days past", servertest.Owner, `{"name": "a", "expires_in_days": -1}`, 400, "expires_in_days is -1"},
		{"too many days", servertest.Owner, `{"name": "a", "expires_in_days": 9223372036854775807}`, 400, "expires_in_days"},
		{"whole days with a fraction", servertest.Owner, `{"name": "whole", "expires_in_days": 560.0}`, 200, `"mcp_`},
		{"whole days with an exponent", servertest.Owner, `{"name": "whole", "expires_in_days": 5.6e2}`, 200, `"mcp_`},
		{"days as text", servertest.Owner, `{"name": "a", "expires_in_days": "560"}`, 400,
			"expires_in_days is a JSON string"},
		{"half days", servertest.Owner, `{"name": "a", "expires_in_days": 1.5}`, 400, "expires_in_days"},
		{"another's project", servertest.Owner, `{"name": "a", "projects": ["nowhere"]}`, 404, "nowhere"},
		{"a misspelt limit", servertest.Owner, `{"name": "a", "scope": ["memory:read"]}`, 400, "scope"},
		{"a project", servertest.Owner, `{"name": "a", "projects": ["shop"]}`, 200, `/shop"`},
	} {
		t.Run(c.name, func(t *testing.T) { w.Do(c.caller, "POST", "/api/mcp-tokens", c.body).Expect(c.status, c.has) })
	}
	var list struct{ Tokens []souvenir.Token }
	w.Do(servertest.Owner, "GET", "/api/mcp-tokens", "").Expect(http.StatusOK).Decode(&list)
	whole := 0
	for _, token := range list.Tokens {
		if token.Name == "whole" && token.ExpiresAt.Sub(token.CreatedAt).Round(time.Minute) == 560*24*time.Hour {
			whole++
		}
	}
	if whole != 2 {
		t.Errorf("%d tokens end in 560 days, not 2: %+v, want 2", whole, list.Tokens)
	}
	var inherited souvenir.AddedToken
	w.Do("short", "POST", "/api/mcp-tokens", `{"name": "b"}`).Expect(http.StatusOK).Decode(&inherited)
	if !inherited.ExpiresAt.Equal(made.ExpiresAt) || len(inherited.Scopes) != 3 {
		t.Errorf("of %+v was made %+v, want expires at %v and 3 scopes", made.Token, inherited.Token, made.ExpiresAt)
	}
	w.Do(servertest.Owner, "DELETE", "/api/mcp-tokens/"+made.ID, "").Expect(http.StatusOK)
	w.Do("short", "POST", "/api/mcp-tokens", `{"name": "c"}`).Expect(http.StatusUnauthorized)

	// An application leaves no permanent credential behind.
	token, _ := accessToken(w, "", souvenir.ScopeMemoryRead, souvenir.ScopeMemoryWrite, souvenir.ScopeAccount)
	w.Tokens["client"] = token
	var left souvenir.AddedToken
	w.Do("client", "POST", "/api/mcp-tokens", `{"name": "d"}`).Expect(http.StatusOK).Decode(&left)
	if left.ExpiresAt.IsZero() {
		t.Error("expiry of a token that an application made: got none, want one")
	}
	w.Do("client", "POST", "/api/mcp-tokens", `{"name": "d", "expires_in_days": 31}`).Expect(http.StatusForbidden)
}

func TestTokensOfAnApplicationEndWithIt(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	access, grantID := accessToken(w, "", souvenir.ScopeMemoryRead, souvenir.ScopeMemoryWrite, souvenir.ScopeAccount)
	w.Tokens["application"] = access
	other, _ := accessToken(w, "", souvenir.ScopeMemoryRead, souvenir.ScopeMemoryWrite, souvenir.ScopeAccount)
	w.Tokens["another"] = other
	through := func(credential, name string) {
		t.Helper()
		var added souvenir.AddedToken
		w.Do(credential, "POST", "/api/mcp-tokens", `{"name": "`+name+
			`", "scopes": ["memory:write", "account"]}`).Expect(http.StatusOK).Decode(&added)
		w.Tokens[name] = added.Value
	}
	through("application", "first")
	through("first", "second") // a token of a token of the application
	through("another", "left")
	made := `"grant_id":"` + grantID + `","client_name":"Client"`
	if list := w.Do("second", "GET", "/api/mcp-tokens", "").Expect(http.StatusOK, made); strings.Count(list.Body,
		made) != 2 {
		t.Errorf("%s is not twice in %s, want 2", made, list.Body)
	}
	if err := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]}).Accounts().RevokeGrant(t.Context(),
		grantID); err != nil {
		t.Fatal(err)
	}
	for _, ended := range []string{"application", "first", "second"} {
		w.Do(ended, "GET", "/api/projects", "").Expect(http.StatusUnauthorized)
		w.Do(ended, "POST", "/api/mcp-tokens", `{"name": "late"}`).Expect(http.StatusUnauthorized)
	}
	w.Do("left", "GET", "/api/projects", "").Expect(http.StatusOK)
}
