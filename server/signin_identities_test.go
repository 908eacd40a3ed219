package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// link links the account at the provider to that of the signed-in user, up to the callback.
func link(b *servertest.Browser, p *identityProvider, password string) *servertest.Page {
	b.W.T.Helper()
	typed := url.Values{}
	if password != "" {
		typed.Set("password", password)
	}
	return b.Get(p.signIn(b.Submit(b.Get("/profile"), "/profile/identities", typed)))
}

func TestLinkingAnAccountAtAProvider(t *testing.T) {
	p := newIdentityProvider(t)
	p.claims["email"] = "olivia@id.example"
	w := servertest.New(t, p.options())
	setPassword(w, servertest.Owner)
	stranger := w.Browser()
	page := atProvider(stranger, p)
	refusedBy(t, "an identity without a linked account", stranger, page)
	page.Expect(http.StatusForbidden, "not linked to an account here")

	b := w.SignedIn(servertest.Owner)
	b.Get("/profile").Expect(http.StatusOK, "Link your Example ID account")
	b.Submit(b.Get("/profile"), "/profile/identities",
		url.Values{"password": {wrongPassword}}).Expect(http.StatusUnauthorized,
		"Your password is not your current password.")
	b.LeadsTo(link(b, p, rightPassword), "/profile?done=linked").Expect(http.StatusOK, "Account linked.",
		"olivia@id.example")
	b.LeadsTo(link(b, p, rightPassword), "/profile?done=linked") // again: nothing new
	if all, err := w.Store.Accounts().Identities(t.Context(), w.Users[servertest.Owner]); err != nil || len(all) != 1 ||
		all[0].Subject != "olivia-there" || all[0].Issuer != p.at.URL {
		t.Errorf(`got %+v, %v, want no error and one identity, subject "olivia-there" of issuer %v`, all, err, p.at.URL)
	}
	servertest.CheckPage(w, b.Get("/profile"))
	servertest.CheckPage(w, w.Browser().Get("/login"))
	stranger.LeadsTo(atProvider(stranger, p), "/").Expect(http.StatusOK, "Hello, olivia")

	// No other user gets it, not even with the same e-mail address.
	rita := w.SignedIn(servertest.Reader)
	link(rita, p, "").Expect(http.StatusForbidden, "is linked to another user here")
	p.set(func() { p.claims["sub"] = "another-there" })
	other := w.Browser()
	p.set(func() { p.claims["email"], p.claims["email_verified"] = "olivia@example.com", true })
	refusedBy(t, "an account with the e-mail address of another", other, atProvider(other, p))

	form := url.Values{"issuer": {p.at.URL}, "subject": {"olivia-there"}}
	b.LeadsTo(b.Submit(b.Get("/profile"), "/profile/identities/end", form),
		"/profile?done=unlinked").Without("olivia@id.example")
	p.set(func() { p.claims["sub"] = "olivia-there" })
	again := w.Browser()
	refusedBy(t, "an account that was unlinked", again, atProvider(again, p))
}

// A link can be completed only in the session that began it, even if another user signs in there meanwhile.
func TestLinkingIsBoundToTheSession(t *testing.T) {
	longtest.Only(t)
	p := newIdentityProvider(t)
	w := servertest.New(t, p.options())
	setPassword(w, servertest.Owner)
	b := w.SignedIn(servertest.Owner)
	away := b.Submit(b.Get("/profile"), "/profile/identities", url.Values{"password": {rightPassword}})
	b.SetCookie("auth_token", w.SignedIn(servertest.Stranger).Cookie("auth_token"))
	b.Get(p.signIn(away)).Expect(http.StatusForbidden, "another user has signed in here meanwhile")
	away = b.Submit(b.Get("/profile"), "/profile/identities", nil)
	b.Submit(b.Get("/profile"), "/logout", nil)
	b.Get(p.signIn(away)).Expect(http.StatusForbidden, "were signed out, or")
	for _, caller := range []string{servertest.Owner, servertest.Stranger} {
		if all, err := w.Store.Accounts().Identities(t.Context(), w.Users[caller]); err != nil || len(all) != 0 {
			t.Errorf("%s has %+v, %v; want none", caller, all, err)
		}
	}
	// A sign-in links nothing, and an unknown person is not signed in.
	b = w.SignedIn(servertest.Owner)
	b.Get(p.signIn(b.Get("/login/provider"))).Expect(http.StatusForbidden)
	b.Get("/profile").Expect(http.StatusOK, "olivia@example.com")
	if _, err := w.Store.Accounts().GetUserByIdentity(t.Context(), p.at.URL, "olivia-there"); !errors.Is(err,
		souvenir.ErrNotFound) {
		t.Errorf("got %v, want souvenir.ErrNotFound", err)
	}
}

