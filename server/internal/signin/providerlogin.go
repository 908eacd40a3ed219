package signin

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/route"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// People sign in at an external provider by the authorization code flow of OpenID Connect Core 1.0 with PKCE (RFC
// 7636). A link between the provider's issuer and subject and a user identifies them here: never an e-mail address.

// ProviderRoutes is the table of the pages of an external provider.
func (s *Service) ProviderRoutes() []route.Route {
	return []route.Route{
		route.Get(providerLoginPath, route.Public, s.beginProviderLogin),
		route.Get(providerAnswersPath, route.Public, s.endProviderLogin),
		route.Post("/profile/identities", route.Person, s.beginLink),
		route.Post("/profile/identities/end", route.Person, s.unlink),
	}
}

// newAccount is the maximum time that creating an account takes.
const newAccount = 10 * time.Second

// providerLeeway is how far the provider's clock may be behind.
const providerLeeway = time.Minute

// askedAgain is the parameter of the sign-in's addresses that demands a fresh sign-in.
const askedAgain = "again"

// otherSignIn is the button for signing in at the provider.
type otherSignIn struct{ Name, Path string }

// otherSignIn returns the button, or nil without a provider. Next is where to go after sign-in; again demands a
// fresh one.
func (s *Service) otherSignIn(next string, again bool) *otherSignIn {
	if s.provider == nil {
		return nil
	}
	query := url.Values{}
	if next != "" {
		query.Set("next", next)
	}
	if again {
		query.Set(askedAgain, "1")
	}
	path := s.site.Path(providerLoginPath)
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return &otherSignIn{s.provider.Name, path}
}

// beginProviderLogin sends a browser to the provider.
func (s *Service) beginProviderLogin(w http.ResponseWriter, r *http.Request, _ request.Caller) (any, error) {
	return s.toProvider(w, r, loginState{Next: r.URL.Query().Get("next"), Again: r.URL.Query().Has(askedAgain)})
}

// toProvider sends a browser to the provider.
func (s *Service) toProvider(w http.ResponseWriter, r *http.Request, j loginState) (any, error) {
	d, err := s.provider.discover(r.Context())
	if err != nil {
		if r.Context().Err() != nil {
			return nil, err
		}
		return nil, &failure.Error{Status: http.StatusServiceUnavailable, Message: s.provider.Name +
			" cannot be reached at the moment; try again in a few seconds, or sign in with your password"}
	}
	if j, err = s.beginLogin(w, r, j); err != nil {
		return nil, err
	}
	options := []oauth2.AuthCodeOption{oidc.Nonce(j.Nonce), oauth2.S256ChallengeOption(j.Verifier)}
	if len(s.provider.RequireACR) > 0 {
		options = append(options, oauth2.SetAuthURLParam("acr_values", strings.Join(s.provider.RequireACR, " ")))
	}
	if j.Again { // with max_age, the provider reports when the person signed in there (section 3.1.2.1)
		options = append(options, oauth2.SetAuthURLParam("prompt", "login"),
			oauth2.SetAuthURLParam("max_age", strconv.Itoa(int(s.recently.Seconds()))))
	}
	return web.Redirect(s.providerConfig(d).AuthCodeURL(j.State, options...)), nil
}

// providerConfig returns the OAuth library's configuration, with the redirect URI.
func (s *Service) providerConfig(d *discovered) *oauth2.Config {
	config := d.oauth
	config.RedirectURL = s.site.PublicURL + providerAnswersPath
	return &config
}

// endProviderLogin handles the provider's redirect back.
func (s *Service) endProviderLogin(w http.ResponseWriter, r *http.Request, _ request.Caller) (any, error) {
	since := time.Now()
	answer := r.URL.Query()
	j, ok := s.endLogin(w, r, answer.Get("state"))
	if !ok {
		return nil, &failure.Error{Status: http.StatusBadRequest,
			Message: "this sign-in took too long, was started in another browser, or is over; start again"}
	}
	who, err := s.askProvider(r.Context(), j, answer)
	if err != nil {
		return s.refuseProvider(r, j, err)
	}
	if j.Session != "" {
		return s.link(r, j, who)
	}
	user, err := s.userAt(r.Context(), who)
	if user.CreatedAt.After(since.Add(-newAccount)) {
		since = time.Time{} // the account is being created, by this request or a concurrent one, and was not checked before
	}
	if err == nil {
		err = s.signInShown(w, r, user, souvenir.NewSignIn{Since: since, Confirmed: who.At})
	}
	if err != nil {
		return s.refuseProvider(r, j, err)
	}
	return web.Redirect(s.site.LocalPath(j.Next)), nil
}

