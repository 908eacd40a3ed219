package server

import (
	"errors"
	"net/http"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// ClientList is the answer of GET /oauth/admin/clients.
type ClientList struct {
	Clients []souvenir.Client `json:"clients"` // deactivated ones included
	Count   int               `json:"count"`
}

func (s *Server) listClients(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	all, err := c.Store.Accounts().Clients(r.Context())
	return ClientList{all, len(all)}, err
}

// newClient is the body of POST /oauth/admin/clients.
type newClient struct {
	ID           string   `json:"client_id,omitempty"`
	Secret       string   `json:"client_secret,omitempty"`
	Name         string   `json:"name,omitempty"`
	RedirectURIs []string `json:"redirect_uris"`
	AuthMethod   string   `json:"token_endpoint_auth_method,omitempty"`
}

// addClient creates a client. It returns the secret this once, whether given or generated.
func (s *Server) addClient(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	var given newClient
	if err := s.readJSON(w, r, &given); err != nil {
		return nil, err
	}
	if err := s.signin.CheckConfirmed(c); err != nil {
		return nil, err
	}
	made, err := c.Store.Accounts().AddClient(r.Context(),
		souvenir.NewClient{ID: given.ID, Secret: given.Secret, Name: given.Name, RedirectURIs: given.RedirectURIs,
			AuthMethod: given.AuthMethod, TokenID: c.TokenID, GrantID: c.GrantID})
	return made, sinceEnded(asName(err))
}

// asName gives an error about the name of a client the name that the body has for it.
func asName(err error) error {
	var known *souvenir.Error
	if !errors.As(err, &known) || known.Argument != "client_name" {
		return err
	}
	return &souvenir.Error{Kind: known.Kind, Argument: "name", Err: known.Err,
		Message: "name" + strings.TrimPrefix(known.Message, known.Argument)}
}

func (s *Server) regenerateSecret(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	if err := s.signin.CheckConfirmed(c); err != nil {
		return nil, err
	}
	return c.Store.Accounts().RegenerateClientSecret(r.Context(), r.PathValue("client_id"))
}

func (s *Server) deactivateClient(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	if err := c.Store.Accounts().DeactivateClient(r.Context(), r.PathValue("client_id")); err != nil {
		return nil, err
	}
	return Done{true, "the client is deactivated, and all its access is revoked"}, nil
}
