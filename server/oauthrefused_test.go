package server_test

import (
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
	"github.com/souvenir-ai/souvenir/server"
)

// What thieves, and clients with mistakes, send to the token endpoint: what they get, and whether the code is
// still good for its owner afterwards. A wrong try that only its owner can have made ends nothing; what shows that a
// code has been stolen ends it.
func TestCodesThatAreRefused(t *testing.T) {
	w := newWorld(t, server.Options{})
	app, other := w.register("client_secret_basic"), w.register("none")
	local := w.register("none", "http://127.0.0.1:4000/callback")
	for name, c := range map[string]struct {
		app    *oauthApp
		change func(form url.Values)
		status int
		code   string
		has    string
		after  int // status of the right exchange afterwards
	}{
		"a wrong secret": {&app, func(f url.Values) { f.Set("client_secret", "wrong") }, 401, "invalid_client",
			"Invalid client", 200},
		"no secret": {&app, func(f url.Values) { f.Del("client_secret") }, 401, "invalid_client",
			"Invalid client", 200},
		"an unknown client": {&app, func(f url.Values) { f.Set("client_id", "nobody") }, 401, "invalid_client",
			"Invalid client", 200},
		"no client": {&app, func(f url.Values) { f.Del("client_id"); f.Del("client_secret") }, 401,
			"invalid_client", "Invalid client: client_id is missing", 200},
		"a secret alone": {&app, func(f url.Values) { f.Del("client_id") }, 401, "invalid_client", "Invalid client",
			200},
		"another client": {&app, func(f url.Values) { f.Set("client_id", other.ID); f.Del("client_secret") }, 400,
			"invalid_grant", "Invalid authorization code", 200},
		"an unknown code": {&app, func(f url.Values) { f.Set("code", "guessed") }, 400, "invalid_grant",
			"Invalid authorization code", 200},
		"no code": {&app, func(f url.Values) { f.Del("code") }, 400, "invalid_request", "code is missing",
			200},
		"no grant type": {&app, func(f url.Values) { f.Del("grant_type") }, 400, "invalid_request",
			"grant_type is missing", 200},
		"another grant type": {&app, func(f url.Values) { f.Set("grant_type", "password") }, 400,
			"unsupported_grant_type", "password", 200},
		"a redirect with more": {&app, func(f url.Values) { f.Set("redirect_uri", callback+"/more") }, 400,
			"invalid_grant", "Invalid redirect_uri", 200},
		"a redirect with less": {&app, func(f url.Values) { f.Set("redirect_uri", strings.TrimSuffix(callback, "k")) },
			400, "invalid_grant", "Invalid redirect_uri", 200},
		"a redirect in capitals": {&app, func(f url.Values) { f.Set("redirect_uri", strings.ToUpper(callback)) }, 400,
			"invalid_grant", "Invalid redirect_uri", 200},
		"a redirect with a port": {&app, func(f url.Values) { f.Set("redirect_uri", "https://app.example:443/callback") },
			400, "invalid_grant", "Invalid redirect_uri", 200},
		"a redirect with a query": {&app, func(f url.Values) { f.Set("redirect_uri", callback+"?a=b") }, 400,
			"invalid_grant", "Invalid redirect_uri", 200},
		"a redirect and fragment": {&app, func(f url.Values) { f.Set("redirect_uri", callback+"#a") }, 400, "invalid_grant",
			"Invalid redirect_uri", 200},
		"another loopback port": {&local, func(f url.Values) { f.Set("redirect_uri", "http://127.0.0.1:4001/callback") },
			400, "invalid_grant", "Invalid redirect_uri", 200},
		"another resource": {&app, func(f url.Values) { f.Set("resource", "https://elsewhere.example/mcp") }, 400,
			"invalid_target", "elsewhere.example", 200},
		"two resources": {&app, func(f url.Values) { f["resource"] = []string{publicAt, publicAt + "/mcp"} }, 400,
			"invalid_target", "resource", 200},
		"a parameter twice": {&app, func(f url.Values) { f.Add("code", "another") }, 400, "invalid_request", "code",
			200},
		"an unknown one twice": {&app, func(f url.Values) { f["x"] = []string{"1", "2"} }, 400, "invalid_request", "'x'",
			200},
		"a wrong verifier": {&app, func(f url.Values) { f.Set("code_verifier", strings.Repeat("x", 43)) }, 400,
			"invalid_grant", "code_verifier", 400},
		"no verifier": {&other, func(f url.Values) { f.Del("code_verifier") }, 400, "invalid_grant",
			"code_verifier", 400},
		"a verifier of one less": {&other, func(f url.Values) { f.Set("code_verifier", appVerifier[1:]) }, 400,
			"invalid_grant", "code_verifier", 400},
		"a verifier with a line": {&app, func(f url.Values) { f.Set("code_verifier", appVerifier+"\n") }, 400,
			"invalid_grant", "code_verifier", 400},
		"a code with a space": {&app, func(f url.Values) { f.Set("code", f.Get("code")+" ") }, 400, "invalid_grant",
			"Invalid authorization code", 200},
		"a code that is a refresh": {&app,
			func(f url.Values) { f.Set("grant_type", "refresh_token"); f.Set("refresh_token", f.Get("code")) }, 400,
			"invalid_grant", "Invalid refresh_token", 200},
	} {
		t.Run(name, func(t *testing.T) {
			code := w.letIn(*c.app)
			form := c.app.codeForm(code)
			c.change(form)
			a := w.post("/oauth/token", form).refused(c.status, c.code, c.has)
			if a.header.Get("WWW-Authenticate") != "" {
				t.Errorf("a challenge for a client that used none: %q, want none", a.header.Get("WWW-Authenticate"))
			}
			w.post("/oauth/token", c.app.codeForm(code)).expect(c.after)
		})
	}
}

