package server_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

const (
	rightPassword = "nine blue kettles"
	wrongPassword = "nine red kettles"
)

// setPassword gives a caller of the world the right password.
func (w *world) setPassword(caller string) {
	w.t.Helper()
	password := rightPassword
	if _, err := w.store.Accounts().UpdateUser(w.t.Context(), w.users[caller],
		souvenir.UserUpdate{Password: &password}); err != nil {
		w.t.Fatal(err)
	}
}

// login fills in the page of the sign-in.
func (b *browser) login(name, password string) *gotPage {
	b.w.t.Helper()
	return b.submit(b.get("/login"), "/login", url.Values{"username": {name}, "password": {password}})
}

func TestSigningIn(t *testing.T) {
	w := newWorld(t, server.Options{})
	w.setPassword(owner)
	b := w.browser()
	b.leadsTo(b.get("/profile"), "/login?next=%2Fprofile").expect(http.StatusOK, `name="next" value="/profile"`)
	p := b.submit(b.get("/login?next=%2Fprofile"), "/login",
		url.Values{"username": {"Olivia"}, "password": {rightPassword}})
	b.leadsTo(p, "/profile").expect(http.StatusOK, "olivia@example.com", "Firefox on Linux")
	set := strings.Join(p.header.Values("Set-Cookie"), "\n")
	for _, part := range []string{"auth_token=ses_", "; HttpOnly", "; SameSite=Lax", "; Path=/", "; Max-Age=7776000"} {
		if !strings.Contains(set, part) {
			t.Errorf("the cookie lacks %q: %s", part, set)
		}
	}
	if strings.Contains(set, "Secure") {
		t.Errorf("the cookie would not travel over plain HTTP: %s", set)
	}
	b.leadsTo(b.get("/login"), "/").expect(http.StatusOK, "Hello, olivia")
	b.get("/api/owner-ids/me").expect(http.StatusOK, w.users[owner])
	r := w.request(guest, "GET", "/api/owner-ids/me", nil)
	r.Header.Set("Authorization", "Bearer "+b.cookie("auth_token"))
	w.send(r).expect(http.StatusOK, w.users[owner])

	value := b.cookie("auth_token")
	b.leadsTo(b.submit(b.get("/"), "/logout", nil), "/login?done=signed-out").expect(http.StatusOK, "You are signed out.")
	if b.cookie("auth_token") != "" {
		t.Error("the browser keeps the cookie")
	}
	b.setCookie("auth_token", value)
	b.leadsTo(b.get("/"), "/login?next=%2F").without("Hello")
	b.get("/api/owner-ids/me").expect(http.StatusUnauthorized)
	if strings.Contains(w.log.String(), "ses_") {
		t.Errorf("the log has sessions:\n%s", w.log)
	}
}

// Who tries learns nothing about who has an account.
func TestWrongSignInsLookAlike(t *testing.T) {
	w := newWorld(t, server.Options{})
	w.setPassword(owner)
	w.setPassword(disabled)
	first := ""
	for name, password := range map[string]string{"olivia": wrongPassword, "nobody": rightPassword, "dora": rightPassword,
		"sam": rightPassword, "": wrongPassword} {
		b := w.browser()
		p := b.login(name, password).expect(http.StatusUnauthorized, "Name or password is wrong.", `value="`+name+
			`"`).without(password)
		if b.cookie("auth_token") != "" {
			t.Errorf("%q is signed in", name)
		}
		form := p.html.all("form")[0]
		for _, field := range form.all("input") {
			delete(field.attrs, "value")
			delete(field.attrs, "autofocus")
		}
		if page := describe(p.html); first == "" {
			first = page
		} else if page != first {
			t.Errorf("the page for %q differs:\n%s\n%s", name, page, first)
		}
	}
}

// describe writes a page down without what is typed into it.
func describe(e *element) string {
	var b strings.Builder
	for _, child := range e.all() {
		b.WriteString(child.name + child.attr("name") + child.text + "\n")
	}
	return b.String()
}

