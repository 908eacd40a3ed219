package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// signInPage is what the page of the sign-in shows.
type signInPage struct {
	pageForm
	Next  string // where to go then, without the base; empty: to the start
	Empty bool   // nobody has an account yet
	Other *otherSignIn
}

func (s *Server) loginPage(next string, again bool) (page, *signInPage) {
	data := &signInPage{Next: next, Other: s.otherSignIn(next, again), pageForm: pageForm{Fields: []field{
		{Name: "username", Label: "Name", Type: "text", Autocomplete: "username", Focus: true},
		{Name: "password", Label: "Password", Type: "password", Autocomplete: "current-password"},
	}}}
	return page{template: "login", title: "Sign in", data: data}, data
}

// showLogin asks for name and password, unless somebody has signed in already. With the parameter again it asks them, too: an
// application may want to know who is there now, or somebody else is.
func (s *Server) showLogin(_ http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	next := r.URL.Query().Get("next")
	_, err := s.admitPerson(r, person)
	switch {
	case err == nil && !r.URL.Query().Has(askedAgain):
		return redirect(s.localPath(next)), nil
	case err != nil && !errors.Is(err, errSignIn):
		return nil, err
	}
	p, data := s.loginPage(next, r.URL.Query().Has(askedAgain))
	has, err := s.store.HasAccounts(r.Context())
	data.Empty = !has
	return p, err
}

// login signs somebody in. That the name is unknown, the password wrong and the user disabled looks the same.
func (s *Server) login(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	values, err := s.readForm(w, r)
	if errors.Is(err, errStaleForm) { // of another window, perhaps: the page as it is now can be sent
		p, data := s.loginPage(r.PostForm.Get("next"), false)
		data.fill(r.PostForm.Get)
		data.refuse(err)
		p.status = http.StatusForbidden
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	p, data := s.loginPage(values.Get("next"), false)
	data.fill(values.Get)
	user, since, err := s.checkPassword(w, r, values.Get("username"), values.Get("password"))
	if err == nil {
		err = s.signIn(w, r, user, since)
	}
	if err != nil {
		data.refuse(err)
		data.Fields[0].Focus, data.Fields[1].Focus = data.Fields[0].Value == "", data.Fields[0].Value != ""
		return again(p, err)
	}
	return redirect(s.localPath(data.Next)), nil
}

// checkPassword returns the user who has a name and a password, and when it began to look. Whoever has tried too often has
// to wait.
func (s *Server) checkPassword(w http.ResponseWriter, r *http.Request, name, password string) (souvenir.User, time.Time, error) {
	who, err := s.accountKey(r.Context(), name)
	if err != nil {
		return souvenir.User{}, time.Time{}, err
	}
	try, err := s.beginTry(w, r, who)
	if err != nil {
		return souvenir.User{}, time.Time{}, err
	}
	known := try.known || exchangeOf(r.Context()).caller.SessionID != ""
	leave, err := s.hashing.of(known).enter(r.Context(), w.Header())
	if err != nil {
		try.unused()
		return souvenir.User{}, time.Time{}, err
	}
	defer leave()
	since := time.Now()
	user, err := s.store.CheckPassword(r.Context(), souvenir.Credentials{Name: name, Password: password})
	if err == nil {
		try.right()
	}
	return user, since, err
}

// accountKey tells the accounts apart whose passwords are tried: names that are written in different ways may be one. Names
// that nobody has are told apart in the same way, so that nobody learns by waiting which ones there are.
func (s *Server) accountKey(ctx context.Context, name string) (string, error) {
	user, err := s.store.GetUser(ctx, name)
	if errors.Is(err, souvenir.ErrNotFound) {
		const most = 1 << 10 // bytes: no name is longer
		return "unknown\x00" + souvenir.UserNameKey(name[:min(len(name), most)]), nil
	}
	return knownAccount(user.ID), err
}

func knownAccount(id string) string { return "known\x00" + id }

// beginTry counts a try of a password, unless there were too many: then it says how long to wait.
func (s *Server) beginTry(w http.ResponseWriter, r *http.Request, who string) (counted, error) {
	mark := ""
	if c, err := r.Cookie(markCookie); err == nil {
		mark = c.Value
	}
	try, wait := s.attempts.begin(who, addressKey(s.remote(r)), mark)
	if wait <= 0 {
		return try, nil
	}
	w.Header().Set("Retry-After", strconv.Itoa(seconds(wait)))
	return try, &failure{http.StatusTooManyRequests, fmt.Sprintf("there were too many wrong tries; wait %s, then try again", inWords(wait))}
}

// logout ends the session of this browser. What the person made in it goes on, but for what was to end with it. Somebody else may sign in
// then, and go on where the form says.
func (s *Server) logout(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	values, err := s.readForm(w, r)
	if err != nil {
		return nil, err
	}
	if err := s.endCookie(r); err != nil {
		return nil, err
	}
	s.setCookie(w, tokenCookie, "", 0)
	if next := values.Get("next"); strings.HasPrefix(next, "/") {
		return redirect(s.path("/login") + "?next=" + url.QueryEscape(next)), nil
	}
	return s.done("/login", "signed-out"), nil
}

// signInRoutes are the ways in and out, and what people look after themselves.
func (s *Server) signInRoutes() []route {
	all := []route{
		get("/login", nothing, s.showLogin),
		post("/login", nothing, s.login),
		post("/logout", nothing, s.logout),
		get("/setup", nothing, s.showSetup),
		post("/setup", nothing, s.setup),
		get("/invite", nothing, s.showInvite),
		post("/invite", nothing, s.acceptInvite),

		get("/profile", person, s.showProfile),
		post("/profile", person, s.confirmed("/profile", s.updateProfile)),
		post("/profile/password", person, s.changePassword),
		post("/profile/sessions/end", person, s.endSession),
		post("/profile/sign-out", person, s.signOutEverywhere),
	}
	if s.provider != nil {
		all = append(all, s.providerRoutes()...)
	}
	return all
}
