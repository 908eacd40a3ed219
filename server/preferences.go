package server

import (
	"context"
	"net/http"

	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// preferences answers with the user's preferences, an object of any form.
func (s *Server) preferences(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	return c.Store.GetPreferences(r.Context())
}

// setPreferences replaces the user's preferences.
func (s *Server) setPreferences(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	return s.changePreferences(w, r, c.Store.SetPreferences)
}

// updatePreferences merges an object into the user's preferences (RFC 7396).
func (s *Server) updatePreferences(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	return s.changePreferences(w, r, c.Store.UpdatePreferences)
}

func (s *Server) changePreferences(w http.ResponseWriter, r *http.Request,
	change func(context.Context, map[string]any) (map[string]any, error)) (any, error) {
	var given map[string]any
	if err := s.readJSON(w, r, &given); err != nil {
		return nil, err
	}
	return change(r.Context(), given)
}
