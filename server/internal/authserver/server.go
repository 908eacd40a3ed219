// Package authserver is the OAuth 2.1 authorization server: metadata, registration of clients and the documents in
// which they describe themselves, the page on which a person lets an application in, and the token endpoint.
package authserver

import (
	"log/slog"
	"net/http"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/ratelimit"
	"github.com/souvenir-ai/souvenir/server/internal/signin"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// Options are what a Server needs.
type Options struct {
	Site   *web.Site
	SignIn *signin.Service
	Store  *souvenir.Store // the operator's
	Logger *slog.Logger

	// ClientDocuments fetches the documents of clients that are known by a URL. Nil means a client that connects to public
	// addresses only.
	ClientDocuments *http.Client

	// ReadJSON reads the body of a request, within the memory that all requests share. Strict refuses unknown members.
	ReadJSON func(w http.ResponseWriter, r *http.Request, v any, strict bool) error

	// Answer writes a value as JSON.
	Answer func(w http.ResponseWriter, r *http.Request, status int, value any)
}

// Server lets applications in. Make one with [New].
type Server struct {
	site     *web.Site
	signin   *signin.Service
	store    *souvenir.Store
	log      *slog.Logger
	readJSON func(w http.ResponseWriter, r *http.Request, v any, strict bool) error
	answer   func(w http.ResponseWriter, r *http.Request, status int, value any)

	registrations *ratelimit.Limiter // of clients, by address
	documents     *clientDocuments   // of clients that are known by a URL
	questions     questions          // pages of consent that wait for an answer
}

// New makes an authorization server.
func New(o Options) *Server {
	return &Server{
		site: o.Site, signin: o.SignIn, store: o.Store, log: o.Logger, readJSON: o.ReadJSON, answer: o.Answer,
		registrations: ratelimit.New(registrationBurst, registrationInterval),
		documents:     newClientDocuments(o.ClientDocuments),
	}
}
