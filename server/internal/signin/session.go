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

	// cookieLife is how long a browser keeps the cookie of a sign-in: as long as a session can last. The store ends it
	// earlier when it is not used.
	cookieLife = 90 * web.Day

	markCookie = "souvenir_known" // that an account was signed in to with this browser; see attempts
	markLife   = 365 * web.Day
)

// AdmitPerson finds out who has signed in with this browser. Tokens do not count: what only a person may do, no program
// that holds one may.
func (s *Service) AdmitPerson(r *http.Request, needs route.Need) (request.Caller, error) {
	c, err := r.Cookie(request.CredentialCookie)
	if err != nil || !strings.HasPrefix(c.Value, request.SessionPrefix) {
		return request.Caller{}, web.ErrSignIn
	}
	p, err := s.store.Accounts().CheckSession(r.Context(), c.Value)
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

// signIn begins a session of a user, whose credentials were checked since a time, in the browser that sent a request.
// The value of the session is always a new one: a cookie that somebody has put into the browser before is worth
// nothing. What was signed in there ends; what the same person made in it belongs to the new session.
func (s *Service) signIn(w http.ResponseWriter, r *http.Request, user souvenir.User, since time.Time) error {
	return s.signInShown(w, r, user, souvenir.NewSession{Since: since})
}

// signInShown does so for a session that says more than that.
func (s *Service) signInShown(w http.ResponseWriter, r *http.Request, user souvenir.User, n souvenir.NewSession) error {
	before, err := s.AdmitPerson(r, route.Person)
	if err != nil && !errors.Is(err, web.ErrSignIn) {
		return err
	}
	n.User, n.UserAgent, n.Replaces = user.ID, r.UserAgent(), before.SessionID
	added, err := s.store.Accounts().AddSession(r.Context(), n)
	if err != nil {
		return err
	}
	if err := s.endCookie(r); err != nil {
		return err
	}
	p, err := s.store.Accounts().CheckSession(r.Context(), added.Value)
	if err != nil {
		return err
	}
	e := request.Of(r.Context())
	e.Caller, e.SignedIn = request.Caller{Principal: p, Store: s.store.As(p.Access)}, added.Value
	s.site.SetCookie(w, request.CredentialCookie, added.Value, int(cookieLife/time.Second))
	s.site.SetCookie(w, markCookie, s.attempts.mark(knownAccount(user.ID)), int(markLife/time.Second))
	s.site.SetCookie(w, web.FormCookie, "", 0)
	return nil
}

// endCookie ends the session that a browser's cookie has, if it has one.
func (s *Service) endCookie(r *http.Request) error {
	c, err := s.AdmitPerson(r, route.Person)
	if errors.Is(err, web.ErrSignIn) {
		return nil
	}
	if err != nil {
		return err
	}
	return c.Store.Accounts().DeleteSessions(r.Context(), souvenir.SessionSelection{Only: c.SessionID, KeepMade: true})
}
