package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

const (
	rightPassword = "nine blue kettles"
	wrongPassword = "nine red kettles"
)

// setPassword gives a caller the right password.
func setPassword(w *servertest.World, caller string) {
	w.T.Helper()
	password := rightPassword
	if _, err := w.Store.Accounts().UpdateUser(w.T.Context(), w.Users[caller],
		souvenir.UserUpdate{Password: &password}); err != nil {
		w.T.Fatal(err)
	}
}

// login fills in the sign-in page.
func login(b *servertest.Browser, name, password string) *servertest.Page {
	b.W.T.Helper()
	return b.Submit(b.Get("/login"), "/login", url.Values{"username": {name}, "password": {password}})
}

func TestSigningIn(t *testing.T) {
	w := servertest.New(t, server.Options{})
	setPassword(w, servertest.Owner)
	b := w.Browser()
	b.LeadsTo(b.Get("/profile"), "/login?next=%2Fprofile").Expect(http.StatusOK, `name="next" value="/profile"`)
	p := b.Submit(b.Get("/login?next=%2Fprofile"), "/login",
		url.Values{"username": {"Olivia"}, "password": {rightPassword}})
	b.LeadsTo(p, "/profile").Expect(http.StatusOK, "olivia@example.com", "Firefox on Linux")
	set := strings.Join(p.Header.Values("Set-Cookie"), "\n")
	for _, part := range []string{"auth_token=ses_", "; HttpOnly", "; SameSite=Lax", "; Path=/", "; Max-Age=7776000"} {
		if !strings.Contains(set, part) {
			t.Errorf("got the cookie %s, want one that contains %q", set, part)
		}
	}
	if strings.Contains(set, "Secure") {
		t.Errorf(`the cookie would not travel over plain HTTP: %s, want no "Secure" in it`, set)
	}
	b.LeadsTo(b.Get("/login"), "/").Expect(http.StatusOK, "Hello, olivia")
	b.Get("/api/owner-ids/me").Expect(http.StatusOK, w.Users[servertest.Owner])
	r := w.Request(servertest.Guest, "GET", "/api/owner-ids/me", nil)
	r.Header.Set("Authorization", "Bearer "+b.Cookie("auth_token"))
	w.Send(r).Expect(http.StatusOK, w.Users[servertest.Owner])

	value := b.Cookie("auth_token")
	b.LeadsTo(b.Submit(b.Get("/"), "/logout", nil), "/login?done=signed-out").Expect(http.StatusOK, "You are signed out.")
	if b.Cookie("auth_token") != "" {
		t.Error(`the browser keeps the cookie, want ""`)
	}
	b.SetCookie("auth_token", value)
	b.LeadsTo(b.Get("/"), "/login?next=%2F").Without("Hello")
	b.Get("/api/owner-ids/me").Expect(http.StatusUnauthorized)
	if strings.Contains(w.Log.String(), "ses_") {
		t.Errorf("the log has sessions, want no \"ses_\" in the log:\n%s", w.Log)
	}
}

// A failed sign-in reveals nothing about which accounts exist.
func TestWrongSignInsLookAlike(t *testing.T) {
	w := servertest.New(t, server.Options{})
	setPassword(w, servertest.Owner)
	setPassword(w, servertest.Disabled)
	first := ""
	for name, password := range map[string]string{"olivia": wrongPassword, "noah": rightPassword, "dora": rightPassword,
		"sam": rightPassword, "": wrongPassword} {
		b := w.Browser()
		p := login(b, name, password).Expect(http.StatusUnauthorized, "Name or password is wrong.", `value="`+name+
			`"`).Without(password)
		if b.Cookie("auth_token") != "" {
			t.Errorf(`%q is signed in, want ""`, name)
		}
		form := p.HTML.All("form")[0]
		for _, field := range form.All("input") {
			delete(field.Attrs, "value")
			delete(field.Attrs, "autofocus")
		}
		if page := describe(p.HTML); first == "" {
			first = page
		} else if page != first {
			t.Errorf("the page for %q differs, want the same:\n%s\n%s", name, page, first)
		}
	}
}

// describe describes a page without the typed values.
func describe(e *servertest.Element) string {
	var b strings.Builder
	for _, child := range e.All() {
		b.WriteString(child.Name + child.Attr("name") + child.Text + "\n")
	}
	return b.String()
}

