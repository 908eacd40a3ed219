package signin

import (
	"net/http"
	"net/url"

	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// SignInAgain returns where a user without a recent sign-in must go first, to come back to a page; empty: not
// needed. It protects exports and imports of all users' data: an unattended browser must not be enough for them.
func (s *Service) SignInAgain(_ *http.Request, c request.Caller, path string) (string, error) {
	if s.isConfirmed(c) {
		return "", nil
	}
	return s.site.Path("/login") + "?" + askedAgain + "=1&next=" + url.QueryEscape(path), nil
}
