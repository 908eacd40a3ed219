package signin

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// SetupPath is the path, under the public URL, of the page on which the holder of an invitation for the first
// account creates it.
func SetupPath(value string) string { return "/setup?" + url.Values{"invitation": {value}}.Encode() }

// InvitePath is the path, under the public URL, of the page on which the holder of an invitation creates an
// account.
func InvitePath(value string) string { return "/invite?" + url.Values{"invitation": {value}}.Encode() }

// accountPage is the data of the pages on which an account is created.
type accountPage struct {
	web.Form
	Action     string // path of the form
	Invitation string // its value
	Role       souvenir.Role
	Setup      bool
}

// newAccountPage is the page for an invitation.
func newAccountPage(i souvenir.Invitation, value string) (web.Page, *accountPage) {
	setup := i.Purpose == souvenir.InvitationSetup
	data := &accountPage{Action: "/invite", Invitation: value, Role: i.Role, Setup: setup,
		Form: web.Form{Fields: []web.Field{
			{Name: "username", Argument: "name", Label: "Name", Type: "text", Autocomplete: "username",
				Hint: "You sign in with it.", Focus: true},
			{Name: "email", Label: "E-mail", Type: "email", Autocomplete: "email", Value: i.Email, Optional: true},
			{Name: "password", Label: "Password", Type: "password", Autocomplete: "new-password",
				Hint: "8 characters or more. A few words make a good one."},
		}}}
	title := "Create your account"
	if setup {
		data.Action, title = "/setup", "Set up this service"
	}
	return web.Page{Template: "account", Title: title, Data: data}, data
}

// showSetup asks for the first account. A server that starts on a store without users prints the link to this page.
func (s *Service) showSetup(_ http.ResponseWriter, r *http.Request, _ request.Caller) (any, error) {
	return s.showAccount(r, souvenir.InvitationSetup)
}

func (s *Service) setup(w http.ResponseWriter, r *http.Request, _ request.Caller) (any, error) {
	user, again, err := s.addAccount(w, r, souvenir.InvitationSetup)
	if err != nil || again != nil {
		return again, err
	}
	return s.welcome(r, user, "You are set up")
}

// showInvite asks for a further account.
func (s *Service) showInvite(_ http.ResponseWriter, r *http.Request, _ request.Caller) (any, error) {
	return s.showAccount(r, souvenir.InvitationAccount)
}

func (s *Service) acceptInvite(w http.ResponseWriter, r *http.Request, _ request.Caller) (any, error) {
	user, again, err := s.addAccount(w, r, souvenir.InvitationAccount)
	if err != nil || again != nil {
		return again, err
	}
	return s.welcome(r, user, "Welcome, "+user.Name)
}

func (s *Service) showAccount(r *http.Request, purpose souvenir.InvitationPurpose) (any, error) {
	value := r.URL.Query().Get("invitation")
	i, err := s.invitation(r, value, purpose)
	if err != nil {
		return deadLink(err)
	}
	p, _ := newAccountPage(i, value)
	return p, nil
}

// invitation looks up an invitation; one for another purpose is not found.
func (s *Service) invitation(r *http.Request, value string, purpose souvenir.InvitationPurpose) (souvenir.Invitation,
	error) {
	if value == "" {
		return souvenir.Invitation{},
			failure.Invalid("invitation", "the link is not complete; open the whole link")
	}
	i, err := s.store.Accounts().CheckInvitation(r.Context(), value)
	if err == nil && i.Purpose != purpose {
		err = &failure.Error{Status: http.StatusNotFound,
			Message: "this link is for another page; open the whole link"}
	}
	return i, err
}

// deadLink returns why a link cannot create an account.
func deadLink(err error) (any, error) {
	status, message := failure.Describe(err)
	if status != http.StatusNotFound {
		return nil, err
	}
	return web.Page{Template: "deadlink", Title: "This link does not work", Status: status,
		Data: deadLinkPage{Problem: web.Sentence(message)}}, nil
}

// deadLinkPage is the data of the page of a link that does not work.
type deadLinkPage struct {
	Problem  string
	SignedIn string // the name of the user who is signed in; empty: none
	Advice   string // without a session; empty: the problem says what to do
}

// addAccount creates the account that a form describes and signs its user in. A non-nil page is the form, to be shown
// again.
func (s *Service) addAccount(w http.ResponseWriter, r *http.Request,
	purpose souvenir.InvitationPurpose) (souvenir.User, any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return souvenir.User{}, nil, err
	}
	value := values.Get("invitation")
	i, err := s.invitation(r, value, purpose)
	if err != nil {
		dead, err := deadLink(err)
		return souvenir.User{}, dead, err
	}
	p, data := newAccountPage(i, value)
	data.Fill(values.Get)
	var user souvenir.User
	leave, err := s.hashing.others.enter(r.Context(), w.Header())
	if err == nil {
		user, err = s.store.Accounts().AcceptInvitation(r.Context(), souvenir.InvitationAcceptance{
			Value: value, Name: values.Get("username"), Password: values.Get("password"),
			Email: cmp.Or(values.Get("email"), i.Email),
		})
		leave()
	}
	if err != nil {
		var known *souvenir.Error
		if errors.As(err, &known) && known.Argument == "invitation" {
			dead, err := deadLink(err) // a concurrent request was faster
			return souvenir.User{}, dead, err
		}
		data.Refuse(err)
		page, err := web.Again(p, err)
		return souvenir.User{}, page, err
	}
	return user, nil, s.signIn(w, r, user, time.Time{})
}
