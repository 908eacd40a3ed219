package storetest

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func oauthCodes() concept {
	return concept{"OAuthCodes", []promise{
		{"a code becomes tokens, once", oauthRedeem},
		{"a code that is used again ends everything it gave", oauthCodeReuse},
		{"of many concurrent uses of a code, one gets tokens", oauthCodeRace},
		{"a code is worth nothing to another client, with another redirect URI, or late", oauthCodeBound},
		{"wrong credentials use no code up", oauthCodeCredentials},
		{"a challenge that was sent is verified, and none is verified that was not", oauthCodeVerifier},
		{"a redirect URI may be left out where a challenge protects the code", oauthCodeNoRedirect},
		{"a loopback redirect URI may have any port", oauthLoopbackPort},
		{"a resource is compared with and without a slash", oauthResource},
		{"an invalid authorization request is refused with the right code", oauthAskingRefused},
		{"a client registered without refresh_token gets none", oauthNoRefreshToken},
	}}
}

// asking returns the request of a client in these tests, which is granted.
func asking(c souvenir.RegisteredClient) souvenir.Authorization {
	return souvenir.Authorization{
		ClientID: c.ID, RedirectURI: callback, Scopes: []souvenir.Scope{souvenir.ScopeMemoryWrite, souvenir.ScopeFilesRead},
		CodeChallenge: challengeOf(verifier), CodeChallengeMethod: "S256", Resource: resource,
	}
}

func exchanging(c souvenir.RegisteredClient, code souvenir.AuthorizationCode) souvenir.CodeExchange {
	return souvenir.CodeExchange{Client: credentials(c), Code: code.Code, RedirectURI: callback, Verifier: verifier,
		Issuer: oauthIssuer, Audience: resource}
}

func refreshing(c souvenir.RegisteredClient, t souvenir.TokenSet) souvenir.TokenRefresh {
	return souvenir.TokenRefresh{Client: credentials(c), RefreshToken: t.RefreshToken, Issuer: oauthIssuer,
		Audience: resource}
}

func checking(t souvenir.TokenSet) souvenir.AccessTokenCheck {
	return souvenir.AccessTokenCheck{Token: t.AccessToken, Issuer: oauthIssuer, Audience: []string{oauthIssuer, resource}}
}

func (f *fixture) authorize(c souvenir.RegisteredClient) souvenir.AuthorizationCode {
	f.Helper()
	code, err := f.store.Accounts().Authorize(f.ctx, asking(c))
	f.check("Authorize", err)
	return code
}

func (f *fixture) redeem(x souvenir.CodeExchange) souvenir.TokenSet {
	f.Helper()
	t, err := f.operator.Accounts().ExchangeCode(f.ctx, x)
	f.check("ExchangeCode", err)
	return t
}

func (f *fixture) refresh(c souvenir.RegisteredClient, t souvenir.TokenSet) souvenir.TokenSet {
	f.Helper()
	t, err := f.operator.Accounts().RefreshTokens(f.ctx, refreshing(c, t))
	f.check("RefreshTokens", err)
	return t
}

// obtainTokens authorizes a client and exchanges its code.
func (f *fixture) obtainTokens(c souvenir.RegisteredClient) souvenir.TokenSet {
	f.Helper()
	return f.redeem(exchanging(c, f.authorize(c)))
}

// works checks that tokens are valid, and returns their principal.
func (f *fixture) works(what string, t souvenir.TokenSet) souvenir.Principal {
	f.Helper()
	p, err := f.reader.Accounts().CheckAccessToken(f.ctx, checking(t))
	f.check(what, err)
	return p
}

// ended checks that neither of two tokens is valid.
func (f *fixture) ended(what string, c souvenir.RegisteredClient, t souvenir.TokenSet) {
	f.Helper()
	_, err := f.reader.Accounts().CheckAccessToken(f.ctx, checking(t))
	f.refuses(what+": CheckAccessToken", err, souvenir.ErrUnauthenticated, "invalid_token", "Invalid token")
	_, err = f.store.Accounts().RefreshTokens(f.ctx, refreshing(c, t))
	f.refuses(what+": RefreshTokens", err, souvenir.ErrInvalid, "invalid_grant", "Invalid refresh_token")
}

