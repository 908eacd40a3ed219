package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

// A refusedCode changes a valid request for tokens.
type refusedCode struct {
	app    *servertest.App
	change func(form url.Values)
	status int
	code   string
	has    string
	after  int // status of the valid exchange afterwards
}

func refusedCodes(app, other, local *servertest.App) map[string]refusedCode {
	return map[string]refusedCode{
		"a wrong secret": {app, func(f url.Values) { f.Set("client_secret", "wrong") }, 401, "invalid_client",
			"Invalid client", 200},
		"no secret": {app, func(f url.Values) { f.Del("client_secret") }, 401, "invalid_client",
			"Invalid client", 200},
		"an unknown client": {app, func(f url.Values) { f.Set("client_id", "noah") }, 401, "invalid_client",
			"Invalid client", 200},
		"no client": {app, func(f url.Values) { f.Del("client_id"); f.Del("client_secret") }, 401,
			"invalid_client", "Invalid client: client_id is missing", 200},
		"a secret alone": {app, func(f url.Values) { f.Del("client_id") }, 401, "invalid_client", "Invalid client",
			200},
		"another client": {app, func(f url.Values) { f.Set("client_id", other.ID); f.Del("client_secret") }, 400,
			"invalid_grant", "Invalid authorization code", 200},
		"an unknown code": {app, func(f url.Values) { f.Set("code", "guessed") }, 400, "invalid_grant",
			"Invalid authorization code", 200},
		"no code": {app, func(f url.Values) { f.Del("code") }, 400, "invalid_request", "code is missing",
			200},
		"no grant type": {app, func(f url.Values) { f.Del("grant_type") }, 400, "invalid_request",
			"grant_type is missing", 200},
		"another grant type": {app, func(f url.Values) { f.Set("grant_type", "password") }, 400,
			"unsupported_grant_type", "password", 200},
		"a redirect with more": {app, func(f url.Values) { f.Set("redirect_uri", servertest.Callback+"/more") }, 400,
			"invalid_grant", "Invalid redirect_uri", 200},
		"a redirect with less": {app, func(f url.Values) {
			f.Set("redirect_uri", strings.TrimSuffix(servertest.Callback,
				"k"))
		},
			400, "invalid_grant", "Invalid redirect_uri", 200},
		"a redirect in capitals": {app, func(f url.Values) { f.Set("redirect_uri", strings.ToUpper(servertest.Callback)) },
			400,
			"invalid_grant", "Invalid redirect_uri", 200},
		"a redirect with a port": {app, func(f url.Values) { f.Set("redirect_uri", "https://app.example:443/callback") },
			400, "invalid_grant", "Invalid redirect_uri", 200},
		"a redirect with a query": {app, func(f url.Values) { f.Set("redirect_uri", servertest.Callback+"?a=b") }, 400,
			"invalid_grant", "Invalid redirect_uri", 200},
		"a redirect and fragment": {app, func(f url.Values) { f.Set("redirect_uri", servertest.Callback+"#a") }, 400,
			"invalid_grant",
			"Invalid redirect_uri", 200},
		"another loopback port": {local, func(f url.Values) { f.Set("redirect_uri", "http://127.0.0.1:4001/callback") },
			400, "invalid_grant", "Invalid redirect_uri", 200},
		"another resource": {app, func(f url.Values) { f.Set("resource", "https://elsewhere.example/mcp") }, 400,
			"invalid_target", "elsewhere.example", 200},
		"two resources": {app, func(f url.Values) {
			f["resource"] = []string{servertest.PublicAt, servertest.PublicAt +
				"/mcp"}
		}, 400,
			"invalid_target", "resource", 200},
		"a parameter twice": {app, func(f url.Values) { f.Add("code", "another") }, 400, "invalid_request", "code",
			200},
		"an unknown one twice": {app, func(f url.Values) { f["x"] = []string{"1", "2"} }, 400, "invalid_request", "'x'",
			200},
		"a wrong verifier": {app, func(f url.Values) { f.Set("code_verifier", strings.Repeat("x", 43)) }, 400,
			"invalid_grant", "code_verifier", 400},
		"no verifier": {other, func(f url.Values) { f.Del("code_verifier") }, 400, "invalid_grant",
			"code_verifier", 400},
		"a verifier of one less": {other, func(f url.Values) { f.Set("code_verifier", servertest.AppVerifier[1:]) }, 400,
			"invalid_grant", "code_verifier", 400},
		"a verifier with a line": {app, func(f url.Values) { f.Set("code_verifier", servertest.AppVerifier+"\n") }, 400,
			"invalid_grant", "code_verifier", 400},
		"a code with a space": {app, func(f url.Values) { f.Set("code", f.Get("code")+" ") }, 400, "invalid_grant",
			"Invalid authorization code", 200},
		"a code that is a refresh": {app,
			func(f url.Values) { f.Set("grant_type", "refresh_token"); f.Set("refresh_token", f.Get("code")) }, 400,
			"invalid_grant", "Invalid refresh_token", 200},
	}
}

