package server

import (
	"net/http"

	"github.com/souvenir-ai/souvenir"
)

// ClientList is the answer of GET /oauth/admin/clients.
type ClientList struct {
	Clients []souvenir.Client `json:"clients"` // deactivated ones included
	Count   int               `json:"count"`
}

// clientRoutes is the table of the OAuth clients that users make for themselves. Like MCP tokens they are a user's own, and need no
// admin: nobody is let in by one who has not consented.
func (s *Server) clientRoutes() []route {
	return []route{
		get("/oauth/admin/clients", memoryRead, s.listClients),
		post("/oauth/admin/clients", account, s.addClient),
		post("/oauth/admin/clients/{client_id}/regenerate-secret", account, s.regenerateSecret),
		del("/oauth/admin/clients/{client_id}", account, s.deactivateClient),
	}
}

func (s *Server) listClients(_ http.ResponseWriter, r *http.Request, c caller) (any, error) {
	all, err := c.store.Clients(r.Context())
	return ClientList{all, len(all)}, err
}

// newClient is the body of POST /oauth/admin/clients.
type newClient struct {
	ID           string   `json:"client_id"`
	Secret       string   `json:"client_secret"`
	Name         string   `json:"name"`
	RedirectURIs []string `json:"redirect_uris"`
	AuthMethod   string   `json:"token_endpoint_auth_method"`
}

// addClient makes a client. Its secret is told this once, whether it was given or made here.
func (s *Server) addClient(w http.ResponseWriter, r *http.Request, c caller) (any, error) {
	var given newClient
	if err := s.readJSON(w, r, &given, false); err != nil {
		return nil, err
	}
	if err := s.checkConfirmed(c); err != nil {
		return nil, err
	}
	made, err := c.store.AddClient(r.Context(), souvenir.NewClient{ID: given.ID, Secret: given.Secret, Name: given.Name, RedirectURIs: given.RedirectURIs,
		AuthMethod: given.AuthMethod, TokenID: c.TokenID, GrantID: c.GrantID})
	return made, sinceEnded(err)
}

func (s *Server) regenerateSecret(_ http.ResponseWriter, r *http.Request, c caller) (any, error) {
	if err := s.checkConfirmed(c); err != nil {
		return nil, err
	}
	return c.store.RegenerateClientSecret(r.Context(), r.PathValue("client_id"))
}

func (s *Server) deactivateClient(_ http.ResponseWriter, r *http.Request, c caller) (any, error) {
	if err := c.store.DeactivateClient(r.Context(), r.PathValue("client_id")); err != nil {
		return nil, err
	}
	return Done{true, "the client is deactivated, and what it was allowed has ended"}, nil
}