func oauthRedeem(f *fixture) {
	ann := f.as(souvenir.Access{User: "ann"})
	for _, method := range []string{souvenir.AuthNone, souvenir.AuthSecretBasic, souvenir.AuthSecretPost} {
		c := f.register(method)
		code := ann.authorize(c)
		if until := code.ExpiresAt.Sub(f.clock.Now()); until <= 0 || until > 10*time.Minute {
			f.Errorf("the code lives for %v, want more than 0 and at most %v", until, 10*time.Minute)
		}
		t := f.redeem(exchanging(c, code))
		f.equal("token set", []any{t.TokenType, t.ExpiresIn, t.Scope}, []any{"Bearer", 3600, "memory:write files:read"})
		p := f.works("the access token", t)
		f.equal("principal", []any{p.User.ID, p.Scopes, p.ClientID, p.GrantID, p.TokenID, p.Access},
			[]any{"ann", []souvenir.Scope{souvenir.ScopeMemoryWrite, souvenir.ScopeFilesRead}, c.ID, code.GrantID, "",
				souvenir.Access{User: "ann"}})
		f.works("the next access token", f.refresh(c, t))
		for _, secret := range []string{code.Code, t.RefreshToken} {
			if len(secret) < 43 {
				f.Errorf("%s is short, want at least a length of 43", secret)
			}
		}
	}
}

func oauthCodeReuse(f *fixture) {
	c := f.register(souvenir.AuthNone)
	other := f.obtainTokens(c)
	code := f.authorize(c)
	t := f.redeem(exchanging(c, code))
	for range 2 {
		_, err := f.store.Accounts().ExchangeCode(f.ctx, exchanging(c, code))
		f.refuses("ExchangeCode again", err, souvenir.ErrInvalid, "invalid_grant", "Invalid authorization code")
		f.ended("after the reuse of the code", c, t)
	}
	f.works("another grant", other)
}

func oauthCodeRace(f *fixture) {
	c := f.register("")
	code := f.authorize(c)
	var won atomic.Int64
	var tokens atomic.Value
	together(func(int) {
		t, err := f.store.Accounts().ExchangeCode(f.ctx, exchanging(c, code))
		if err == nil {
			won.Add(1)
			tokens.Store(t)
		} else {
			f.refuses("ExchangeCode", err, souvenir.ErrInvalid, "invalid_grant", "Invalid authorization code")
		}
	})
	f.equal("winners", won.Load(), int64(1))
	f.ended("after the reuse of the code", c, tokens.Load().(souvenir.TokenSet))
}

func oauthCodeBound(f *fixture) {
	c, other := f.register(""), f.register("")
	code := f.authorize(c)
	for name, change := range map[string]func(*souvenir.CodeExchange){
		"another client":       func(x *souvenir.CodeExchange) { x.Client = credentials(other) },
		"no code":              func(x *souvenir.CodeExchange) { x.Code = "" },
		"another code":         func(x *souvenir.CodeExchange) { x.Code += "x" },
		"another redirect URI": func(x *souvenir.CodeExchange) { x.RedirectURI += "/" },
	} {
		x := exchanging(c, code)
		change(&x)
		_, err := f.store.Accounts().ExchangeCode(f.ctx, x)
		begins := "Invalid authorization code"
		if x.RedirectURI != callback {
			begins = "Invalid redirect_uri"
		}
		f.refuses(name, err, souvenir.ErrInvalid, "invalid_grant", begins)
	}
	f.works("the code, which is not used up", f.redeem(exchanging(c, code)))
	late := f.authorize(c)
	f.clock.Pass(late.ExpiresAt.Sub(f.clock.Now()))
	_, err := f.store.Accounts().ExchangeCode(f.ctx, exchanging(c, late))
	f.refuses("an expired code", err, souvenir.ErrInvalid, "invalid_grant", "Invalid authorization code")
	revoked := f.authorize(c)
	f.check("RevokeGrant", f.store.Accounts().RevokeGrant(f.ctx, revoked.GrantID))
	_, err = f.store.Accounts().ExchangeCode(f.ctx, exchanging(c, revoked))
	f.refuses("a revoked code", err, souvenir.ErrInvalid, "invalid_grant", "Invalid authorization code")
}