func TestRequestsThatAreNoForms(t *testing.T) {
	w := newWorld(t, server.Options{})
	app := w.register("client_secret_basic")
	code := w.letIn(app)
	form := app.codeForm(code)
	asJSON, err := json.Marshal(map[string]string{"grant_type": "authorization_code", "code": code})
	if err != nil {
		t.Fatal(err)
	}
	withBoth := w.formRequest("/oauth/token", form.Encode())
	withBoth.SetBasicAuth(app.ID, app.Secret)
	w.send(withBoth).refused(http.StatusBadRequest, "invalid_request", "client_secret is in the form and the header")
	twoIDs := w.formRequest("/oauth/token",
		url.Values{"grant_type": {"authorization_code"}, "code": {code}, "client_id": {"another"}}.Encode())
	twoIDs.SetBasicAuth(app.ID, app.Secret)
	w.send(twoIDs).refused(http.StatusBadRequest, "invalid_request", "differs from the one in the header")
	for _, header := range []string{"Basic", "Basic !!!", "Basic bm8gY29sb24="} {
		r := w.formRequest("/oauth/token", form.Encode())
		r.Header.Set("Authorization", header)
		if a := w.send(r).refused(http.StatusUnauthorized, "invalid_client",
			"Invalid client"); a.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%q is answered without a challenge", header)
		}
	}
	for name, c := range map[string]struct{ kind, body, has string }{
		"JSON":       {"application/json", string(asJSON), "application/x-www-form-urlencoded is needed"},
		"multipart":  {"multipart/form-data; boundary=x", "--x--", "application/x-www-form-urlencoded is needed"},
		"no type":    {"nothing", form.Encode(), "application/x-www-form-urlencoded is needed"},
		"broken":     {"application/x-www-form-urlencoded", "code=%zz", "the body is not valid"},
		"semicolons": {"application/x-www-form-urlencoded", "code=a;b=c", "the body is not valid"},
		"too much":   {"application/x-www-form-urlencoded", "code=" + strings.Repeat("x", 70<<10), "65536"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"/oauth/token", "/oauth/revoke"} {
				r := w.formRequest(path, c.body)
				r.Header.Set("Content-Type", c.kind)
				w.send(r).refused(http.StatusBadRequest, "invalid_request", c.has)
			}
		})
	}
	// What is in the URL does not count: URLs end up in logs.
	w.post("/oauth/token?"+form.Encode(), url.Values{}).refused(http.StatusUnauthorized, "invalid_client",
		"client_id is missing")
	w.post("/oauth/token", form).tokens()
	for what, value := range map[string]string{"the code": code, "the secret": app.Secret} {
		if strings.Contains(w.log.String(), value) {
			t.Errorf("the log has %s", what)
		}
	}
}

