package server_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// emptyWorld is a server on a store in which no one has an account.
func emptyWorld(t *testing.T, options server.Options) *world {
	t.Helper()
	store, err := souvenir.Open(t.Context(), t.TempDir()+"/empty.db", nil)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, plan{}, store, options)
}

// setUpLink makes a link to the set-up, as each start of the program does.
func (w *world) setUpLink() string {
	w.t.Helper()
	added, err := w.store.Accounts().AddInvitation(w.t.Context(),
		souvenir.NewInvitation{Purpose: souvenir.InvitationSetup})
	if err != nil {
		w.t.Fatal(err)
	}
	return server.SetupPath(added.Value)
}

func snippets(address, token string) []server.Snippet {
	return []server.Snippet{{Client: "Sample", Where: "somewhere", Text: "connect " + address + " with " + token}}
}

func TestSetUp(t *testing.T) {
	w := emptyWorld(t, server.Options{Snippets: snippets})
	b := w.browser()
	b.leadsTo(b.get("/"), "/login?next=%2F").expect(http.StatusOK, "There are no accounts yet")
	b.get("/setup").expect(http.StatusBadRequest, "The link is not complete")
	b.get("/setup?invitation=inv_"+strings.Repeat("A", 43)).expect(http.StatusNotFound, "unknown")
	former, link := w.setUpLink(), w.setUpLink()
	b.get(former).expect(http.StatusNotFound, "unknown")
	b.get(strings.Replace(link, "/setup", "/invite", 1)).expect(http.StatusNotFound, "another page")

	p := b.get(link).expect(http.StatusOK, "Set up this service")
	for name, wrong := range map[string]url.Values{
		"Name is":             {"username": {"a/b"}, "email": {"a@b.example"}, "password": {rightPassword}},
		"Password is shorter": {"username": {"root"}, "email": {"a@b.example"}, "password": {"short"}},
		"E-mail is":           {"username": {"root"}, "email": {"no address"}, "password": {rightPassword}},
	} {
		again := b.submit(p, "/setup", wrong).expect(http.StatusBadRequest, name, `value="`+wrong.Get("username")+`"`,
			`aria-invalid="true"`, "autofocus").without(`value="` + wrong.Get("password"))
		checkPage(w, again)
	}
	p = b.submit(p, "/setup", url.Values{"username": {"root"}, "email": {"root@example.com"},
		"password": {rightPassword}}).expect(http.StatusOK, "You are set up", "connect "+publicAt+"/mcp with mcp_", "root")
	checkPage(w, p)
	token := p.code("mcp_")[len("connect "+publicAt+"/mcp with "):]
	w.tokens = map[string]string{"first": token}
	w.do("first", "GET", "/api/owner-ids/me", "").expect(http.StatusOK, "root")

	b.submit(p, "/logout", nil).expect(http.StatusSeeOther) // the page was made before the browser had the session
	b.login("root", rightPassword).expect(http.StatusSeeOther)
	b.get("/users").expect(http.StatusOK, "root@example.com", "admin")
	other := w.browser()
	other.get(link).expect(http.StatusNotFound, "This link does not work", "has been used")
	if _, err := w.store.Accounts().AddInvitation(t.Context(),
		souvenir.NewInvitation{Purpose: souvenir.InvitationSetup}); err == nil {
		t.Error("a store with an account is set up again")
	}
	if strings.Contains(w.log.String(), "inv_") || strings.Contains(w.log.String(), "ses_") {
		t.Errorf("the log has a secret:\n%s", w.log)
	}
}

func TestAnotherAccountEndsTheSetUp(t *testing.T) {
	w := emptyWorld(t, server.Options{})
	link := w.setUpLink()
	b := w.browser()
	p := b.get(link).expect(http.StatusOK)
	if _, err := w.store.Accounts().AddUser(t.Context(), souvenir.NewUser{Name: "first"}); err != nil {
		t.Fatal(err)
	}
	b.submit(p, "/setup", url.Values{"username": {"second"}, "password": {rightPassword}}).expect(http.StatusNotFound,
		"has been set up").without("mcp_")
	if b.cookie("auth_token") != "" {
		t.Error("the browser is signed in")
	}
}