// What thieves and faulty clients send to the token endpoint: their answer, and whether the code is still valid for its
// owner afterwards. A mistake that only the owner can make leaves the code valid. Evidence of theft revokes it.
func TestRefusedCodes(t *testing.T) {
	w := servertest.New(t, server.Options{})
	app, other := w.Register("client_secret_basic"), w.Register("none")
	local := w.Register("none", "http://127.0.0.1:4000/callback")
	for name, c := range refusedCodes(&app, &other, &local) {
		t.Run(name, func(t *testing.T) {
			code := w.AuthorizeWrites(*c.app)
			form := c.app.CodeForm(code)
			c.change(form)
			a := refused(w.Post("/oauth/token", form), c.status, c.code, c.has)
			if a.Header.Get("WWW-Authenticate") != "" {
				t.Errorf("a challenge for a client that used none: %q, want none", a.Header.Get("WWW-Authenticate"))
			}
			w.Post("/oauth/token", c.app.CodeForm(code)).Expect(c.after)
		})
	}
}

func TestRequestsWithoutAForm(t *testing.T) {
	w := servertest.New(t, server.Options{})
	app := w.Register("client_secret_basic")
	code := w.AuthorizeWrites(app)
	form := app.CodeForm(code)
	asJSON, err := json.Marshal(map[string]string{"grant_type": "authorization_code", "code": code})
	if err != nil {
		t.Fatal(err)
	}
	withBoth := w.FormRequest("/oauth/token", form.Encode())
	withBoth.SetBasicAuth(app.ID, app.Secret)
	refused(w.Send(withBoth), http.StatusBadRequest, "invalid_request", "client_secret is in the form and the "+
		"Authorization header")
	twoIDs := w.FormRequest("/oauth/token",
		url.Values{"grant_type": {"authorization_code"}, "code": {code}, "client_id": {"another"}}.Encode())
	twoIDs.SetBasicAuth(app.ID, app.Secret)
	refused(w.Send(twoIDs), http.StatusBadRequest, "invalid_request", "differs from the one in the Authorization header")
	for _, header := range []string{"Basic", "Basic !!!", "Basic bm8gY29sb24="} {
		r := w.FormRequest("/oauth/token", form.Encode())
		r.Header.Set("Authorization", header)
		if a := refused(w.Send(r), http.StatusUnauthorized, "invalid_client",
			"Invalid client"); a.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%q is answered without a challenge: got %v, want a WWW-Authenticate that is not empty", header,
				a.Header.Get("WWW-Authenticate"))
		}
	}
	for name, c := range map[string]struct{ kind, body, has string }{
		"JSON":       {"application/json", string(asJSON), "expected application/x-www-form-urlencoded"},
		"multipart":  {"multipart/form-data; boundary=x", "--x--", "expected application/x-www-form-urlencoded"},
		"no type":    {"nothing", form.Encode(), "expected application/x-www-form-urlencoded"},
		"broken":     {"application/x-www-form-urlencoded", "code=%zz", "the body is not valid"},
		"semicolons": {"application/x-www-form-urlencoded", "code=a;b=c", "the body is not valid"},
		"too much":   {"application/x-www-form-urlencoded", "code=" + strings.Repeat("x", 70<<10), "65536"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"/oauth/token", "/oauth/revoke"} {
				r := w.FormRequest(path, c.body)
				r.Header.Set("Content-Type", c.kind)
				refused(w.Send(r), http.StatusBadRequest, "invalid_request", c.has)
			}
		})
	}
	// Parameters in the URL are ignored, since URLs end up in logs.
	refused(w.Post("/oauth/token?"+form.Encode(), url.Values{}), http.StatusUnauthorized, "invalid_client",
		"client_id is missing")
	w.Post("/oauth/token", form).Tokens()
	for what, value := range map[string]string{"the code": code, "the secret": app.Secret} {
		if strings.Contains(w.Log.String(), value) {
			t.Errorf("the log has %s: got %v, want no %q in the log", what, w.Log.String(), value)
		}
	}
}

