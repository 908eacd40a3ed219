// Package clients serves the pages on which AI clients are connected: instructions, tokens, authorized
// applications, and OAuth clients.
package clients

import (
	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/route"
	"github.com/souvenir-ai/souvenir/server/internal/signin"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// Options are the dependencies of a Service.
type Options struct {
	Site       *web.Site
	SignIn     *signin.Service
	Store      *souvenir.Store // the operator's
	NoActivity bool            // calls are not recorded

	// Snippets returns how to connect clients, with a token or without (""). Nil: the pages show only the address
	// and the token.
	Snippets func(address, token string) []web.Snippet
}

// Service serves the pages of clients. Create one with [New].
type Service struct {
	site       *web.Site
	signin     *signin.Service
	store      *souvenir.Store
	noActivity bool
	snippets   func(address, token string) []web.Snippet
}

// New creates a Service.
func New(o Options) *Service {
	return &Service{site: o.Site, signin: o.SignIn, store: o.Store, noActivity: o.NoActivity, snippets: o.Snippets}
}

// Routes are the routes for connecting AI clients: tokens, applications and OAuth clients.
func (s *Service) Routes() []route.Route {
	return []route.Route{
		route.Page("/connect", route.Person, s.showConnect),
		route.Post("/connect", route.Person, s.signin.Confirmed("/connect", s.connectClient)),

		route.Page("/tokens", route.Person, s.showTokens),
		route.Post("/tokens", route.Person, s.signin.Confirmed("/tokens", s.createToken)),
		route.Post("/tokens/end", route.Person, s.revokeToken),
		route.Post("/tokens/pause", route.Person, s.pauseToken),

		route.Page("/connected", route.Person, s.showConnected),
		route.Post("/connected/end", route.Person, s.endConnected),
		route.Post("/connected/pause", route.Person, s.pauseConnected),

		route.Page("/clients", route.Person, s.showClients),
		route.Post("/clients", route.Person, s.signin.Confirmed("/clients", s.addClient)),
		route.Post("/clients/change", route.Person, s.changeClient),
	}
}
