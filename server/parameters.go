package server

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// queries are the allowed query parameters of the routes that refuse others, by "METHOD /pattern". OAuth's
// endpoints ignore unknown parameters (RFC 6749, section 3.1), and so do pages, whose addresses people edit.
func queries(routes []dialectRoute) map[string][]string {
	described := operations()
	known := map[string][]string{}
	for _, rt := range routes {
		if rt.Method != http.MethodGet || rt.dialect != request.API || !strings.HasPrefix(rt.Pattern, "/api/") {
			continue
		}
		key := rt.Method + " " + rt.Pattern
		names := []string{}
		for _, p := range described[key].parameters {
			names = append(names, p.name)
		}
		known[key] = names
	}
	return known
}

// checkQuery refuses unknown query parameters: a misspelt one would be ignored, and the answer would be wrong. It also
// refuses a repeated one, since all values but one would be ignored. The parameter that carries a credential is allowed
// on every route.
func (s *Server) checkQuery(r *http.Request, rt dialectRoute) error {
	known, strict := s.queries[rt.Method+" "+rt.Pattern]
	if !strict || r.URL.RawQuery == "" {
		return nil
	}
	given, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return failure.Invalid("query", "the query cannot be read: "+err.Error())
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if n := len(given[name]); n > 1 {
			return failure.Invalid(name, fmt.Sprintf("parameter %s is given %d times; give it once", failure.Quote(name), n))
		}
		if name == tokenParameter || slices.Contains(known, name) {
			continue
		}
		if len(known) == 0 {
			return failure.Invalid(name, "parameter "+failure.Quote(name)+" is not known; this endpoint takes none")
		}
		return failure.Invalid(name, "parameter "+failure.Quote(name)+" is not known; expected "+strings.Join(known, ", "))
	}
	return nil
}
