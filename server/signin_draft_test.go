package server_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

const typed = "A long text that was typed for an hour.\r\n\r\n<b>It</b> has “quotes”, 陈薇 & a second paragraph."

// endSessions ends all sessions of the owner, as an admin or two weeks would.
func endSessions(t *testing.T, w *servertest.World) {
	t.Helper()
	view := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]})
	if err := view.Accounts().RevokeSignIns(t.Context(), "", nil); err != nil {
		t.Fatal(err)
	}
}

func TestTypedTextOutlivesTheSession(t *testing.T) {
	w := servertest.New(t, server.Options{})
	setPassword(w, servertest.Owner)
	b := w.SignedIn(servertest.Owner)
	form := b.Get("/memories/new")
	endSessions(t, w)
	asked := b.Submit(form, "/memories/new", url.Values{"content": {typed}}).Expect(http.StatusUnauthorized,
		"Your session has ended")
	servertest.CheckPage(w, asked)
	again := b.Submit(asked, "/login", url.Values{"username": {"olivia"}, "password": {wrongPassword}}).
		Expect(http.StatusUnauthorized, "Name or password is wrong.", "Your session has ended")
	kept := b.Submit(again, "/login", url.Values{"username": {"olivia"}, "password": {rightPassword}}).
		Expect(http.StatusOK, "What you typed is still here").Without("<b>It</b>")
	servertest.CheckPage(w, kept)
	shown := kept.HTML.All("textarea")[0]
	stored := b.Submit(kept, "/memories/new", url.Values{shown.Attr("name"): {strings.TrimPrefix(shown.Text, "\n")}})
	if stored.Status != http.StatusSeeOther {
		t.Fatalf("sending the text again: got %d %.500s, want %d", stored.Status, stored.Body, http.StatusSeeOther)
	}
	found, err := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]}).Search(t.Context(),
		souvenir.Query{Text: "typed for an hour"})
	if err != nil || len(found.Hits) == 0 || !strings.Contains(found.Hits[0].Content, "陈薇 & a second paragraph.") {
		t.Errorf("got %+v, %v, want the text that was typed", found, err)
	}
}

// If another user signs in in the same browser, they see nothing of it, neither after the end of the session nor in a
// page of that session.
func TestTypedTextIsShownOnlyToItsAuthor(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	setPassword(w, servertest.Owner)
	setPassword(w, servertest.Writer)
	b, other := w.SignedIn(servertest.Owner), w.SignedIn(servertest.Writer)
	form := b.Get("/memories/new")
	owner := b.Cookie("auth_token")
	b.SetCookie("auth_token", other.Cookie("auth_token"))
	b.Submit(form, "/memories/new", url.Values{"content": {typed}}).
		Expect(http.StatusForbidden, "This form is out of date").Without("typed for an hour")
	b.SetCookie("auth_token", owner)
	endSessions(t, w)
	asked := b.Submit(form, "/memories/new", url.Values{"content": {typed}}).Expect(http.StatusUnauthorized,
		"Your session has ended").Without("typed for an hour", url.QueryEscape("typed for an hour"))
	in := b.Submit(asked, "/login", url.Values{"username": {"walter"}, "password": {rightPassword}})
	if in.Status != http.StatusSeeOther || strings.Contains(in.Body, "typed for an hour") {
		t.Errorf("another user signs in: got %d %.500s, want the overview", in.Status, in.Body)
	}
}

// A form from before a new sign-in, as in another window, is shown again in place of an error.
func TestTypedTextOutlivesANewSignIn(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	b, fresh := w.SignedIn(servertest.Owner), w.SignedIn(servertest.Owner)
	form := b.Get("/memories/new")
	b.SetCookie("auth_token", fresh.Cookie("auth_token"))
	kept := b.Submit(form, "/memories/new", url.Values{"content": {typed}}).
		Expect(http.StatusForbidden, "What you typed is still here").Without("<b>It</b>")
	servertest.CheckPage(w, kept)
	if stored := b.Submit(kept, "/memories/new", url.Values{"content": {typed}}); stored.Status != http.StatusSeeOther {
		t.Errorf("sending it again: got %d, want %d", stored.Status, http.StatusSeeOther)
	}
	forged := w.FormRequest("/memories/new", url.Values{"csrf": {"x"}, "content": {typed}}.Encode())
	forged.Header.Set("Origin", "https://elsewhere.example")
	b.Send(forged).Expect(http.StatusForbidden).Without("typed for an hour")
}

