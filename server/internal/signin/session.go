package signin

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/route"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

const (

	// cookieLife is how long a browser keeps the session cookie: the maximum life of a session. The store ends
	// unused sessions earlier.
	cookieLife = 90 * web.Day

	markCookie = "souvenir_known" // this browser has signed in to an account; see attempts
	markLife   = 365 * web.Day    // as long as the store accepts it
)

// RequirePerson authenticates the browser's session. Tokens do not count: programs may not do actions reserved for
// people.
func (s *Service) RequirePerson(r *http.Request, needs route.Need) (request.Caller, error) {
	c, err := r.Cookie(request.CredentialCookie)
	if err != nil || !strings.HasPrefix(c.Value, request.SessionPrefix) {
		return request.Caller{}, web.ErrSignIn
	}
	p, err := s.store.Accounts().CheckSignIn(r.Context(), c.Value)
	if errors.Is(err, souvenir.ErrUnauthenticated) {
		return request.Caller{}, web.ErrSignIn
	}
	if err != nil {
		return request.Caller{}, err
	}
	access := p.Access
	access.Through = request.Through(r)
	signedIn := request.Caller{Principal: p, Store: s.store.As(access)}
	if needs == route.Administrator && p.User.Role != souvenir.RoleAdmin {
		request.Of(r.Context()).Caller = signedIn
		return signedIn, &failure.Error{Status: http.StatusForbidden, Message: "this page is for admins; ask one of them"}
	}
	return signedIn, nil
}

// signIn begins a session of a user in the browser that sent a request; since is when the check of the user's
// credentials began. The session always gets a new value: a cookie that an attacker put into the browser beforehand is
// worthless. The browser's former session ends; credentials that the same person created in it move to the new session.
func (s *Service) signIn(w http.ResponseWriter, r *http.Request, user souvenir.User, since time.Time) error {
	return s.signInShown(w, r, user, souvenir.NewSignIn{Since: since})
}

// signInShown is signIn for a session with further properties.
func (s *Service) signInShown(w http.ResponseWriter, r *http.Request, user souvenir.User, n souvenir.NewSignIn) error {
	before, err := s.RequirePerson(r, route.Person)
	if err != nil && !errors.Is(err, web.ErrSignIn) {
		return err
	}
	n.User, n.UserAgent, n.Replaces = user.ID, r.UserAgent(), before.SignInID
	added, err := s.store.Accounts().AddSignIn(r.Context(), n)
	if err != nil {
		return err
	}
	if err := s.endCookie(r); err != nil {
		return err
	}
	p, err := s.store.Accounts().CheckSignIn(r.Context(), added.Value)
	if err != nil {
		return err
	}
	e := request.Of(r.Context())
	e.Caller, e.SignedIn = request.Caller{Principal: p, Store: s.store.As(p.Access)}, added.Value
	s.site.SetCookie(w, request.CredentialCookie, added.Value, int(cookieLife/time.Second))
	s.site.SetCookie(w, markCookie, added.Mark, int(markLife/time.Second))
	s.site.SetCookie(w, web.FormCookie, "", 0)
	return nil
}

// endCookie ends the session of a browser's cookie, if any.
func (s *Service) endCookie(r *http.Request) error {
	c, err := s.RequirePerson(r, route.Person)
	if errors.Is(err, web.ErrSignIn) {
		return nil
	}
	if err != nil {
		return err
	}
	err = c.Store.Accounts().RevokeSignIn(r.Context(), c.SignInID, &souvenir.SignOutOptions{KeepMade: true})
	if errors.Is(err, souvenir.ErrNotFound) { // it has just ended
		return nil
	}
	return err
}
