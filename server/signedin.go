package server

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

const (

	// cookieLife is how long a browser keeps the cookie of a sign-in: as long as a session can last. The store ends it earlier
	// when it is not used.
	cookieLife = 90 * day

	markCookie = "souvenir_known" // that an account was signed in to with this browser; see attempts
	markLife   = 365 * day
)

// admitPerson finds out who has signed in with this browser. Tokens do not count: what only a person may do, no program that
// holds one may.
func (s *Server) admitPerson(r *http.Request, needs need) (caller, error) {
	c, err := r.Cookie(tokenCookie)
	if err != nil || !strings.HasPrefix(c.Value, sessionStart) {
		return caller{}, errSignIn
	}
	p, err := s.store.CheckSession(r.Context(), c.Value)
	if errors.Is(err, souvenir.ErrUnauthenticated) {
		return caller{}, errSignIn
	}
	if err != nil {
		return caller{}, err
	}
	access := p.Access
	access.Through = through(r)
	signedIn := caller{p, s.store.As(access)}
	if needs == administrator && p.User.Role != souvenir.RoleAdmin {
		exchangeOf(r.Context()).caller = signedIn
		return signedIn, &failure{http.StatusForbidden, "this page is for admins; ask one of them"}
	}
	return signedIn, nil
}

// signIn begins a session of a user, whose credentials were checked since a time, in the browser that sent a request. The
// value of the session is always a new one: a cookie that somebody has put into the browser before is worth nothing. What
// was signed in there ends; what the same person made in it belongs to the new session.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request, user souvenir.User, since time.Time) error {
	return s.signInShown(w, r, user, souvenir.NewSession{Since: since})
}

// signInShown does so for a session that says more than that.
func (s *Server) signInShown(w http.ResponseWriter, r *http.Request, user souvenir.User, n souvenir.NewSession) error {
	before, err := s.admitPerson(r, person)
	if err != nil && !errors.Is(err, errSignIn) {
		return err
	}
	n.User, n.UserAgent, n.Replaces = user.ID, r.UserAgent(), before.SessionID
	added, err := s.store.AddSession(r.Context(), n)
	if err != nil {
		return err
	}
	if err := s.endCookie(r); err != nil {
		return err
	}
	p, err := s.store.CheckSession(r.Context(), added.Value)
	if err != nil {
		return err
	}
	e := exchangeOf(r.Context())
	e.caller, e.signedIn = caller{p, s.store.As(p.Access)}, added.Value
	s.setCookie(w, tokenCookie, added.Value, int(cookieLife/time.Second))
	s.setCookie(w, markCookie, s.attempts.mark(knownAccount(user.ID)), int(markLife/time.Second))
	s.setCookie(w, formCookie, "", 0)
	return nil
}

// endCookie ends the session that a browser's cookie has, if it has one.
func (s *Server) endCookie(r *http.Request) error {
	c, err := s.admitPerson(r, person)
	if errors.Is(err, errSignIn) {
		return nil
	}
	if err != nil {
		return err
	}
	return c.store.DeleteSessions(r.Context(), souvenir.DeleteSessions{Only: c.SessionID, KeepMade: true})
}