// A code that comes twice was stolen: the client that came first loses its tokens.
func TestAReusedCodeRevokesItsGrant(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	for _, method := range []string{"none", "client_secret_post"} {
		app := w.Register(method)
		form := app.CodeForm(w.AuthorizeWrites(app))
		set := w.Post("/oauth/token", form).Tokens()
		expectWorks(w, "a token", set.AccessToken, http.StatusOK)
		refused(w.Post("/oauth/token", form), http.StatusBadRequest, "invalid_grant",
			"Invalid authorization code: it was used before")
		expectWorks(w, "the token of a code that came twice", set.AccessToken, http.StatusUnauthorized)
		refused(w.Post("/oauth/token", app.RefreshForm(set.RefreshToken)), http.StatusBadRequest, "invalid_grant")
	}
}

// If many send a code at the same time, one gets tokens, and then loses them.
func TestACodeIsGoodForOne(t *testing.T) {
	w := servertest.New(t, server.Options{})
	app := w.Register("none")
	form := app.CodeForm(w.AuthorizeWrites(app))
	var all sync.WaitGroup
	answers := make([]servertest.Answer, 8)
	for i := range answers {
		all.Go(func() { answers[i] = w.Post("/oauth/token", maps.Clone(form)) })
	}
	all.Wait()
	got := 0
	for _, a := range answers {
		if a.Status == http.StatusOK {
			got++
			expectWorks(w, "what a code gave that others sent, too", a.Tokens().AccessToken, http.StatusUnauthorized)
		}
	}
	if got != 1 {
		t.Errorf("%d got tokens, want 1", got)
	}
}

func TestCodesAndTokensExpire(t *testing.T) {
	longtest.Only(t)
	w, pass := newWorldAt(t, server.Options{})
	app := w.Register("none")
	late := app.CodeForm(w.AuthorizeWrites(app))
	set := w.Post("/oauth/token", app.CodeForm(w.AuthorizeWrites(app))).Tokens()
	pass(5*time.Minute + time.Second)
	refused(w.Post("/oauth/token", late), http.StatusBadRequest, "invalid_grant",
		"Invalid authorization code: it has expired")
	expectWorks(w, "a token within its hour", set.AccessToken, http.StatusOK)
	pass(time.Hour)
	expectWorks(w, "a token after its hour", set.AccessToken, http.StatusUnauthorized)
	next := w.Post("/oauth/token", app.RefreshForm(set.RefreshToken)).Tokens()
	expectWorks(w, "the next token", next.AccessToken, http.StatusOK)
	pass(31 * 24 * time.Hour)
	refused(w.Post("/oauth/token", app.RefreshForm(next.RefreshToken)), http.StatusBadRequest, "invalid_grant",
		"Invalid refresh_token")
}

// Processes of a client that share a refresh token may all use it for a minute. Later use is theft.
func TestReusedRefreshTokens(t *testing.T) {
	w, pass := newWorldAt(t, server.Options{})
	app, other := w.Register("none"), w.Register("none")
	first := w.Post("/oauth/token", app.CodeForm(w.AuthorizeWrites(app))).Tokens()
	second := w.Post("/oauth/token", app.RefreshForm(first.RefreshToken)).Tokens()
	if first.RefreshToken == second.RefreshToken {
		t.Errorf("the refresh token does not change: got %v, want refresh token other than %v", first.RefreshToken,
			second.RefreshToken)
	}
	pass(50 * time.Second)
	third := w.Post("/oauth/token", app.RefreshForm(first.RefreshToken)).Tokens()
	for _, set := range []souvenir.TokenSet{first, second, third} {
		expectWorks(w, "a token within the grace", set.AccessToken, http.StatusOK)
	}
	refused(w.Post("/oauth/token", other.RefreshForm(third.RefreshToken)), http.StatusBadRequest, "invalid_grant",
		"Invalid refresh_token")
	expectWorks(w, "a token after another client's try", third.AccessToken, http.StatusOK)
	pass(20 * time.Second)
	refused(w.Post("/oauth/token", app.RefreshForm(first.RefreshToken)), http.StatusBadRequest, "invalid_grant",
		"Invalid refresh_token: it was used before")
	for _, set := range []souvenir.TokenSet{first, second, third} {
		expectWorks(w, "a token after reuse", set.AccessToken, http.StatusUnauthorized)
		refused(w.Post("/oauth/token", app.RefreshForm(set.RefreshToken)), http.StatusBadRequest, "invalid_grant")
	}
}