func TestInvitations(t *testing.T) {
	w := newWorld(t, server.Options{Snippets: snippets})
	ada := w.signedIn(admin)
	p := ada.submit(ada.get("/invitations"), "/invitations",
		url.Values{"note": {"Ben, at home"}, "email": {"ben@example.com"}}).expect(http.StatusOK, "New link", "in 7 days",
		"by ada")
	link := strings.TrimPrefix(p.code("/invite?"), publicAt)
	ada.get("/invitations").expect(http.StatusOK, "Ben, at home").without("inv_", "New link")

	ben := w.browser()
	p = ben.get(link).expect(http.StatusOK, `value="ben@example.com"`, "You are invited").without("Ben, at home", "ada")
	again := ben.submit(p, "/invite",
		url.Values{"username": {"OLIVIA"}, "password": {rightPassword}}).expect(http.StatusBadRequest, "taken")
	ben.submit(again, "/invite", url.Values{"username": {"ben"}, "password": {rightPassword}}).expect(http.StatusOK,
		"Welcome, ben", "connect "+publicAt+"/mcp with mcp_")
	ben.get("/profile").expect(http.StatusOK, "ben@example.com")
	ben.get("/tokens").expect(http.StatusOK, "First client")
	ben.get("/users").expect(http.StatusForbidden, "for admins", "Sign out")
	w.browser().get(link).expect(http.StatusNotFound, "has been used")
	ada.get("/invitations").expect(http.StatusOK, "None.").without("Ben, at home")

	p = ada.submit(ada.get("/invitations"), "/invitations", url.Values{"note": {"Cora"}, "role": {"admin"}})
	link = strings.TrimPrefix(p.code("/invite?"), publicAt)
	w.browser().get(link).expect(http.StatusOK, "You are invited as an admin")
	all, err := w.store.Accounts().Invitations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ada.leadsTo(ada.submit(p, "/invitations/end", url.Values{"id": {all[0].ID}}),
		"/invitations?done=invitation").expect(http.StatusOK, "Invitation revoked")
	w.browser().get(link).expect(http.StatusNotFound, "unknown")
	ada.submit(p, "/invitations", url.Values{"role": {"king"}}).expect(http.StatusBadRequest, "Role is")
	ada.submit(p, "/invitations", url.Values{"email": {"nonsense"}, "note": {"typed"}}).expect(http.StatusBadRequest,
		"E-mail is", `value="typed"`)

	// An invitation counts as long as who made it is an admin.
	p = ada.submit(ada.get("/invitations"), "/invitations", url.Values{"note": {"Dan"}})
	link = strings.TrimPrefix(p.code("/invite?"), publicAt)
	role := souvenir.RoleUser
	for _, change := range []struct {
		user string
		role souvenir.Role
	}{{"olivia", souvenir.RoleAdmin}, {"ada", role}} {
		if _, err := w.store.Accounts().UpdateUser(t.Context(), change.user,
			souvenir.UserUpdate{Role: &change.role}); err != nil {
			t.Fatal(err)
		}
	}
	w.browser().get(link).expect(http.StatusNotFound)
	ada.get("/invitations").expect(http.StatusForbidden)
}

func TestProfile(t *testing.T) {
	w := newWorld(t, server.Options{})
	w.setPassword(owner)
	b, elsewhere := w.signedIn(owner), w.signedIn(owner)
	elsewhere.agent = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 Version/18.6 " +
		"Mobile/15E148 Safari/604.1"
	p := b.get("/profile").expect(http.StatusOK, `name="grants" value="yes" checked`, `name="tokens" value="yes" checked`,
		`value="olivia"`, `value="olivia@example.com"`, "<details>\n<summary>Sign out everywhere")
	b.submit(p, "/profile", url.Values{"name": {"RITA"}, "email": {"typed@example.com"}}).expect(http.StatusBadRequest,
		"taken", `value="typed@example.com"`)
	b.leadsTo(b.submit(p, "/profile", url.Values{"name": {"Liv"}, "email": {""}}),
		"/profile?done=profile").expect(http.StatusOK, "Profile saved.", `value="Liv"`).without("olivia@")

	// Another browser stays signed in until the password changes.
	elsewhere.get("/profile").expect(http.StatusOK)
	value := b.cookie("auth_token")
	b.leadsTo(b.submit(p, "/profile/password",
		url.Values{"old": {rightPassword}, "new": {"ten blue kettles"}, "grants": nil, "tokens": nil}),
		"/profile?done=password").expect(http.StatusOK, "Tokens and applications stay active",
		"<details open>\n<summary>Sign out everywhere")
	elsewhere.get("/profile").expect(http.StatusSeeOther)
	w.do(limited, "GET", "/api/projects", "").expect(http.StatusOK)
	b.leadsTo(b.submit(b.get("/profile"), "/profile/password",
		url.Values{"old": {"ten blue kettles"}, "new": {"nine red kettles"}, "grants": nil}),
		"/profile?done=password-tokens").expect(http.StatusOK, "your tokens revoked")
	w.do(limited, "GET", "/api/projects", "").expect(http.StatusUnauthorized)
	b.leadsTo(b.submit(b.get("/profile"), "/profile/password",
		url.Values{"old": {"nine red kettles"}, "new": {"ten blue kettles"}}),
		"/profile?done=password-all").expect(http.StatusOK, "disconnected and your tokens revoked")
	if b.cookie("auth_token") != value {
		t.Error("the session of who changes the password has changed")
	}
	w.browser().login("liv", rightPassword).expect(http.StatusUnauthorized)
	w.browser().login("liv", "ten blue kettles").expect(http.StatusSeeOther)

	// Someone without a password sets one.
	rita := w.signedIn(reader)
	p = rita.get("/profile").expect(http.StatusOK, "You have none yet.", "Set the password").without("Old password")
	rita.leadsTo(rita.submit(p, "/profile/password", url.Values{"new": {rightPassword}}),
		"/profile?done=password-all").expect(http.StatusOK, "Old password")
}