func oauthCodeCredentials(f *fixture) {
	c := f.register("")
	code := f.authorize(c)
	for _, wrong := range []souvenir.ClientCredentials{{}, {ID: c.ID}, {ID: c.ID, Secret: "wrong"},
		{ID: "no-app", Secret: c.Secret}} {
		x := exchanging(c, code)
		x.Client = wrong
		_, err := f.store.Accounts().ExchangeCode(f.ctx, x)
		f.refuses("ExchangeCode with "+brief(wrong), err, souvenir.ErrUnauthenticated, "invalid_client", "Invalid client")
	}
	for _, argument := range []string{"issuer", "audience"} {
		x := exchanging(c, code)
		if argument == "issuer" {
			x.Issuer = ""
		} else {
			x.Audience = ""
		}
		_, err := f.store.Accounts().ExchangeCode(f.ctx, x)
		f.failsAt("ExchangeCode without "+argument, err, souvenir.ErrInvalid, argument)
	}
	f.works("the code", f.redeem(exchanging(c, code)))
}

func oauthCodeVerifier(f *fixture) {
	public, confidential := f.register(souvenir.AuthNone), f.register("")
	for _, c := range []souvenir.RegisteredClient{public, confidential} {
		for _, wrong := range []string{"", verifier + "x", challengeOf(verifier), strings.ToUpper(verifier)} {
			code := f.authorize(c)
			x := exchanging(c, code)
			x.Verifier = wrong
			_, err := f.store.Accounts().ExchangeCode(f.ctx, x)
			f.refuses("ExchangeCode with the verifier "+wrong, err, souvenir.ErrInvalid, "invalid_grant",
				"Invalid authorization code")
			_, err = f.store.Accounts().ExchangeCode(f.ctx, exchanging(c, code))
			f.refuses("ExchangeCode with the right one after that", err, souvenir.ErrInvalid, "invalid_grant",
				"Invalid authorization code")
		}
	}
	a := asking(confidential)
	a.CodeChallenge, a.CodeChallengeMethod = "", ""
	code, err := f.store.Accounts().Authorize(f.ctx, a)
	f.check("Authorize without a challenge", err)
	_, err = f.store.Accounts().ExchangeCode(f.ctx, exchanging(confidential, code))
	f.refuses("a verifier without a challenge", err, souvenir.ErrInvalid, "invalid_grant", "Invalid authorization code")
	code, err = f.store.Accounts().Authorize(f.ctx, a)
	f.check("Authorize without a challenge", err)
	x := exchanging(confidential, code)
	x.Verifier = ""
	f.works("neither", f.redeem(x))
}

func oauthCodeNoRedirect(f *fixture) {
	c := f.register("")
	x := exchanging(c, f.authorize(c))
	x.RedirectURI = ""
	f.works("with a challenge", f.redeem(x))
	a := asking(c)
	a.CodeChallenge, a.CodeChallengeMethod = "", ""
	code, err := f.store.Accounts().Authorize(f.ctx, a)
	f.check("Authorize", err)
	x = exchanging(c, code)
	x.RedirectURI, x.Verifier = "", ""
	_, err = f.store.Accounts().ExchangeCode(f.ctx, x)
	f.refuses("without a challenge", err, souvenir.ErrInvalid, "invalid_grant", "Invalid redirect_uri")
}

func oauthLoopbackPort(f *fixture) {
	c, err := f.store.Accounts().RegisterClient(f.ctx,
		souvenir.ClientRegistration{RedirectURIs: []string{"http://localhost/callback"},
			TokenEndpointAuthMethod: souvenir.AuthNone})
	f.check("RegisterClient", err)
	a := asking(c)
	a.RedirectURI = "http://localhost:43117/callback"
	code, err := f.store.Accounts().Authorize(f.ctx, a)
	f.check("Authorize", err)
	x := exchanging(c, code)
	x.RedirectURI = "http://localhost:43118/callback"
	_, err = f.store.Accounts().ExchangeCode(f.ctx, x)
	f.refuses("another port than the authorization's", err, souvenir.ErrInvalid, "invalid_grant", "Invalid redirect_uri")
	x.RedirectURI = a.RedirectURI
	f.works("the same port", f.redeem(x))
	for _, wrong := range []string{"http://127.0.0.1:43117/callback", "http://localhost:43117/",
		"http://localhost.evil.example/callback", "https://localhost/callback"} {
		a.RedirectURI = wrong
		_, err = f.store.Accounts().Authorize(f.ctx, a)
		f.refuses(wrong, err, souvenir.ErrInvalid, "invalid_request", "Invalid redirect_uri")
	}
}

