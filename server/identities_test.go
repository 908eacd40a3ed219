package server_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/souvenir-ai/souvenir"
)

// link links the account at the provider to that of the signed-in user, as far as the callback.
func (b *browser) link(p *identityProvider, password string) *gotPage {
	b.w.t.Helper()
	typed := url.Values{}
	if password != "" {
		typed.Set("password", password)
	}
	return b.get(p.signIn(b.submit(b.get("/profile"), "/profile/identities", typed)))
}

func TestLinkingAnAccountAtAProvider(t *testing.T) {
	p := newIdentityProvider(t)
	p.claims["email"] = "olivia@id.example"
	w := newWorld(t, p.options())
	w.setPassword(owner)
	stranger := w.browser()
	page := stranger.atProvider(p)
	refusedBy(t, "an identity without a linked account", stranger, page)
	page.expect(http.StatusForbidden, "not linked to one here")

	b := w.signedIn(owner)
	b.get("/profile").expect(http.StatusOK, "Link your Example ID account")
	b.submit(b.get("/profile"), "/profile/identities",
		url.Values{"password": {wrongPassword}}).expect(http.StatusUnauthorized,
		"Your password is not your current password.")
	b.leadsTo(b.link(p, rightPassword), "/profile?done=linked").expect(http.StatusOK, "Account linked.",
		"olivia@id.example")
	b.leadsTo(b.link(p, rightPassword), "/profile?done=linked") // again: nothing new
	if all, err := w.store.Accounts().Identities(t.Context(), w.users[owner]); err != nil || len(all) != 1 ||
		all[0].Subject != "olivia-there" || all[0].Issuer != p.at.URL {
		t.Errorf("%+v, %v", all, err)
	}
	checkPage(w, b.get("/profile"))
	checkPage(w, w.browser().get("/login"))
	stranger.leadsTo(stranger.atProvider(p), "/").expect(http.StatusOK, "Hello, olivia")

	// No one else gets it, nor by another's e-mail address.
	rita := w.signedIn(reader)
	rita.link(p, "").expect(http.StatusForbidden, "is linked to another user here")
	p.set(func() { p.claims["sub"] = "another-there" })
	other := w.browser()
	p.set(func() { p.claims["email"], p.claims["email_verified"] = "olivia@example.com", true })
	refusedBy(t, "an account with the e-mail address of another", other, other.atProvider(p))

	form := url.Values{"issuer": {p.at.URL}, "subject": {"olivia-there"}}
	b.leadsTo(b.submit(b.get("/profile"), "/profile/identities/end", form),
		"/profile?done=unlinked").without("olivia@id.example")
	p.set(func() { p.claims["sub"] = "olivia-there" })
	again := w.browser()
	refusedBy(t, "an account that was unlinked", again, again.atProvider(p))
}

// Linking ends in the session in which it began, even if another user signs in there meanwhile.
func TestLinkingIsBoundToTheSession(t *testing.T) {
	p := newIdentityProvider(t)
	w := newWorld(t, p.options())
	w.setPassword(owner)
	b := w.signedIn(owner)
	away := b.submit(b.get("/profile"), "/profile/identities", url.Values{"password": {rightPassword}})
	b.setCookie("auth_token", w.signedIn(stranger).cookie("auth_token"))
	b.get(p.signIn(away)).expect(http.StatusForbidden, "another user has signed in here meanwhile")
	away = b.submit(b.get("/profile"), "/profile/identities", nil)
	b.submit(b.get("/profile"), "/logout", nil)
	b.get(p.signIn(away)).expect(http.StatusForbidden, "were signed out, or")
	for _, caller := range []string{owner, stranger} {
		if all, err := w.store.Accounts().Identities(t.Context(), w.users[caller]); err != nil || len(all) != 0 {
			t.Errorf("%s has %+v, %v; want none", caller, all, err)
		}
	}
	// What began as a sign-in links nothing, and signs no one in who is unknown.
	b = w.signedIn(owner)
	b.get(p.signIn(b.get("/login/provider"))).expect(http.StatusForbidden)
	b.get("/profile").expect(http.StatusOK, "olivia@example.com")
	if _, err := w.store.Accounts().UserByIdentity(t.Context(), p.at.URL, "olivia-there"); !errors.Is(err,
		souvenir.ErrNotFound) {
		t.Error(err)
	}
}