// providerRefusal is the reason for a failed sign-in, as the page shows it. The cause is logged.
type providerRefusal struct {
	message string
	cause   error
	again   bool // a new sign-in at the provider may help
}

func (e *providerRefusal) Error() string { return e.message + ": " + e.cause.Error() }
func (e *providerRefusal) Unwrap() error { return e.cause }

// refusedSignIn is the data of the page about a failed sign-in at the provider.
type refusedSignIn struct {
	Problem string
	Other   *otherSignIn // nil: link to the profile
}

// refuseProvider shows why a sign-in or linking failed, and how to go on.
func (s *Service) refuseProvider(r *http.Request, j loginState, err error) (any, error) {
	var refusal *providerRefusal
	if errors.Is(err, souvenir.ErrUnauthenticated) {
		refusal = &providerRefusal{message: "This account is disabled, or has just been changed. Ask an admin of this server",
			cause: err}
	} else if !errors.As(err, &refusal) {
		return nil, err
	}
	s.log.WarnContext(r.Context(), "a sign-in at the identity provider was rejected",
		"error", brief(refusal.cause))
	data := refusedSignIn{Problem: web.Sentence(refusal.message)}
	if j.Session == "" {
		data.Other = s.otherSignIn(j.Next, j.Again || refusal.again)
	}
	return web.Page{Template: "refused", Title: "You are not signed in", Status: http.StatusForbidden, Data: data}, nil
}

// brief shortens an error for the log; it may contain the provider's response.
func brief(err error) string {
	const most = 500
	text := err.Error()
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// asserted is a person's identity as the provider asserts it.
type asserted struct {
	Subject  string
	Email    string
	Verified bool // the e-mail address, by the provider
	Username string
	At       time.Time // time of the sign-in there; zero: unknown
}

// idClaims are the claims of an ID token that the library does not check (OpenID Connect Core 1.0, section 2).
type idClaims struct {
	Azp string   `json:"azp"`
	ACR string   `json:"acr"`
	AMR textList `json:"amr"`

	AuthTime int64 `json:"auth_time"` // seconds since 1970
	profileClaims
}

// profileClaims are in an ID token or at the UserInfo endpoint (section 5.1).
type profileClaims struct {
	Email         string    `json:"email"`
	EmailVerified looseBool `json:"email_verified"`
	Username      string    `json:"preferred_username"`
}

// askProvider fetches and checks the provider's assertions.
func (s *Service) askProvider(ctx context.Context, j loginState, answer url.Values) (asserted, error) {
	p := s.provider
	unsure := func(cause error) (asserted, error) {
		return asserted{}, &providerRefusal{message: "What " + p.Name +
			" answered cannot be trusted, so nothing was done. Try again; the log of this server has details",
			cause: cause}
	}
	d, err := p.discover(ctx)
	if err != nil {
		return asserted{}, &providerRefusal{message: p.Name + " cannot be reached at the moment; try again in a few seconds",
			cause: err}
	}
	if iss := answer.Get("iss"); iss != p.Issuer && (iss != "" || d.tellsIss) {
		return unsure(errors.New("the answer is from the issuer " + failure.Quote(iss) + " (RFC 9207)"))
	}
	if code := answer.Get("error"); code != "" {
		return asserted{}, &providerRefusal{message: p.Name + " did not sign you in, or you cancelled", again: true,
			cause: errors.New(failure.Quote(code) + ": " + failure.Quote(answer.Get("error_description")))}
	}
	code := answer.Get("code")
	if code == "" {
		return unsure(errors.New("the answer has neither a code nor an error"))
	}
	ctx = oidc.ClientContext(ctx, p.http)
	token, err := s.providerConfig(d).Exchange(ctx, code, oauth2.VerifierOption(j.Verifier))
	if err != nil {
		return asserted{}, &providerRefusal{message: p.Name + " could not be asked who you are; try again in a few seconds",
			cause: err}
	}
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return unsure(errors.New("the answer has no ID token; is openid among the scopes?"))
	}
	id, err := d.verifier.Verify(ctx, raw)
	if err != nil {
		return unsure(err)
	}
	var claims idClaims
	if err := id.Claims(&claims); err != nil {
		return unsure(err)
	}
	if err := p.checkClaims(id, claims, j, token); err != nil {
		return unsure(err)
	}
	if err := p.checkStrength(claims); err != nil {
		return asserted{}, err
	}
	who := asserted{Subject: id.Subject, Email: claims.Email, Verified: bool(claims.EmailVerified),
		Username: claims.Username}
	if claims.AuthTime > 0 {
		who.At = time.Unix(claims.AuthTime, 0)
	}
	if j.Again && !who.At.IsZero() && s.now().Sub(who.At) > s.recently+providerLeeway {
		return asserted{}, &providerRefusal{again: true,
			cause:   errors.New("auth_time is " + who.At.UTC().Format(time.RFC3339)),
			message: p.Name + " did not ask you to sign in again. Sign out there, and sign in again"}
	}
	if who.Email == "" {
		who.complete(ctx, d, token)
	}
	return who, nil
}

