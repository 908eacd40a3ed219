package server_test

import (
	"context"

	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

// newClockedWorld is a world whose store and server use a clock that the test advances.
func newClockedWorld(t *testing.T) (w *servertest.World, pass func(time.Duration)) {
	t.Helper()
	p := servertest.Template(t)
	var ahead atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	w = servertest.Serve(t, p, p.Copy(t).Open(t, &souvenir.Options{Now: now,
		Changeable: []souvenir.SettingName{souvenir.SettingMemories}}), server.Options{})
	server.SetConfirmClock(w.Server, now)
	return w, func(d time.Duration) { ahead.Add(int64(d)) }
}

// Creating something lasting asks for the password once if the sign-in is older than ten minutes, and then continues
// with what was typed.
func TestLastingCredentialsNeedARecentSignIn(t *testing.T) {
	const again = "Is it still you?"
	tests := map[string]struct {
		path, action string
		typed        url.Values
		done         func(*servertest.Page) bool
	}{
		"a token": {"/tokens", "/tokens", url.Values{"name": {"made <later>"}, "days": {"30"}, "project": {"shop"}},
			func(p *servertest.Page) bool { return strings.Contains(p.Body, "Your new token") }},
		"a client's token": {"/connect", "/connect", nil,
			func(p *servertest.Page) bool { return strings.Contains(p.Body, "mcp_") && p.Status == http.StatusOK }},
		"a client": {"/clients", "/clients", url.Values{"name": {"Mine"}, "redirect_uris": {"https://mine.example/callback"}},
			func(p *servertest.Page) bool { return strings.Contains(p.Body, "Mine is created") }},
		"a client's secret": {"/clients", "/clients/change", url.Values{"id": {"app"}, "change": {"secret"}},
			func(p *servertest.Page) bool { return strings.Contains(p.Body, "The new secret of") }},
		"name and e-mail": {"/profile", "/profile", url.Values{"email": {"new@example.com"}},
			func(p *servertest.Page) bool { return p.Header.Get("Location") == "/profile?done=profile" }},
	}
	for _, name := range longtest.Keys(tests, 1, 4) {
		c := tests[name]
		t.Run(name, func(t *testing.T) {
			w, pass := newClockedWorld(t)
			setPassword(w, servertest.Owner)
			b := w.SignedIn(servertest.Owner)
			before := func() (int, int) {
				view := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]})
				tokens, err := view.Accounts().Tokens(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				clients, err := view.Accounts().Clients(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				return len(tokens), len(clients)
			}
			send := func() *servertest.Page { return b.Submit(b.Get(c.path), c.action, c.typed) }
			pass(9 * time.Minute)
			if p := send(); !c.done(p) {
				t.Fatalf("after nine minutes: got %d %s, want it done", p.Status, p.Body)
			}
			pass(2 * time.Minute)
			tokens, clients := before()
			if c.typed.Get("name") == "Mine" {
				c.typed.Set("name", "Mine")
			}
			asks := send().Expect(http.StatusForbidden, again, `autocomplete="current-password"`)
			servertest.CheckPage(w, asks)
			wrong := b.Submit(asks, c.action, url.Values{"confirm_password": {"wrong password"}}).Expect(http.StatusUnauthorized,
				again, "not your current password")
			if t2, c2 := before(); t2 != tokens || c2 != clients {
				t.Errorf("something was made without the password: got %v, %v, want %v and %v", t2, c2, tokens, clients)
			}
			if p := b.Submit(wrong, c.action, url.Values{"confirm_password": {rightPassword}}); !c.done(p) {
				t.Errorf("with the password: got %d %s, want it done", p.Status, p.Body)
			}
			if p := send(); strings.Contains(p.Body, again) {
				t.Errorf("it asks twice, want no %q in the body", again)
			}
		})
	}
}

