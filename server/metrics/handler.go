package metrics

import (
	"encoding/json"
	"net"
	"net/http"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/netaddr"
)

// State is the answer of /problems on the listener for metrics.
type State struct {
	Up       bool               `json:"up"`              // the store can be read
	Error    string             `json:"error,omitempty"` // why not
	Problems []souvenir.Problem `json:"problems"`        // never nil
}

// Handler serves GET /metrics, and GET /problems: what is wrong, with the messages that [server.Server] keeps from the
// public. Neither needs a credential, so it belongs on a listener that only the operator reaches.
func (m *Metrics) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(m.page().Bytes()) // the client is gone
	})
	mux.HandleFunc("GET /problems", func(w http.ResponseWriter, r *http.Request) {
		state := State{Up: true, Problems: []souvenir.Problem{}}
		status := http.StatusOK
		if all, err := m.store.problems(r.Context()); err != nil {
			state.Up, state.Error, status = false, err.Error(), http.StatusServiceUnavailable
		} else {
			state.Problems = all
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(state) // the client is gone
	})
	return own(mux)
}

// own refuses what a page of another site has a browser ask under the site's own name for this machine (DNS rebinding).
// Over a network Prometheus may use any name.
func own(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		if ok && netaddr.IsLoopback(local.String()) && !netaddr.IsLoopback(r.Host) {
			http.Error(w, "the host of the request is not known here; ask for 127.0.0.1 or localhost", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// page is what /metrics answers now.
func (m *Metrics) page() *page {
	p := new(page)
	p.about("souvenir_build_info", gauge, "The program; always 1.")
	p.line("souvenir_build_info", labelled([]string{"go", "revision", "version"}, m.build), 1)
	m.store.write(p)
	for _, one := range m.all {
		p.metric(one)
	}
	p.process(m.started)
	return p
}

// Names returns the names of all metrics, in no order; those of histograms without their suffixes.
func (m *Metrics) Names() ([]string, error) {
	return m.page().names, nil
}
