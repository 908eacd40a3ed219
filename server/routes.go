package server

import (
	"net/http"
	"path"
	"slices"
	"strings"
)

// spokenRoute is a route with the dialect of its table.
type spokenRoute struct {
	route
	speaks dialect
}

// routes is everything that is served.
func (s *Server) routes() []spokenRoute {
	var all []spokenRoute
	add := func(speaks dialect, table []route) {
		for _, rt := range table {
			all = append(all, spokenRoute{rt, speaks})
		}
	}
	add(speaksInterface, s.interfaceRoutes())
	if s.options.PublicURL != "" { // without it nobody can be told where to go
		add(speaksOAuth, s.oauthRoutes())
		add(speaksInterface, s.clientRoutes())
		add(speaksPages, s.siteRoutes())
		add(speaksPages, s.signInRoutes())
		add(speaksPages, s.consentRoutes())
		for _, table := range s.dashboardRoutes() {
			add(speaksPages, table)
		}
	}
	return all
}

// interfaceRoutes is the table of the interface. What a credential sees and may change beyond its scopes, the store
// decides: each handler works through the view that the credential reaches.
func (s *Server) interfaceRoutes() []route {
	return append(append(s.sharingRoutes(), s.trashRoutes()...), []route{
		get("/health", nothing, s.health),
		get("/openapi.json", nothing, s.describe),

		get("/tools", nothing, s.listTools),
		post("/tools/call", credential, s.callTool), // each tool knows its scopes

		post("/mcp", credential, s.serveMCP),
		get("/mcp", credential, s.noMCPStream),
		del("/mcp", credential, s.noMCPStream),

		get("/api/files", filesRead, s.listFiles),
		post("/api/files/upload", filesWrite, s.uploadFile),
		get("/api/files/{id}", filesRead, s.downloadFile),
		del("/api/files/{id}", filesWrite, s.deleteFile),
		put("/api/files/{id}/metadata", filesWrite, s.updateFile),

		get("/api/projects", memoryRead, s.listProjects),
		get("/api/projects/{id}", memoryRead, s.getProject),
		get("/api/projects/{id}/members", memoryRead, s.listMembers),

		get("/api/mcp-tokens", memoryRead, s.listTokens),
		post("/api/mcp-tokens", account, s.addToken),
		del("/api/mcp-tokens/{id}", account, s.deleteToken),

		get("/api/owner-ids/me", memoryRead, s.ownerIDs),

		get(activityPath, memoryRead, s.listActivity),

		get("/api/user-preferences", memoryRead, s.preferences),
		put("/api/user-preferences", memoryWrite, s.setPreferences),
		patch("/api/user-preferences", memoryWrite, s.updatePreferences),
	}...)
}

// mount brings the table into the mux: one entry for each path, which knows the methods there.
func (s *Server) mount() {
	paths := map[string]methods{}
	routes := s.routes()
	s.queries = queries(routes)
	for _, rt := range routes {
		if paths[rt.pattern] == nil {
			paths[rt.pattern] = methods{}
		}
		paths[rt.pattern][rt.method] = rt
	}
	if s.base() != "" {
		for _, rt := range s.metadataRoutes() {
			paths[s.atHostRoot(rt.pattern)] = paths[rt.pattern] // where the handler is mounted at /.well-known/, too
		}
	}
	for pattern, m := range paths {
		s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.dispatch(w, r, m) })
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if s.options.PublicURL != "" && r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") { // a person, with a browser
			exchangeOf(r.Context()).speaks = speaksPages
			setPageHeaders(w.Header())
		}
		s.fail(w, r, unknownPath(r))
	})
}

// methods are the routes of one path.
type methods map[string]spokenRoute

// speaks is the dialect that all routes of the path have in common, and otherwise the interface's.
func (m methods) speaks() dialect {
	var common dialect
	for _, rt := range m {
		common = rt.speaks
	}
	for _, rt := range m {
		if rt.speaks != common {
			return speaksInterface
		}
	}
	return common
}

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
		if m.speaks() == speaksPages { // which are for browsers to go to, and never for scripts of other origins (RFC 9700, section 2.6)
			setPageHeaders(w.Header())
		} else {
			allowCrossOrigin(w.Header(), m.allowed())
		}
		w.Header().Set("Allow", m.allowed())
		w.WriteHeader(http.StatusNoContent)
		return
	case !known:
		w.Header().Set("Allow", m.allowed())
		exchangeOf(r.Context()).speaks = m.speaks()
		if m.speaks() == speaksPages {
			setPageHeaders(w.Header())
		}
		s.fail(w, r, &failure{http.StatusMethodNotAllowed, "method " + quoted(r.Method) + " is not allowed here; allowed are " + m.allowed()})
		return
	}
	exchangeOf(r.Context()).route = rt.method + " " + rt.pattern
	exchangeOf(r.Context()).speaks = rt.speaks
	if rt.speaks == speaksPages {
		setPageHeaders(w.Header())
	}
	var c caller
	if rt.needs != nothing {
		var err error
		c, err = s.admit(r, rt.needs)
		exchangeOf(r.Context()).caller = c
		if err == nil {
			err = s.prepare(w, r, rt)
		}
		if err != nil {
			s.fail(w, r, err)
			return
		}
	}
	if err := s.checkQuery(r, rt); err != nil {
		s.fail(w, r, err)
		return
	}
	s.noteProject(r, rt, c)
	answer, err := rt.handle(w, r, c)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	switch answer := answer.(type) {
	case nil:
	case page:
		s.show(w, r, http.StatusOK, answer)
	case redirect:
		s.goTo(w, r, answer)
	default:
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
