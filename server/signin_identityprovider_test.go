package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// identityProvider is a small OpenID Connect provider that a test can make misbehave.
type identityProvider struct {
	t   *testing.T
	at  *httptest.Server
	key *ecdsa.PrivateKey

	mu       sync.Mutex
	codes    map[string]url.Values // the requests, by code
	claims   map[string]any        // about the signed-in person; a nil value omits a claim from the token
	userInfo map[string]any        // what the UserInfo endpoint returns
	metadata map[string]any        // replaces correct values
	answer   url.Values            // replaces values of the callback; an empty value omits a parameter
	sign     func(jwt.MapClaims) string
	asked    url.Values // values of the last request
	sent     []string   // paths of the server's requests
	down     bool
	redirect string // where the token endpoint sends requests
}

func newIdentityProvider(t *testing.T) *identityProvider {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &identityProvider{t: t, key: key, codes: map[string]url.Values{}, claims: map[string]any{"sub": "olivia-there"}}
	p.at = httptest.NewServer(p)
	t.Cleanup(p.at.Close)
	return p
}

// options returns the options of a server that trusts the provider.
func (p *identityProvider) options() server.Options {
	return server.Options{Provider: &server.Provider{Issuer: p.at.URL, ClientID: "souvenir",
		ClientSecret: "s3cret+/ of it", Name: "Example ID"}}
}

// set changes the provider while it runs.
func (p *identityProvider) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *identityProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, r.URL.Path)
	if p.down {
		http.Error(w, "down", http.StatusBadGateway)
		return
	}
	write := func(v any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(v); err != nil {
			p.t.Error(err)
		}
	}
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		m := map[string]any{"issuer": p.at.URL, "authorization_endpoint": p.at.URL + "/auth", "token_endpoint": p.at.URL +
			"/token", "jwks_uri": p.at.URL + "/keys",
			"userinfo_endpoint": p.at.URL + "/me", "id_token_signing_alg_values_supported": []string{"ES256", "HS256", "none"},
			"authorization_response_iss_parameter_supported": true}
		maps.Copy(m, p.metadata)
		write(m)
	case "/keys":
		point, err := p.key.PublicKey.Bytes()
		if err != nil {
			p.t.Error(err)
		}
		write(map[string]any{"keys": []any{map[string]any{"kty": "EC", "crv": "P-256", "kid": "1", "use": "sig",
			"alg": "ES256",
			"x":   base64.RawURLEncoding.EncodeToString(point[1:33]), "y": base64.RawURLEncoding.EncodeToString(point[33:])}}})
	case "/token":
		if p.redirect != "" {
			http.Redirect(w, r, p.redirect, http.StatusTemporaryRedirect)
			return
		}
		p.token(w, r, write)
	case "/me":
		if r.Header.Get("Authorization") != "Bearer access" {
			p.t.Errorf("the UserInfo endpoint is asked with %q, want \"Bearer access\"", r.Header.Get("Authorization"))
		}
		write(p.userInfo)
	default:
		http.NotFound(w, r)
	}
}

func (p *identityProvider) token(w http.ResponseWriter, r *http.Request, write func(any)) {
	id, secret, _ := r.BasicAuth()
	asked, known := p.codes[r.PostFormValue("code")]
	delete(p.codes, r.PostFormValue("code")) // valid once
	challenge := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if id != "souvenir" || secret != url.QueryEscape("s3cret+/ of it") || !known ||
		r.PostFormValue("redirect_uri") != asked.Get("redirect_uri") ||
		base64.RawURLEncoding.EncodeToString(challenge[:]) != asked.Get("code_challenge") ||
		asked.Get("code_challenge_method") != "S256" {
		w.WriteHeader(http.StatusBadRequest)
		write(map[string]any{"error": "invalid_grant"})
		return
	}
	hash := sha256.Sum256([]byte("access"))
	now := time.Now()
	claims := jwt.MapClaims{"iss": p.at.URL, "aud": "souvenir", "nonce": asked.Get("nonce"), "iat": now.Unix(),
		"exp":     now.Add(time.Minute).Unix(),
		"at_hash": base64.RawURLEncoding.EncodeToString(hash[:16])}
	for name, value := range p.claims {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	sign := p.sign
	if sign == nil {
		sign = p.signed(jwt.SigningMethodES256, p.key)
	}
	write(map[string]any{"access_token": "access", "token_type": "Bearer", "expires_in": 60, "id_token": sign(claims)})
}

// signed returns a function that signs id tokens.
func (p *identityProvider) signed(method jwt.SigningMethod, key any) func(jwt.MapClaims) string {
	return func(claims jwt.MapClaims) string {
		token := jwt.NewWithClaims(method, claims)
		token.Header["kid"] = "1"
		signed, err := token.SignedString(key)
		if err != nil {
			p.t.Error(err)
		}
		return signed
	}
}

// signIn does what happens in the browser at the provider, and returns the path of the callback.
func (p *identityProvider) signIn(page *servertest.Page) string {
	p.t.Helper()
	at, err := url.Parse(page.Header.Get("Location"))
	if err != nil || page.Status != http.StatusSeeOther || at.Scheme+"://"+at.Host+at.Path != p.at.URL+"/auth" {
		p.t.Fatalf("got %d %q, %v, want status %v to %v: %.600s", page.Status, page.Header.Get("Location"), err,
			http.StatusSeeOther, p.at.URL+"/auth", page.Body)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = at.Query()
	code := rand.Text()
	p.codes[code] = p.asked
	answer := url.Values{"code": {code}, "state": {p.asked.Get("state")}, "iss": {p.at.URL}}
	for name, values := range p.answer {
		if answer[name] = values; len(values) == 0 {
			answer.Del(name)
		}
	}
	callback, err := url.Parse(p.asked.Get("redirect_uri"))
	if err != nil {
		p.t.Fatal(err)
	}
	return callback.Path + "?" + answer.Encode()
}

// atProvider goes to the provider and back.
func atProvider(b *servertest.Browser, p *identityProvider) *servertest.Page {
	b.W.T.Helper()
	return b.Get(p.signIn(b.Get("/login/provider")))
}

// linked is a world in which Olivia can sign in with the provider.
func linked(t *testing.T, p *identityProvider, options server.Options) *servertest.World {
	t.Helper()
	w := servertest.New(t, options)
	setPassword(w, servertest.Owner)
	if _, err := w.Store.Accounts().LinkIdentity(t.Context(),
		souvenir.NewIdentity{User: w.Users[servertest.Owner], Issuer: p.at.URL, Subject: "olivia-there"}); err != nil {
		t.Fatal(err)
	}
	return w
}