func oauthResource(f *fixture) {
	c := f.register(souvenir.AuthNone)
	for _, asked := range []string{"", resource, resource + "/", "HTTPS://Memory.Example/mcp"} {
		for _, named := range []string{"", resource, resource + "/"} {
			a := asking(c)
			a.Resource = asked
			code, err := f.store.Accounts().Authorize(f.ctx, a)
			f.check("Authorize for "+asked, err)
			x := exchanging(c, code)
			x.Resource = named
			t := f.redeem(x)
			f.works("the token for "+asked+" and "+named, t)
			check := checking(t)
			check.Audience = []string{resource + "/"}
			_, err = f.reader.Accounts().CheckAccessToken(f.ctx, check)
			f.check("with a slash", err)
			check.Audience = []string{"https://memory.example/other", oauthIssuer}
			_, err = f.reader.Accounts().CheckAccessToken(f.ctx, check)
			f.refuses("for another audience", err, souvenir.ErrUnauthenticated, "invalid_token", "Invalid token")
			r := refreshing(c, t)
			r.Resource = "https://other.example"
			_, err = f.store.Accounts().RefreshTokens(f.ctx, r)
			f.refuses("refreshing for another resource", err, souvenir.ErrInvalid, "invalid_target", "")
			r.Resource = named
			t, err = f.store.Accounts().RefreshTokens(f.ctx, r)
			f.check("RefreshTokens", err)
			f.works("the next one", t)
		}
	}
	code := f.authorize(c)
	x := exchanging(c, code)
	x.Resource = "https://other.example/mcp"
	_, err := f.store.Accounts().ExchangeCode(f.ctx, x)
	f.refuses("exchanging for another resource", err, souvenir.ErrInvalid, "invalid_target", "")
	f.works("the code, which is not used up", f.redeem(exchanging(c, code)))
}

