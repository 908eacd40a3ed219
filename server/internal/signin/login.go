package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/ratelimit"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/route"
	"github.com/souvenir-ai/souvenir/server/internal/seal"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// signInPage is the data of the sign-in page.
type signInPage struct {
	web.Form
	Next  string // where to go after sign-in, without the base; empty: the home page
	Empty bool   // there are no accounts yet
	Draft string // a form to send after it, sealed; empty: none
	App   string // name of the application that waits for the sign-in; empty: none
	Other *otherSignIn
}

func (s *Service) loginPage(next string, again bool) (web.Page, *signInPage) {
	data := &signInPage{Next: next, Other: s.otherSignIn(next, again), Form: web.Form{Fields: []web.Field{
		{Name: "username", Label: "Name", Type: "text", Autocomplete: "username", Focus: true},
		{Name: "password", Label: "Password", Type: "password", Autocomplete: "current-password"},
	}}}
	return web.Page{Template: "login", Title: "Sign in", Data: data}, data
}

// showLogin asks for name and password, unless the browser has a session. With the parameter again it always asks:
// an application may require a fresh sign-in, or another user may be at the browser.
func (s *Service) showLogin(_ http.ResponseWriter, r *http.Request, _ request.Caller) (any, error) {
	next := r.URL.Query().Get("next")
	_, err := s.RequirePerson(r, route.Person)
	switch {
	case err == nil && !r.URL.Query().Has(askedAgain):
		return web.Redirect(s.site.LocalPath(next)), nil
	case err != nil && !errors.Is(err, web.ErrSignIn):
		return nil, err
	}
	p, data := s.loginPage(next, r.URL.Query().Has(askedAgain))
	data.App = s.waitingApp(r.Context(), next)
	has, err := s.store.Accounts().HasAccounts(r.Context())
	data.Empty = !has
	return p, err
}

