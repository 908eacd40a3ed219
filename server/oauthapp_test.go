package server_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/souvenir-ai/souvenir"
)

// oauthApp is an OAuth client as programs are.
type oauthApp struct {
	ID       string   `json:"client_id"`
	Secret   string   `json:"client_secret"`
	Redirect []string `json:"redirect_uris"`
	Method   string   `json:"token_endpoint_auth_method"`
}

const (
	callback    = "https://app.example/callback"
	appVerifier = "a-verifier-that-is-long-enough-for-the-rules-of-pkce"
)

// register registers an application over HTTP.
func (w *world) register(method string, redirects ...string) oauthApp {
	w.t.Helper()
	return w.registerAs("App", method, redirects...)
}

// registerAs registers an application that calls itself something.
func (w *world) registerAs(name, method string, redirects ...string) oauthApp {
	w.t.Helper()
	if redirects == nil {
		redirects = []string{callback}
	}
	body, err := json.Marshal(map[string]any{"redirect_uris": redirects, "token_endpoint_auth_method": method,
		"client_name": name})
	if err != nil {
		w.t.Fatal(err)
	}
	var app oauthApp
	w.do(guest, "POST", "/oauth/register", string(body)).expect(http.StatusCreated).decode(&app)
	return app
}

// ownApp has someone make a client that has a secret.
func (w *world) ownApp(by, id string) oauthApp {
	w.t.Helper()
	client, err := w.store.As(souvenir.Access{User: w.users[by]}).Accounts().AddClient(background,
		souvenir.NewClient{ID: id, RedirectURIs: []string{callback}})
	if err != nil {
		w.t.Fatal(err)
	}
	return oauthApp{ID: client.ID, Secret: client.Secret, Redirect: client.Metadata.RedirectURIs}
}

// asks is the address that an application sends a browser to. What is given replaces a parameter, or removes it if
// empty.
func (app oauthApp) asks(given ...string) string {
	parameters := url.Values{
		"response_type": {"code"}, "client_id": {app.ID}, "redirect_uri": {app.Redirect[0]}, "state": {"state of the client"},
		"code_challenge": {appChallenge()}, "code_challenge_method": {"S256"},
	}
	for i := 0; i < len(given); i += 2 {
		parameters.Set(given[i], given[i+1])
		if given[i+1] == "" {
			parameters.Del(given[i])
		}
	}
	return "/oauth/authorize?" + parameters.Encode()
}

// letIn lets an application in as it asks, or as a form says otherwise.
func (b *browser) letIn(asked string, changes url.Values) *gotPage {
	b.w.t.Helper()
	form := b.get(asked).stays(http.StatusOK).html.fields()
	form.Set("decision", "allow")
	for name, values := range changes {
		form[name] = values
	}
	return b.post("/oauth/authorize", form)
}

// letIn has Olivia consent to writing memories, without a page, and returns the code that her browser would carry to
// the application.
func (w *world) letIn(app oauthApp) string {
	w.t.Helper()
	return w.authorize(owner, app, souvenir.Authorization{Scopes: []souvenir.Scope{souvenir.ScopeMemoryWrite}}).Code
}

// authorize has a caller consent, as far as an authorization says.
func (w *world) authorize(caller string, app oauthApp, a souvenir.Authorization) souvenir.AuthorizationCode {
	w.t.Helper()
	a.ClientID, a.RedirectURI, a.CodeChallenge, a.CodeChallengeMethod = app.ID, app.Redirect[0], appChallenge(), "S256"
	code, err := w.store.As(souvenir.Access{User: w.users[caller]}).Accounts().Authorize(background, a)
	if err != nil {
		w.t.Fatal(err)
	}
	return code
}

// appChallenge is what applications send ahead of appVerifier (RFC 7636, section 4.2).
func appChallenge() string {
	sum := sha256.Sum256([]byte(appVerifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// codeForm is the form with which a code is exchanged.
func (app oauthApp) codeForm(code string) url.Values {
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {app.Redirect[0]},
		"code_verifier": {appVerifier}, "client_id": {app.ID}}
	if app.Secret != "" {
		form.Set("client_secret", app.Secret)
	}
	return form
}

// refreshForm is the form with which a refresh token is exchanged.
func (app oauthApp) refreshForm(token string) url.Values {
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}, "client_id": {app.ID}}
	if app.Secret != "" {
		form.Set("client_secret", app.Secret)
	}
	return form
}

// redeem exchanges the code with which a browser is sent back to an application.
func (w *world) redeem(app oauthApp, sentBack *gotPage) souvenir.TokenSet {
	w.t.Helper()
	return w.post("/oauth/token", app.codeForm(sentBack.goesTo(app.Redirect[0]).Get("code"))).tokens()
}