func TestRefreshesStayWithinTheGrant(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	app := w.Register("none")
	code := w.Authorize(servertest.Owner, app,
		souvenir.Authorization{Resource: servertest.PublicAt + "/mcp",
			Scopes: []souvenir.Scope{souvenir.ScopeMemoryRead, souvenir.ScopeFilesRead}}).Code
	set := w.Post("/oauth/token", app.CodeForm(code)).Tokens()
	with := func(name, value string) url.Values {
		form := app.RefreshForm(set.RefreshToken)
		form.Set(name, value)
		return form
	}
	if got := w.Post("/oauth/token", with("scope", "memory:read offline_access")).Tokens().Scope; got != "memory:read" {
		t.Errorf("the scope is %q, want \"memory:read\"", got)
	}
	for _, scope := range []string{"", "openid offline_access"} { // with the latter, a client may have asked for the grant
		if got := w.Post("/oauth/token", with("scope", scope)).Tokens().Scope; got != "memory:read files:read" {
			t.Errorf("with scope %q, the scope is %q, want \"memory:read files:read\"", scope, got)
		}
	}
	w.Post("/oauth/token", with("resource", servertest.PublicAt+"/mcp/")).Tokens()
	refused(w.Post("/oauth/token", with("scope", "memory:write")), http.StatusBadRequest, "invalid_scope", "memory:write")
	refused(w.Post("/oauth/token", with("scope", "everything")), http.StatusBadRequest, "invalid_scope", "everything")
	refused(w.Post("/oauth/token", with("resource", servertest.PublicAt)), http.StatusBadRequest, "invalid_target",
		"resource")
	refused(w.Post("/oauth/token", with("resource", "https://elsewhere.example")), http.StatusBadRequest, "invalid_target",
		"elsewhere")
	none := app.RefreshForm("")
	refused(w.Post("/oauth/token", none), http.StatusBadRequest, "invalid_request", "refresh_token is missing")

	// A client that names its resource only now gets it: the user may grant all resources of this server.
	open := w.Post("/oauth/token", app.CodeForm(w.AuthorizeWrites(app))).Tokens()
	form := app.RefreshForm(open.RefreshToken)
	form.Set("resource", servertest.PublicAt+"/mcp")
	expectWorks(w, "a token for the MCP endpoint", w.Post("/oauth/token", form).Tokens().AccessToken, http.StatusOK)
}

func TestRevocationOverHTTP(t *testing.T) {
	w := servertest.New(t, server.Options{})
	app, other := w.Register("client_secret_basic"), w.Register("none")
	for _, pick := range []func(souvenir.TokenSet) string{
		func(set souvenir.TokenSet) string { return set.AccessToken },
		func(set souvenir.TokenSet) string { return set.RefreshToken },
	} {
		set := w.Post("/oauth/token", app.CodeForm(w.AuthorizeWrites(app))).Tokens()
		form := url.Values{"token": {pick(set)}, "token_type_hint": {"refresh_token"}}
		w.Post("/oauth/revoke", url.Values{"token": form["token"], "client_id": {other.ID}}).Expect(http.StatusOK)
		expectWorks(w, "a token that another client revokes", set.AccessToken, http.StatusOK)
		refused(w.Post("/oauth/revoke", url.Values{"token": form["token"], "client_id": {app.ID},
			"client_secret": {"wrong"}}), http.StatusUnauthorized, "invalid_client", "Invalid client")
		refused(w.Post("/oauth/revoke", url.Values{"token": form["token"],
			"client_secret": {app.Secret}}), http.StatusUnauthorized, "invalid_client", "Invalid client")
		wrong := w.FormRequest("/oauth/revoke", form.Encode())
		wrong.SetBasicAuth(app.ID, "wrong")
		if a := refused(w.Send(wrong), http.StatusUnauthorized,
			"invalid_client"); !strings.HasPrefix(a.Header.Get("WWW-Authenticate"), "Basic ") {
			t.Errorf("WWW-Authenticate is %q, want at its start \"Basic \"", a.Header.Get("WWW-Authenticate"))
		}
		expectWorks(w, "a token that was not revoked", set.AccessToken, http.StatusOK)
		right := w.FormRequest("/oauth/revoke", form.Encode())
		right.SetBasicAuth(app.ID, app.Secret)
		w.Send(right).Expect(http.StatusOK)
		expectWorks(w, "a revoked token", set.AccessToken, http.StatusUnauthorized)
		refused(w.Post("/oauth/token", app.RefreshForm(set.RefreshToken)), http.StatusBadRequest, "invalid_grant")
		w.Post("/oauth/revoke", form).Expect(http.StatusOK)

		set = w.Post("/oauth/token", other.CodeForm(w.AuthorizeWrites(other))).Tokens()
		w.Post("/oauth/revoke", url.Values{"token": {pick(set)}}).Expect(http.StatusOK)
		expectWorks(w, "a token that its holder revoked", set.AccessToken, http.StatusUnauthorized)
	}
	w.Post("/oauth/revoke", url.Values{"token": {w.Tokens[servertest.Owner]}}).Expect(http.StatusOK)
	expectWorks(w, "an MCP token, which is not one of OAuth's", w.Tokens[servertest.Owner], http.StatusOK)
	refused(w.Post("/oauth/revoke", url.Values{}), http.StatusBadRequest, "invalid_request", "token is missing")
}