// A value planted in a browser before the sign-in is worthless afterwards.
func TestSessionsCannotBePlanted(t *testing.T) {
	w := servertest.New(t, server.Options{})
	setPassword(w, servertest.Owner)
	attacker := w.SignedIn(servertest.Stranger)
	planted := attacker.Cookie("auth_token")
	for name, value := range map[string]string{"invented": "ses_" + strings.Repeat("A", 43), "the attacker's own": planted,
		"a token": w.Tokens[servertest.Stranger]} {
		b := w.Browser()
		b.Get("/login")
		b.SetCookie("auth_token", value)
		if value != planted {
			p := b.Get("/login") // the page that matches the cookie
			b.Submit(p, "/login", url.Values{"username": {"olivia"}, "password": {rightPassword}}).Expect(http.StatusSeeOther)
		} else {
			csrf := b.Get("/profile").HTML.All("form")[0].Fields().Get("csrf")
			b.Post("/login", url.Values{"csrf": {csrf}, "username": {"olivia"},
				"password": {rightPassword}}).Expect(http.StatusSeeOther)
		}
		if got := b.Cookie("auth_token"); got == value || !strings.HasPrefix(got, "ses_") {
			t.Errorf(`%s: the browser has %q afterwards, want another cookie than %v, with "ses_" at its beginning`, name, got,
				value)
		}
		b.Get("/profile").Expect(http.StatusOK, "olivia@example.com")
	}
	attacker.Get("/profile").Expect(http.StatusSeeOther) // the attacker's session has ended with Olivia's sign-in
}

func TestSignInDestinations(t *testing.T) {
	for prefix, publicURL := range map[string]string{"": servertest.PublicAt, "/memory": servertest.PublicAt + "/memory"} {
		w := servertest.New(t, server.Options{PublicURL: publicURL})
		for next, want := range map[string]string{
			"": "/", "/profile": "/profile", "/connected?a=b&c=d%2Fe": "/connected?a=b&c=d%2Fe",
			"/oauth/authorize?redirect_uri=https%3A%2F%2Fclaude.ai%2Fx": "" +
				"/oauth/authorize?redirect_uri=https%3A%2F%2Fclaude.ai%2Fx",
			"//evil.example": "/", "///evil.example": "/", "/\\evil.example": "/", "\\\\evil.example": "/",
			"https://evil.example/": "/", "https:evil.example": "/",
			"javascript:alert(1)": "/", "data:text/html,x": "/", "evil.example": "/", "/\t/evil.example": "/",
			"\t//evil.example": "/", " //evil.example": "/", "/\r\nLocation: https://evil.example": "/",
			"/.//evil.example": "", "/..//evil.example": "", "/x/..//evil.example": "", "/%2f%2fevil.example": "",
			"/%5cevil.example": "", "/@evil.example": "", "http:///evil.example": "/", "?next=//evil.example": "/",
		} {
			b := w.SignedIn(servertest.Owner)
			p := b.Get("/login?next=" + url.QueryEscape(next))
			at, err := b.Address(prefix + "/login").Parse(p.Header.Get("Location"))
			if p.Status != http.StatusSeeOther || err != nil || "http://"+at.Host != w.HTTP.URL || at.Scheme != "http" ||
				at.User != nil {
				t.Errorf("next %q leads to %q (%d, %v), want a page of the server", next, p.Header.Get("Location"),
					p.Status, err)
			}
			if want != "" && p.Header.Get("Location") != prefix+want {
				t.Errorf("next %q leads to %q, not to %q, want the latter", next, p.Header.Get("Location"), prefix+want)
			}
			// Browsers treat a backslash like a slash, and ignore tabs.
			if got := p.Header.Get("Location"); strings.HasPrefix(got, "//") || strings.ContainsAny(got, "\\\t") {
				t.Errorf("next %q leads to %q", next, got)
			}
		}
	}
}

func TestCookiesBehindTLSAndAPrefix(t *testing.T) {
	w := servertest.New(t, server.Options{PublicURL: "https://memory.example/deep/memory"})
	setPassword(w, servertest.Owner)
	b := w.Browser()
	p := b.Get("/login").Expect(http.StatusOK, `action="/deep/memory/login"`, `href="/deep/memory/static/souvenir.css?v=`)
	form := p.Header.Get("Set-Cookie")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.HTTP.URL+"/login", strings.NewReader(url.Values{
		"csrf": {p.HTML.All("form")[0].Fields().Get("csrf")}, "username": {"olivia"}, "password": {rightPassword}}.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "https://memory.example") // as set by a proxy that changes the Host
	r.Header.Set("Cookie", strings.Split(form, ";")[0])
	p = b.Send(r)
	if p.Status != http.StatusSeeOther || p.Header.Get("Location") != "/deep/memory/" {
		t.Fatalf(`got %d %q, want status %v and Location "/deep/memory/"`, p.Status, p.Header.Get("Location"),
			http.StatusSeeOther)
	}
	for _, cookie := range append(p.Header.Values("Set-Cookie"), form) {
		for _, part := range []string{"; Path=/deep/memory/;", "; HttpOnly", "; Secure", "; SameSite=Lax"} {
			if !strings.Contains(cookie, part) {
				t.Errorf("got the cookie %s, want one that contains %q", cookie, part)
			}
		}
	}
}

