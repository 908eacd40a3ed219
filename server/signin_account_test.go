package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

// emptyWorld is a server on a store without accounts.
func emptyWorld(t *testing.T, options server.Options) *servertest.World {
	t.Helper()
	return servertest.Serve(t, servertest.Plan{}, servertest.Empty(t).Open(t, nil), options)
}

// setUpLink makes a setup link, as each start of the program does.
func setUpLink(w *servertest.World) string {
	w.T.Helper()
	added, err := w.Store.Accounts().AddInvitation(w.T.Context(),
		souvenir.NewInvitation{Purpose: souvenir.InvitationSetup})
	if err != nil {
		w.T.Fatal(err)
	}
	return server.SetupPath(added.Value)
}

func TestSetUp(t *testing.T) {
	w := emptyWorld(t, server.Options{Snippets: servertest.Snippets})
	b := w.Browser()
	b.LeadsTo(b.Get("/"), "/login?next=%2F").Expect(http.StatusOK, "There are no accounts yet")
	b.Get("/setup").Expect(http.StatusBadRequest, "The link is not complete")
	b.Get("/setup?invitation=inv_"+strings.Repeat("A", 43)).Expect(http.StatusNotFound, "unknown")
	former, link := setUpLink(w), setUpLink(w)
	b.Get(former).Expect(http.StatusNotFound, "unknown")
	b.Get(strings.Replace(link, "/setup", "/invite", 1)).Expect(http.StatusNotFound, "another page")

	p := b.Get(link).Expect(http.StatusOK, "Set up this service")
	for name, wrong := range map[string]url.Values{
		"Name is":             {"username": {"a/b"}, "email": {"a@b.example"}, "password": {rightPassword}},
		"Password is shorter": {"username": {"root"}, "email": {"a@b.example"}, "password": {"short"}},
		"E-mail is":           {"username": {"root"}, "email": {"no address"}, "password": {rightPassword}},
	} {
		again := b.Submit(p, "/setup", wrong).Expect(http.StatusBadRequest, name, `value="`+wrong.Get("username")+`"`,
			`aria-invalid="true"`, "autofocus").Without(`value="` + wrong.Get("password"))
		servertest.CheckPage(w, again)
	}
	p = b.Submit(p, "/setup", url.Values{"username": {"root"}, "email": {"root@example.com"},
		"password": {rightPassword}}).Expect(http.StatusOK, "You are set up", "connect "+servertest.PublicAt+"/mcp",
		"root")
	servertest.CheckPage(w, p.Without("mcp_")) // no token before the user asks for one
	token := b.Submit(p, "/connect", nil).Code("mcp_")[len("connect "+servertest.PublicAt+"/mcp with "):]
	w.Tokens = map[string]string{"first": token}
	w.Do("first", "GET", "/api/owner-ids/me", "").Expect(http.StatusOK, "root")

	b.Submit(p, "/logout", nil).Expect(http.StatusSeeOther) // the page was made before the browser had the session
	login(b, "root", rightPassword).Expect(http.StatusSeeOther)
	b.Get("/users").Expect(http.StatusOK, "root@example.com", "admin")
	other := w.Browser()
	other.Get(link).Expect(http.StatusNotFound, "This link does not work", "has been used")
	if _, err := w.Store.Accounts().AddInvitation(t.Context(),
		souvenir.NewInvitation{Purpose: souvenir.InvitationSetup}); err == nil {
		t.Error("a store with an account is set up again, want an error")
	}
	if strings.Contains(w.Log.String(), "inv_") || strings.Contains(w.Log.String(), "ses_") {
		t.Errorf("the log has a secret, want no \"inv_\" in the log and no \"ses_\" in the log:\n%s", w.Log)
	}
}

