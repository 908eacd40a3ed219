package authserver

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

const (
	maxRegistration = 64 << 10 // bytes

	// How many clients may register from one address: a burst, then one per interval. Some clients register twice
	// per connection, and many people may share an address.
	registrationBurst    = 100
	registrationInterval = 6 * time.Second
)

// registerClient registers a new client (RFC 7591). Registration grants no access: a user has to authorize the
// client, and clients without a grant are deleted after a day.
func (s *Server) registerClient(w http.ResponseWriter, r *http.Request, _ request.Caller) (any, error) {
	w.Header().Set("Pragma", "no-cache")
	wait, err := s.registrations.Allow(r.Context(), request.Of(r.Context()).Address)
	if err != nil {
		return nil, err
	}
	if wait > 0 {
		return nil, tooMany(w, wait, "clients have registered from this address")
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxRegistration)
	var registration souvenir.ClientRegistration
	if err := s.readJSON(w, r, &registration); err != nil {
		return nil, asMetadataError(err)
	}
	registered, err := s.store.Accounts().RegisterClient(r.Context(), registration)
	if err != nil {
		return nil, err
	}
	s.answer(w, r, http.StatusCreated, registered)
	return nil, nil
}

// asMetadataError adds the code of RFC 7591 to an error in a body.
func asMetadataError(err error) error {
	var known *souvenir.Error
	var clientError *souvenir.OAuthError
	if errors.As(err, &known) && !errors.As(err, &clientError) {
		return oauthError(souvenir.OAuthInvalidClientMetadata, known.Argument, known.Message)
	}
	return err
}

// tooMany is the error for an exceeded rate limit.
func tooMany(w http.ResponseWriter, wait time.Duration, what string) error {
	seconds := strconv.Itoa(int((wait + time.Second - 1) / time.Second))
	w.Header().Set("Retry-After", seconds)
	return &failure.Error{Status: http.StatusTooManyRequests, Message: "too many " + what + "; try again in " + seconds +
		" seconds"}
}