// An answer to an application is not kept, since the page for sending it again would not show the question.
func TestAnOldAnswerToAnApplicationIsNotSentAgain(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	b, fresh, app := w.SignedIn(servertest.Owner), w.SignedIn(servertest.Owner), w.Register("none")
	form := b.Get(app.AuthorizeURL("state", strings.Repeat("x", 100))).Hidden()
	form.Set("decision", "allow")
	b.SetCookie("auth_token", fresh.Cookie("auth_token"))
	b.Post("/oauth/authorize", form).Expect(http.StatusForbidden, "This form is out of date").Without("Send it again")
}

// If a script's session has ended, the page and its typed text stay in place.
func TestScriptsOfAnEndedSessionStayOnThePage(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	b := w.SignedIn(servertest.Owner)
	endSessions(t, w)
	r := w.Request(servertest.Guest, http.MethodGet, "/memories?q=x", nil)
	r.Header.Set("HX-Request", "true")
	p := b.Send(r).Expect(http.StatusUnauthorized, "Your session has ended", `href="/login" target="_blank"`)
	if got := p.Header.Get("HX-Retarget") + p.Header.Get("HX-Redirect"); got != "#problems" {
		t.Errorf("got the target %q, want only the error area", got)
	}
}

// Another site cannot plant a text that a person sends at the sign-in, and no page contains a password.
func TestOnlyOwnFormsAreKeptForTheSignIn(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	setPassword(w, servertest.Owner)
	b := w.SignedIn(servertest.Owner)
	profile, create := b.Get("/profile"), b.Get("/memories/new")
	endSessions(t, w)
	forged := w.FormRequest("/memories/new", url.Values{"csrf": {"x"}, "content": {typed}}.Encode())
	forged.Header.Set("Origin", "https://elsewhere.example")
	if p := b.Send(forged); p.Status != http.StatusSeeOther || strings.Contains(p.Body, "typed for an hour") {
		t.Errorf("a form of another site: got %d %.300s, want %d", p.Status, p.Body, http.StatusSeeOther)
	}
	if p := b.Submit(create, "/memories/new", url.Values{"content": {strings.Repeat("x", 200<<10)}}); p.Status !=
		http.StatusSeeOther {
		t.Errorf("a form of 200 KiB: got %d %.300s, want %d", p.Status, p.Body, http.StatusSeeOther)
	}
	secret := url.Values{"old": {typed}, "password": {"nine blue kettles"}, "new_password": {"nine blue kettles"}}
	p := b.Submit(profile, "/profile/password", secret)
	if p.Status != http.StatusSeeOther || strings.Contains(p.Body, "kettles") {
		t.Errorf("a form with passwords: got %d %.300s, want %d without them", p.Status, p.Body, http.StatusSeeOther)
	}
}

func TestErrorPagesKeepTheMenu(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	b := w.SignedIn(servertest.Owner)
	for _, path := range []string{"/nowhere", "/memories/of-no-memory"} {
		r := w.Request(servertest.Guest, "GET", path, nil)
		r.Header.Set("Accept", "text/html")
		p := b.Send(r).Expect(http.StatusNotFound, `<body class="dashboard">`, `aria-label="Main"`)
		servertest.CheckPage(w, p)
	}
}

func TestTheSignInPageNamesTheApplicationThatWaits(t *testing.T) {
	w := servertest.New(t, server.Options{})
	address := w.RegisterAs("Cursor", "none").AuthorizeURL()
	b := w.Browser()
	p := b.LeadsTo(b.Get(address), "/login?next="+url.QueryEscape(address))
	p.Expect(http.StatusOK, "calls itself “<bdi>Cursor</bdi>”")
	b.Get("/login?next=%2Foauth%2Fauthorize%3Fclient_id%3Dunknown").Expect(http.StatusOK).Without("calls itself")
}
