package server

import (
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// recently is how long ago somebody may have signed in who takes everybody's things away, or brings such in: a browser that was left
// open is no way to them.
const recently = 15 * time.Minute

// signInAnew is where somebody has to go first who has not signed in recently, to come back to a page; empty: nowhere.
func (s *Server) signInAnew(r *http.Request, c caller, path string) (string, error) {
	sessions, err := c.store.Sessions(r.Context())
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(sessions, func(session souvenir.Session) bool { return session.ID == c.SessionID })
	if i >= 0 && time.Since(sessions[i].CreatedAt) < s.recently {
		return "", nil
	}
	return s.path("/login") + "?" + askedAgain + "=1&next=" + url.QueryEscape(path), nil
}
