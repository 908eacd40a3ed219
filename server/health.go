package server

import (
	"errors"
	"net/http"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// Health is the answer of GET /health.
type Health struct {
	Status  string `json:"status"`  // ok, or degraded: readable, but something else is wrong
	Service string `json:"service"` // souvenir
	Version string `json:"version"` // of the API
	Program string `json:"program,omitempty"`
	Problem string `json:"problem,omitempty"` // the fault; only when degraded
}

// health reports whether the service works: whether the store can be read. With another fault it is degraded, but
// still answers with success: a supervisor should not stop it for users who read and delete.
func (s *Server) health(_ http.ResponseWriter, r *http.Request, _ request.Caller) (any, error) {
	if _, err := s.store.Accounts().Me(r.Context()); err != nil {
		return nil, err
	}
	answer := Health{Status: "ok", Service: "souvenir", Version: APIVersion, Program: s.options.Version}
	switch err := s.store.Upkeep().Health(r.Context()); {
	case errors.Is(err, souvenir.ErrFull): // without the path, which only the operator may see
		answer.Status, answer.Problem = "degraded",
			"the disk is full: nothing new is stored until there is space; reading and deleting work"
	case err != nil:
		return nil, err
	}
	return answer, nil
}

// describe answers with the OpenAPI document.
func (s *Server) describe(w http.ResponseWriter, r *http.Request, _ request.Caller) (any, error) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "public, max-age=300")
	http.ServeContent(w, r, "", time.Time{}, readerOf(s.document()))
	return nil, nil
}
