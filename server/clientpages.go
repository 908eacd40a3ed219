package server

import "github.com/souvenir-ai/souvenir/server/internal/route"

// clientPageRoutes are what connects AI clients: tokens, applications and OAuth clients.
func (s *Server) clientPageRoutes() []route.Route {
	return []route.Route{
		route.Get("/connect", route.Person, s.showConnect),
		route.Post("/connect", route.Person, s.signin.Confirmed("/connect", s.connectClient)),

		route.Get("/tokens", route.Person, s.showTokens),
		route.Post("/tokens", route.Person, s.signin.Confirmed("/tokens", s.makeToken)),
		route.Post("/tokens/end", route.Person, s.endToken),

		route.Get("/connected", route.Person, s.showConnected),
		route.Post("/connected/end", route.Person, s.endConnected),

		route.Get("/clients", route.Person, s.showClients),
		route.Post("/clients", route.Person, s.signin.Confirmed("/clients", s.makeClient)),
		route.Post("/clients/change", route.Person, s.changeClient),
	}
}