// A value that someone has put into a browser before is nothing after the sign-in.
func TestSessionsCannotBePlanted(t *testing.T) {
	w := newWorld(t, server.Options{})
	w.setPassword(owner)
	attacker := w.signedIn(stranger)
	planted := attacker.cookie("auth_token")
	for name, value := range map[string]string{"invented": "ses_" + strings.Repeat("A", 43), "the attacker's own": planted,
		"a token": w.tokens[stranger]} {
		b := w.browser()
		b.get("/login")
		b.setCookie("auth_token", value)
		if value != planted {
			p := b.get("/login") // the page that fits to the cookie
			b.submit(p, "/login", url.Values{"username": {"olivia"}, "password": {rightPassword}}).expect(http.StatusSeeOther)
		} else {
			csrf := b.get("/profile").html.all("form")[0].fields().Get("csrf")
			b.post("/login", url.Values{"csrf": {csrf}, "username": {"olivia"},
				"password": {rightPassword}}).expect(http.StatusSeeOther)
		}
		if got := b.cookie("auth_token"); got == value || !strings.HasPrefix(got, "ses_") {
			t.Errorf("%s: the browser has %q afterwards", name, got)
		}
		b.get("/profile").expect(http.StatusOK, "olivia@example.com")
	}
	attacker.get("/profile").expect(http.StatusSeeOther) // what was signed in where Olivia did has ended
}

func TestWhereASignInLeads(t *testing.T) {
	for prefix, publicURL := range map[string]string{"": publicAt, "/memory": publicAt + "/memory"} {
		w := newWorld(t, server.Options{PublicURL: publicURL})
		for next, want := range map[string]string{
			"": "/", "/profile": "/profile", "/connected?a=b&c=d%2Fe": "/connected?a=b&c=d%2Fe",
			"/oauth/authorize?redirect_uri=https%3A%2F%2Fclaude.ai%2Fx": "/oauth/authorize?redirect_uri=https%3A%2F%2Fclaude.ai%2Fx",
			"//evil.example": "/", "///evil.example": "/", "/\\evil.example": "/", "\\\\evil.example": "/",
			"https://evil.example/": "/", "https:evil.example": "/",
			"javascript:alert(1)": "/", "data:text/html,x": "/", "evil.example": "/", "/\t/evil.example": "/",
			"\t//evil.example": "/", " //evil.example": "/", "/\r\nLocation: https://evil.example": "/",
			"/.//evil.example": "", "/..//evil.example": "", "/x/..//evil.example": "", "/%2f%2fevil.example": "",
			"/%5cevil.example": "", "/@evil.example": "", "http:///evil.example": "/", "?next=//evil.example": "/",
		} {
			b := w.signedIn(owner)
			p := b.get("/login?next=" + url.QueryEscape(next))
			at, err := b.address(prefix + "/login").Parse(p.header.Get("Location"))
			if p.status != http.StatusSeeOther || err != nil || "http://"+at.Host != w.at.URL || at.Scheme != "http" ||
				at.User != nil {
				t.Errorf("next %q leads to %q (%d, %v)", next, p.header.Get("Location"), p.status, err)
			}
			if want != "" && p.header.Get("Location") != prefix+want {
				t.Errorf("next %q leads to %q, not to %q", next, p.header.Get("Location"), prefix+want)
			}
			// Browsers see a backslash as a slash, and overlook tabs.
			if got := p.header.Get("Location"); strings.HasPrefix(got, "//") || strings.ContainsAny(got, "\\\t") {
				t.Errorf("next %q leads to %q", next, got)
			}
		}
	}
}

func TestCookiesBehindTLSAndAPrefix(t *testing.T) {
	w := newWorld(t, server.Options{PublicURL: "https://memory.example/deep/memory"})
	w.setPassword(owner)
	b := w.browser()
	p := b.get("/login").expect(http.StatusOK, `action="/deep/memory/login"`, `href="/deep/memory/static/souvenir.css?v=`)
	form := p.header.Get("Set-Cookie")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.at.URL+"/login", strings.NewReader(url.Values{
		"csrf": {p.html.all("form")[0].fields().Get("csrf")}, "username": {"olivia"}, "password": {rightPassword}}.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "https://memory.example") // as a proxy leaves it, with the Host of its own
	r.Header.Set("Cookie", strings.Split(form, ";")[0])
	p = b.send(r)
	if p.status != http.StatusSeeOther || p.header.Get("Location") != "/deep/memory/" {
		t.Fatalf("%d %q", p.status, p.header.Get("Location"))
	}
	for _, cookie := range append(p.header.Values("Set-Cookie"), form) {
		for _, part := range []string{"; Path=/deep/memory/;", "; HttpOnly", "; Secure", "; SameSite=Lax"} {
			if !strings.Contains(cookie, part) {
				t.Errorf("the cookie lacks %q: %s", part, cookie)
			}
		}
	}
}

