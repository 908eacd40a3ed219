package server

import (
	"net/http"
	"net/url"
)

// signInAnew is where somebody has to go first who has not shown recently who they are, to come back to a page; empty: nowhere. It is
// for those who take everybody's things away, or bring such in: a browser that was left open is no way to them.
func (s *Server) signInAnew(_ *http.Request, c caller, path string) (string, error) {
	if s.isConfirmed(c) {
		return "", nil
	}
	return s.path("/login") + "?" + askedAgain + "=1&next=" + url.QueryEscape(path), nil
}