// A code that comes twice was stolen: whichever client came first loses what it got.
func TestACodeThatComesTwiceEndsWhatItGave(t *testing.T) {
	w := newWorld(t, server.Options{})
	for _, method := range []string{"none", "client_secret_post"} {
		app := w.register(method)
		form := app.codeForm(w.letIn(app))
		set := w.post("/oauth/token", form).tokens()
		w.expectWorks("a token", set.AccessToken, http.StatusOK)
		w.post("/oauth/token", form).refused(http.StatusBadRequest, "invalid_grant",
			"Invalid authorization code: it has been used before")
		w.expectWorks("the token of a code that came twice", set.AccessToken, http.StatusUnauthorized)
		w.post("/oauth/token", app.refreshForm(set.RefreshToken)).refused(http.StatusBadRequest, "invalid_grant")
	}
}

// Of many who send a code at the same time one gets tokens at most, and they all notice.
func TestACodeIsGoodForOne(t *testing.T) {
	w := newWorld(t, server.Options{})
	app := w.register("none")
	form := app.codeForm(w.letIn(app))
	var all sync.WaitGroup
	answers := make([]answer, 8)
	for i := range answers {
		all.Go(func() { answers[i] = w.post("/oauth/token", maps.Clone(form)) })
	}
	all.Wait()
	got := 0
	for _, a := range answers {
		if a.status == http.StatusOK {
			got++
			w.expectWorks("what a code gave that others sent, too", a.tokens().AccessToken, http.StatusUnauthorized)
		}
	}
	if got != 1 {
		t.Errorf("%d got tokens", got)
	}
}

func TestCodesAndTokensExpire(t *testing.T) {
	w, pass := newWorldAt(t, server.Options{})
	app := w.register("none")
	late := app.codeForm(w.letIn(app))
	set := w.post("/oauth/token", app.codeForm(w.letIn(app))).tokens()
	pass(5*time.Minute + time.Second)
	w.post("/oauth/token", late).refused(http.StatusBadRequest, "invalid_grant",
		"Invalid authorization code: it has expired")
	w.expectWorks("a token within its hour", set.AccessToken, http.StatusOK)
	pass(time.Hour)
	w.expectWorks("a token after its hour", set.AccessToken, http.StatusUnauthorized)
	next := w.post("/oauth/token", app.refreshForm(set.RefreshToken)).tokens()
	w.expectWorks("the next token", next.AccessToken, http.StatusOK)
	pass(31 * 24 * time.Hour)
	w.post("/oauth/token", app.refreshForm(next.RefreshToken)).refused(http.StatusBadRequest, "invalid_grant",
		"Invalid refresh_token")
}

// Processes of a client that share a refresh token may all use it, for a minute. Who comes later with it is a thief.
func TestRefreshTokensThatComeAgain(t *testing.T) {
	w, pass := newWorldAt(t, server.Options{})
	app, other := w.register("none"), w.register("none")
	first := w.post("/oauth/token", app.codeForm(w.letIn(app))).tokens()
	second := w.post("/oauth/token", app.refreshForm(first.RefreshToken)).tokens()
	if first.RefreshToken == second.RefreshToken {
		t.Error("the refresh token does not change")
	}
	pass(50 * time.Second)
	third := w.post("/oauth/token", app.refreshForm(first.RefreshToken)).tokens()
	for _, set := range []souvenir.TokenSet{first, second, third} {
		w.expectWorks("a token within the grace", set.AccessToken, http.StatusOK)
	}
	w.post("/oauth/token", other.refreshForm(third.RefreshToken)).refused(http.StatusBadRequest, "invalid_grant",
		"Invalid refresh_token")
	w.expectWorks("a token after another client's try", third.AccessToken, http.StatusOK)
	pass(20 * time.Second)
	w.post("/oauth/token", app.refreshForm(first.RefreshToken)).refused(http.StatusBadRequest, "invalid_grant",
		"Invalid refresh_token: it has been used before")
	for _, set := range []souvenir.TokenSet{first, second, third} {
		w.expectWorks("a token after reuse", set.AccessToken, http.StatusUnauthorized)
		w.post("/oauth/token", app.refreshForm(set.RefreshToken)).refused(http.StatusBadRequest, "invalid_grant")
	}
}