// A deactivated client is invalid at once, at every endpoint, and a new secret replaces the old one.
func TestClientsOfUsersEndAtOnce(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	var app servertest.App
	w.Do(servertest.Owner, "POST", "/oauth/admin/clients", `{"name": "Mine", "redirect_uris": ["`+servertest.Callback+
		`"]}`).Expect(http.StatusOK, `"name":"Mine"`).Decode(&app)
	set := w.Post("/oauth/token", app.CodeForm(w.AuthorizeWrites(app))).Tokens()
	w.Do(servertest.Owner, "POST", "/oauth/admin/clients", `{"client_id": "`+app.ID+`", "redirect_uris": ["`+
		servertest.Callback+
		`"]}`).Expect(http.StatusBadRequest, "isError", app.ID)
	w.Do(servertest.Owner, "POST", "/oauth/admin/clients", `{"name": "`+strings.Repeat("x", 201)+`", "redirect_uris": ["`+
		servertest.Callback+`"]}`).Expect(http.StatusBadRequest, `"error":"name is 201 characters long`)
	w.Do(servertest.Owner, "POST", "/oauth/admin/clients", `{"redirect_uris": []}`).Expect(http.StatusBadRequest,
		"Invalid redirect_uri", "isError")
	w.Do(servertest.Owner, "POST", "/oauth/admin/clients", `{"client_id": "https://a.example/b", "redirect_uris": ["`+
		servertest.Callback+
		`"]}`).Expect(http.StatusBadRequest, "client_id")
	w.Do(servertest.Owner, "GET", "/oauth/admin/clients", "").Expect(http.StatusOK, app.ID,
		`"count":2`).Without(app.Secret)

	old := app
	w.Do(servertest.Owner, "POST", "/oauth/admin/clients/"+app.ID+"/regenerate-secret", "").Expect(http.StatusOK,
		app.ID).Without(old.Secret).Decode(&app)
	code := w.AuthorizeWrites(app)
	refused(w.Post("/oauth/token", old.CodeForm(code)), http.StatusUnauthorized, "invalid_client")
	w.Post("/oauth/token", app.CodeForm(code)).Tokens()
	expectWorks(w, "a token from before the new secret", set.AccessToken, http.StatusOK)

	pending := w.AuthorizeWrites(app)
	w.Do(servertest.Owner, "DELETE", "/oauth/admin/clients/"+app.ID, "").Expect(http.StatusOK)
	expectWorks(w, "a token of a deactivated client", set.AccessToken, http.StatusUnauthorized)
	refused(w.Post("/oauth/token", app.CodeForm(pending)), http.StatusUnauthorized, "invalid_client", "Invalid client")
	refused(w.Post("/oauth/token", app.RefreshForm(set.RefreshToken)), http.StatusUnauthorized, "invalid_client",
		"Invalid client")
	w.Do(servertest.Owner, "GET", "/oauth/admin/clients", "").Expect(http.StatusOK, `"active":false`)
	w.Do(servertest.Owner, "POST", "/oauth/admin/clients/"+app.ID+"/regenerate-secret", "").Expect(http.StatusBadRequest,
		"deactivated")
	w.Do(servertest.Owner, "DELETE", "/oauth/admin/clients/nothing", "").Expect(http.StatusNotFound, "nothing")

	// The three places where these endpoints look for a credential.
	for _, place := range places {
		r := w.Request(servertest.Guest, "GET", "/oauth/admin/clients", nil)
		place.put(r, w.Tokens[servertest.Owner])
		w.Send(r).Expect(http.StatusOK, app.ID)
	}
}

