package signin

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// profilePage is the data of the page on which people manage their account.
type profilePage struct {
	Details  web.Form
	Password web.Form
	Has      bool // the user has a password
	Sessions []ownSession
	External identitiesPart
	Changed  bool // the password was just changed: the page offers to revoke other access

	SessionPages web.Pager
}

// ownSession is a browser in which the user is signed in.
type ownSession struct {
	souvenir.SignIn
	Current bool   // that of this request
	Made    string // the active credentials created in it, in words; empty: none
}

// describeAdded describes the credentials created in a session.
func describeAdded(session string, tokens []souvenir.Token, grants []souvenir.Grant) string {
	made, allowed := 0, 0
	for _, t := range tokens {
		if t.SignInID == session {
			made++
		}
	}
	for _, g := range grants {
		if g.SignInID == session {
			allowed++
		}
	}
	var words []string
	if made > 0 {
		words = append(words, web.Count(made, "token"))
	}
	if allowed > 0 {
		words = append(words, web.Count(allowed, "application"))
	}
	return strings.Join(words, " and ")
}

// profile loads the page before any input.
func (s *Service) profile(r *http.Request, c request.Caller) (web.Page, *profilePage, error) {
	data := &profilePage{
		Has: c.User.HasPassword,
		Details: web.Form{Fields: []web.Field{
			{Name: "name", Label: "Name", Type: "text", Autocomplete: "username", Value: c.User.Name,
				Hint: "You sign in with it."},
			{Name: "email", Label: "E-mail", Type: "email", Autocomplete: "email", Value: c.User.Email, Optional: true},
		}},
		Password: web.Form{Fields: []web.Field{
			{Name: "old", Argument: "old_password", Label: "Old password", Type: "password", Autocomplete: "current-password"},
			{Name: "new", Argument: "new_password", Label: "New password", Type: "password", Autocomplete: "new-password",
				Hint: "8 characters or more. A few words make a good one."},
		}},
		Changed: strings.HasPrefix(r.URL.Query().Get("done"), "password"),
	}
	if !data.Has {
		data.Password.Fields = data.Password.Fields[1:]
	}
	var err error
	if data.External, err = s.identitiesPart(r.Context(), c); err != nil {
		return web.Page{}, nil, err
	}
	sessions, err := c.Store.Accounts().SignIns(r.Context())
	if err != nil {
		return web.Page{}, nil, err
	}
	tokens, err := c.Store.Accounts().Tokens(r.Context())
	if err != nil {
		return web.Page{}, nil, err
	}
	grants, err := c.Store.Accounts().Grants(r.Context())
	if err != nil {
		return web.Page{}, nil, err
	}
	sessions, data.SessionPages = web.Paginate(sessions, r, "sessions")
	for _, session := range sessions {
		data.Sessions = append(data.Sessions,
			ownSession{session, session.ID == c.SignInID, describeAdded(session.ID, tokens, grants)})
	}
	return web.Page{Template: "profile", Title: "Profile", Data: data}, data, nil
}

func (s *Service) showProfile(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	p, _, err := s.profile(r, c)
	return p, err
}

// profileForm reads a form of the profile, and prepares the page for showing errors.
func (s *Service) profileForm(w http.ResponseWriter, r *http.Request, c request.Caller) (url.Values, web.Page,
	*profilePage, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, web.Page{}, nil, err
	}
	p, data, err := s.profile(r, c)
	return values, p, data, err
}

func (s *Service) updateProfile(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, p, data, err := s.profileForm(w, r, c)
	if err != nil {
		return nil, err
	}
	data.Details.Fill(values.Get)
	name, email := values.Get("name"), values.Get("email")
	if _, err := s.store.Accounts().UpdateUser(r.Context(), c.User.ID,
		souvenir.UserUpdate{Name: &name, Email: &email}); err != nil {
		data.Details.Refuse(err)
		return web.Again(p, err)
	}
	return s.site.Done("/profile", "profile"), nil
}

// changePassword sets a new password for a user who knows the old one: an unattended browser is not enough. The
// session continues; the user's others end.
func (s *Service) changePassword(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, p, data, err := s.profileForm(w, r, c)
	if err != nil {
		return nil, err
	}
	if !data.Has { // there is no old password
		if asks, err := s.Confirm(w, r, c, values, "/profile"); asks != nil || err != nil {
			return asks, err
		}
	}
	change := souvenir.PasswordChange{Old: values.Get("old"), New: values.Get("new"), KeepSignIn: c.SignInID,
		End: endedKinds(values)}
	try, err := s.beginTry(w, r, c.User.ID, knownAccount(c.User.ID))
	if err == nil {
		var leave func()
		if leave, err = s.hashing.known.enter(r.Context(), w.Header()); err == nil {
			err = c.Store.Accounts().ChangePassword(r.Context(), change)
			leave()
		}
		switch {
		case err == nil:
			try.right(r.Context())
		case !errors.Is(err, souvenir.ErrUnauthenticated): // an error in the new password
			try.unused(r.Context())
		}
	}
	if err != nil {
		data.Password.Refuse(err)
		return web.Again(p, err)
	}
	switch len(change.End) {
	case 0:
		return s.site.Done("/profile", "password"), nil
	case 1:
		return s.site.Done("/profile", "password-"+string(change.End[0])), nil
	}
	return s.site.Done("/profile", "password-all"), nil
}

// endedKinds returns the kinds of access that a form ends besides sessions.
func endedKinds(values url.Values) []souvenir.AccessKind {
	var kinds []souvenir.AccessKind
	for _, kind := range []souvenir.AccessKind{souvenir.AccessGrants, souvenir.AccessTokens} {
		if values.Has(string(kind)) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// revokeSession ends another session, or this one, with the credentials created in it unless the form keeps them.
func (s *Service) revokeSession(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	if id := values.Get("id"); id != "" {
		options := &souvenir.SignOutOptions{KeepMade: values.Has("offered") && !values.Has("made")}
		err := c.Store.Accounts().RevokeSignIn(r.Context(), id, options)
		if err != nil && !errors.Is(err, souvenir.ErrNotFound) { // it has just ended
			return nil, err
		}
	}
	return s.site.Done("/profile", "session"), nil
}

// signOutEverywhere ends all sessions, this one included unless the form keeps it, and, if requested, the user's
// other credentials.
func (s *Service) signOutEverywhere(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	except, kinds := "", append([]souvenir.AccessKind{souvenir.AccessSignIns}, endedKinds(values)...)
	if values.Has("keep") {
		except = c.SignInID
	}
	if err := c.Store.Accounts().RevokeAccess(r.Context(), except, kinds); err != nil {
		return nil, err
	}
	if except != "" {
		return s.site.Done("/profile", "sessions"), nil
	}
	s.site.SetCookie(w, request.CredentialCookie, "", 0)
	return s.site.Done("/login", "signed-out-everywhere"), nil
}