func TestRefreshesAreNoMoreThanWhatWasGranted(t *testing.T) {
	w := newWorld(t, server.Options{})
	app := w.register("none")
	code := w.authorize(owner, app,
		souvenir.Authorization{Resource: publicAt + "/mcp",
			Scopes: []souvenir.Scope{souvenir.ScopeMemoryRead, souvenir.ScopeFilesRead}}).Code
	set := w.post("/oauth/token", app.codeForm(code)).tokens()
	with := func(name, value string) url.Values {
		form := app.refreshForm(set.RefreshToken)
		form.Set(name, value)
		return form
	}
	if got := w.post("/oauth/token", with("scope", "memory:read offline_access")).tokens().Scope; got != "memory:read" {
		t.Errorf("the scope is %q, want \"memory:read\"", got)
	}
	if got := w.post("/oauth/token", app.refreshForm(set.RefreshToken)).tokens().Scope; got != "memory:read files:read" {
		t.Errorf("the scope is %q, want \"memory:read files:read\"", got)
	}
	w.post("/oauth/token", with("resource", publicAt+"/mcp/")).tokens()
	w.post("/oauth/token", with("scope", "memory:write")).refused(http.StatusBadRequest, "invalid_scope", "memory:write")
	w.post("/oauth/token", with("scope", "everything")).refused(http.StatusBadRequest, "invalid_scope", "everything")
	w.post("/oauth/token", with("resource", publicAt)).refused(http.StatusBadRequest, "invalid_target", "resource")
	w.post("/oauth/token", with("resource", "https://elsewhere.example")).refused(http.StatusBadRequest, "invalid_target",
		"elsewhere")
	none := app.refreshForm("")
	w.post("/oauth/token", none).refused(http.StatusBadRequest, "invalid_request", "refresh_token is missing")

	// A client that names its resource only now gets it: of the ones that are served here, all are the user's to give.
	open := w.post("/oauth/token", app.codeForm(w.letIn(app))).tokens()
	form := app.refreshForm(open.RefreshToken)
	form.Set("resource", publicAt+"/mcp")
	w.expectWorks("a token for the MCP endpoint", w.post("/oauth/token", form).tokens().AccessToken, http.StatusOK)
}