func TestFormsOfIdentitiesOfOthersAreRefused(t *testing.T) {
	longtest.Only(t)
	p := newIdentityProvider(t)
	w := linked(t, p, p.options())
	b, sam := w.SignedIn(servertest.Owner), w.SignedIn(servertest.Stranger)
	right := b.Get("/profile").HTML.All("form")[0].Fields().Get("csrf")
	other := sam.Get("/profile").HTML.All("form")[0].Fields().Get("csrf")
	for _, path := range []string{"/profile/identities", "/profile/identities/end"} {
		for _, csrf := range []string{"", other} {
			b.Post(path, url.Values{"csrf": {csrf}, "password": {rightPassword}, "issuer": {p.at.URL},
				"subject": {"olivia-there"}}).Expect(http.StatusForbidden)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.HTTP.URL+path,
			strings.NewReader(url.Values{"csrf": {right}}.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "https://evil.example")
		b.Send(r).Expect(http.StatusForbidden)
		if page := w.Browser().Post(path, url.Values{"csrf": {right}}); page.Status != http.StatusSeeOther ||
			page.Header.Get("Location") != "/login" {
			t.Errorf(`%s without a session: got %d, want status %v and Location "/login"`, path, page.Status,
				http.StatusSeeOther)
		}
	}
	// A user's own page cannot unlink another user's identity.
	sam.Post("/profile/identities/end", url.Values{"csrf": {other}, "issuer": {p.at.URL}, "subject": {"olivia-there"}})
	if user, err := w.Store.Accounts().GetUserByIdentity(t.Context(), p.at.URL, "olivia-there"); err != nil ||
		user.Name != "olivia" {
		t.Errorf("%+v, %v; want name \"olivia\"", user, err)
	}
}

// A user without a password keeps a way to sign in.
func TestTheLastIdentityCannotBeUnlinked(t *testing.T) {
	longtest.Only(t)
	p := newIdentityProvider(t)
	w := servertest.New(t, p.options())
	b := w.SignedIn(servertest.Stranger) // without a password
	b.LeadsTo(link(b, p, ""), "/profile?done=linked")
	// An identity of a provider that is no longer used does not count as a way to sign in.
	if _, err := w.Store.Accounts().LinkIdentity(t.Context(),
		souvenir.NewIdentity{User: w.Users[servertest.Stranger], Issuer: "https://former.example",
			Subject: "sam"}); err != nil {
		t.Fatal(err)
	}
	unlink := func(issuer, subject string) *servertest.Page {
		page := b.Get("/profile").Expect(http.StatusOK, "no longer in use here")
		return b.Submit(page, "/profile/identities/end", url.Values{"issuer": {issuer}, "subject": {subject}})
	}
	unlink(p.at.URL, "olivia-there").Expect(http.StatusBadRequest, "only way to sign in")
	b.LeadsTo(unlink("https://former.example", "sam"), "/profile?done=unlinked").Without("no longer in use here")
	b.Submit(b.Get("/profile"), "/profile/identities/end",
		url.Values{"issuer": {p.at.URL}, "subject": {"olivia-there"}}).Expect(http.StatusBadRequest, "only way to sign in")
	setPassword(w, servertest.Stranger)
	b = w.SignedIn(servertest.Stranger)
	b.LeadsTo(b.Submit(b.Get("/profile"), "/profile/identities/end",
		url.Values{"issuer": {p.at.URL}, "subject": {"olivia-there"}}), "/profile?done=unlinked")
}

func TestDisabledUsersCannotSignInAtAProvider(t *testing.T) {
	longtest.Only(t)
	p := newIdentityProvider(t)
	w := servertest.New(t, p.options())
	if _, err := w.Store.Accounts().LinkIdentity(t.Context(),
		souvenir.NewIdentity{User: w.Users[servertest.Disabled], Issuer: p.at.URL, Subject: "olivia-there"}); err != nil {
		t.Fatal(err)
	}
	b := w.Browser()
	page := atProvider(b, p)
	refusedBy(t, "a disabled user", b, page)
	page.Expect(http.StatusForbidden, "This account is disabled")
}

func TestAccountsCreatedByAProvider(t *testing.T) {
	tests := map[string]struct {
		claims, userInfo map[string]any
		domains          []string
		want             string // name of the account; empty: none
	}{
		"a verified address of the domain": {claims: map[string]any{"email": "nina@Example.COM", "email_verified": true},
			want: "nina"},
		"with a user name": {claims: map[string]any{"email": "nina@example.com", "email_verified": true,
			"preferred_username": "Nina B."}, want: "Nina B."},
		"a user name in use": {claims: map[string]any{"email": "nina@example.com", "email_verified": true,
			"preferred_username": "Olivia"}, want: "Olivia-2"},
		"a user name that cannot be one": {claims: map[string]any{"email": "nina@example.com", "email_verified": true,
			"preferred_username": "a/b"}, want: "nina"},
		"no name that can be one": {claims: map[string]any{"email": "a/b@example.com", "email_verified": true,
			"preferred_username": "\u200b"}, want: "user"},
		"verified, as a text": {claims: map[string]any{"email": "nina@example.com", "email_verified": "true"},
			want: "nina"},
		"at the UserInfo endpoint": {userInfo: map[string]any{"sub": "new-there", "email": "nina@example.com",
			"email_verified": true, "preferred_username": "nb"}, want: "nb"},
		"of another at the endpoint": {userInfo: map[string]any{"sub": "another", "email": "nina@example.com",
			"email_verified": true}},
		"not verified":         {claims: map[string]any{"email": "nina@example.com", "email_verified": false}},
		"verified is not said": {claims: map[string]any{"email": "nina@example.com"}},
		"verified is a number": {claims: map[string]any{"email": "nina@example.com", "email_verified": 1}},
		"no address":           {claims: map[string]any{"email_verified": true}},
		"a subdomain": {claims: map[string]any{"email": "nina@evil.example.com",
			"email_verified": true}},
		"a domain that ends alike": {claims: map[string]any{"email": "nina@evilexample.com", "email_verified": true}},
		"a domain that begins alike": {claims: map[string]any{"email": "nina@example.com.evil.example",
			"email_verified": true}},
		"two signs": {claims: map[string]any{"email": "nina@example.com@evil.example",
			"email_verified": true}},
		"the domain in a name": {claims: map[string]any{"email": "\"nina@example.com\"@evil.example",
			"email_verified": true}},
		"a letter that looks alike": {claims: map[string]any{"email": "nina@éxample.com", "email_verified": true}},
		"a letter that becomes another": {claims: map[string]any{"email": "nina@\u212A.example", "email_verified": true},
			domains: []string{"k.example"}},
		"no name before the sign": {claims: map[string]any{"email": "@example.com", "email_verified": true}},
		"no domains": {claims: map[string]any{"email": "nina@example.com", "email_verified": true},
			domains: []string{}},
	}
	for _, name := range longtest.Keys(tests, 1, 6) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			p := newIdentityProvider(t)
			p.claims = map[string]any{"sub": "new-there"}
			for claim, value := range test.claims {
				p.claims[claim] = value
			}
			if p.userInfo = test.userInfo; p.userInfo == nil {
				p.userInfo = map[string]any{"sub": "new-there"}
			}
			options := p.options()
			if options.Provider.CreateDomains = test.domains; test.domains == nil {
				options.Provider.CreateDomains = []string{"example.com"}
			}
			w := servertest.New(t, options)
			b := w.Browser()
			page := atProvider(b, p)
			user, err := w.Store.Accounts().GetUserByIdentity(t.Context(), p.at.URL, "new-there")
			if test.want == "" {
				refusedBy(t, name, b, page)
				if !errors.Is(err, souvenir.ErrNotFound) {
					t.Errorf("got %+v, %v, want souvenir.ErrNotFound", user, err)
				}
				return
			}
			b.LeadsTo(page, "/").Expect(http.StatusOK, "Hello, "+test.want)
			if err != nil || user.Name != test.want || user.Role != souvenir.RoleUser || user.HasPassword {
				t.Errorf("got %+v, %v, want no error, name %v, role %v and no password", user, err, test.want,
					souvenir.RoleUser)
			}
			second := w.Browser()
			second.LeadsTo(atProvider(second, p), "/").Expect(http.StatusOK, "Hello, "+test.want)
		})
	}
}