func TestSessionsOfTheProfile(t *testing.T) {
	w := newWorld(t, server.Options{})
	access, _ := w.accessToken(publicAt, souvenir.Scopes()...)
	bearer := func(token string, status int) {
		t.Helper()
		r := w.request(guest, "GET", "/api/owner-ids/me", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		w.send(r).expect(status)
	}
	b, second, third, sam := w.signedIn(owner), w.signedIn(owner), w.signedIn(owner), w.signedIn(stranger)
	sessions, err := w.store.As(souvenir.Access{User: w.users[owner]}).Accounts().SignIns(t.Context())
	if err != nil || len(sessions) != 3 {
		t.Fatal(sessions, err)
	}
	p := b.get("/profile").expect(http.StatusOK, "this browser")
	if n := strings.Count(p.body, "Firefox on Linux</h3>") + strings.Count(p.body, "Firefox on Linux <span"); n != 3 {
		t.Errorf("%d sessions are shown, want 3", n)
	}
	csrf := sam.get("/profile").html.all("form")[0].fields().Get("csrf")
	sam.post("/profile/sessions/end", url.Values{"csrf": {csrf}, "id": {sessions[0].ID}}) // of another user
	third.get("/profile").expect(http.StatusOK)
	b.leadsTo(b.submit(p, "/profile/sessions/end", url.Values{"id": {sessions[0].ID}}),
		"/profile?done=session").expect(http.StatusOK, "signed out")
	third.get("/profile").expect(http.StatusSeeOther)
	second.get("/profile").expect(http.StatusOK)

	b.leadsTo(b.submit(p, "/profile/sign-out", url.Values{"grants": nil, "tokens": nil}),
		"/profile?done=sessions").expect(http.StatusOK)
	second.get("/profile").expect(http.StatusSeeOther)
	bearer(access, http.StatusOK)
	bearer(w.tokens[limited], http.StatusOK)
	b.leadsTo(b.submit(p, "/profile/sign-out", url.Values{"keep": nil}),
		"/login?done=signed-out-everywhere").expect(http.StatusOK, "signed out everywhere")
	b.get("/profile").expect(http.StatusSeeOther)
	bearer(access, http.StatusUnauthorized)
	bearer(w.tokens[limited], http.StatusUnauthorized)
	sam.get("/profile").expect(http.StatusOK)
}

// What a person makes with a sign-in may last; what is made with a token, or by an application, ends when that does.
func TestTokensMadeWithASignIn(t *testing.T) {
	w := newWorld(t, server.Options{})
	add := func(cookie string) answer {
		t.Helper()
		r := w.request(guest, "POST", "/api/mcp-tokens", strings.NewReader(`{"name": "made"}`))
		r.Header.Set("Content-Type", "application/json")
		r.AddCookie(&http.Cookie{Name: "auth_token", Value: cookie})
		return w.send(r).expect(http.StatusOK, `"mcp_`)
	}
	access, _ := w.accessToken(publicAt, souvenir.ScopeMemoryWrite, souvenir.ScopeAccount)
	add(w.signedIn(owner).cookie("auth_token")).expect(http.StatusOK, `"expires_at":null`)
	if a := add(access); strings.Contains(a.body, `"expires_at":null`) {
		t.Errorf("an application makes a token that does not end: %s", a.body)
	}
}

func TestConnectedApplications(t *testing.T) {
	w := newWorld(t, server.Options{})
	access, grant := w.accessTokenOf(owner, "Kite",
		souvenir.Authorization{Scopes: []souvenir.Scope{souvenir.ScopeMemoryRead, souvenir.ScopeFilesWrite},
			Projects: []string{"shop"}})
	b, sam := w.signedIn(owner), w.signedIn(stranger)
	sam.get("/connected").expect(http.StatusOK, "Nothing here yet", publicAt+"/mcp").without("Kite")
	p := b.get("/connected").expect(http.StatusOK, "Kite", "app.example", "Read your memories",
		"Upload, change and delete files", "Only in the project <b>The shop</b>").without("Store, change and delete memories",
		"Manage")
	b.get("/").expect(http.StatusOK, `<span class="number">1</span> connected application<`)
	csrf := sam.get("/connected").html.all("form")[0].fields().Get("csrf")
	sam.post("/connected/end", url.Values{"csrf": {csrf}, "id": {grant}})
	use := func(status int) {
		t.Helper()
		r := w.request(guest, "GET", "/api/owner-ids/me", nil)
		r.Header.Set("Authorization", "Bearer "+access)
		w.send(r).expect(status)
	}
	use(http.StatusOK)
	b.leadsTo(b.submit(p, "/connected/end", url.Values{"id": {grant}}),
		"/connected?done=application").expect(http.StatusOK, "Access revoked").without("Kite")
	use(http.StatusUnauthorized)
}

func TestManagingUsers(t *testing.T) {
	w := newWorld(t, server.Options{})
	w.setPassword(owner)
	access, _ := w.accessToken(publicAt, souvenir.Scopes()...)
	ada, olivia := w.signedIn(admin), w.signedIn(owner)
	p := ada.get("/users").expect(http.StatusOK, "olivia@example.com", "disabled", "you")
	do := func(caller, change string) *gotPage {
		t.Helper()
		return ada.submit(ada.get("/users"), "/users", url.Values{"id": {w.users[caller]}, "change": {change}})
	}
	ada.leadsTo(do(owner, "user-disabled"), "/users?done=user-disabled").expect(http.StatusOK, "User disabled.")
	olivia.get("/profile").expect(http.StatusSeeOther)
	olivia.get("/api/owner-ids/me").expect(http.StatusUnauthorized)
	w.do(owner, "GET", "/api/owner-ids/me", "").expect(http.StatusUnauthorized)
	r := w.request(guest, "GET", "/api/owner-ids/me", nil)
	r.Header.Set("Authorization", "Bearer "+access)
	w.send(r).expect(http.StatusUnauthorized)
	w.browser().login("olivia", rightPassword).expect(http.StatusUnauthorized, "Name or password is wrong.")
	ada.leadsTo(do(owner, "user-enabled"), "/users?done=user-enabled").expect(http.StatusOK)
	w.browser().login("olivia", rightPassword).expect(http.StatusSeeOther)
	olivia.get("/profile").expect(http.StatusSeeOther) // what has ended stays ended

	rita := w.signedIn(reader)
	rita.get("/users").expect(http.StatusForbidden)
	ada.leadsTo(do(reader, "user-admin"), "/users?done=user-admin").expect(http.StatusOK)
	rita.get("/users").expect(http.StatusOK)
	ada.leadsTo(do(reader, "user-user"), "/users?done=user-user").expect(http.StatusOK)
	rita.get("/users").expect(http.StatusForbidden)
	csrf := rita.get("/profile").html.all("form")[0].fields().Get("csrf")
	rita.post("/users", url.Values{"csrf": {csrf}, "id": {w.users[owner]},
		"change": {"user-disabled"}}).expect(http.StatusForbidden)

	csrf = p.html.all("form")[0].fields().Get("csrf")
	ada.post("/users", url.Values{"csrf": {csrf}, "id": {w.users[admin]},
		"change": {"user-disabled"}}).expect(http.StatusBadRequest, "your own account")
	ada.post("/users", url.Values{"csrf": {csrf}, "id": {"nobody"},
		"change": {"user-disabled"}}).expect(http.StatusNotFound, "unknown")
	ada.post("/users", url.Values{"csrf": {csrf}, "id": {w.users[owner]},
		"change": {"user-king"}}).expect(http.StatusBadRequest)
}