func TestRevocationOverHTTP(t *testing.T) {
	w := newWorld(t, server.Options{})
	app, other := w.register("client_secret_basic"), w.register("none")
	for _, pick := range []func(souvenir.TokenSet) string{
		func(set souvenir.TokenSet) string { return set.AccessToken },
		func(set souvenir.TokenSet) string { return set.RefreshToken },
	} {
		set := w.post("/oauth/token", app.codeForm(w.letIn(app))).tokens()
		form := url.Values{"token": {pick(set)}, "token_type_hint": {"refresh_token"}}
		w.post("/oauth/revoke", url.Values{"token": form["token"], "client_id": {other.ID}}).expect(http.StatusOK)
		w.expectWorks("a token that another client revokes", set.AccessToken, http.StatusOK)
		w.post("/oauth/revoke", url.Values{"token": form["token"], "client_id": {app.ID},
			"client_secret": {"wrong"}}).refused(http.StatusUnauthorized, "invalid_client", "Invalid client")
		w.post("/oauth/revoke", url.Values{"token": form["token"],
			"client_secret": {app.Secret}}).refused(http.StatusUnauthorized, "invalid_client", "Invalid client")
		wrong := w.formRequest("/oauth/revoke", form.Encode())
		wrong.SetBasicAuth(app.ID, "wrong")
		if a := w.send(wrong).refused(http.StatusUnauthorized,
			"invalid_client"); !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Basic ") {
			t.Errorf("WWW-Authenticate is %q, want at its start \"Basic \"", a.header.Get("WWW-Authenticate"))
		}
		w.expectWorks("a token that was not revoked", set.AccessToken, http.StatusOK)
		right := w.formRequest("/oauth/revoke", form.Encode())
		right.SetBasicAuth(app.ID, app.Secret)
		w.send(right).expect(http.StatusOK)
		w.expectWorks("a revoked token", set.AccessToken, http.StatusUnauthorized)
		w.post("/oauth/token", app.refreshForm(set.RefreshToken)).refused(http.StatusBadRequest, "invalid_grant")
		w.post("/oauth/revoke", form).expect(http.StatusOK)

		set = w.post("/oauth/token", other.codeForm(w.letIn(other))).tokens()
		w.post("/oauth/revoke", url.Values{"token": {pick(set)}}).expect(http.StatusOK)
		w.expectWorks("a token that its holder revoked", set.AccessToken, http.StatusUnauthorized)
	}
	w.post("/oauth/revoke", url.Values{"token": {w.tokens[owner]}}).expect(http.StatusOK)
	w.expectWorks("an MCP token, which is not one of OAuth's", w.tokens[owner], http.StatusOK)
	w.post("/oauth/revoke", url.Values{}).refused(http.StatusBadRequest, "invalid_request", "token is missing")
}

// A client that is deactivated is none from that moment on, wherever it comes, and a new secret is the only one.
func TestClientsOfUsersEndAtOnce(t *testing.T) {
	w := newWorld(t, server.Options{})
	var app oauthApp
	w.do(owner, "POST", "/oauth/admin/clients", `{"name": "Mine", "redirect_uris": ["`+callback+
		`"]}`).expect(http.StatusOK, `"name":"Mine"`).decode(&app)
	set := w.post("/oauth/token", app.codeForm(w.letIn(app))).tokens()
	w.do(owner, "POST", "/oauth/admin/clients", `{"client_id": "`+app.ID+`", "redirect_uris": ["`+callback+
		`"]}`).expect(http.StatusBadRequest, "isError", app.ID)
	w.do(owner, "POST", "/oauth/admin/clients", `{"redirect_uris": []}`).expect(http.StatusBadRequest,
		"Invalid redirect_uri", "isError")
	w.do(owner, "POST", "/oauth/admin/clients", `{"client_id": "https://a.example/b", "redirect_uris": ["`+callback+
		`"]}`).expect(http.StatusBadRequest, "client_id")
	w.do(owner, "GET", "/oauth/admin/clients", "").expect(http.StatusOK, app.ID, `"count":2`).without(app.Secret)

	old := app
	w.do(owner, "POST", "/oauth/admin/clients/"+app.ID+"/regenerate-secret", "").expect(http.StatusOK,
		app.ID).without(old.Secret).decode(&app)
	code := w.letIn(app)
	w.post("/oauth/token", old.codeForm(code)).refused(http.StatusUnauthorized, "invalid_client")
	w.post("/oauth/token", app.codeForm(code)).tokens()
	w.expectWorks("a token from before the new secret", set.AccessToken, http.StatusOK)

	pending := w.letIn(app)
	w.do(owner, "DELETE", "/oauth/admin/clients/"+app.ID, "").expect(http.StatusOK)
	w.expectWorks("a token of a deactivated client", set.AccessToken, http.StatusUnauthorized)
	w.post("/oauth/token", app.codeForm(pending)).refused(http.StatusUnauthorized, "invalid_client", "Invalid client")
	w.post("/oauth/token", app.refreshForm(set.RefreshToken)).refused(http.StatusUnauthorized, "invalid_client",
		"Invalid client")
	w.do(owner, "GET", "/oauth/admin/clients", "").expect(http.StatusOK, `"active":false`)
	w.do(owner, "POST", "/oauth/admin/clients/"+app.ID+"/regenerate-secret", "").expect(http.StatusBadRequest,
		"deactivated")
	w.do(owner, "DELETE", "/oauth/admin/clients/nothing", "").expect(http.StatusNotFound, "nothing")

	// The three places where these endpoints look for a credential.
	for _, place := range places {
		r := w.request(guest, "GET", "/oauth/admin/clients", nil)
		place.put(r, w.tokens[owner])
		w.send(r).expect(http.StatusOK, app.ID)
	}
}