// clock is a time that a test moves on.
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
	w := newWorld(t, server.Options{LoginTries: 2})
	ticks := &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	server.SetLoginClock(w.inner, ticks.now)
	w.setPassword(owner)
	for _, name := range []string{"olivia", "nobody"} { // an unknown name is treated in the same way
		b := w.browser()
		b.login(name, wrongPassword).expect(http.StatusUnauthorized)
		b.login(strings.ToUpper(name), wrongPassword).expect(http.StatusUnauthorized)
		for _, wait := range []string{"2", "4", "8"} {
			p := b.login(name, rightPassword).expect(http.StatusTooManyRequests, "wait "+wait+" seconds", `value="`+name+`"`)
			if p.header.Get("Retry-After") != wait {
				t.Errorf("Retry-After is %q, want %s", p.header.Get("Retry-After"), wait)
			}
			ticks.pass(10 * time.Second)
			b.login(name, wrongPassword).expect(http.StatusUnauthorized)
		}
		ticks.pass(20 * time.Second)
	}
	// Others are let in, and so is Olivia when she has waited.
	w.setPassword(reader)
	w.browser().login("rita", rightPassword).expect(http.StatusSeeOther)
	w.browser().login("olivia", rightPassword).expect(http.StatusSeeOther)
	w.browser().login("olivia", wrongPassword).expect(http.StatusUnauthorized) // the count begins anew
	b := w.browser()
	b.login("olivia", rightPassword).expect(http.StatusSeeOther)

	// Others' tries, from the same address, do not keep her from signing in where she has before.
	b.submit(b.get("/"), "/logout", nil).expect(http.StatusSeeOther)
	for range 3 {
		w.browser().login("olivia", wrongPassword)
	}
	w.browser().login("olivia", rightPassword).expect(http.StatusTooManyRequests)
	b.login("olivia", wrongPassword).expect(http.StatusUnauthorized)
	b.login("olivia", rightPassword).expect(http.StatusSeeOther)
}

// Of two windows in which someone is asked to sign in, the first one knows nothing of the second.
func TestSigningInInTwoWindows(t *testing.T) {
	w := newWorld(t, server.Options{})
	w.setPassword(owner)
	b := w.browser()
	first := b.get("/login?next=%2Fprofile")
	b.setCookie("souvenir_form", "given to the second")
	again := b.submit(first, "/login",
		url.Values{"username": {"olivia"}, "password": {rightPassword}}).expect(http.StatusForbidden, "out of date",
		`value="olivia"`)
	if b.cookie("auth_token") != "" {
		t.Error("the browser is signed in")
	}
	b.leadsTo(b.submit(again, "/login", url.Values{"password": {rightPassword}}), "/profile")
}

// Whether tries of one name written in several ways are counted together must not depend on whether there is such a
// user.
func TestHowOftenANameCanBeTriedTellsNothing(t *testing.T) {
	w := newWorld(t, server.Options{LoginTries: 3})
	ticks := &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	server.SetLoginClock(w.inner, ticks.now)
	w.setPassword(owner)
	for _, spellings := range [][]string{
		{"olivia", "OL\u200bIVIA", "ｏｌｉｖｉａ", " oliv\u00adia "},
		{"nobody", "NO\u200bBODY", "ｎｏｂｏｄｙ", " nob\u00adody "},
	} {
		for i, name := range spellings {
			want := http.StatusUnauthorized
			if i == len(spellings)-1 {
				want = http.StatusTooManyRequests
			}
			if p := w.browser().login(name, wrongPassword); p.status != want {
				t.Errorf("%q: %d, want %d", name, p.status, want)
			}
		}
		ticks.pass(time.Minute)
	}
}

// A browser that was left open is no way to guess the password.
func TestGuessingThePresentPassword(t *testing.T) {
	w := newWorld(t, server.Options{LoginTries: 2})
	ticks := &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	server.SetLoginClock(w.inner, ticks.now)
	w.setPassword(owner)
	b := w.signedIn(owner)
	change := func(old, new string) *gotPage {
		return b.submit(b.get("/profile"), "/profile/password", url.Values{"old": {old}, "new": {new}})
	}
	change(wrongPassword, "ten blue kettles").expect(http.StatusUnauthorized, "Old password is not the current password.")
	change(rightPassword, "short").expect(http.StatusBadRequest, "New password is shorter than 8 characters")
	change(wrongPassword, "ten blue kettles").expect(http.StatusUnauthorized)
	change(rightPassword, "ten blue kettles").expect(http.StatusTooManyRequests, "wait 2 seconds")
	ticks.pass(2 * time.Second)
	b.leadsTo(change(rightPassword, "ten blue kettles"), "/profile?done=password-all").expect(http.StatusOK,
		"Password changed.")
}
