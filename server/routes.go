package server

import (
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// need is what a request must have to be let in: nothing, a credential, or a credential with a scope.
type need string

const (
	nothing     need = "nothing"
	credential  need = "credential"
	memoryRead       = need(souvenir.ScopeMemoryRead)
	memoryWrite      = need(souvenir.ScopeMemoryWrite)
	filesRead        = need(souvenir.ScopeFilesRead)
	filesWrite       = need(souvenir.ScopeFilesWrite)
)

// scope is the scope that is needed; empty for none.
func (n need) scope() souvenir.Scope {
	if n == nothing || n == credential {
		return ""
	}
	return souvenir.Scope(n)
}

// handler answers a request: with a value that becomes the JSON of the answer, with nil when it has written the answer
// itself, or with an error, which fail turns into one.
type handler func(s *Server, w http.ResponseWriter, r *http.Request, c caller) (any, error)

// route is a line of the table.
type route struct {
	method, pattern string
	needs           need
	handle          handler
}

// routes is the table of everything that is served. What a credential sees and may change beyond its scopes, the store
// decides: each handler works through the view that the credential reaches.
func routes() []route {
	return []route{
		{"GET", "/health", nothing, (*Server).health},
		{"GET", "/openapi.json", nothing, (*Server).describe},

		{"GET", "/tools", nothing, (*Server).listTools},
		{"POST", "/tools/call", credential, (*Server).callTool}, // each tool knows its scopes

		{"GET", "/api/files", filesRead, (*Server).listFiles},
		{"POST", "/api/files/upload", filesWrite, (*Server).uploadFile},
		{"GET", "/api/files/{id}", filesRead, (*Server).downloadFile},
		{"DELETE", "/api/files/{id}", filesWrite, (*Server).deleteFile},
		{"PUT", "/api/files/{id}/metadata", filesWrite, (*Server).updateFile},

		{"GET", "/api/projects", memoryRead, (*Server).listProjects},
		{"GET", "/api/projects/{id}", memoryRead, (*Server).getProject},
		{"GET", "/api/projects/{id}/members", memoryRead, (*Server).listMembers},
		{"POST", "/api/projects/{id}/members", memoryWrite, (*Server).addMember},
		{"PATCH", "/api/projects/{id}/members/{user}", memoryWrite, (*Server).updateMember},
		{"DELETE", "/api/projects/{id}/members/{user}", memoryWrite, (*Server).deleteMember},

		{"GET", "/api/mcp-tokens", credential, (*Server).listTokens},
		{"POST", "/api/mcp-tokens", memoryWrite, (*Server).addToken},
		{"DELETE", "/api/mcp-tokens/{id}", memoryWrite, (*Server).deleteToken},

		{"GET", "/api/owner-ids/me", memoryRead, (*Server).ownerIDs},

		{"GET", "/api/user-preferences", memoryRead, (*Server).preferences},
		{"PUT", "/api/user-preferences", memoryWrite, (*Server).setPreferences},
		{"PATCH", "/api/user-preferences", memoryWrite, (*Server).updatePreferences},
	}
}

// mount brings the table into the mux: one entry for each path, which knows the methods there.
func (s *Server) mount() {
	paths := map[string]methods{}
	for _, rt := range routes() {
		if paths[rt.pattern] == nil {
			paths[rt.pattern] = methods{}
		}
		paths[rt.pattern][rt.method] = rt
	}
	for pattern, m := range paths {
		s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.dispatch(w, r, m) })
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { s.fail(w, r, unknownPath(r)) })
}

// methods are the routes of one path.
type methods map[string]route

// allowed lists the methods, as the header Allow does.
func (m methods) allowed() string {
	all := []string{http.MethodOptions}
	for method := range m {
		all = append(all, method)
		if method == http.MethodGet {
			all = append(all, http.MethodHead)
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// dispatch answers a request to a path that there is.
func (s *Server) dispatch(w http.ResponseWriter, r *http.Request, m methods) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet // net/http leaves the body out
	}
	rt, known := m[method]
	switch {
	case r.Method == http.MethodOptions:
		allowCrossOrigin(w.Header(), m.allowed())
		w.Header().Set("Allow", m.allowed())
		w.WriteHeader(http.StatusNoContent)
		return
	case !known:
		w.Header().Set("Allow", m.allowed())
		s.fail(w, r, &failure{http.StatusMethodNotAllowed, "method " + quoted(r.Method) + " is not allowed here; allowed are " + m.allowed()})
		return
	}
	exchangeOf(r.Context()).route = rt.method + " " + rt.pattern
	var c caller
	if rt.needs != nothing {
		var err error
		if c, err = s.admit(r, rt.needs); err != nil {
			s.fail(w, r, err)
			return
		}
		exchangeOf(r.Context()).caller = c
	}
	answer, err := rt.handle(s, w, r, c)
	switch {
	case err != nil:
		s.fail(w, r, err)
	case answer != nil:
		s.answer(w, r, http.StatusOK, answer)
	}
}

// clean reports whether a path is in its shortest form. Others the mux would redirect, which a handler that is mounted
// under a prefix gets wrong, and which clients follow without their body.
func clean(r *http.Request) bool {
	escaped := r.URL.EscapedPath()
	return escaped == "/" || strings.HasPrefix(escaped, "/") && path.Clean(escaped) == escaped
}

func unknownPath(r *http.Request) error {
	return &failure{http.StatusNotFound, "path " + quoted(r.URL.Path) + " is not served here; /openapi.json lists what is"}
}

// allowCrossOrigin answers a browser that asks whether a page of another origin may send a request. It may: credentials
// are told in headers, which such a page has to know, and the cookie is never sent with "*".
func allowCrossOrigin(h http.Header, methods string) {
	h.Set("Access-Control-Allow-Methods", methods)
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, X-MCP-Token, X-Request-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name, "+
		"Mcp-Session-Id, Last-Event-ID, Range, If-Range, If-Match, If-None-Match, If-Modified-Since, If-Unmodified-Since")
	h.Set("Access-Control-Max-Age", "7200")
}