func TestAnotherAccountEndsTheSetUp(t *testing.T) {
	longtest.Only(t)
	w := emptyWorld(t, server.Options{})
	link := setUpLink(w)
	b := w.Browser()
	p := b.Get(link).Expect(http.StatusOK)
	for _, n := range []souvenir.NewUser{{Name: "builder"}, {Name: "first", Password: rightPassword}} {
		b.Get(link).Expect(http.StatusOK) // tokens alone do not end the setup
		if _, err := w.Store.Accounts().AddUser(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	b.Submit(p, "/setup", url.Values{"username": {"second"}, "password": {rightPassword}}).Expect(http.StatusNotFound,
		"has been set up").Without("mcp_")
	if b.Cookie("auth_token") != "" {
		t.Error(`the browser is signed in, want ""`)
	}
}

func TestInvitations(t *testing.T) {
	w := servertest.New(t, server.Options{Snippets: servertest.Snippets})
	ada := w.SignedIn(servertest.Admin)
	p := ada.Submit(ada.Get("/invitations"), "/invitations",
		url.Values{"note": {"Ben, at home"}, "email": {"ben@example.com"}}).Expect(http.StatusOK, "New link", "in 7 days",
		"by ada")
	link := strings.TrimPrefix(p.Code("/invite?"), servertest.PublicAt)
	ada.Get("/invitations").Expect(http.StatusOK, "Ben, at home").Without("inv_", "New link")

	ben := w.Browser()
	p = ben.Get(link).Expect(http.StatusOK, `value="ben@example.com"`, "You are invited").Without("Ben, at home", "ada")
	again := ben.Submit(p, "/invite",
		url.Values{"username": {"OLIVIA"}, "password": {rightPassword}}).Expect(http.StatusBadRequest, "taken")
	ben.Submit(again, "/invite", url.Values{"username": {"ben"}, "password": {rightPassword}}).Expect(http.StatusOK,
		"Welcome, ben", "connect "+servertest.PublicAt+"/mcp", "Create a token").Without("mcp_")
	ben.Get("/profile").Expect(http.StatusOK, "ben@example.com")
	ben.Get("/tokens").Expect(http.StatusOK, "No tokens yet")
	ben.Get("/users").Expect(http.StatusForbidden, "for admins", "Sign out")
	w.Browser().Get(link).Expect(http.StatusNotFound, "has been used")
	ada.Get("/invitations").Expect(http.StatusOK, "None.").Without("Ben, at home")

	p = ada.Submit(ada.Get("/invitations"), "/invitations", url.Values{"note": {"Cora"}, "role": {"admin"}})
	link = strings.TrimPrefix(p.Code("/invite?"), servertest.PublicAt)
	w.Browser().Get(link).Expect(http.StatusOK, "You are invited as an admin")
	all, err := w.Store.Accounts().Invitations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ada.LeadsTo(ada.Submit(p, "/invitations/end", url.Values{"id": {all[0].ID}}),
		"/invitations?done=invitation").Expect(http.StatusOK, "Invitation revoked")
	w.Browser().Get(link).Expect(http.StatusNotFound, "unknown")
	ada.Submit(p, "/invitations", url.Values{"role": {"king"}}).Expect(http.StatusBadRequest, "Role is")
	ada.Submit(p, "/invitations", url.Values{"email": {"nonsense"}, "note": {"typed"}}).Expect(http.StatusBadRequest,
		"E-mail is", `value="typed"`)

	// An invitation is valid only while its author is an admin.
	p = ada.Submit(ada.Get("/invitations"), "/invitations", url.Values{"note": {"Dan"}})
	link = strings.TrimPrefix(p.Code("/invite?"), servertest.PublicAt)
	role := souvenir.RoleUser
	for _, change := range []struct {
		user string
		role souvenir.Role
	}{{"olivia", souvenir.RoleAdmin}, {"ada", role}} {
		if _, err := w.Store.Accounts().UpdateUser(t.Context(), change.user,
			souvenir.UserUpdate{Role: &change.role}); err != nil {
			t.Fatal(err)
		}
	}
	w.Browser().Get(link).Expect(http.StatusNotFound)
	ada.Get("/invitations").Expect(http.StatusForbidden)
}

func TestProfile(t *testing.T) {
	w := servertest.New(t, server.Options{})
	setPassword(w, servertest.Owner)
	b, elsewhere := w.SignedIn(servertest.Owner), w.SignedIn(servertest.Owner)
	elsewhere.Agent = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 Version/18.6 " +
		"Mobile/15E148 Safari/604.1"
	p := b.Get("/profile").Expect(http.StatusOK, `name="grants" value="yes" checked`, `name="tokens" value="yes" checked`,
		`value="olivia"`, `value="olivia@example.com"`, "<details>\n<summary>Sign out everywhere")
	b.Submit(p, "/profile", url.Values{"name": {"RITA"}, "email": {"typed@example.com"}}).Expect(http.StatusBadRequest,
		"taken", `value="typed@example.com"`)
	b.LeadsTo(b.Submit(p, "/profile", url.Values{"name": {"Liv"}, "email": {""}}),
		"/profile?done=profile").Expect(http.StatusOK, "Profile saved.", `value="Liv"`).Without("olivia@")

	// Another browser stays signed in until the password changes.
	elsewhere.Get("/profile").Expect(http.StatusOK)
	value := b.Cookie("auth_token")
	b.LeadsTo(b.Submit(p, "/profile/password",
		url.Values{"old": {rightPassword}, "new": {"ten blue kettles"}, "grants": nil, "tokens": nil}),
		"/profile?done=password").Expect(http.StatusOK, "Tokens and applications stay active",
		"<details open>\n<summary>Sign out everywhere")
	elsewhere.Get("/profile").Expect(http.StatusSeeOther)
	w.Do(servertest.Limited, "GET", "/api/projects", "").Expect(http.StatusOK)
	b.LeadsTo(b.Submit(b.Get("/profile"), "/profile/password",
		url.Values{"old": {"ten blue kettles"}, "new": {"nine red kettles"}, "grants": nil}),
		"/profile?done=password-tokens").Expect(http.StatusOK, "your tokens revoked")
	w.Do(servertest.Limited, "GET", "/api/projects", "").Expect(http.StatusUnauthorized)
	b.LeadsTo(b.Submit(b.Get("/profile"), "/profile/password",
		url.Values{"old": {"nine red kettles"}, "new": {"ten blue kettles"}}),
		"/profile?done=password-all").Expect(http.StatusOK, "disconnected and your tokens revoked")
	if b.Cookie("auth_token") != value {
		t.Errorf("the session in which the password changed is another one, want %v", value)
	}
	login(w.Browser(), "liv", rightPassword).Expect(http.StatusUnauthorized)
	login(w.Browser(), "liv", "ten blue kettles").Expect(http.StatusSeeOther)

	// A user without a password sets one.
	rita := w.SignedIn(servertest.Reader)
	p = rita.Get("/profile").Expect(http.StatusOK, "You have none yet.", "Set the password").Without("Old password")
	rita.LeadsTo(rita.Submit(p, "/profile/password", url.Values{"new": {rightPassword}}),
		"/profile?done=password-all").Expect(http.StatusOK, "Old password")
}

func TestSessionsOfTheProfile(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	access, _ := accessToken(w, servertest.PublicAt, souvenir.Scopes()...)
	bearer := func(token string, status int) {
		t.Helper()
		r := w.Request(servertest.Guest, "GET", "/api/owner-ids/me", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		w.Send(r).Expect(status)
	}
	b, second, third, sam := w.SignedIn(servertest.Owner), w.SignedIn(servertest.Owner), w.SignedIn(servertest.Owner),
		w.SignedIn(servertest.Stranger)
	sessions, err := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]}).Accounts().SignIns(t.Context())
	if err != nil || len(sessions) != 3 {
		t.Fatalf("got %v %v, want no error and 3 sessions", sessions, err)
	}
	p := b.Get("/profile").Expect(http.StatusOK, "this browser")
	if n := strings.Count(p.Body, "Firefox on Linux</h3>") + strings.Count(p.Body, "Firefox on Linux <span"); n != 3 {
		t.Errorf("%d sessions are shown, want 3", n)
	}
	csrf := sam.Get("/profile").HTML.All("form")[0].Fields().Get("csrf")
	sam.Post("/profile/sessions/end", url.Values{"csrf": {csrf}, "id": {sessions[0].ID}}) // of another user
	third.Get("/profile").Expect(http.StatusOK)
	b.LeadsTo(b.Submit(p, "/profile/sessions/end", url.Values{"id": {sessions[0].ID}}),
		"/profile?done=session").Expect(http.StatusOK, "signed out")
	third.Get("/profile").Expect(http.StatusSeeOther)
	second.Get("/profile").Expect(http.StatusOK)

	b.LeadsTo(b.Submit(p, "/profile/sign-out", url.Values{"grants": nil, "tokens": nil}),
		"/profile?done=sessions").Expect(http.StatusOK)
	second.Get("/profile").Expect(http.StatusSeeOther)
	bearer(access, http.StatusOK)
	bearer(w.Tokens[servertest.Limited], http.StatusOK)
	b.LeadsTo(b.Submit(p, "/profile/sign-out", url.Values{"keep": nil}),
		"/login?done=signed-out-everywhere").Expect(http.StatusOK, "signed out everywhere")
	b.Get("/profile").Expect(http.StatusSeeOther)
	bearer(access, http.StatusUnauthorized)
	bearer(w.Tokens[servertest.Limited], http.StatusUnauthorized)
	sam.Get("/profile").Expect(http.StatusOK)
}