// Many sign-ins of one new person make one account.
func TestOneAccountForOneIdentity(t *testing.T) {
	longtest.Only(t)
	p := newIdentityProvider(t)
	p.claims = map[string]any{"sub": "new-there", "email": "nina@example.com", "email_verified": true}
	options := p.options()
	options.Provider.CreateDomains = []string{"example.com"}
	w := servertest.New(t, options)
	before, err := w.Store.Accounts().UserPage(t.Context(), souvenir.UserQuery{})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		b := w.Browser()
		callback := p.signIn(b.Get("/login/provider"))
		all.Go(func() {
			if page := b.Get(callback); page.Status != http.StatusSeeOther || b.Cookie("auth_token") == "" {
				t.Errorf("%d: got %.300s, want a redirect and a session", page.Status, page.Body)
			}
		})
	}
	all.Wait()
	after, err := w.Store.Accounts().UserPage(t.Context(), souvenir.UserQuery{})
	if err != nil || after.Total != before.Total+1 {
		t.Errorf("%d users became %d: %v, want %v", before.Total, after.Total, err, before.Total+1)
	}
}

// The link printed by the first start stays valid.
func TestAProviderMakesNoFirstAccount(t *testing.T) {
	p := newIdentityProvider(t)
	p.claims = map[string]any{"sub": "new-there", "email": "nina@example.com", "email_verified": true}
	options := p.options()
	options.Provider.CreateDomains = []string{"example.com"}
	w := emptyWorld(t, options)
	b := w.Browser()
	page := atProvider(b, p)
	refusedBy(t, "a user before the set-up", b, page)
	page.Expect(http.StatusForbidden, "not set up yet")
	if has, err := w.Store.Accounts().HasAccounts(t.Context()); err != nil || has {
		t.Errorf("got %v, %v, want no error and false", has, err)
	}
}
