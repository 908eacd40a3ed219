package signin

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/route"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// An unattended browser, or a stolen cookie, must not be enough to create a lasting credential: creating one asks
// for the password again, or for a new sign-in at the provider, if the last confirmation is more than ten minutes
// old.

// recently is the maximum age of a confirmation.
const recently = 10 * time.Minute

// confirmField is the password field of the confirmation page; the page also carries the fields of the original
// form.
const confirmField = "confirm_password"

// confirmPage asks for the password, and keeps the original form's input.
type confirmPage struct {
	web.Form
	Action string
	Kept   []web.Fact // the fields of the original form
	User   string
	Has    bool // the user has a password
	Other  *otherSignIn
	Back   string // page of the form
}

// isConfirmed reports whether the user has confirmed their identity recently.
func (s *Service) isConfirmed(c request.Caller) bool { return s.now().Sub(c.ConfirmedAt) < s.recently }

// Confirmed wraps the handler of a form that creates a lasting credential. Back is the page of the form.
func (s *Service) Confirmed(back string, handle route.Handler) route.Handler {
	return func(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
		form, err := s.site.ReadForm(w, r)
		if err != nil {
			return nil, err
		}
		if asks, err := s.Confirm(w, r, c, form, back); asks != nil || err != nil {
			return asks, err
		}
		return handle(w, r, c)
	}
}

// Confirm checks that the user has confirmed their identity recently, or has just entered the password. Otherwise
// it returns the page that asks for it.
func (s *Service) Confirm(w http.ResponseWriter, r *http.Request, c request.Caller, form url.Values, back string) (any,
	error) {
	if s.isConfirmed(c) {
		return nil, nil
	}
	data := &confirmPage{Action: s.site.Path(strings.TrimPrefix(r.URL.Path, s.site.Base())), User: c.User.Name,
		Has:   c.User.HasPassword,
		Other: s.otherSignIn(back, true), Back: s.site.Path(back), Form: web.Form{Fields: []web.Field{
			{Name: confirmField, Argument: "password", Label: "Your password", Type: "password",
				Autocomplete: "current-password", Focus: true},
		}}}
	p := web.Page{Template: "confirm", Title: "Is it still you?", Status: http.StatusForbidden, Data: data}
	if form.Has(confirmField) && data.Has {
		err := s.confirmWith(w, r, c, form.Get(confirmField))
		if err == nil {
			form.Del(confirmField)
			return nil, nil
		}
		data.Refuse(err)
		if p, err = web.AgainAs(p, err); err != nil {
			return nil, err
		}
	}
	for _, name := range sortedNames(form) {
		if name == web.FormField || name == confirmField {
			continue
		}
		for _, value := range form[name] {
			data.Kept = append(data.Kept, web.Fact{Key: name, Value: value})
		}
	}
	return p, nil
}

// confirmWith checks the signed-in user's password, as a sign-in does, and records the confirmation.
func (s *Service) confirmWith(w http.ResponseWriter, r *http.Request, c request.Caller, password string) error {
	user, _, err := s.checkPassword(w, r, c.User.Name, password)
	if errors.Is(err, souvenir.ErrUnauthenticated) || err == nil && user.ID != c.User.ID {
		return &souvenir.Error{Kind: souvenir.KindUnauthenticated, Argument: "password",
			Message: "password is not your current password"}
	}
	if err != nil {
		return err
	}
	return c.Store.Accounts().ConfirmSignIn(r.Context(), c.SignInID)
}

// CheckConfirmed refuses a program that creates a lasting credential with the cookie of a browser without a recent
// confirmation.
func (s *Service) CheckConfirmed(c request.Caller) error {
	if c.SignInID == "" || s.isConfirmed(c) {
		return nil
	}
	return &failure.Error{Status: http.StatusForbidden,
		Message: fmt.Sprintf("the sign-in of this browser is older than %d minutes; sign in again, or send a token with "+
			"the scope account", int(s.recently.Minutes()))}
}

func sortedNames(form url.Values) []string {
	var names []string
	for name := range form {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// SignInAgain returns where a user without a recent sign-in must go first, to come back to a page; empty: not
// needed. It protects exports and imports of all users' data: an unattended browser must not be enough for them.
func (s *Service) SignInAgain(_ *http.Request, c request.Caller, path string) (string, error) {
	if s.isConfirmed(c) {
		return "", nil
	}
	return s.site.Path("/login") + "?" + askedAgain + "=1&next=" + url.QueryEscape(path), nil
}
