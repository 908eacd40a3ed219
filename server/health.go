package server

import (
	"net/http"
	"time"
)

// Health is the answer of GET /health.
type Health struct {
	Status  string `json:"status"`  // ok
	Service string `json:"service"` // souvenir
	Version string `json:"version"` // of the interface
	Program string `json:"program,omitempty"`
}

// health says that the service works: the store can be read.
func (s *Server) health(_ http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	if _, err := s.store.Me(r.Context()); err != nil {
		return nil, err
	}
	return Health{Status: "ok", Service: "souvenir", Version: APIVersion, Program: s.options.Version}, nil
}

// describe answers with the OpenAPI document.
func (s *Server) describe(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "public, max-age=300")
	http.ServeContent(w, r, "", time.Time{}, readerOf(s.document))
	return nil, nil
}