// Tokens made with a sign-in may outlive it. Tokens made with a token or by an application end with it.
func TestTokensMadeWithASignIn(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	add := func(cookie string) servertest.Answer {
		t.Helper()
		r := w.Request(servertest.Guest, "POST", "/api/mcp-tokens", strings.NewReader(`{"name": "made"}`))
		r.Header.Set("Content-Type", "application/json")
		r.AddCookie(&http.Cookie{Name: "auth_token", Value: cookie})
		return w.Send(r).Expect(http.StatusOK, `"mcp_`)
	}
	access, _ := accessToken(w, servertest.PublicAt, souvenir.ScopeMemoryWrite, souvenir.ScopeAccount)
	add(w.SignedIn(servertest.Owner).Cookie("auth_token")).Expect(http.StatusOK, `"expires_at":null`)
	if a := add(access); strings.Contains(a.Body, `"expires_at":null`) {
		t.Errorf(`an application makes a token that does not end: %s, want no "expires_at":null in the body`, a.Body)
	}
}

func TestConnectedApplications(t *testing.T) {
	w := servertest.New(t, server.Options{})
	access, grant := w.AccessTokenOf(servertest.Owner, "Kite",
		souvenir.Authorization{Scopes: []souvenir.Scope{souvenir.ScopeMemoryRead, souvenir.ScopeFilesWrite},
			Projects: []string{"shop"}})
	b, sam := w.SignedIn(servertest.Owner), w.SignedIn(servertest.Stranger)
	sam.Get("/connected").Expect(http.StatusOK, "Nothing here yet", servertest.PublicAt+"/mcp").Without("Kite")
	p := b.Get("/connected").Expect(http.StatusOK, "Kite", "app.example", "Read your memories",
		"Upload, change and delete files", "Only in the project <b>The shop</b>").Without("Store, change and delete memories",
		"Manage")
	b.Get("/").Expect(http.StatusOK, `<span class="number">1</span> application<`)
	csrf := sam.Get("/connected").HTML.All("form")[0].Fields().Get("csrf")
	sam.Post("/connected/end", url.Values{"csrf": {csrf}, "id": {grant}})
	use := func(status int) {
		t.Helper()
		r := w.Request(servertest.Guest, "GET", "/api/owner-ids/me", nil)
		r.Header.Set("Authorization", "Bearer "+access)
		w.Send(r).Expect(status)
	}
	use(http.StatusOK)
	b.LeadsTo(b.Submit(p, "/connected/end", url.Values{"id": {grant}}),
		"/connected?done=application").Expect(http.StatusOK, "Access revoked").Without("Kite")
	use(http.StatusUnauthorized)
}

