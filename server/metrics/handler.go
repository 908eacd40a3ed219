package metrics

import (
	"encoding/json"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/netaddr"
)

// State is the answer of /problems on the listener for metrics.
type State struct {
	Up       bool               `json:"up"`              // the store can be read
	Error    string             `json:"error,omitempty"` // why not
	Problems []souvenir.Problem `json:"problems"`        // never nil
}

// Handler serves GET /metrics, and GET /problems: current problems, with the messages that [server.Server] keeps from
// the public. Neither needs a credential, so it belongs on a listener that only the operator reaches.
func (m *Metrics) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
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

// own refuses requests that a page of another site makes a browser send under the site's own name for this machine (DNS
// rebinding). Over a network, Prometheus may use any name.
func own(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		if ok && netaddr.IsLoopback(local.String()) && !netaddr.IsLoopback(r.Host) {
			http.Error(w, "the host of the request is unknown; use 127.0.0.1 or localhost", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Names returns the names of all metrics, in no order; those of histograms without their suffixes.
func (m *Metrics) Names() ([]string, error) {
	families, err := m.registry.Gather()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range families {
		names = append(names, f.GetName())
	}
	return names, nil
}