// clock is a time that a test advances.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func TestGuessingPasswordsTakesLongerAndLonger(t *testing.T) {
	w := servertest.New(t, server.Options{LoginTries: 2})
	ticks := &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	server.SetLoginClock(w.Server, ticks.now)
	setPassword(w, servertest.Owner)
	for _, name := range []string{"olivia", "noah"} { // an unknown name is treated the same
		b := w.Browser()
		login(b, name, wrongPassword).Expect(http.StatusUnauthorized)
		login(b, strings.ToUpper(name), wrongPassword).Expect(http.StatusUnauthorized)
		for _, wait := range []string{"2", "4", "8"} {
			p := login(b, name, rightPassword).Expect(http.StatusTooManyRequests, "wait "+wait+" seconds", `value="`+name+`"`)
			if p.Header.Get("Retry-After") != wait {
				t.Errorf("Retry-After is %q, want %s", p.Header.Get("Retry-After"), wait)
			}
			ticks.pass(10 * time.Second)
			login(b, name, wrongPassword).Expect(http.StatusUnauthorized)
		}
		ticks.pass(20 * time.Second)
	}
	// Others can sign in, and Olivia can after waiting.
	setPassword(w, servertest.Reader)
	login(w.Browser(), "rita", rightPassword).Expect(http.StatusSeeOther)
	login(w.Browser(), "olivia", rightPassword).Expect(http.StatusSeeOther)
	login(w.Browser(), "olivia", wrongPassword).Expect(http.StatusUnauthorized) // the count starts over
	b := w.Browser()
	login(b, "olivia", rightPassword).Expect(http.StatusSeeOther)

	// Attempts by others, from the same address, do not keep her from signing in where she has signed in before.
	b.Submit(b.Get("/"), "/logout", nil).Expect(http.StatusSeeOther)
	for range 3 {
		login(w.Browser(), "olivia", wrongPassword)
	}
	login(w.Browser(), "olivia", rightPassword).Expect(http.StatusTooManyRequests)
	login(b, "olivia", wrongPassword).Expect(http.StatusUnauthorized)
	login(b, "olivia", rightPassword).Expect(http.StatusSeeOther)
}

// If two windows ask a user to sign in, the first knows nothing of the second.
func TestSigningInInTwoWindows(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	setPassword(w, servertest.Owner)
	b := w.Browser()
	first := b.Get("/login?next=%2Fprofile")
	b.SetCookie("souvenir_form", "given to the second")
	again := b.Submit(first, "/login",
		url.Values{"username": {"olivia"}, "password": {rightPassword}}).Expect(http.StatusForbidden, "out of date",
		`value="olivia"`)
	if b.Cookie("auth_token") != "" {
		t.Error(`the browser is signed in, want ""`)
	}
	b.LeadsTo(b.Submit(again, "/login", url.Values{"password": {rightPassword}}), "/profile")
}

// Whether different spellings of a name share a count must not depend on whether the user exists.
func TestTriesRevealNoNames(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{LoginTries: 3})
	ticks := &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	server.SetLoginClock(w.Server, ticks.now)
	setPassword(w, servertest.Owner)
	for _, spellings := range [][]string{
		{"olivia", "OL\u200bIVIA", "ｏｌｉｖｉａ", " oliv\u00adia "},
		{"noah", "NO\u200bAH", "ｎｏａｈ", " no\u00adah "},
	} {
		for i, name := range spellings {
			want := http.StatusUnauthorized
			if i == len(spellings)-1 {
				want = http.StatusTooManyRequests
			}
			if p := login(w.Browser(), name, wrongPassword); p.Status != want {
				t.Errorf("%q: %d, want %d", name, p.Status, want)
			}
		}
		ticks.pass(time.Minute)
	}
}

// An unattended browser is no way to guess the password.
func TestGuessingThePresentPassword(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{LoginTries: 2})
	ticks := &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	server.SetLoginClock(w.Server, ticks.now)
	setPassword(w, servertest.Owner)
	b := w.SignedIn(servertest.Owner)
	change := func(old, new string) *servertest.Page {
		return b.Submit(b.Get("/profile"), "/profile/password", url.Values{"old": {old}, "new": {new}})
	}
	change(wrongPassword, "ten blue kettles").Expect(http.StatusUnauthorized, "Old password is not the current password.")
	change(rightPassword, "short").Expect(http.StatusBadRequest, "New password is shorter than 8 characters")
	change(wrongPassword, "ten blue kettles").Expect(http.StatusUnauthorized)
	change(rightPassword, "ten blue kettles").Expect(http.StatusTooManyRequests, "wait 2 seconds")
	ticks.pass(2 * time.Second)
	b.LeadsTo(change(rightPassword, "ten blue kettles"), "/profile?done=password-all").Expect(http.StatusOK,
		"Password changed.")
}
