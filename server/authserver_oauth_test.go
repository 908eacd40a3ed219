package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

// oauthEndpoints are the OAuth endpoints except the token endpoint, for each caller. Olivia has added the client app.
func oauthEndpoints() []endpoint {
	open := map[string]int{servertest.Guest: 200, servertest.Stranger: 200, servertest.Garbage: 200,
		servertest.Revoked: 200}
	created := map[string]int{servertest.Guest: 201, servertest.Stranger: 201, servertest.Garbage: 201,
		servertest.Revoked: 201}
	own := everyone(404, map[string]int{servertest.Owner: 200, servertest.NoFiles: 403, servertest.Limited: 403,
		servertest.ReadOnly: 403, servertest.NoMemory: 403})
	return []endpoint{
		{name: "server metadata", method: "GET", path: "/.well-known/oauth-authorization-server", rows: open,
			has: []string{`"issuer":"` + servertest.PublicAt + `"`}},
		{name: "server metadata of OpenID Connect", method: "GET", path: "/.well-known/openid-configuration", rows: open,
			has: []string{`"issuer":"` + servertest.PublicAt + `"`}},
		{name: "resource metadata", method: "GET", path: "/.well-known/oauth-protected-resource", rows: open,
			has: []string{`"resource":"` + servertest.PublicAt + `"`}},
		{name: "resource metadata of MCP", method: "GET", path: "/.well-known/oauth-protected-resource/mcp", rows: open,
			has: []string{`"resource":"` + servertest.PublicAt + `/mcp"`}},
		{name: "register", method: "POST", path: "/oauth/register", rows: created,
			has: []string{`"client_secret_expires_at":0`}, without: []string{servertest.Secret},
			body: `{"redirect_uris": ["https://client.example/callback"]}`},
		{name: "register where old clients guess", method: "POST", path: "/register", rows: created,
			has: []string{`"client_id":`}, without: []string{servertest.Secret, "null"},
			body: `{"redirect_uris": ["https://client.example/callback"], "token_endpoint_auth_method": "none"}`},
		{name: "revoke", method: "POST", path: "/oauth/revoke", form: true, body: "token=unknown", rows: open,
			has: []string{"{}"}},

		{name: "list clients", method: "GET", path: "/oauth/admin/clients",
			rows: everyone(200, map[string]int{servertest.Limited: 403, servertest.NoMemory: 403}), has: []string{`"clients":[`,
				`"count":`},
			without: []string{"client_secret\""}},
		{name: "make a client", method: "POST", path: "/oauth/admin/clients",
			has:     []string{`"client_id":"mine"`, `"client_secret":"s3cr3t"`, `"active":true`},
			without: []string{servertest.Secret},
			body: `{"client_id": "mine", "client_secret": "s3cr3t", "name": "Mine", "redirect_uris": ` +
				`["https://mine.example/callback"]}`,
			rows: everyone(200, map[string]int{servertest.Limited: 403, servertest.ReadOnly: 403, servertest.NoFiles: 403,
				servertest.NoMemory: 403})},
		{name: "regenerate a secret", method: "POST", path: "/oauth/admin/clients/app/regenerate-secret", rows: own,
			has: []string{`"client_secret":"`, `"client_id":"app"`}},
		{name: "deactivate a client", method: "DELETE", path: "/oauth/admin/clients/app", rows: own,
			has: []string{`"success":true`}, without: []string{servertest.Secret}},
	}
}

// refused checks an OAuth error.
func refused(a servertest.Answer, status int, code string, has ...string) servertest.Answer {
	a.T.Helper()
	a.Expect(status, append(has, `"error":"`+code+`"`, `"error_description":"`)...)
	if got := a.Header.Get("Cache-Control"); got != "no-store" {
		a.T.Errorf("Cache-Control is %q, want \"no-store\"", got)
	}
	if got := a.Header.Get("Content-Type"); got != "application/json" {
		a.T.Errorf("Content-Type is %q, want \"application/json\"", got)
	}
	return a
}

