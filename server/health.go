package server

import (
	"net/http"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// Health is the answer of GET /health.
type Health struct {
	Status   string   `json:"status"`  // ok, or degraded: readable, but nothing new is stored
	Service  string   `json:"service"` // souvenir
	Version  string   `json:"version"` // of the API
	Program  string   `json:"program,omitempty"`
	Problem  string   `json:"problem,omitempty"`  // in words; only when degraded
	Problems []string `json:"problems,omitempty"` // all, in the words of [Readiness]
}

// Liveness is the answer of GET /health/live.
type Liveness struct {
	Status string `json:"status"` // alive
}

// Readiness is the answer of GET /health/ready.
type Readiness struct {
	Status   string   `json:"status"`   // ready, or degraded: it answers, but something is wrong
	Problems []string `json:"problems"` // the kinds of souvenir.Problem; never nil
}

// worded are the problems that [Health] puts in words: those for which a supervisor should raise an alarm.
var worded = map[souvenir.ProblemKind]string{
	souvenir.ProblemDiskFull: "the disk is full: nothing new is stored until there is space; reading and deleting work",
	souvenir.ProblemDiskReadOnly: "the disk is read-only: nothing is stored or deleted until it can be written to; " +
		"reading works",
}

// health reports whether the service works: whether the store can be read. With another fault it is degraded, but
// still answers with success: a supervisor should not stop it for users who read and delete.
func (s *Server) health(_ http.ResponseWriter, r *http.Request, _ request.Caller) (any, error) {
	if _, err := s.store.Accounts().Me(r.Context()); err != nil {
		return nil, err
	}
	problems, err := s.problems(r)
	if err != nil {
		return nil, err
	}
	answer := Health{Status: "ok", Service: "souvenir", Version: APIVersion, Program: s.options.Version,
		Problems: problems}
	for _, kind := range problems {
		if words, is := worded[souvenir.ProblemKind(kind)]; is {
			answer.Status, answer.Problem = "degraded", words
		}
	}
	return answer, nil
}

// alive reports that the process answers. It checks nothing else: a restart helps neither with a full disk nor with an
// unreachable database.
func (s *Server) alive(http.ResponseWriter, *http.Request, request.Caller) (any, error) {
	return Liveness{"alive"}, nil
}

// ready reports whether the server can answer requests. Only a store that cannot be read takes it out of service.
func (s *Server) ready(_ http.ResponseWriter, r *http.Request, _ request.Caller) (any, error) {
	answer := Readiness{Status: "ready"}
	var err error
	answer.Problems, err = s.problems(r)
	switch {
	case err != nil:
		if r.Context().Err() != nil {
			return nil, err
		}
		s.log.WarnContext(r.Context(), "the store cannot be read", "error", err)
		return nil, &failure.Error{Status: http.StatusServiceUnavailable,
			Message: "database_unreachable: the store cannot be read; the server's log has the cause"}
	case len(answer.Problems) > 0:
		answer.Status = "degraded"
	}
	return answer, nil
}

// problems returns the kinds of problems, which are public; their messages are for the operator, on the listener for
// metrics and in the log.
func (s *Server) problems(r *http.Request) ([]string, error) {
	all, err := s.store.Upkeep().Problems(r.Context())
	if err != nil {
		return nil, err
	}
	kinds := []string{}
	for _, one := range all {
		kinds = append(kinds, string(one.Kind))
	}
	return kinds, nil
}

// describe answers with the OpenAPI document.
func (s *Server) describe(w http.ResponseWriter, r *http.Request, _ request.Caller) (any, error) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "public, max-age=300")
	http.ServeContent(w, r, "", time.Time{}, readerOf(s.document()))
	return nil, nil
}