// Registrations and grants are still there after a restart of the server.
func TestOAuthOutlivesTheServer(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	app := w.Register("client_secret_basic")
	set := w.Post("/oauth/token", app.CodeForm(w.AuthorizeWrites(app))).Tokens()
	pending := w.AuthorizeWrites(app)
	w.HTTP.Close()
	if err := w.Store.Close(); err != nil {
		t.Fatal(err)
	}
	again := servertest.Serve(t, w.Plan, w.Database.Open(t, nil), server.Options{})
	expectWorks(again, "a token from before", set.AccessToken, http.StatusOK)
	again.Post("/oauth/token", app.RefreshForm(set.RefreshToken)).Tokens()
	again.Post("/oauth/token", app.CodeForm(pending)).Tokens()
}

// A client known by the URL of its document completes the flow. One whose document is in a private network does not.
func TestClientsOfDocumentsOverHTTP(t *testing.T) {
	longtest.Only(t)
	var asked atomic.Int64
	host := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"client_id": "https://%s%s", "client_name": "Editor", "redirect_uris": `+
			`["http://127.0.0.1/callback"]}`, r.Host, r.URL.Path)
	}))
	defer host.Close()
	app := servertest.App{ID: host.URL + "/client.json", Redirect: []string{"http://127.0.0.1:4711/callback"}}
	ask := func(w *servertest.World) servertest.Answer {
		return w.Do(servertest.Guest, "GET", "/oauth/authorize?"+
			url.Values{"client_id": {app.ID}, "redirect_uri": app.Redirect, "response_type": {"code"},
				"code_challenge": {strings.Repeat("A", 43)}, "code_challenge_method": {"S256"}}.Encode(), "")
	}

	guarded := servertest.New(t, server.Options{})
	guarded.Doc = nil // which does not describe pages
	a := ask(guarded).Expect(http.StatusBadRequest, "Invalid client", "cannot be reached").Without("refused", "not public")
	if a.Header.Get("Location") != "" || asked.Load() != 0 {
		t.Errorf("the host of a private network was asked %d times; the answer leads to %q, want no Location and load 0",
			asked.Load(), a.Header.Get("Location"))
	}
	if !strings.Contains(guarded.Log.String(), "is not public") {
		t.Errorf(`the log does not say why: got %v, want "is not public" in the log`, guarded.Log.String())
	}

	w := servertest.New(t, server.Options{ClientDocuments: host.Client()})
	w.HTTP.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	ask(w).Expect(http.StatusSeeOther) // to sign in
	set := w.Post("/oauth/token", app.CodeForm(w.AuthorizeWrites(app))).Tokens()
	expectWorks(w, "a token", set.AccessToken, http.StatusOK)
	w.Post("/oauth/token", app.RefreshForm(set.RefreshToken)).Tokens()
	if n := asked.Load(); n != 1 {
		t.Errorf("the document was fetched %d times, want 1", n)
	}
}

// If the store fails, the endpoints report errors in their own form. The cause goes only to the log.
func TestFailuresOfTheServerAtOAuthEndpoints(t *testing.T) {
	w := servertest.New(t, server.Options{})
	if err := w.Store.Close(); err != nil {
		t.Fatal(err)
	}
	app := servertest.App{ID: "x", Redirect: []string{servertest.Callback}}
	refused(w.Post("/oauth/token", app.CodeForm("y")), http.StatusInternalServerError, "server_error").Without("closed")
	refused(w.Post("/oauth/revoke", url.Values{"token": {"y"}}), http.StatusInternalServerError,
		"server_error").Without("closed")
	refused(w.Do(servertest.Guest, "POST", "/oauth/register", `{"redirect_uris": ["`+servertest.Callback+`"]}`),
		http.StatusInternalServerError,
		"server_error").Without("closed")
	if !strings.Contains(w.Log.String(), "the store is closed") {
		t.Errorf("the log does not say why, want \"the store is closed\" in the log:\n%s", w.Log.String())
	}
}