// An unattended browser, or a stolen cookie, cannot change settings for all users.
func TestSettingsOfTheServerNeedARecentSignIn(t *testing.T) {
	longtest.Only(t)
	w, pass := newClockedWorld(t)
	setPassword(w, servertest.Admin)
	b := w.SignedIn(servertest.Admin)
	pass(11 * time.Minute)
	asks := b.Submit(b.Get("/settings"), "/settings/server", url.Values{"name": {"memories"}, "value": {"500"}}).
		Expect(http.StatusForbidden, "Is it still you?")
	quota := func() int {
		t.Helper()
		c, err := w.Store.Upkeep().Configuration(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return c.Quota.Memories
	}
	if quota() != 0 {
		t.Errorf("before the password the quota is %d, want none", quota())
	}
	b.Submit(asks, "/settings/server", url.Values{"confirm_password": {rightPassword}}).Expect(http.StatusSeeOther)
	if quota() != 500 {
		t.Errorf("with the password the quota is %d, want 500", quota())
	}
}

func TestConfirmingIsBounded(t *testing.T) {
	longtest.Only(t)
	w, pass := newClockedWorld(t)
	setPassword(w, servertest.Owner)
	b := w.SignedIn(servertest.Owner)
	pass(time.Hour)
	p := b.Submit(b.Get("/tokens"), "/tokens", url.Values{"name": {"x"}})
	for range 10 {
		if p = b.Submit(p, "/tokens",
			url.Values{"confirm_password": {"wrong password"}}); p.Status == http.StatusTooManyRequests {
			break
		}
	}
	p.Expect(http.StatusTooManyRequests, "oo many failed attempts")
	b.Submit(p, "/tokens", url.Values{"confirm_password": {rightPassword}}).Expect(http.StatusTooManyRequests)
	// The page cannot be bypassed with an invented field, or without a password to ask for.
	rita := w.SignedIn(servertest.Reader)
	pass(time.Hour)
	form := rita.Get("/tokens").FormTo("/tokens", "name", "")
	form.Set("name", "x")
	form.Set("confirm_password", "")
	rita.Post("/tokens", form).Expect(http.StatusForbidden, "You have no password here").Without("mcp_")
}

// A program with a browser's cookie is asked for a recent sign-in, and what it creates ends with that sign-in.
func TestCredentialsMadeWithACookieEndWithTheSignIn(t *testing.T) {
	longtest.Only(t)
	w, pass := newClockedWorld(t)
	b := w.SignedIn(servertest.Owner)
	api := func(path, body string) servertest.Answer {
		r := w.Request(servertest.Guest, "POST", path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.AddCookie(&http.Cookie{Name: "auth_token", Value: b.Cookie("auth_token")})
		return w.Send(r)
	}
	var made souvenir.AddedToken
	api("/api/mcp-tokens", `{"name": "made", "scopes": ["memory:write", "account"]}`).Expect(http.StatusOK,
		`"with_session":true`).Decode(&made)
	w.Hold("made", made.Value)
	var child souvenir.AddedToken
	w.Do("made", "POST", "/api/mcp-tokens", `{"name": "child"}`).Expect(http.StatusOK,
		`"token_name":"made"`).Decode(&child)
	w.Hold("child", child.Value)
	pass(11 * time.Minute)
	for path, body := range map[string]string{"/api/mcp-tokens": `{"name": "late"}`,
		"/oauth/admin/clients":                       `{"redirect_uris": ["https://a.example/b"]}`,
		"/oauth/admin/clients/app/regenerate-secret": ""} {
		api(path, body).Expect(http.StatusForbidden, "older than 10 minutes")
	}
	w.Do("child", "GET", "/api/projects", "").Expect(http.StatusOK)
	csrf := b.Get("/profile").Hidden().Get("csrf")
	b.Post("/logout", url.Values{"csrf": {csrf}}).Expect(http.StatusSeeOther)
	for _, ended := range []string{"made", "child"} {
		w.Do(ended, "GET", "/api/projects", "").Expect(http.StatusUnauthorized)
	}
}

// A person's token outlives the sign-out of the browser, and ends when the browser's session is ended from elsewhere.
func TestTokensOfAPageAndTheirBrowser(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	make := func(b *servertest.Browser, name string, more url.Values) {
		typed := url.Values{"name": {name}, "account": {"yes"}}
		for key, values := range more {
			typed[key] = values
		}
		w.Hold(name, b.Submit(b.Get("/tokens"), "/tokens", typed).Expect(http.StatusOK, "Your new token").Code("mcp_"))
	}
	alive := func(status int, names ...string) {
		t.Helper()
		for _, name := range names {
			w.Do(name, "GET", "/api/projects", "").Expect(status)
		}
	}
	leaves, other, stays := w.SignedIn(servertest.Owner), w.SignedIn(servertest.Owner), w.SignedIn(servertest.Owner)
	make(leaves, "lasting", nil)
	make(leaves, "passing", url.Values{"with-session": {"yes"}})
	leaves.Get("/tokens").Expect(http.StatusOK, "in the browser session of Firefox on Linux",
		"or when that browser signs out")
	csrf := leaves.Get("/profile").Hidden().Get("csrf")
	leaves.Post("/logout", url.Values{"csrf": {csrf}}).Expect(http.StatusSeeOther)
	alive(http.StatusOK, "lasting")
	alive(http.StatusUnauthorized, "passing")

	make(other, "suspicious", nil)
	var child souvenir.AddedToken
	w.Do("suspicious", "POST", "/api/mcp-tokens", `{"name": "child"}`).Expect(http.StatusOK).Decode(&child)
	w.Hold("child", child.Value)
	app := w.Register("none")
	w.Hold("allowed", w.Redeem(app, other.Allow(app.AuthorizeURL(), nil)).AccessToken)
	alive(http.StatusOK, "suspicious", "child", "allowed")
	p := stays.Get("/profile").Expect(http.StatusOK, "Also revoke what was created there: 2 tokens and 1 application")
	sessions, err := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]}).Accounts().SignIns(context.Background())
	if err != nil || len(sessions) != 2 {
		t.Fatalf("got %v %v, want no error and 2 sessions", sessions, err)
	}
	stays.Submit(p, "/profile/sessions/end", url.Values{"id": {sessions[1].ID}}).Expect(http.StatusSeeOther)
	alive(http.StatusUnauthorized, "suspicious", "child", "allowed")
	alive(http.StatusOK, "lasting")

	kept := w.SignedIn(servertest.Owner)
	make(kept, "kept", nil)
	sessions, err = w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]}).Accounts().SignIns(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	stays.Submit(stays.Get("/profile"), "/profile/sessions/end",
		url.Values{"id": {sessions[0].ID}, "made": nil}).Expect(http.StatusSeeOther)
	kept.Get("/profile").Expect(http.StatusSeeOther)
	alive(http.StatusOK, "kept")
}

