package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func oauthRefresh() concept {
	return concept{"OAuthRefresh", []promise{
		{"each use gives a new refresh token", refreshRotates},
		{"one that was used works for a minute more, and then ends everything", refreshReuse},
		{"concurrent uses of one all get tokens", refreshRace},
		{"another client's is worth nothing, and stays", refreshOfAnotherClient},
		{"it lives for thirty days after each use", refreshLifetime},
		{"scopes can be narrowed, never widened", refreshScopes},
		{"revoking either token ends the grant", revocation},
		{"only its own client revokes a token", revocationOfAnothers},
		{"who names no client revokes what it holds", revocationByHolder},
		{"a user sees and takes back what was granted", grantsOfUser},
		{"what a user who is disabled or deleted has granted ends", grantsOfGoneUser},
	}}
}

func refreshRotates(f *fixture) {
	c := f.register(souvenir.AuthNone)
	seen := []string{}
	for t, i := f.obtainTokens(c), 0; i < 5; t, i = f.refresh(c, t), i+1 {
		if slices.Contains(seen, t.RefreshToken) || slices.Contains(seen, t.AccessToken) {
			f.Errorf("a token came twice: got %v, want neither %v nor %v among them", seen, t.RefreshToken,
				t.AccessToken)
		}
		seen = append(seen, t.RefreshToken, t.AccessToken)
		f.works("the access token", t)
		f.clock.Pass(2 * time.Hour)
		_, err := f.reader.Accounts().CheckAccessToken(f.ctx, checking(t))
		f.refuses("an expired access token", err, souvenir.ErrUnauthenticated, "invalid_token",
			"Invalid token: it has expired")
	}
}

func refreshReuse(f *fixture) {
	c := f.register(souvenir.AuthNone)
	first := f.obtainTokens(c)
	other := f.obtainTokens(c)
	second := f.refresh(c, first)
	f.clock.Pass(59 * time.Second)
	third := f.refresh(c, first)
	f.works("a token of the grace", third)
	f.works("its successor", f.refresh(c, third))
	f.works("the other successor", second)
	f.clock.Pass(2 * time.Second)
	_, err := f.store.Accounts().RefreshTokens(f.ctx, refreshing(c, first))
	f.refuses("reuse after the grace", err, souvenir.ErrInvalid, "invalid_grant", "Invalid refresh_token")
	for _, t := range []souvenir.TokenSet{first, second, third} {
		f.ended("after the reuse", c, t)
	}
	f.works("another grant", other)
}

func refreshRace(f *fixture) {
	c := f.register("")
	t := f.obtainTokens(c)
	seen := make([]string, workers)
	together(func(worker int) {
		next, err := f.store.Accounts().RefreshTokens(f.ctx, refreshing(c, t))
		if err != nil {
			f.Errorf("RefreshTokens: %v", err)
		}
		seen[worker] = next.RefreshToken
	})
	slices.Sort(seen)
	f.equal("different tokens", len(slices.Compact(seen)), workers)
}

func refreshOfAnotherClient(f *fixture) {
	c, other := f.register(""), f.register("")
	t := f.obtainTokens(c)
	r := refreshing(c, t)
	r.Client = credentials(other)
	for range 2 {
		_, err := f.store.Accounts().RefreshTokens(f.ctx, r)
		f.refuses("another client", err, souvenir.ErrInvalid, "invalid_grant", "Invalid refresh_token")
	}
	r.Client.Secret = "wrong"
	_, err := f.store.Accounts().RefreshTokens(f.ctx, r)
	f.refuses("wrong credentials", err, souvenir.ErrUnauthenticated, "invalid_client", "Invalid client")
	r = refreshing(c, t)
	r.RefreshToken = t.AccessToken
	_, err = f.store.Accounts().RefreshTokens(f.ctx, r)
	f.refuses("an access token", err, souvenir.ErrInvalid, "invalid_grant", "Invalid refresh_token")
	r = refreshing(c, t)
	r.Issuer = ""
	_, err = f.store.Accounts().RefreshTokens(f.ctx, r)
	f.failsAt("no issuer", err, souvenir.ErrInvalid, "issuer")
	f.works("its own client", f.refresh(c, t))
}

func refreshLifetime(f *fixture) {
	c := f.register("")
	t := f.obtainTokens(c)
	for range 3 {
		f.clock.Pass(29 * 24 * time.Hour)
		t = f.refresh(c, t)
	}
	f.clock.Pass(30 * 24 * time.Hour)
	f.ended("thirty days without use", c, t)
}