// What was registered and granted is there after the server has ended and begun again.
func TestOAuthOutlivesTheServer(t *testing.T) {
	w := newWorld(t, server.Options{})
	app := w.register("client_secret_basic")
	set := w.post("/oauth/token", app.codeForm(w.letIn(app))).tokens()
	pending := w.letIn(app)
	copied := t.TempDir() + "/copy.db"
	if err := w.store.Upkeep().Backup(background, copied, nil); err != nil {
		t.Fatal(err)
	}
	store, err := souvenir.Open(background, copied, nil)
	if err != nil {
		t.Fatal(err)
	}
	again := serve(t, w.plan, store, server.Options{})
	again.expectWorks("a token from before", set.AccessToken, http.StatusOK)
	again.post("/oauth/token", app.refreshForm(set.RefreshToken)).tokens()
	again.post("/oauth/token", app.codeForm(pending)).tokens()
}

// A client that is the URL of its document goes all the way, and one whose document lies in a private network goes
// nowhere.
func TestClientsOfDocumentsOverHTTP(t *testing.T) {
	var asked atomic.Int64
	host := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"client_id": "https://%s%s", "client_name": "Editor", "redirect_uris": `+
			`["http://127.0.0.1/callback"]}`, r.Host, r.URL.Path)
	}))
	defer host.Close()
	app := oauthApp{ID: host.URL + "/client.json", Redirect: []string{"http://127.0.0.1:4711/callback"}}
	ask := func(w *world) answer {
		return w.do(guest, "GET", "/oauth/authorize?"+
			url.Values{"client_id": {app.ID}, "redirect_uri": app.Redirect, "response_type": {"code"},
				"code_challenge": {strings.Repeat("A", 43)}, "code_challenge_method": {"S256"}}.Encode(), "")
	}

	guarded := newWorld(t, server.Options{})
	guarded.doc = nil // which says nothing of pages
	a := ask(guarded).expect(http.StatusBadRequest, "Invalid client", "cannot be reached").without("refused", "not public")
	if a.header.Get("Location") != "" || asked.Load() != 0 {
		t.Errorf("the host of a private network was asked %d times; the answer leads to %q", asked.Load(),
			a.header.Get("Location"))
	}
	if !strings.Contains(guarded.log.String(), "is not public") {
		t.Error("the log does not say why")
	}

	w := newWorld(t, server.Options{ClientDocuments: host.Client()})
	w.at.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	ask(w).expect(http.StatusSeeOther) // to sign in
	set := w.post("/oauth/token", app.codeForm(w.letIn(app))).tokens()
	w.expectWorks("a token", set.AccessToken, http.StatusOK)
	w.post("/oauth/token", app.refreshForm(set.RefreshToken)).tokens()
	if n := asked.Load(); n != 1 {
		t.Errorf("the document was fetched %d times, want 1", n)
	}
}

// A store that fails makes the endpoints fail, in their own form; the cause is for the log alone.
func TestFailuresOfTheServerAtOAuthEndpoints(t *testing.T) {
	w := newWorld(t, server.Options{})
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	app := oauthApp{ID: "x", Redirect: []string{callback}}
	w.post("/oauth/token", app.codeForm("y")).refused(http.StatusInternalServerError, "server_error").without("closed")
	w.post("/oauth/revoke", url.Values{"token": {"y"}}).refused(http.StatusInternalServerError,
		"server_error").without("closed")
	w.do(guest, "POST", "/oauth/register", `{"redirect_uris": ["`+callback+`"]}`).refused(http.StatusInternalServerError,
		"server_error").without("closed")
	if !strings.Contains(w.log.String(), "the store is closed") {
		t.Errorf("the log does not say why:\n%s", w.log.String())
	}
}