// A new sign-in in the same browser takes over what the old session created.
func TestARenewedSignInKeepsItsCredentials(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	setPassword(w, servertest.Owner)
	b := w.Browser()
	login(b, "olivia", rightPassword).Expect(http.StatusSeeOther)
	w.Hold("made", b.Submit(b.Get("/tokens"), "/tokens", url.Values{"name": {"x"}, "with-session": {"yes"}}).Code("mcp_"))
	b.Submit(b.Get("/login?again=1"), "/login",
		url.Values{"username": {"olivia"}, "password": {rightPassword}}).Expect(http.StatusSeeOther)
	w.Do("made", "GET", "/api/projects", "").Expect(http.StatusOK)
	csrf := b.Get("/profile").Hidden().Get("csrf")
	b.Post("/logout", url.Values{"csrf": {csrf}})
	w.Do("made", "GET", "/api/projects", "").Expect(http.StatusUnauthorized)
}

// Consenting to a scope that lets others in takes a recent sign-in; other scopes do not.
func TestConsentToAccountNeedsARecentSignIn(t *testing.T) {
	longtest.Only(t)
	w, pass := newClockedWorld(t)
	setPassword(w, servertest.Owner)
	b, app := w.SignedIn(servertest.Owner), w.Register("none")
	pass(time.Hour)
	asked := app.AuthorizeURL("scope", "memory:read account")
	w.Redeem(app, b.Allow(asked, nil))
	p := b.Allow(asked, url.Values{"scope": {"memory:read", "account"}}).Expect(http.StatusForbidden, "Is it still you?")
	if tokens := w.Redeem(app, b.Submit(p, "/oauth/authorize",
		url.Values{"confirm_password": {rightPassword}})); tokens.Scope != "memory:read account" {
		t.Errorf("granted is %q, want \"memory:read account\"", tokens.Scope)
	}
}

// While a flood of sign-ins takes all places, a browser in which the person has signed in before still gets in. Others
// get a time to retry.
func TestKnownBrowsersHaveALaneOfTheirOwn(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	setPassword(w, servertest.Owner)
	known := w.Browser()
	login(known, "olivia", rightPassword).Expect(http.StatusSeeOther)
	csrf := known.Get("/profile").Hidden().Get("csrf")
	known.Post("/logout", url.Values{"csrf": {csrf}})
	empty := server.FillLane(w.Server)
	stranger := w.Browser()
	for range 10 { // none of them counts as a failed attempt
		if p := login(stranger, "olivia", rightPassword).Expect(http.StatusServiceUnavailable,
			"oo many people are signing in right now"); p.Header.Get("Retry-After") == "" {
			t.Fatalf("nothing says when to come back: got %v, want a Retry-After that is not empty", p.Header.Get("Retry-After"))
		}
	}
	login(known, "olivia", rightPassword).Expect(http.StatusSeeOther)
	known.Get("/profile").Expect(http.StatusOK)
	known.Submit(known.Get("/profile"), "/profile/password",
		url.Values{"old": {rightPassword}, "new": {"ten blue kettles"}}).Expect(http.StatusSeeOther)
	known.Submit(known.Get("/login?again=1"), "/login",
		url.Values{"username": {"sam"},
			"password": {"whatever password"}}).Expect(http.StatusServiceUnavailable) // known for one account
	empty()
	login(stranger, "olivia", "ten blue kettles").Expect(http.StatusSeeOther)
}