func refreshScopes(f *fixture) {
	c := f.register("")
	t := f.obtainTokens(c) // memory:write files:read
	r := refreshing(c, t)
	for _, scopes := range [][]souvenir.Scope{{souvenir.ScopeAdmin}, {souvenir.ScopeFilesWrite},
		{souvenir.ScopeMemoryWrite, souvenir.ScopeAdmin}, {"openid"}} {
		r.Scopes = scopes
		_, err := f.store.Accounts().RefreshTokens(f.ctx, r)
		f.refuses("more scopes", err, souvenir.ErrInvalid, "invalid_scope", "")
	}
	r.Scopes = []souvenir.Scope{souvenir.ScopeMemoryRead}
	narrow, err := f.store.Accounts().RefreshTokens(f.ctx, r)
	f.check("RefreshTokens with fewer scopes", err)
	f.equal("scope", narrow.Scope, "memory:read")
	p := f.works("the narrow token", narrow)
	f.equal("scopes", p.Scopes, []souvenir.Scope{souvenir.ScopeMemoryRead})
	f.equal("read-only", p.Access.ReadOnly, true)
	f.equal("the scopes are the grant's again", f.refresh(c, narrow).Scope, "memory:write files:read")
}

func revocation(f *fixture) {
	for _, method := range []string{souvenir.AuthNone, souvenir.AuthSecretBasic} {
		c := f.register(method)
		for name, pick := range map[string]func(old, current souvenir.TokenSet) string{
			"access token":         func(_, t souvenir.TokenSet) string { return t.AccessToken },
			"refresh token":        func(_, t souvenir.TokenSet) string { return t.RefreshToken },
			"rotated token":        func(old, _ souvenir.TokenSet) string { return old.RefreshToken },
			"expired access token": func(old, _ souvenir.TokenSet) string { return old.AccessToken },
		} {
			other := f.obtainTokens(c)
			old := f.obtainTokens(c)
			if name == "expired access token" {
				f.clock.Pass(2 * time.Hour)
				other = f.refresh(c, other)
			}
			t := f.refresh(c, old)
			f.check("RevokeGrantByToken", f.store.Accounts().RevokeGrantByToken(f.ctx,
				souvenir.Revocation{Client: credentials(c), Token: pick(old, t)}))
			f.ended(name, c, t)
			f.check("RevokeGrantByToken again",
				f.store.Accounts().RevokeGrantByToken(f.ctx, souvenir.Revocation{Client: credentials(c), Token: pick(old, t)}))
			f.works("another grant", other)
		}
	}
}

func revocationOfAnothers(f *fixture) {
	c, other := f.register(""), f.register("")
	t := f.obtainTokens(c)
	for _, token := range []string{t.AccessToken, t.RefreshToken, "unknown", "a.b.c", t.AccessToken + "x"} {
		f.check("RevokeGrantByToken of another's",
			f.store.Accounts().RevokeGrantByToken(f.ctx, souvenir.Revocation{Client: credentials(other), Token: token}))
	}
	for _, client := range []souvenir.ClientCredentials{{ID: c.ID}, {ID: c.ID, Secret: "wrong"}, {Secret: c.Secret}} {
		err := f.store.Accounts().RevokeGrantByToken(f.ctx, souvenir.Revocation{Client: client, Token: t.RefreshToken})
		f.refuses("RevokeGrantByToken with wrong credentials", err, souvenir.ErrUnauthenticated, "invalid_client",
			"Invalid client")
	}
	f.refuses("RevokeGrantByToken of nothing",
		f.store.Accounts().RevokeGrantByToken(f.ctx, souvenir.Revocation{Client: credentials(c)}),
		souvenir.ErrInvalid, "invalid_request", "")
	f.works("still", t)
	t = f.refresh(c, t)
	f.works("and refreshed", t)
}

func revocationByHolder(f *fixture) {
	for _, method := range []string{souvenir.AuthNone, souvenir.AuthSecretBasic} {
		c := f.register(method)
		other := f.obtainTokens(c)
		for _, pick := range []func(t souvenir.TokenSet) string{
			func(t souvenir.TokenSet) string { return t.AccessToken },
			func(t souvenir.TokenSet) string { return t.RefreshToken },
		} {
			t := f.obtainTokens(c)
			f.check("RevokeGrantByToken without a client",
				f.store.Accounts().RevokeGrantByToken(f.ctx, souvenir.Revocation{Token: pick(t)}))
			f.ended("a token that its holder revokes", c, t)
		}
		for _, token := range []string{"unknown", "a.b.c", other.AccessToken + "x"} {
			f.check("RevokeGrantByToken of an unknown one",
				f.store.Accounts().RevokeGrantByToken(f.ctx, souvenir.Revocation{Token: token}))
		}
		f.refuses("RevokeGrantByToken of nothing",
			f.store.Accounts().RevokeGrantByToken(f.ctx, souvenir.Revocation{}), souvenir.ErrInvalid,
			"invalid_request", "")
		f.works("another grant", other)
	}
}

