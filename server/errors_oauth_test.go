package server

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// Each error has the status and code of RFC 6749 and related ones, whatever its kind is elsewhere.
func TestStatusesOfOAuthErrors(t *testing.T) {
	oauth := func(kind souvenir.Kind, code string) error {
		return &souvenir.Error{Kind: kind, Message: "why", Err: &souvenir.OAuthError{Code: code, Description: "why"}}
	}
	for name, c := range map[string]struct {
		err    error
		status int
		code   string
	}{
		"an unknown client": {oauth(souvenir.KindNotFound, souvenir.OAuthInvalidClient), 401, "invalid_client"},
		"a bad grant":       {oauth(souvenir.KindInvalid, souvenir.OAuthInvalidGrant), 400, "invalid_grant"},
		"one that may not":  {oauth(souvenir.KindForbidden, souvenir.OAuthAccessDenied), 400, "access_denied"},
		"no room":           {oauth(souvenir.KindTooLarge, souvenir.OAuthUnavailable), 503, "temporarily_unavailable"},
		"too large": {oauth(souvenir.KindTooLarge, souvenir.OAuthInvalidClientMetadata), 400,
			"invalid_client_metadata"},
		"too often":            {&failure.Error{Status: 429, Message: "why"}, 429, "temporarily_unavailable"},
		"a wrong method":       {&failure.Error{Status: 405, Message: "why"}, 405, "invalid_request"},
		"without a code":       {failure.Invalid("x", "why"), 400, "invalid_request"},
		"none of the caller's": {errors.New("secret"), 500, "server_error"},
		"damage":               {oauth(souvenir.KindCorrupt, souvenir.OAuthInvalidGrant), 500, "server_error"},
		"a read-only store":    {&souvenir.Error{Kind: souvenir.KindReadOnly, Message: "why"}, 403, "invalid_request"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/oauth/token", nil)
			r = r.WithContext(request.With(r.Context(), &request.State{Dialect: request.OAuth}))
			w := httptest.NewRecorder()
			roomsOnly("").fail(w, r, c.err)
			if w.Code != c.status || !strings.Contains(w.Body.String(), `"error":"`+c.code+`"`) ||
				strings.Contains(w.Body.String(), "secret") || w.Header().Get("WWW-Authenticate") != "" {
				t.Errorf("got %d %s %v; want %d, the code %s, and nothing secret",
					w.Code, w.Body.String(), w.Header(), c.status, c.code)
			}
		})
	}
}
