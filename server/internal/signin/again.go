package signin

import (
	"net/http"
	"net/url"

	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// SignInAgain is where somebody has to go first who has not shown recently who they are, to come back to a page; empty:
// nowhere. It is for those who take everybody's things away, or bring such in: a browser that was left open is no way
// to them.
func (s *Service) SignInAgain(_ *http.Request, c request.Caller, path string) (string, error) {
	if s.isConfirmed(c) {
		return "", nil
	}
	return s.site.Path("/login") + "?" + askedAgain + "=1&next=" + url.QueryEscape(path), nil
}