func TestFormsOfIdentitiesOfOthersAreRefused(t *testing.T) {
	p := newIdentityProvider(t)
	w := linked(t, p, p.options())
	b, sam := w.signedIn(owner), w.signedIn(stranger)
	right := b.get("/profile").html.all("form")[0].fields().Get("csrf")
	other := sam.get("/profile").html.all("form")[0].fields().Get("csrf")
	for _, path := range []string{"/profile/identities", "/profile/identities/end"} {
		for _, csrf := range []string{"", other} {
			b.post(path, url.Values{"csrf": {csrf}, "password": {rightPassword}, "issuer": {p.at.URL},
				"subject": {"olivia-there"}}).expect(http.StatusForbidden)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.at.URL+path,
			strings.NewReader(url.Values{"csrf": {right}}.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "https://evil.example")
		b.send(r).expect(http.StatusForbidden)
		if page := w.browser().post(path, url.Values{"csrf": {right}}); page.status != http.StatusSeeOther ||
			page.header.Get("Location") != "/login" {
			t.Errorf("%s without a session: got %d", path, page.status)
		}
	}
	// One's own page ends no identity of another.
	sam.post("/profile/identities/end", url.Values{"csrf": {other}, "issuer": {p.at.URL}, "subject": {"olivia-there"}})
	if user, err := w.store.Accounts().UserByIdentity(t.Context(), p.at.URL, "olivia-there"); err != nil ||
		user.Name != "olivia" {
		t.Errorf("%+v, %v; want name \"olivia\"", user, err)
	}
}

// Anyone who has no password keeps a way in.
func TestTheLastWayInStays(t *testing.T) {
	p := newIdentityProvider(t)
	w := newWorld(t, p.options())
	b := w.signedIn(stranger) // without a password
	b.leadsTo(b.link(p, ""), "/profile?done=linked")
	// An identity of a provider no longer in use is no way in.
	if _, err := w.store.Accounts().LinkIdentity(t.Context(),
		souvenir.NewIdentity{User: w.users[stranger], Issuer: "https://former.example", Subject: "sam"}); err != nil {
		t.Fatal(err)
	}
	unlink := func(issuer, subject string) *gotPage {
		page := b.get("/profile").expect(http.StatusOK, "no longer in use here")
		return b.submit(page, "/profile/identities/end", url.Values{"issuer": {issuer}, "subject": {subject}})
	}
	unlink(p.at.URL, "olivia-there").expect(http.StatusBadRequest, "only way to sign in")
	b.leadsTo(unlink("https://former.example", "sam"), "/profile?done=unlinked").without("no longer in use here")
	b.submit(b.get("/profile"), "/profile/identities/end",
		url.Values{"issuer": {p.at.URL}, "subject": {"olivia-there"}}).expect(http.StatusBadRequest, "only way to sign in")
	w.setPassword(stranger)
	b = w.signedIn(stranger)
	b.leadsTo(b.submit(b.get("/profile"), "/profile/identities/end",
		url.Values{"issuer": {p.at.URL}, "subject": {"olivia-there"}}), "/profile?done=unlinked")
}

func TestDisabledUsersDoNotComeInByAProvider(t *testing.T) {
	p := newIdentityProvider(t)
	w := newWorld(t, p.options())
	if _, err := w.store.Accounts().LinkIdentity(t.Context(),
		souvenir.NewIdentity{User: w.users[disabled], Issuer: p.at.URL, Subject: "olivia-there"}); err != nil {
		t.Fatal(err)
	}
	b := w.browser()
	page := b.atProvider(p)
	refusedBy(t, "a disabled user", b, page)
	page.expect(http.StatusForbidden, "This account is disabled")
}

func TestAccountsThatAProviderMakes(t *testing.T) {
	for name, test := range map[string]struct {
		claims, userInfo map[string]any
		domains          []string
		want             string // name of the account; empty: none
	}{
		"a verified address of the domain": {claims: map[string]any{"email": "nina@Example.COM", "email_verified": true},
			want: "nina"},
		"with a user name": {claims: map[string]any{"email": "nina@example.com", "email_verified": true,
			"preferred_username": "Nina B."}, want: "Nina B."},
		"a user name that is taken": {claims: map[string]any{"email": "nina@example.com", "email_verified": true,
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
	} {
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
			w := newWorld(t, options)
			b := w.browser()
			page := b.atProvider(p)
			user, err := w.store.Accounts().UserByIdentity(t.Context(), p.at.URL, "new-there")
			if test.want == "" {
				refusedBy(t, name, b, page)
				if !errors.Is(err, souvenir.ErrNotFound) {
					t.Errorf("%+v, %v", user, err)
				}
				return
			}
			b.leadsTo(page, "/").expect(http.StatusOK, "Hello, "+test.want)
			if err != nil || user.Name != test.want || user.Role != souvenir.RoleUser || user.HasPassword {
				t.Errorf("%+v, %v", user, err)
			}
			second := w.browser()
			second.leadsTo(second.atProvider(p), "/").expect(http.StatusOK, "Hello, "+test.want)
		})
	}
}

// Many answers for someone new make one account.
func TestOneAccountForOneIdentity(t *testing.T) {
	p := newIdentityProvider(t)
	p.claims = map[string]any{"sub": "new-there", "email": "nina@example.com", "email_verified": true}
	options := p.options()
	options.Provider.CreateDomains = []string{"example.com"}
	w := newWorld(t, options)
	before, err := w.store.Accounts().UserPage(t.Context(), souvenir.UserQuery{})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		b := w.browser()
		callback := p.signIn(b.get("/login/provider"))
		all.Go(func() {
			if page := b.get(callback); page.status != http.StatusSeeOther || b.cookie("auth_token") == "" {
				t.Errorf("%d: %.300s", page.status, page.body)
			}
		})
	}
	all.Wait()
	after, err := w.store.Accounts().UserPage(t.Context(), souvenir.UserQuery{})
	if err != nil || after.Total != before.Total+1 {
		t.Errorf("%d users became %d: %v, want %v", before.Total, after.Total, err, before.Total+1)
	}
}

// The link that the first start prints stays worth something.
func TestAProviderMakesNoFirstAccount(t *testing.T) {
	p := newIdentityProvider(t)
	p.claims = map[string]any{"sub": "new-there", "email": "nina@example.com", "email_verified": true}
	options := p.options()
	options.Provider.CreateDomains = []string{"example.com"}
	w := emptyWorld(t, options)
	b := w.browser()
	page := b.atProvider(p)
	refusedBy(t, "a user before the set-up", b, page)
	page.expect(http.StatusForbidden, "not set up yet")
	if has, err := w.store.Accounts().HasAccounts(t.Context()); err != nil || has {
		t.Errorf("%v, %v", has, err)
	}
}
