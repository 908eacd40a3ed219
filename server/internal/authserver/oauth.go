package authserver

import (
	"errors"
	"net/http"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/route"
)

// The grant types of the token endpoint.
const (
	GrantCode    = "authorization_code"
	GrantRefresh = "refresh_token"
)

// Routes is the table of the OAuth endpoints for programs. PageRoutes has those for people.
func (s *Server) Routes() []route.Route {
	return append(s.MetadataRoutes(), []route.Route{
		route.Get("/oauth/jwks", route.Public, s.signingKeys),
		route.Post("/oauth/token", route.Public, s.token),
		route.Post("/oauth/revoke", route.Public, s.revoke),
		route.Post("/oauth/register", route.Public, s.registerClient),

		// The paths that clients older than RFC 8414 guess.
		route.Post("/token", route.Public, s.token),
		route.Post("/register", route.Public, s.registerClient),
	}...)
}

// oauthError is an error with a code for an OAuth client.
func oauthError(code, argument, message string) error {
	return &souvenir.Error{Kind: souvenir.KindInvalid, Argument: argument, Message: message,
		Err: &souvenir.OAuthError{Code: code, Description: fault.OAuthDescription(message)}}
}

// Fail writes an error as RFC 6749, section 5.2, requires: as JSON, with 400, except for failed client
// authentication (401), and for errors that the client did not cause.
func (s *Server) Fail(w http.ResponseWriter, r *http.Request, status int, message string, err error) {
	body := &souvenir.OAuthError{Code: souvenir.OAuthInvalidRequest, Description: fault.OAuthDescription(message)}
	var known *souvenir.OAuthError
	switch {
	case status == http.StatusInternalServerError:
		body.Code = "server_error"
	case status == http.StatusTooManyRequests:
		body.Code = souvenir.OAuthUnavailable
	case !errors.As(err, &known):
	case known.Code == souvenir.OAuthInvalidClient:
		body, status = known, http.StatusUnauthorized
		if usesBasic(r) { // and only then: with a challenge, some libraries do not read the body
			w.Header().Set("WWW-Authenticate", `Basic realm="souvenir", charset="UTF-8"`)
		}
	case known.Code == souvenir.OAuthUnavailable:
		body, status = known, http.StatusServiceUnavailable
	default:
		body, status = known, http.StatusBadRequest
	}
	s.answer(w, r, status, body)
}

// usesBasic reports whether a request has client credentials in its header.
func usesBasic(r *http.Request) bool {
	scheme, _, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Basic")
}

// KeySet is the answer of GET /oauth/jwks.
type KeySet struct {
	Keys []any `json:"keys"`
}

// signingKeys returns the public keys of access tokens, as a JSON Web Key Set (RFC 7517).
func (s *Server) signingKeys(_ http.ResponseWriter, r *http.Request, _ request.Caller) (any, error) {
	keys, err := s.store.Accounts().SigningKeys(r.Context())
	if err != nil {
		return nil, err
	}
	set := KeySet{Keys: []any{}}
	for _, key := range keys {
		set.Keys = append(set.Keys, key)
	}
	return set, nil
}
