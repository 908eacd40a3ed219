package server_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// newClockedWorld is a world whose store and server go by a clock that the test sets forward.
func newClockedWorld(t *testing.T) (w *world, pass func(time.Duration)) {
	t.Helper()
	p, err := template()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "world.db")
	if err := os.WriteFile(path, p.database, 0o600); err != nil {
		t.Fatal(err)
	}
	var ahead atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	store, err := souvenir.Open(background, path, &souvenir.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	w = serve(t, p, store, server.Options{})
	server.SetConfirmClock(w.inner, now)
	return w, func(d time.Duration) { ahead.Add(int64(d)) }
}

// What makes something that lasts asks for the password when the sign-in is older than ten minutes, once, and then does
// what was typed.
func TestWhatLastsTakesARecentSignIn(t *testing.T) {
	const again = "Is it still you?"
	for name, c := range map[string]struct {
		path, action string
		typed        url.Values
		done         func(*gotPage) bool
	}{
		"a token": {"/tokens", "/tokens", url.Values{"name": {"made <later>"}, "days": {"30"}, "project": {"shop"}},
			func(p *gotPage) bool { return strings.Contains(p.body, "Your new token") }},
		"a client's token": {"/connect", "/connect", nil,
			func(p *gotPage) bool { return strings.Contains(p.body, "mcp_") && p.status == http.StatusOK }},
		"a client": {"/clients", "/clients", url.Values{"name": {"Mine"}, "redirect_uris": {"https://mine.example/callback"}},
			func(p *gotPage) bool { return strings.Contains(p.body, "Mine is created") }},
		"a client's secret": {"/clients", "/clients/change", url.Values{"id": {"app"}, "change": {"secret"}},
			func(p *gotPage) bool { return strings.Contains(p.body, "The new secret of") }},
		"name and e-mail": {"/profile", "/profile", url.Values{"email": {"new@example.com"}},
			func(p *gotPage) bool { return p.header.Get("Location") == "/profile?done=profile" }},
	} {
		t.Run(name, func(t *testing.T) {
			w, pass := newClockedWorld(t)
			w.setPassword(owner)
			b := w.signedIn(owner)
			before := func() (int, int) {
				view := w.store.As(souvenir.Access{User: w.users[owner]})
				tokens, err := view.Accounts().Tokens(background)
				if err != nil {
					t.Fatal(err)
				}
				clients, err := view.Accounts().Clients(background)
				if err != nil {
					t.Fatal(err)
				}
				return len(tokens), len(clients)
			}
			send := func() *gotPage { return b.submit(b.get(c.path), c.action, c.typed) }
			pass(9 * time.Minute)
			if p := send(); !c.done(p) {
				t.Fatalf("after nine minutes: %d %s", p.status, p.body)
			}
			pass(2 * time.Minute)
			tokens, clients := before()
			if c.typed.Get("name") == "Mine" {
				c.typed.Set("name", "Mine")
			}
			asks := send().expect(http.StatusForbidden, again, `autocomplete="current-password"`)
			checkPage(w, asks)
			wrong := b.submit(asks, c.action, url.Values{"confirm_password": {"wrong password"}}).expect(http.StatusUnauthorized,
				again, "not your current password")
			if t2, c2 := before(); t2 != tokens || c2 != clients {
				t.Error("something was made without the password")
			}
			if p := b.submit(wrong, c.action, url.Values{"confirm_password": {rightPassword}}); !c.done(p) {
				t.Errorf("with the password: %d %s", p.status, p.body)
			}
			if p := send(); strings.Contains(p.body, again) {
				t.Error("it asks twice")
			}
		})
	}
}

func TestConfirmingIsBounded(t *testing.T) {
	w, pass := newClockedWorld(t)
	w.setPassword(owner)
	b := w.signedIn(owner)
	pass(time.Hour)
	p := b.submit(b.get("/tokens"), "/tokens", url.Values{"name": {"x"}})
	for range 10 {
		if p = b.submit(p, "/tokens",
			url.Values{"confirm_password": {"wrong password"}}); p.status == http.StatusTooManyRequests {
			break
		}
	}
	p.expect(http.StatusTooManyRequests, "oo many failed attempts")
	b.submit(p, "/tokens", url.Values{"confirm_password": {rightPassword}}).expect(http.StatusTooManyRequests)
	// No one comes past the page by a made-up field, or without a password to ask for.
	rita := w.signedIn(reader)
	pass(time.Hour)
	form := rita.get("/tokens").formTo("/tokens", "name", "")
	form.Set("name", "x")
	form.Set("confirm_password", "")
	rita.post("/tokens", form).expect(http.StatusForbidden, "You have no password here").without("mcp_")
}