func TestManagingUsers(t *testing.T) {
	w := servertest.New(t, server.Options{})
	setPassword(w, servertest.Owner)
	access, _ := accessToken(w, servertest.PublicAt, souvenir.Scopes()...)
	ada, olivia := w.SignedIn(servertest.Admin), w.SignedIn(servertest.Owner)
	p := ada.Get("/users").Expect(http.StatusOK, "olivia@example.com", "disabled", "you")
	do := func(caller, change string) *servertest.Page {
		t.Helper()
		return ada.Submit(ada.Get("/users"), "/users", url.Values{"id": {w.Users[caller]}, "change": {change}})
	}
	ada.LeadsTo(do(servertest.Owner, "user-disabled"), "/users?done=user-disabled").Expect(http.StatusOK, "User disabled.")
	olivia.Get("/profile").Expect(http.StatusSeeOther)
	olivia.Get("/api/owner-ids/me").Expect(http.StatusUnauthorized)
	w.Do(servertest.Owner, "GET", "/api/owner-ids/me", "").Expect(http.StatusUnauthorized)
	r := w.Request(servertest.Guest, "GET", "/api/owner-ids/me", nil)
	r.Header.Set("Authorization", "Bearer "+access)
	w.Send(r).Expect(http.StatusUnauthorized)
	login(w.Browser(), "olivia", rightPassword).Expect(http.StatusUnauthorized, "Name or password is wrong.")
	ada.LeadsTo(do(servertest.Owner, "user-enabled"), "/users?done=user-enabled").Expect(http.StatusOK)
	login(w.Browser(), "olivia", rightPassword).Expect(http.StatusSeeOther)
	olivia.Get("/profile").Expect(http.StatusSeeOther) // ended sessions stay ended

	rita := w.SignedIn(servertest.Reader)
	rita.Get("/users").Expect(http.StatusForbidden)
	ada.LeadsTo(do(servertest.Reader, "user-admin"), "/users?done=user-admin").Expect(http.StatusOK)
	rita.Get("/users").Expect(http.StatusOK)
	ada.LeadsTo(do(servertest.Reader, "user-user"), "/users?done=user-user").Expect(http.StatusOK)
	rita.Get("/users").Expect(http.StatusForbidden)
	csrf := rita.Get("/profile").HTML.All("form")[0].Fields().Get("csrf")
	rita.Post("/users", url.Values{"csrf": {csrf}, "id": {w.Users[servertest.Owner]},
		"change": {"user-disabled"}}).Expect(http.StatusForbidden)

	csrf = p.HTML.All("form")[0].Fields().Get("csrf")
	ada.Post("/users", url.Values{"csrf": {csrf}, "id": {w.Users[servertest.Admin]},
		"change": {"user-disabled"}}).Expect(http.StatusBadRequest, "your own account")
	ada.Post("/users", url.Values{"csrf": {csrf}, "id": {"noah"},
		"change": {"user-disabled"}}).Expect(http.StatusNotFound, "unknown")
	ada.Post("/users", url.Values{"csrf": {csrf}, "id": {w.Users[servertest.Owner]},
		"change": {"user-king"}}).Expect(http.StatusBadRequest)
}