func oauthAskingRefused(f *fixture) {
	ann := f.as(souvenir.Access{User: "ann"})
	public, confidential := f.register(souvenir.AuthNone), f.register("")
	type change func(*souvenir.Authorization)
	for name, c := range map[string]struct {
		change                 change
		kind                   *souvenir.Error
		code, begins, argument string
	}{
		"unknown client": {func(a *souvenir.Authorization) { a.ClientID = "no-app" }, souvenir.ErrUnauthenticated,
			"invalid_client", "Invalid client", "client_id"},
		"no redirect": {func(a *souvenir.Authorization) { a.RedirectURI = "" }, souvenir.ErrInvalid, "invalid_request",
			"Invalid redirect_uri", "redirect_uri"},
		"another redirect": {func(a *souvenir.Authorization) { a.RedirectURI += "?x=1" }, souvenir.ErrInvalid,
			"invalid_request", "Invalid redirect_uri", "redirect_uri"},
		"redirect in case": {func(a *souvenir.Authorization) { a.RedirectURI = "https://APP.example/callback" },
			souvenir.ErrInvalid, "invalid_request", "Invalid redirect_uri", "redirect_uri"},
		"no challenge": {func(a *souvenir.Authorization) { a.CodeChallenge, a.CodeChallengeMethod = "", "" },
			souvenir.ErrInvalid, "invalid_request", "", "code_challenge"},
		"challenge missing": {func(a *souvenir.Authorization) { a.CodeChallenge = "" }, souvenir.ErrInvalid,
			"invalid_request", "", "code_challenge"},
		"plain": {func(a *souvenir.Authorization) { a.CodeChallengeMethod = "plain" }, souvenir.ErrInvalid,
			"invalid_request", "", "code_challenge_method"},
		"no method": {func(a *souvenir.Authorization) { a.CodeChallengeMethod = "" }, souvenir.ErrInvalid,
			"invalid_request", "", "code_challenge_method"},
		"short challenge": {func(a *souvenir.Authorization) { a.CodeChallenge = "abc" }, souvenir.ErrInvalid,
			"invalid_request", "", "code_challenge"},
		"padded challenge": {func(a *souvenir.Authorization) { a.CodeChallenge += "=" }, souvenir.ErrInvalid,
			"invalid_request", "", "code_challenge"},
		"broken challenge": {func(a *souvenir.Authorization) { a.CodeChallenge += "\n" }, souvenir.ErrInvalid,
			"invalid_request", "", "code_challenge"},
		"unknown scope": {func(a *souvenir.Authorization) { a.Scopes = []souvenir.Scope{"openid"} }, souvenir.ErrInvalid,
			"invalid_scope", "", "scope"},
		"resource": {func(a *souvenir.Authorization) { a.Resource = "memory" }, souvenir.ErrInvalid,
			"invalid_target", "", "resource"},
		"resource fragment": {func(a *souvenir.Authorization) { a.Resource += "#x" }, souvenir.ErrInvalid, "invalid_target",
			"", "resource"},
		"a long resource": {func(a *souvenir.Authorization) { a.Resource += strings.Repeat("x", 2048) },
			souvenir.ErrTooLarge, "invalid_target", "", "resource"},
	} {
		a := asking(public)
		c.change(&a)
		_, err := ann.store.Accounts().Authorize(f.ctx, a)
		f.refuses(name, err, c.kind, c.code, c.begins)
		f.failsAt(name, err, c.kind, c.argument)
		_, checked := f.reader.Accounts().CheckAuthorization(f.ctx, a)
		if checked == nil || err == nil || checked.Error() != err.Error() {
			f.Errorf("%s: CheckAuthorization gives %v, Authorize %v; want the same error", name, checked, err)
		}
	}
	a := asking(confidential)
	a.Scopes = nil
	client, err := f.reader.Accounts().CheckAuthorization(f.ctx, a)
	f.check("CheckAuthorization before the user has chosen", err)
	f.equal("client", client.ID, confidential.ID)
	_, err = ann.store.Accounts().Authorize(f.ctx, a)
	f.refuses("Authorize of nothing", err, souvenir.ErrInvalid, "invalid_scope", "")
	a = asking(confidential)
	a.Projects = []string{"nowhere"}
	_, err = ann.store.Accounts().Authorize(f.ctx, a)
	f.failsAt("Authorize for an unknown project", err, souvenir.ErrNotFound, "projects", "nowhere")
	a.Projects = []string{}
	_, err = ann.store.Accounts().Authorize(f.ctx, a)
	f.failsAt("Authorize for no project at all", err, souvenir.ErrInvalid, "projects", "empty")
	a.Projects = make([]string, 101)
	_, err = ann.store.Accounts().Authorize(f.ctx, a)
	f.failsAt("Authorize for many projects", err, souvenir.ErrTooLarge, "projects", "100")
	_, err = ann.store.As(souvenir.Access{User: "ann", Projects: []string{"p"}}).Accounts().Authorize(f.ctx,
		asking(confidential))
	f.fails("Authorize through a limited view", err, souvenir.ErrForbidden)
	_, err = ann.store.As(souvenir.Access{User: "ann", ReadOnly: true}).Accounts().Authorize(f.ctx, asking(confidential))
	f.fails("Authorize through a read-only view", err, souvenir.ErrReadOnly)
}

func oauthNoRefreshToken(f *fixture) {
	c, err := f.store.Accounts().RegisterClient(f.ctx,
		souvenir.ClientRegistration{RedirectURIs: []string{callback}, GrantTypes: []string{"authorization_code"}})
	f.check("RegisterClient", err)
	t := f.obtainTokens(c)
	f.equal("refresh token", t.RefreshToken, "")
	f.works("the access token", t)
	_, err = f.store.Accounts().RefreshTokens(f.ctx, refreshing(c, t))
	f.refuses("RefreshTokens without a token", err, souvenir.ErrInvalid, "invalid_grant", "Invalid refresh_token")
}