// The server still knows such a browser after a restart. The mark gives no other access.
func TestKnownBrowsersAreKnownAfterARestart(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	setPassword(w, servertest.Owner)
	known := w.Browser()
	login(known, "olivia", rightPassword).Expect(http.StatusSeeOther)
	mark := known.Cookie("souvenir_known")
	known.Post("/logout", url.Values{"csrf": {known.Get("/profile").Hidden().Get("csrf")}})

	options := server.Options{PublicURL: servertest.PublicAt}
	w.Server = server.New(w.Store, &options)
	at := httptest.NewServer(w.Server)
	t.Cleanup(at.Close)
	w.HTTP = at
	defer server.FillLane(w.Server)()
	stranger, forger, again := w.Browser(), w.Browser(), w.Browser()
	login(stranger, "olivia", rightPassword).Expect(http.StatusServiceUnavailable)
	forger.Get("/login")
	forger.SetCookie("souvenir_known", mark[:len(mark)-2]+"AA")
	login(forger, "olivia", rightPassword).Expect(http.StatusServiceUnavailable)
	again.Get("/login")
	again.SetCookie("souvenir_known", mark)
	login(again, "sam", rightPassword).Expect(http.StatusServiceUnavailable) // known for one account
	again.Get("/memories").Expect(http.StatusSeeOther)
	login(again, "olivia", rightPassword).Expect(http.StatusSeeOther)
	again.Get("/memories").Expect(http.StatusOK)
}

// A confirmation applies to one browser and the person in it, and only pages of this server can send one.
func TestAConfirmationIsOfOneBrowserAndOnePerson(t *testing.T) {
	longtest.Only(t)
	const again = "Is it still you?"
	w, pass := newClockedWorld(t)
	setPassword(w, servertest.Owner)
	const samsPassword = "seven green kettles"
	if _, err := w.Store.Accounts().UpdateUser(context.Background(), w.Users[servertest.Stranger],
		souvenir.UserUpdate{Password: new(samsPassword)}); err != nil {
		t.Fatal(err)
	}
	b, other, sams := w.SignedIn(servertest.Owner), w.SignedIn(servertest.Owner), w.SignedIn(servertest.Stranger)
	pass(time.Hour)
	send := func(b *servertest.Browser) *servertest.Page {
		return b.Submit(b.Get("/tokens"), "/tokens", url.Values{"name": {"lasting"}})
	}
	asks := send(b).Expect(http.StatusForbidden, again)
	fields := url.Values{"name": {"lasting"}, "confirm_password": {rightPassword}, "csrf": asks.Hidden()["csrf"][:1]}

	// The password of another person, and the right one in the address or without the page's hidden fields.
	b.Submit(asks, "/tokens", url.Values{"confirm_password": {samsPassword}}).Expect(http.StatusUnauthorized, again)
	noPassword := url.Values{"name": {"lasting"}, "csrf": fields["csrf"]}
	b.Post("/tokens?confirm_password="+url.QueryEscape(rightPassword), noPassword).Without("Your new token")
	b.Post("/tokens", url.Values{"name": {"lasting"}, "confirm_password": {rightPassword}}).Expect(http.StatusForbidden)
	sams.Post("/tokens", fields).Expect(http.StatusForbidden) // the form of another person's browser
	for _, header := range []string{"Origin", "Sec-Fetch-Site"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.HTTP.URL+"/tokens",
			strings.NewReader(fields.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", map[string]string{"Origin": "https://evil.example", "Sec-Fetch-Site": w.HTTP.URL}[header])
		if header == "Sec-Fetch-Site" {
			r.Header.Set(header, "cross-site")
		}
		b.Send(r).Expect(http.StatusForbidden).Without("Your new token")
	}
	send(b).Expect(http.StatusForbidden, again) // nothing so far has confirmed anything

	b.Submit(asks, "/tokens", url.Values{"confirm_password": {rightPassword}}).Expect(http.StatusOK, "Your new token")
	send(b).Expect(http.StatusOK, "Your new token")
	send(other).Expect(http.StatusForbidden, again) // another browser of the same person
	send(sams).Expect(http.StatusForbidden, again)

	// One person's confirmation is not valid for the next person in the browser, nor with an old cookie.
	old := b.Cookie("auth_token")
	b.Post("/logout", url.Values{"csrf": {b.Get("/profile").Hidden().Get("csrf")}})
	b.SetCookie("auth_token", old)
	b.Get("/tokens").Expect(http.StatusSeeOther)
	b.SetCookie("auth_token", sams.Cookie("auth_token"))
	send(b).Expect(http.StatusForbidden, again)
	pass(11 * time.Minute)
	send(other).Expect(http.StatusForbidden, again)
}