// login signs a user in. An unknown name, a wrong password and a disabled user look the same.
func (s *Service) login(w http.ResponseWriter, r *http.Request, _ request.Caller) (any, error) {
	values, draft, err := s.site.ReadSignIn(w, r)
	if errors.Is(err, web.ErrStaleForm) { // perhaps from another window: the current page can be sent
		p, data := s.loginPage(r.PostForm.Get("next"), false)
		data.Fill(r.PostForm.Get)
		data.Refuse(err)
		p.Status = http.StatusForbidden
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	p, data := s.loginPage(values.Get("next"), false)
	data.Draft, data.App = draft, s.waitingApp(r.Context(), values.Get("next"))
	data.Fill(values.Get)
	user, since, err := s.checkPassword(w, r, values.Get("username"), values.Get("password"))
	if err == nil {
		err = s.signIn(w, r, user, since)
	}
	if err != nil {
		data.Refuse(err)
		data.Fields[0].Focus, data.Fields[1].Focus = data.Fields[0].Value == "", data.Fields[0].Value != ""
		return web.Again(p, err)
	}
	if kept, ok := s.openDraft(r.Context(), draft, user); ok {
		return kept, nil
	}
	return web.Redirect(s.site.LocalPath(data.Next)), nil
}

// draftPage is the sign-in page for the sender of a form whose session has ended.
func (s *Service) draftPage(ctx context.Context, d web.Draft) (web.Page, bool) {
	p, data := s.loginPage("", false)
	p.Title = "Sign in again"
	text, err := json.Marshal(d)
	if err == nil {
		data.Draft, err = seal.Sealer{Store: s.store}.Seal(ctx, draftPurpose, text)
	}
	if err != nil {
		s.log.ErrorContext(ctx, "could not keep the typed form during the sign-in", "error", err)
	}
	return p, err == nil
}

// draftPurpose is the purpose for which drafts are sealed.
const draftPurpose = "a form to send again after the sign-in"

// openDraft returns the page that shows a draft to the user who typed it; false: there is no draft, or another user
// typed it.
func (s *Service) openDraft(ctx context.Context, sealed string, user souvenir.User) (web.Page, bool) {
	if sealed == "" {
		return web.Page{}, false
	}
	text, ok, err := seal.Sealer{Store: s.store}.Open(ctx, draftPurpose, sealed)
	var d web.Draft
	if err != nil || !ok || json.Unmarshal(text, &d) != nil {
		return web.Page{}, false
	}
	return s.site.DraftPage(d, user.ID)
}

// waitingApp returns the name of the application that a person signs in to allow or deny, as the application gives it;
// empty: there is none, or it has no name.
func (s *Service) waitingApp(ctx context.Context, next string) string {
	asked, err := url.Parse(next)
	if err != nil || asked.Path != route.AuthorizePath && asked.Path != "/authorize" {
		return ""
	}
	client, err := s.store.Accounts().GetClient(ctx, asked.Query().Get("client_id"))
	if err != nil {
		return "" // unknown so far, such as one that is described by a document
	}
	return web.ShortName(client.Metadata.ClientName)
}

// checkPassword returns the user with a name and a password, and when the check began. After too many tries the
// caller has to wait.
func (s *Service) checkPassword(w http.ResponseWriter, r *http.Request, name, password string) (souvenir.User,
	time.Time, error) {
	id, who, err := s.account(r.Context(), name)
	if err != nil {
		return souvenir.User{}, time.Time{}, err
	}
	try, err := s.beginTry(w, r, id, who)
	if err != nil {
		return souvenir.User{}, time.Time{}, err
	}
	known := try.known || request.Of(r.Context()).Caller.SignInID != ""
	leave, err := s.hashing.of(known).enter(r.Context(), w.Header())
	if err != nil {
		try.unused(r.Context())
		return souvenir.User{}, time.Time{}, err
	}
	defer leave()
	since := time.Now()
	user, err := s.store.Accounts().CheckPassword(r.Context(), souvenir.Credentials{Name: name, Password: password})
	if err == nil {
		try.right(r.Context())
	}
	return user, since, err
}

// account returns the id of the user whose password is tried, if there is one, and a key for the account: names in
// different spellings may be one. Unknown names get keys in the same way, so that waiting does not reveal which names
// exist.
func (s *Service) account(ctx context.Context, name string) (id, key string, err error) {
	user, err := s.store.Accounts().GetUser(ctx, name)
	if errors.Is(err, souvenir.ErrNotFound) {
		const most = 1 << 10 // bytes: names are shorter
		return "", "unknown\x00" + souvenir.UserNameKey(name[:min(len(name), most)]), nil
	}
	return user.ID, knownAccount(user.ID), err
}

func knownAccount(id string) string { return "known\x00" + id }

// beginTry counts a password try for a user, unless there were too many: then it returns an error with the wait.
func (s *Service) beginTry(w http.ResponseWriter, r *http.Request, id, who string) (counted, error) {
	known := false
	if c, err := r.Cookie(markCookie); err == nil {
		err := s.store.Accounts().CheckBrowser(r.Context(), souvenir.BrowserCheck{User: id, Mark: c.Value})
		if err != nil && !errors.Is(err, souvenir.ErrUnauthenticated) {
			return counted{}, err
		}
		known = err == nil
	}
	try, wait, err := s.attempts.begin(r.Context(), who, ratelimit.AddressKey(request.Of(r.Context()).Address), known)
	if err != nil || wait <= 0 {
		return try, err
	}
	w.Header().Set("Retry-After", strconv.Itoa(web.Seconds(wait)))
	return try, &failure.Error{Status: http.StatusTooManyRequests,
		Message: fmt.Sprintf("too many failed attempts; wait %s, then try again", web.Wait(wait))}
}

// logout ends the session of this browser. What was created in it stays valid, except for what was bound to the
// session. Then another user may sign in, and continue on the page that the form names.
func (s *Service) logout(w http.ResponseWriter, r *http.Request, _ request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	if err := s.endCookie(r); err != nil {
		return nil, err
	}
	s.site.SetCookie(w, request.CredentialCookie, "", 0)
	if next := values.Get("next"); strings.HasPrefix(next, "/") {
		return web.Redirect(s.site.Path("/login") + "?next=" + url.QueryEscape(next)), nil
	}
	return s.site.Done("/login", "signed-out"), nil
}

// Failed reports whether an answer of a route, "METHOD /pattern", with a status means that a sign-in has failed.
func Failed(route string, status int) bool {
	switch route {
	case "POST /login":
		return status == http.StatusUnauthorized
	case "GET " + providerAnswersPath:
		return status == http.StatusForbidden
	}
	return false
}

// Routes are the routes for signing in and out, and for the user's own account.
func (s *Service) Routes() []route.Route {
	all := []route.Route{
		route.Get("/login", route.Public, s.showLogin),
		route.Post("/login", route.Public, s.login),
		route.Post("/logout", route.Public, s.logout),
		route.Get(linkPath, route.Public, s.followLink),
		route.Get("/setup", route.Public, s.showSetup),
		route.Post("/setup", route.Public, s.setup),
		route.Get("/invite", route.Public, s.showInvite),
		route.Post("/invite", route.Public, s.acceptInvite),

		route.Page("/profile", route.Person, s.showProfile),
		route.Post("/profile", route.Person, s.Confirmed("/profile", s.updateProfile)),
		route.Post("/profile/password", route.Person, s.changePassword),
		route.Post("/profile/sessions/end", route.Person, s.revokeSession),
		route.Post("/profile/sign-out", route.Person, s.signOutEverywhere),
	}
	if s.provider != nil {
		all = append(all, s.ProviderRoutes()...)
	}
	return all
}