// works returns the status for an access token.
func works(w *servertest.World, token string) int {
	w.T.Helper()
	r := w.Request(servertest.Guest, "GET", "/api/owner-ids/me", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	return w.Send(r).Status
}

func expectWorks(w *servertest.World, what, token string, status int) {
	w.T.Helper()
	if got := works(w, token); got != status {
		w.T.Errorf("%s is answered with %d, want %d", what, got, status)
	}
}

// newWorldAt is newWorld with a clock that the test advances. It starts now, since the server uses the real time.
func newWorldAt(t *testing.T, options server.Options) (w *servertest.World, pass func(time.Duration)) {
	t.Helper()
	p := servertest.Template(t)
	var ahead atomic.Int64
	store := p.Copy(t).Open(t,
		&souvenir.Options{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	return servertest.Serve(t, p, store, options), func(d time.Duration) { ahead.Add(int64(d)) }
}

func TestServerMetadataIsWhatClientsNeed(t *testing.T) {
	w := servertest.New(t, server.Options{PublicURL: "https://memory.example/"})
	var found map[string]any
	a := w.Do(servertest.Guest, "GET", "/.well-known/oauth-authorization-server", "").Expect(http.StatusOK).Without("null",
		"offline_access", `"admin"`)
	a.Decode(&found)
	for name, want := range map[string]any{
		"issuer":                                         "https://memory.example",
		"authorization_endpoint":                         "https://memory.example/oauth/authorize",
		"token_endpoint":                                 "https://memory.example/oauth/token",
		"revocation_endpoint":                            "https://memory.example/oauth/revoke",
		"registration_endpoint":                          "https://memory.example/oauth/register",
		"jwks_uri":                                       "https://memory.example/oauth/jwks",
		"response_types_supported":                       []any{"code"},
		"grant_types_supported":                          []any{"authorization_code", "refresh_token"},
		"code_challenge_methods_supported":               []any{"S256"},
		"token_endpoint_auth_methods_supported":          []any{"none", "client_secret_basic", "client_secret_post"},
		"authorization_response_iss_parameter_supported": true,
		"client_id_metadata_document_supported":          true,
		"scopes_supported": []any{"memory:read", "memory:write", "files:read", "files:write",
			"account"},
	} {
		got, err := json.Marshal(found[name])
		wanted, err2 := json.Marshal(want)
		if err != nil || err2 != nil || string(got) != string(wanted) {
			t.Errorf("%s is %s, want %s", name, got, wanted)
		}
	}
	for _, name := range []string{"token_endpoint", "revocation_endpoint", "registration_endpoint", "jwks_uri"} {
		if a := w.Do(servertest.Guest, "GET", strings.TrimPrefix(found[name].(string), "https://memory.example"),
			""); a.Status == http.StatusNotFound {
			t.Errorf("%s is not served: got %v, want status other than %v", name, a.Status, http.StatusNotFound)
		}
	}
	if alias := w.Do(servertest.Guest, "GET", "/.well-known/openid-configuration", ""); alias.Body != a.Body {
		t.Errorf("the alias differs: %s; want %v", alias.Body, a.Body)
	}
	w.Do(servertest.Guest, "GET", "/.well-known/oauth-protected-resource/mcp", "").Expect(http.StatusOK,
		`"resource":"https://memory.example/mcp"`,
		`"authorization_servers":["https://memory.example"]`,
		`"bearer_methods_supported":["header"]`).Without("offline_access",
		"null")
}

// Pages of any origin may read the metadata and use the endpoints. Public answers are cached for a while, others never.
func TestOAuthHeaders(t *testing.T) {
	w := servertest.New(t, server.Options{})
	for _, path := range []string{
		"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration",
		"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp",
	} {
		a, head := w.Do(servertest.Guest, "GET", path, "").Expect(http.StatusOK), w.Do(servertest.Guest, "HEAD", path,
			"").Expect(http.StatusOK)
		if a.Header.Get("Cache-Control") != "public, max-age=300" || a.Header.Get("Access-Control-Allow-Origin") != "*" ||
			head.Body != "" {
			t.Errorf(`%s: got %v, want Cache-Control "public, max-age=300", Access-Control-Allow-Origin "*" and no body`, path,
				a.Header)
		}
	}
	for _, path := range []string{"/.well-known/oauth-authorization-server", "/oauth/token", "/token", "/oauth/revoke",
		"/oauth/register", "/register"} {
		r := w.Request(servertest.Guest, "OPTIONS", path, nil)
		r.Header.Set("Origin", "https://chat.example")
		a := w.Send(r).Expect(http.StatusNoContent)
		if a.Header.Get("Access-Control-Allow-Origin") != "*" ||
			!strings.Contains(a.Header.Get("Access-Control-Allow-Headers"), "Authorization, Content-Type") ||
			a.Header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf(`%s: got %v, want Access-Control-Allow-Origin "*", "Authorization, Content-Type" in the `+
				"Access-Control-Allow-Headers and no Access-Control-Allow-Credentials", path, a.Header)
		}
	}
	for _, path := range []string{"/oauth/token", "/token", "/oauth/revoke", "/oauth/register"} {
		a := refused(w.Do(servertest.Guest, "GET", path, ""), http.StatusMethodNotAllowed, "invalid_request", "OPTIONS, POST")
		if a.Header.Get("Allow") != "OPTIONS, POST" {
			t.Errorf(`%s: %v, got %v, want "OPTIONS, POST"`, path, a.Header, a.Header.Get("Allow"))
		}
	}
}

// With a prefix, the documents are below it and also, as the RFCs say, between host and prefix.
func TestMetadataOfAPrefix(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{PublicURL: "https://example.com/memory"})
	mounted := server.New(w.Store, &server.Options{PublicURL: "https://example.com/memory"})
	mux := http.NewServeMux()
	mux.Handle("/memory/", http.StripPrefix("/memory", mounted))
	mux.Handle("/.well-known/", mounted)
	w.HTTP.Config.Handler, w.Doc = mux, nil
	for path, has := range map[string]string{
		"/memory/.well-known/oauth-authorization-server":     `"issuer":"https://example.com/memory"`,
		"/memory/.well-known/openid-configuration":           `"token_endpoint":"https://example.com/memory/oauth/token"`,
		"/.well-known/oauth-authorization-server/memory":     `"issuer":"https://example.com/memory"`,
		"/.well-known/openid-configuration/memory":           `"issuer":"https://example.com/memory"`,
		"/.well-known/oauth-protected-resource/memory":       `"resource":"https://example.com/memory"`,
		"/.well-known/oauth-protected-resource/memory/mcp":   `"resource":"https://example.com/memory/mcp"`,
		"/memory/.well-known/oauth-protected-resource/mcp":   `"resource":"https://example.com/memory/mcp"`,
		"/memory/.well-known/oauth-protected-resource":       `"resource":"https://example.com/memory"`,
		"/memory/.well-known/oauth-authorization-server/mcp": "",
	} {
		a := w.Do(servertest.Guest, "GET", path, "")
		if has == "" {
			a.Expect(http.StatusNotFound, "isError")
			continue
		}
		a.Expect(http.StatusOK, has)
	}
	challenge := w.Do(servertest.Guest, "POST", "/memory/mcp",
		"{}").Expect(http.StatusUnauthorized).Header.Get("WWW-Authenticate")
	_, after, _ := strings.Cut(challenge, `resource_metadata="https://example.com`)
	where, _, _ := strings.Cut(after, `"`)
	w.Do(servertest.Guest, "GET", where, "").Expect(http.StatusOK, `"resource":"https://example.com/memory/mcp"`)
}

func TestRegistrationIsEchoed(t *testing.T) {
	w := servertest.New(t, server.Options{})
	var found map[string]any
	w.Do(servertest.Guest, "POST", "/oauth/register",
		`{"redirect_uris": ["http://localhost:1234/callback", "cursor://anysphere.cursor-mcp/oauth/callback"],
		"client_name": "Claude", "client_uri": "https://claude.ai", "logo_uri": null,
		"scope": "memory:read offline_access", "grant_types": ["authorization_code", "refresh_token", "implicit"],
		"response_types": ["code"], "token_endpoint_auth_method": "none", "software_id": "x", "custom": {"a": [1, 2]}}`).
		Expect(http.StatusCreated).Without("null", "client_secret").Decode(&found)
	want := `{"client_name":"Claude","client_uri":"https://claude.ai","custom":{"a":[1,2]},` +
		`"grant_types":["authorization_code","refresh_token"],` +
		`"redirect_uris":["http://localhost:1234/callback","cursor://anysphere.cursor-mcp/oauth/callback"],` +
		`"response_types":["code"],"scope":"memory:read","software_id":"x","token_endpoint_auth_method":"none"}`
	if found["client_id"] == "" || found["client_id_issued_at"] == 0.0 {
		t.Errorf("got %v, want a client_id and a time in client_id_issued_at", found)
	}
	maps.DeleteFunc(found, func(name string, _ any) bool {
		return slices.Contains([]string{"client_id", "client_id_issued_at"}, name)
	})
	if got, err := json.Marshal(found); err != nil || string(got) != want {
		t.Errorf("the answer is %s, want %s", got, want)
	}
	w.Do(servertest.Guest, "POST", "/oauth/register",
		`{"redirect_uris": ["https://a.example/b"], "client_id": "chosen"}`).Expect(http.StatusCreated,
		`"token_endpoint_auth_method":"client_secret_basic"`, `"client_secret_expires_at":0`).Without("chosen")
}

func TestWrongRegistrations(t *testing.T) {
	w := servertest.New(t, server.Options{})
	for name, c := range map[string]struct{ kind, body, code, has string }{
		"no JSON": {"application/json", `{"redirect_uris": `, "invalid_client_metadata", "JSON"},
		"a form": {"application/x-www-form-urlencoded", `redirect_uris=x`, "invalid_client_metadata",
			"expected application/json"},
		"nothing":      {"application/json", ``, "invalid_client_metadata", "empty"},
		"null":         {"application/json", `null`, "invalid_client_metadata", "null"},
		"a list":       {"application/json", `[]`, "invalid_client_metadata", "object"},
		"no redirects": {"application/json", `{}`, "invalid_redirect_uri", "Invalid redirect_uri"},
		"a redirect of text": {"application/json", `{"redirect_uris": "https://a.example/b"}`, "invalid_client_metadata",
			"redirect_uris"},
		"plain http": {"application/json", `{"redirect_uris": ["http://a.example/b"]}`, "invalid_redirect_uri",
			"Invalid redirect_uri"},
		"a script": {"application/json", `{"redirect_uris": ["javascript:alert(1)"]}`, "invalid_redirect_uri",
			"Invalid redirect_uri"},
		"data": {"application/json", `{"redirect_uris": ["data:text/html,x"]}`, "invalid_redirect_uri",
			"Invalid redirect_uri"},
		"a fragment": {"application/json", `{"redirect_uris": ["https://a.example/b#c"]}`, "invalid_redirect_uri",
			"Invalid redirect_uri"},
		"a wildcard": {"application/json", `{"redirect_uris": ["https://*.example/b"]}`, "invalid_redirect_uri",
			"Invalid redirect_uri"},
		"an unknown method": {"application/json",
			`{"redirect_uris": ["https://a.example/b"], "token_endpoint_auth_method": "private_key_jwt"}`,
			"invalid_client_metadata", "private_key_jwt"},
		"a name of two rows": {"application/json", `{"redirect_uris": ["https://a.example/b"], "client_name": "a\nb"}`,
			"invalid_client_metadata", "client_name"},
		"too much": {"application/json", `{"redirect_uris": ["https://a.example/b"], "x": "` +
			strings.Repeat("x", 70<<10) + `"}`, "invalid_client_metadata", "65536"},
		"more than is kept": {"application/json", `{"redirect_uris": ["https://a.example/b"], "x": "` +
			strings.Repeat("x", 20<<10) + `"}`, "invalid_client_metadata", "16384"},
	} {
		t.Run(name, func(t *testing.T) {
			r := w.Request(servertest.Guest, "POST", "/oauth/register", strings.NewReader(c.body))
			r.Header.Set("Content-Type", c.kind)
			a := refused(w.Send(r), http.StatusBadRequest, c.code, c.has)
			var failure struct {
				Description string `json:"error_description"`
			}
			a.Decode(&failure)
			if strings.ContainsFunc(failure.Description,
				func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
				t.Errorf("%q has characters that a description has not, want none of them", failure.Description)
			}
		})
	}
}

// One address may register many clients, up to a limit. Others are not affected, and an address cannot be faked.
func TestRegistrationsAreLimitedByAddress(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	expectRegistrations(t, func(i int) servertest.Answer {
		if i == 50 {
			registerFrom(w, "6.6.6.6, 2001:db8::1").Expect(http.StatusCreated)
		}
		return registerFrom(w, []string{"198.51.100.7", "6.6.6.6, 198.51.100.7"}[i%2])
	})
	registerFrom(w, "198.51.100.8").Expect(http.StatusCreated)
}

// The three ways in which a client authenticates, and those that real clients use to find the right one.
func TestClientsAuthenticateAsTheyLike(t *testing.T) {
	w := servertest.New(t, server.Options{})
	basic := func(form url.Values, id, secret string) servertest.Answer {
		form.Del("client_secret")
		r := w.FormRequest("/oauth/token", form.Encode())
		r.SetBasicAuth(id, secret)
		return w.Send(r)
	}
	for _, method := range []string{"client_secret_basic", "client_secret_post", "none"} {
		app := w.Register(method)
		if (app.Secret == "") != (method == "none") || app.Method != method {
			t.Errorf("with %s was registered %+v, want that method, and a secret for it alone", method, app)
		}
		expectWorks(w, "a token", w.Post("/oauth/token", app.CodeForm(w.AuthorizeWrites(app))).Tokens().AccessToken,
			http.StatusOK)
		set := basic(app.CodeForm(w.AuthorizeWrites(app)), app.ID, app.Secret).Tokens()
		expectWorks(w, "a token", set.AccessToken, http.StatusOK)
		form := app.RefreshForm(set.RefreshToken)
		form.Del("client_id")
		basic(form, app.ID, app.Secret).Tokens()
		for path := range map[string]bool{"/oauth/token": true, "/token": true} {
			w.Post(path, app.CodeForm(w.AuthorizeWrites(app))).Tokens()
		}
	}

	// A chosen secret, in a header with and without the required encoding.
	const chosen = "a+b%c/d=e:f&g"
	var app servertest.App
	w.Do(servertest.Owner, "POST", "/oauth/admin/clients", `{"client_id": "one:two", "client_secret": "`+chosen+
		`", "redirect_uris": ["`+servertest.Callback+`"]}`).Expect(http.StatusOK).Decode(&app)
	basic(app.CodeForm(w.AuthorizeWrites(app)), url.QueryEscape(app.ID), url.QueryEscape(chosen)).Tokens()
	app = servertest.App{}
	w.Do(servertest.Owner, "POST", "/oauth/admin/clients", `{"client_id": "three", "client_secret": "`+chosen+
		`", "redirect_uris": ["`+servertest.Callback+`"]}`).Expect(http.StatusOK).Decode(&app)
	basic(app.CodeForm(w.AuthorizeWrites(app)), app.ID, chosen).Tokens()

	// Libraries that do not know try a wrong way first, and then send the same code again.
	app = w.Register("client_secret_post")
	form := app.CodeForm(w.AuthorizeWrites(app))
	a := refused(basic(maps.Clone(form), app.ID, ""), http.StatusUnauthorized, "invalid_client", "Invalid client")
	if !strings.HasPrefix(a.Header.Get("WWW-Authenticate"), "Basic ") {
		t.Errorf("WWW-Authenticate is %q, want at its start \"Basic \"", a.Header.Get("WWW-Authenticate"))
	}
	w.Post("/oauth/token", form).Tokens()
}

func TestForms(t *testing.T) {
	w := servertest.New(t, server.Options{})
	app := w.Register("client_secret_post")
	for name, c := range map[string]struct {
		kind, form string
		status     int
	}{
		"with a charset": {"application/x-www-form-urlencoded; charset=UTF-8", app.CodeForm(w.AuthorizeWrites(app)).Encode(),
			200},
		"without a type": {"", app.CodeForm(w.AuthorizeWrites(app)).Encode(), 200},
		"with the resource": {"application/x-www-form-urlencoded", app.CodeForm(w.AuthorizeWrites(app)).Encode() +
			"&resource=" + servertest.PublicAt + "/mcp/&resource=" + servertest.PublicAt + "/mcp", 200},
		"with empty parameters": {"application/x-www-form-urlencoded", app.CodeForm(w.AuthorizeWrites(app)).Encode() +
			"&resource=&scope=", 200},
		"with unknown ones": {"application/x-www-form-urlencoded", app.CodeForm(w.AuthorizeWrites(app)).Encode() +
			"&client_info=1", 200},
	} {
		t.Run(name, func(t *testing.T) {
			r := w.Request(servertest.Guest, "POST", "/oauth/token", strings.NewReader(c.form))
			if c.kind != "" {
				r.Header.Set("Content-Type", c.kind)
			}
			w.Send(r).Expect(c.status)
		})
	}
}
