// Package authserver is the OAuth 2.1 authorization server: metadata, registration of clients and client id
// metadata documents, the consent page, and the token endpoint.
package authserver

import (
	"log/slog"
	"net/http"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/shared"
	"github.com/souvenir-ai/souvenir/server/internal/signin"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// Options are the dependencies of a Server.
type Options struct {
	Site   *web.Site
	SignIn *signin.Service
	Store  *souvenir.Store // the operator's
	Logger *slog.Logger

	// ClientDocuments fetches the documents of clients that are identified by a URL. Nil means a client that
	// connects to public addresses only.
	ClientDocuments *http.Client

	// ReadJSON reads the body of a request, within the memory shared by all requests.
	ReadJSON func(w http.ResponseWriter, r *http.Request, v any) error

	// Answer writes a value as JSON.
	Answer func(w http.ResponseWriter, r *http.Request, status int, value any)
}

// Server authorizes applications. Create one with [New].
type Server struct {
	site     *web.Site
	signin   *signin.Service
	store    *souvenir.Store
	log      *slog.Logger
	readJSON func(w http.ResponseWriter, r *http.Request, v any) error
	answer   func(w http.ResponseWriter, r *http.Request, status int, value any)

	registrations *shared.Limiter  // of clients, by address
	documents     *clientDocuments // of clients that are identified by a URL
	questions     *questions       // open consent questions
}

// New creates an authorization server.
func New(o Options) *Server {
	return &Server{
		site: o.Site, signin: o.SignIn, store: o.Store, log: o.Logger, readJSON: o.ReadJSON, answer: o.Answer,
		registrations: shared.NewLimiter(o.Store, o.Logger, "registration", registrationBurst, registrationInterval),
		documents:     newClientDocuments(o.ClientDocuments),
		questions:     newQuestions(o.Store, o.Logger),
	}
}
