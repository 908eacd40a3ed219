package servertest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// App is a registered OAuth client.
type App struct {
	ID       string   `json:"client_id"`
	Secret   string   `json:"client_secret"`
	Redirect []string `json:"redirect_uris"`
	Method   string   `json:"token_endpoint_auth_method"`
}

// The redirect URI and the PKCE verifier of an [App].
const (
	Callback    = "https://app.example/callback"
	AppVerifier = "a-verifier-that-is-long-enough-for-the-rules-of-pkce"
)

// Register registers an application over HTTP.
func (w *World) Register(method string, redirects ...string) App {
	w.T.Helper()
	return w.RegisterAs("App", method, redirects...)
}

// RegisterAs does the same with a name.
func (w *World) RegisterAs(name, method string, redirects ...string) App {
	w.T.Helper()
	if redirects == nil {
		redirects = []string{Callback}
	}
	body, err := json.Marshal(map[string]any{"redirect_uris": redirects, "token_endpoint_auth_method": method,
		"client_name": name})
	if err != nil {
		w.T.Fatal(err)
	}
	var app App
	w.Do(Guest, "POST", "/oauth/register", string(body)).Expect(http.StatusCreated).Decode(&app)
	return app
}

// OwnApp adds a client with a secret for a user.
func (w *World) OwnApp(by, id string) App {
	w.T.Helper()
	client, err := w.Store.As(souvenir.Access{User: w.Users[by]}).Accounts().AddClient(background,
		souvenir.NewClient{ID: id, RedirectURIs: []string{Callback}})
	if err != nil {
		w.T.Fatal(err)
	}
	return App{ID: client.ID, Secret: client.Secret, Redirect: client.Metadata.RedirectURIs}
}

// AuthorizeURL returns the address to which an application sends a browser. The given pairs replace parameters, or
// remove them if the value is empty.
func (app App) AuthorizeURL(given ...string) string {
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

// Allow consents to an application's request, with changes to the form.
func (b *Browser) Allow(asked string, changes url.Values) *Page {
	b.W.T.Helper()
	form := b.Get(asked).Stays(http.StatusOK).HTML.Fields()
	form.Set("decision", "allow")
	for name, values := range changes {
		form[name] = values
	}
	return b.Post("/oauth/authorize", form)
}

// AuthorizeWrites consents, as Olivia and without a page, to writing memories. It returns the code for the application.
func (w *World) AuthorizeWrites(app App) string {
	w.T.Helper()
	return w.Authorize(Owner, app, souvenir.Authorization{Scopes: []souvenir.Scope{souvenir.ScopeMemoryWrite}}).Code
}

// Authorize consents as a caller to an authorization.
func (w *World) Authorize(caller string, app App, a souvenir.Authorization) souvenir.AuthorizationCode {
	w.T.Helper()
	a.ClientID, a.RedirectURI, a.CodeChallenge, a.CodeChallengeMethod = app.ID, app.Redirect[0], appChallenge(), "S256"
	code, err := w.Store.As(souvenir.Access{User: w.Users[caller]}).Accounts().Authorize(background, a)
	if err != nil {
		w.T.Fatal(err)
	}
	return code
}

// appChallenge is the challenge for AppVerifier (RFC 7636, section 4.2).
func appChallenge() string {
	sum := sha256.Sum256([]byte(AppVerifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// CodeForm returns the form that exchanges a code.
func (app App) CodeForm(code string) url.Values {
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {app.Redirect[0]},
		"code_verifier": {AppVerifier}, "client_id": {app.ID}}
	if app.Secret != "" {
		form.Set("client_secret", app.Secret)
	}
	return form
}

// RefreshForm returns the form that exchanges a refresh token.
func (app App) RefreshForm(token string) url.Values {
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}, "client_id": {app.ID}}
	if app.Secret != "" {
		form.Set("client_secret", app.Secret)
	}
	return form
}

// Redeem exchanges the code of a redirect back to an application.
func (w *World) Redeem(app App, sentBack *Page) souvenir.TokenSet {
	w.T.Helper()
	return w.Post("/oauth/token", app.CodeForm(sentBack.GoesTo(app.Redirect[0]).Get("code"))).Tokens()
}

// AccessTokenOf registers a client, consents as a caller, and returns the access token and the id of the grant.
func (w *World) AccessTokenOf(caller, name string, a souvenir.Authorization) (token, grant string) {
	w.T.Helper()
	app := w.RegisterAs(name, "none")
	code := w.Authorize(caller, app, a)
	return w.Post("/oauth/token", app.CodeForm(code.Code)).Tokens().AccessToken, code.GrantID
}

// Hold replaces a caller's token.
func (w *World) Hold(caller, token string) {
	w.Tokens = maps.Clone(w.Tokens)
	w.Tokens[caller] = token
}

// Post sends a form as an application.
func (w *World) Post(path string, form url.Values) Answer {
	w.T.Helper()
	return w.Send(w.FormRequest(path, form.Encode()))
}

// FormRequest returns the request for an encoded form.
func (w *World) FormRequest(path, form string) *http.Request {
	w.T.Helper()
	r := w.Request(Guest, "POST", path, strings.NewReader(form))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

// Tokens reads an answer of the token endpoint.
func (a Answer) Tokens() (set souvenir.TokenSet) {
	a.T.Helper()
	a.Expect(http.StatusOK)
	a.Decode(&set)
	if set.TokenType != "Bearer" || set.ExpiresIn != 3600 || set.AccessToken == "" || set.RefreshToken == "" ||
		set.Scope == "" {
		a.T.Errorf("the tokens are %s", a.Body)
	}
	if a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("Pragma") != "no-cache" {
		a.T.Errorf(`tokens could be kept: %v, want Cache-Control "no-store" and Pragma "no-cache"`, a.Header)
	}
	return set
}