// A program that comes with a browser's cookie is asked for a recent sign-in, and what it makes ends with that sign-in.
func TestWhatIsMadeWithACookieEndsWithTheSignIn(t *testing.T) {
	w, pass := newClockedWorld(t)
	b := w.signedIn(owner)
	api := func(path, body string) answer {
		r := w.request(guest, "POST", path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.AddCookie(&http.Cookie{Name: "auth_token", Value: b.cookie("auth_token")})
		return w.send(r)
	}
	var made souvenir.AddedToken
	api("/api/mcp-tokens", `{"name": "made", "scopes": ["memory:write", "account"]}`).expect(http.StatusOK,
		`"with_session":true`).decode(&made)
	w.hold("made", made.Value)
	var child souvenir.AddedToken
	w.do("made", "POST", "/api/mcp-tokens", `{"name": "child"}`).expect(http.StatusOK,
		`"token_name":"made"`).decode(&child)
	w.hold("child", child.Value)
	pass(11 * time.Minute)
	for path, body := range map[string]string{"/api/mcp-tokens": `{"name": "late"}`,
		"/oauth/admin/clients":                       `{"redirect_uris": ["https://a.example/b"]}`,
		"/oauth/admin/clients/app/regenerate-secret": ""} {
		api(path, body).expect(http.StatusForbidden, "older than 10 minutes")
	}
	w.do("child", "GET", "/api/projects", "").expect(http.StatusOK)
	csrf := b.get("/profile").hidden().Get("csrf")
	b.post("/logout", url.Values{"csrf": {csrf}}).expect(http.StatusSeeOther)
	for _, ended := range []string{"made", "child"} {
		w.do(ended, "GET", "/api/projects", "").expect(http.StatusUnauthorized)
	}
}

// A person's token outlives the sign-out of the browser, and ends when someone ends that browser's session from
// elsewhere.
func TestTokensOfAPageAndTheirBrowser(t *testing.T) {
	w := newWorld(t, server.Options{})
	make := func(b *browser, name string, more url.Values) {
		typed := url.Values{"name": {name}, "account": {"yes"}}
		for key, values := range more {
			typed[key] = values
		}
		w.hold(name, b.submit(b.get("/tokens"), "/tokens", typed).expect(http.StatusOK, "Your new token").code("mcp_"))
	}
	alive := func(status int, names ...string) {
		t.Helper()
		for _, name := range names {
			w.do(name, "GET", "/api/projects", "").expect(status)
		}
	}
	leaves, other, stays := w.signedIn(owner), w.signedIn(owner), w.signedIn(owner)
	make(leaves, "lasting", nil)
	make(leaves, "passing", url.Values{"with-session": {"yes"}})
	leaves.get("/tokens").expect(http.StatusOK, "in the browser session of Firefox on Linux",
		"or when that browser signs out")
	csrf := leaves.get("/profile").hidden().Get("csrf")
	leaves.post("/logout", url.Values{"csrf": {csrf}}).expect(http.StatusSeeOther)
	alive(http.StatusOK, "lasting")
	alive(http.StatusUnauthorized, "passing")

	make(other, "suspicious", nil)
	var child souvenir.AddedToken
	w.do("suspicious", "POST", "/api/mcp-tokens", `{"name": "child"}`).expect(http.StatusOK).decode(&child)
	w.hold("child", child.Value)
	app := w.register("none")
	w.hold("let in", w.redeem(app, other.letIn(app.asks(), nil)).AccessToken)
	alive(http.StatusOK, "suspicious", "child", "let in")
	p := stays.get("/profile").expect(http.StatusOK, "Also revoke what was created there: 2 tokens and 1 application")
	sessions, err := w.store.As(souvenir.Access{User: w.users[owner]}).Accounts().SignIns(background)
	if err != nil || len(sessions) != 2 {
		t.Fatal(sessions, err)
	}
	stays.submit(p, "/profile/sessions/end", url.Values{"id": {sessions[1].ID}}).expect(http.StatusSeeOther)
	alive(http.StatusUnauthorized, "suspicious", "child", "let in")
	alive(http.StatusOK, "lasting")

	kept := w.signedIn(owner)
	make(kept, "kept", nil)
	sessions, err = w.store.As(souvenir.Access{User: w.users[owner]}).Accounts().SignIns(background)
	if err != nil {
		t.Fatal(err)
	}
	stays.submit(stays.get("/profile"), "/profile/sessions/end",
		url.Values{"id": {sessions[0].ID}, "made": nil}).expect(http.StatusSeeOther)
	kept.get("/profile").expect(http.StatusSeeOther)
	alive(http.StatusOK, "kept")
}

// Anyone who signs in again in the same browser keeps what was made there in the hand of the new session.
func TestASignInAgainTakesOverWhatWasMade(t *testing.T) {
	w := newWorld(t, server.Options{})
	w.setPassword(owner)
	b := w.browser()
	b.login("olivia", rightPassword).expect(http.StatusSeeOther)
	w.hold("made", b.submit(b.get("/tokens"), "/tokens", url.Values{"name": {"x"}, "with-session": {"yes"}}).code("mcp_"))
	b.submit(b.get("/login?again=1"), "/login",
		url.Values{"username": {"olivia"}, "password": {rightPassword}}).expect(http.StatusSeeOther)
	w.do("made", "GET", "/api/projects", "").expect(http.StatusOK)
	csrf := b.get("/profile").hidden().Get("csrf")
	b.post("/logout", url.Values{"csrf": {csrf}})
	w.do("made", "GET", "/api/projects", "").expect(http.StatusUnauthorized)
}

// To give an application what lets others in takes a recent sign-in; the rest does not.
func TestConsentToLetOthersInTakesARecentSignIn(t *testing.T) {
	w, pass := newClockedWorld(t)
	w.setPassword(owner)
	b, app := w.signedIn(owner), w.register("none")
	pass(time.Hour)
	asked := app.asks("scope", "memory:read account")
	w.redeem(app, b.letIn(asked, nil))
	p := b.letIn(asked, url.Values{"scope": {"memory:read", "account"}}).expect(http.StatusForbidden, "Is it still you?")
	if tokens := w.redeem(app, b.submit(p, "/oauth/authorize",
		url.Values{"confirm_password": {rightPassword}})); tokens.Scope != "memory:read account" {
		t.Errorf("granted is %q, want \"memory:read account\"", tokens.Scope)
	}
}

// While a flood of sign-ins takes all places, a browser in which the person has signed in before still gets in, and
// strangers learn when to come back.
func TestKnownBrowsersHaveALaneOfTheirOwn(t *testing.T) {
	w := newWorld(t, server.Options{})
	w.setPassword(owner)
	known := w.browser()
	known.login("olivia", rightPassword).expect(http.StatusSeeOther)
	csrf := known.get("/profile").hidden().Get("csrf")
	known.post("/logout", url.Values{"csrf": {csrf}})
	empty := server.FillLane(w.inner)
	stranger := w.browser()
	for range 10 { // none of them counts as a wrong try
		if p := stranger.login("olivia", rightPassword).expect(http.StatusServiceUnavailable,
			"oo many people are signing in right now"); p.header.Get("Retry-After") == "" {
			t.Fatal("nothing says when to come back")
		}
	}
	known.login("olivia", rightPassword).expect(http.StatusSeeOther)
	known.get("/profile").expect(http.StatusOK)
	known.submit(known.get("/profile"), "/profile/password",
		url.Values{"old": {rightPassword}, "new": {"ten blue kettles"}}).expect(http.StatusSeeOther)
	known.submit(known.get("/login?again=1"), "/login",
		url.Values{"username": {"sam"},
			"password": {"whatever password"}}).expect(http.StatusServiceUnavailable) // it is known for one account only
	empty()
	stranger.login("olivia", "ten blue kettles").expect(http.StatusSeeOther)
}

// The lane is for a browser that has signed in before the server was restarted, too. A mark opens nothing else.
func TestKnownBrowsersAreKnownAfterARestart(t *testing.T) {
	w := newWorld(t, server.Options{})
	w.setPassword(owner)
	known := w.browser()
	known.login("olivia", rightPassword).expect(http.StatusSeeOther)
	mark := known.cookie("souvenir_known")
	known.post("/logout", url.Values{"csrf": {known.get("/profile").hidden().Get("csrf")}})

	options := server.Options{PublicURL: publicAt}
	w.inner = server.New(w.store, &options)
	at := httptest.NewServer(w.inner)
	t.Cleanup(at.Close)
	w.at = at
	defer server.FillLane(w.inner)()
	stranger, forger, again := w.browser(), w.browser(), w.browser()
	stranger.login("olivia", rightPassword).expect(http.StatusServiceUnavailable)
	forger.get("/login")
	forger.setCookie("souvenir_known", mark[:len(mark)-2]+"AA")
	forger.login("olivia", rightPassword).expect(http.StatusServiceUnavailable)
	again.get("/login")
	again.setCookie("souvenir_known", mark)
	again.login("sam", rightPassword).expect(http.StatusServiceUnavailable) // it is known for one account only
	again.get("/memories").expect(http.StatusSeeOther)
	again.login("olivia", rightPassword).expect(http.StatusSeeOther)
	again.get("/memories").expect(http.StatusOK)
}

// A confirmation is of one browser and of the person in it, and only a page of this server sends one.
func TestAConfirmationIsOfOneBrowserAndOnePerson(t *testing.T) {
	const again = "Is it still you?"
	w, pass := newClockedWorld(t)
	w.setPassword(owner)
	const samsPassword = "seven green kettles"
	if _, err := w.store.Accounts().UpdateUser(background, w.users[stranger],
		souvenir.UserUpdate{Password: new(samsPassword)}); err != nil {
		t.Fatal(err)
	}
	b, other, sams := w.signedIn(owner), w.signedIn(owner), w.signedIn(stranger)
	pass(time.Hour)
	send := func(b *browser) *gotPage {
		return b.submit(b.get("/tokens"), "/tokens", url.Values{"name": {"lasting"}})
	}
	asks := send(b).expect(http.StatusForbidden, again)
	fields := url.Values{"name": {"lasting"}, "confirm_password": {rightPassword}, "csrf": asks.hidden()["csrf"][:1]}

	// The password of another person, and the right one in the address, or without what the page sends along.
	b.submit(asks, "/tokens", url.Values{"confirm_password": {samsPassword}}).expect(http.StatusUnauthorized, again)
	noPassword := url.Values{"name": {"lasting"}, "csrf": fields["csrf"]}
	b.post("/tokens?confirm_password="+url.QueryEscape(rightPassword), noPassword).without("Your new token")
	b.post("/tokens", url.Values{"name": {"lasting"}, "confirm_password": {rightPassword}}).expect(http.StatusForbidden)
	sams.post("/tokens", fields).expect(http.StatusForbidden) // the form of another person's browser
	for _, header := range []string{"Origin", "Sec-Fetch-Site"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.at.URL+"/tokens",
			strings.NewReader(fields.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", map[string]string{"Origin": "https://evil.example", "Sec-Fetch-Site": w.at.URL}[header])
		if header == "Sec-Fetch-Site" {
			r.Header.Set(header, "cross-site")
		}
		b.send(r).expect(http.StatusForbidden).without("Your new token")
	}
	send(b).expect(http.StatusForbidden, again) // nothing of that has confirmed anything

	b.submit(asks, "/tokens", url.Values{"confirm_password": {rightPassword}}).expect(http.StatusOK, "Your new token")
	send(b).expect(http.StatusOK, "Your new token")
	send(other).expect(http.StatusForbidden, again) // another browser of the same person
	send(sams).expect(http.StatusForbidden, again)

	// What one person has confirmed is not there for the next one in the browser, nor for an old cookie.
	old := b.cookie("auth_token")
	b.post("/logout", url.Values{"csrf": {b.get("/profile").hidden().Get("csrf")}})
	b.setCookie("auth_token", old)
	b.get("/tokens").expect(http.StatusSeeOther)
	b.setCookie("auth_token", sams.cookie("auth_token"))
	send(b).expect(http.StatusForbidden, again)
	pass(11 * time.Minute)
	send(other).expect(http.StatusForbidden, again)
}