func grantsOfUser(f *fixture) {
	ann, ben := f.as(souvenir.Access{User: "ann"}), f.as(souvenir.Access{User: "ben"})
	ann.add(souvenir.NewMemory{Content: "x", ProjectID: "apollo", ProjectName: "Apollo"})
	c, err := f.store.Accounts().RegisterClient(f.ctx,
		souvenir.ClientRegistration{ClientName: "App", TokenEndpointAuthMethod: souvenir.AuthNone,
			RedirectURIs: []string{callback, callback + "/2", "http://127.0.0.1:8080/cb",
				"cursor://anysphere.cursor-mcp/oauth/callback"}})
	f.check("RegisterClient", err)
	created := f.clock.Now()
	a := asking(c)
	a.Projects = []string{"apollo"}
	a.Scopes = []souvenir.Scope{souvenir.ScopeMemoryRead, souvenir.ScopeFilesRead}
	code, err := ann.store.Accounts().Authorize(f.ctx, a)
	f.check("Authorize", err)
	pending, err := ann.reader.Accounts().Grants(f.ctx)
	f.check("Grants", err)
	same(f, "grants before the code comes back", pending, nil)
	f.clock.Pass(time.Minute)
	t := f.redeem(exchanging(c, code))
	bens := ben.obtainTokens(c)
	grants, err := ann.reader.Accounts().Grants(f.ctx)
	f.check("Grants", err)
	want := souvenir.Grant{ID: code.GrantID, ClientID: c.ID, ClientName: "App",
		Hosts:  []string{"app.example", "127.0.0.1", "cursor:"},
		Scopes: a.Scopes, Projects: []string{"ann/apollo"}, Resource: resource, CreatedAt: created, LastUsedAt: f.clock.Now()}
	f.equal("grants", grants, []souvenir.Grant{want})
	p := f.works("the token", t)
	f.equal("access", p.Access, souvenir.Access{User: "ann", Projects: []string{"ann/apollo"}, ReadOnly: true})
	f.equal("seen with it", f.reader.As(p.Access).Access().Projects, []string{"ann/apollo"})

	f.fails("RevokeGrant by another", ben.store.Accounts().RevokeGrant(f.ctx, code.GrantID), souvenir.ErrNotFound)
	f.fails("RevokeGrant by the local user", f.store.Accounts().RevokeGrant(f.ctx, code.GrantID), souvenir.ErrNotFound)
	f.fails("RevokeGrant through a read-only view",
		ann.store.As(souvenir.Access{User: "ann", ReadOnly: true}).Accounts().RevokeGrant(f.ctx, code.GrantID),
		souvenir.ErrReadOnly)
	limited := ann.store.As(souvenir.Access{User: "ann", Projects: []string{"apollo"}})
	f.fails("RevokeGrant through a limited view", limited.Accounts().RevokeGrant(f.ctx, code.GrantID),
		souvenir.ErrForbidden)
	if _, err := limited.Accounts().Grants(f.ctx); !errors.Is(err, souvenir.ErrForbidden) {
		f.Errorf("Grants through a limited view: %v, want souvenir.ErrForbidden", err)
	}
	f.works("still", t)
	f.check("RevokeGrant", ann.store.Accounts().RevokeGrant(f.ctx, code.GrantID))
	f.check("RevokeGrant again", ann.store.Accounts().RevokeGrant(f.ctx, code.GrantID))
	f.ended("revoked", c, t)
	f.works("ben's", bens)
	grants, err = ann.reader.Accounts().Grants(f.ctx)
	f.check("Grants", err)
	same(f, "grants", grants, nil)
}

func grantsOfGoneUser(f *fixture) {
	c := f.register("")
	for _, gone := range []string{"disabled", "deleted"} {
		u := f.addUser(souvenir.NewUser{Name: gone})
		view := f.as(souvenir.Access{User: u.ID})
		made := view.addClient(souvenir.NewClient{})
		bens := f.as(souvenir.Access{User: "ben"}).obtainTokens(made)
		t := view.obtainTokens(c)
		code := view.authorize(c)
		yes, no := true, false
		if gone == "disabled" {
			_, err := f.store.Accounts().UpdateUser(f.ctx, u.ID, souvenir.UserUpdate{Disabled: &yes})
			f.check("UpdateUser", err)
		} else {
			f.check("DeleteUser", f.store.Accounts().DeleteUser(f.ctx, u.ID, nil))
		}
		f.ended(gone, c, t)
		_, err := f.store.Accounts().ExchangeCode(f.ctx, exchanging(c, code))
		f.refuses("ExchangeCode", err, souvenir.ErrInvalid, "invalid_grant", "Invalid authorization code")
		_, err = view.store.Accounts().Authorize(f.ctx, asking(c))
		f.refuses("Authorize", err, souvenir.ErrForbidden, "access_denied", "")
		if gone == "deleted" {
			_, err = f.reader.Accounts().CheckAccessToken(f.ctx, checking(bens))
			f.refuses("CheckAccessToken of the deleted user's application", err, souvenir.ErrUnauthenticated, "invalid_token",
				"Invalid token")
			_, err = f.store.Accounts().RefreshTokens(f.ctx, refreshing(made, bens))
			f.refuses("RefreshTokens of it", err, souvenir.ErrUnauthenticated, "invalid_client", "Invalid client")
			continue
		}
		f.works("what others have granted to the disabled user's application", bens)
		_, err = f.store.Accounts().UpdateUser(f.ctx, u.ID, souvenir.UserUpdate{Disabled: &no})
		f.check("UpdateUser", err)
		f.ended("after the user is back", c, t)
	}
}