// checkClaims makes the checks that the library leaves to its caller (section 3.1.3.7).
func (p *provider) checkClaims(id *oidc.IDToken, claims idClaims, j loginState, token *oauth2.Token) error {
	switch {
	case subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(j.Nonce)) != 1:
		return errors.New("the ID token has a different nonce")
	case claims.Azp != "" && claims.Azp != p.ClientID, claims.Azp == "" && len(id.Audience) > 1:
		return errors.New("the ID token is for another party: azp is " + failure.Quote(claims.Azp))
	case id.Subject == "":
		return errors.New("the ID token has no subject")
	case id.Expiry.IsZero() || id.IssuedAt.IsZero():
		return errors.New("the ID token has no exp or iat")
	case id.IssuedAt.After(time.Now().Add(stateLife)):
		return errors.New("the ID token was issued at " + id.IssuedAt.UTC().Format(time.RFC3339) +
			"; check the clocks of both servers")
	}
	if id.AccessTokenHash == "" {
		return nil
	}
	return id.VerifyAccessToken(token.AccessToken)
}

// checkStrength refuses a sign-in at the provider that is weaker than the operator requires.
func (p *provider) checkStrength(claims idClaims) error {
	weak := func(cause string) error {
		return &providerRefusal{again: true, cause: errors.New(cause),
			message: "This server requires a stronger sign-in at " + p.Name +
				" than the one that you used, such as one with a second factor. Set one up there if you have none, and sign " +
				"in again"}
	}
	if len(p.RequireACR) > 0 && !slices.Contains(p.RequireACR, claims.ACR) {
		return weak("acr is " + failure.Quote(claims.ACR) + ", which is not one of " + strings.Join(p.RequireACR, ", "))
	}
	if len(p.RequireAMR) > 0 && !slices.ContainsFunc(claims.AMR,
		func(method string) bool { return slices.Contains(p.RequireAMR, method) }) {
		return weak("amr is " + failure.Quote(strings.Join(claims.AMR, " ")) + ", which contains none of " +
			strings.Join(p.RequireAMR, ", "))
	}
	return nil
}

// complete adds the claims of the UserInfo endpoint, for providers with minimal ID tokens. They do not identify the
// person, so a failure is ignored.
func (a *asserted) complete(ctx context.Context, d *discovered, token *oauth2.Token) {
	if d.oidc.UserInfoEndpoint() == "" {
		return
	}
	info, err := d.oidc.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil || info.Subject != a.Subject { // section 5.3.2
		return
	}
	var claims profileClaims
	if info.Claims(&claims) == nil {
		a.Email, a.Verified = claims.Email, bool(claims.EmailVerified)
		if a.Username == "" {
			a.Username = claims.Username
		}
	}
}
