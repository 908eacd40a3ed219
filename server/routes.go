package server

import (
	"context"
	"crypto/sha256"
	"maps"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/deferredcall"
	"github.com/souvenir-ai/souvenir/internal/readahead"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/route"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// dialectRoute is a route with the dialect of its table.
type dialectRoute struct {
	route.Route
	dialect request.Dialect
}

// routes returns everything that is served.
func (s *Server) routes() []dialectRoute {
	var all []dialectRoute
	add := func(dialect request.Dialect, table []route.Route) {
		for _, rt := range table {
			all = append(all, dialectRoute{rt, dialect})
		}
	}
	add(request.API, s.interfaceRoutes())
	if s.options.PublicURL != "" { // the redirects need it
		add(request.OAuth, s.oauth.Routes())
		add(request.API, s.clientRoutes())
		add(request.Pages, s.site.Routes())
		add(request.Pages, s.signin.Routes())
		add(request.Pages, s.oauth.PageRoutes())
		add(request.Pages, s.dashboard.Routes())
	}
	return all
}

// interfaceRoutes is the table of the API. Beyond scopes, the store decides what a credential can see and change:
// each handler works through the view of its credential.
func (s *Server) interfaceRoutes() []route.Route {
	return []route.Route{
		route.Get("/health", route.Public, s.health),
		route.Get("/health/live", route.Public, s.alive),
		route.Get("/health/ready", route.Public, s.ready),
		route.Get("/openapi.json", route.Public, s.describe),

		route.Get("/tools", route.Public, s.listTools),
		route.Post("/tools/call", route.Credential, s.callTool), // each tool checks its scopes

		route.Post("/mcp", route.Credential, s.serveMCP),
		route.Get("/mcp", route.Credential, s.noMCPStream),
		route.Delete("/mcp", route.Credential, s.noMCPStream),

		route.Get("/api/files", route.FilesRead, s.listFiles),
		route.Post("/api/files/upload", route.FilesWrite, s.uploadFile),
		route.Get("/api/files/{id}", route.FilesRead, s.downloadFile),
		route.Delete("/api/files/{id}", route.FilesWrite, s.deleteFile),
		route.Put("/api/files/{id}/metadata", route.FilesWrite, s.updateFile),

		route.Get("/api/projects", route.MemoryRead, s.listProjects),
		route.Get("/api/projects/{id}", route.MemoryRead, s.getProject),
		route.Get("/api/projects/{id}/members", route.MemoryRead, s.listMembers),

		// Sharing is for people: no tool offers it.
		route.Post("/api/projects/{id}/members", route.Account, s.addMember),
		route.Patch("/api/projects/{id}/members/{user}", route.Account, s.updateMember),
		route.Delete("/api/projects/{id}/members/{user}", route.Account, s.deleteMember),
		route.Get("/api/project-invitations", route.Account, s.listProjectInvitations),
		route.Post("/api/project-invitations/{id}/accept", route.Account, s.acceptProjectInvitation),
		route.Post("/api/project-invitations/{id}/decline", route.Account, s.declineProjectInvitation),
		route.Post("/api/project-invitations/{id}/block", route.Account, s.blockSender),
		route.Get("/api/blocked-users", route.Account, s.listBlockedUsers),
		route.Delete("/api/blocked-users/{user}", route.Account, s.unblockUser),

		// Erasing what an agent has deleted is for people: no tool does it, and no credential has its scope by default.
		route.Get("/api/trash", route.Credential, s.listTrash), // files need scopes of their own; see trashScopes
		route.Post("/api/trash/{id}/restore", route.Credential, s.restoreTrashed),
		route.Delete("/api/trash/{id}", route.Account, s.eraseTrashed),
		route.Delete("/api/trash", route.Account, s.emptyTrash),

		route.Get("/api/mcp-tokens", route.MemoryRead, s.listTokens),
		route.Post("/api/mcp-tokens", route.Account, s.addToken),
		route.Delete("/api/mcp-tokens/{id}", route.Account, s.deleteToken),

		route.Get("/api/owner-ids/me", route.MemoryRead, s.ownerIDs),

		route.Get(activityPath, route.MemoryRead, s.listActivity),

		route.Get("/api/user-preferences", route.MemoryRead, s.preferences),
		route.Put("/api/user-preferences", route.MemoryWrite, s.setPreferences),
		route.Patch("/api/user-preferences", route.MemoryWrite, s.updatePreferences),
	}
}

// clientRoutes is the table of the OAuth clients that users create for themselves. Like MCP tokens they belong to a
// user, and need no admin: a client gets access only with a user's consent.
func (s *Server) clientRoutes() []route.Route {
	return []route.Route{
		route.Get("/oauth/admin/clients", route.MemoryRead, s.listClients),
		route.Post("/oauth/admin/clients", route.Account, s.addClient),
		route.Post("/oauth/admin/clients/{client_id}/regenerate-secret", route.Account, s.regenerateSecret),
		route.Delete("/oauth/admin/clients/{client_id}", route.Account, s.deactivateClient),
	}
}

// mount registers the table with the mux: one entry for each path, which knows its methods.
func (s *Server) mount() {
	paths := map[string]methods{}
	routes := s.routes()
	s.queries = queries(routes)
	for _, rt := range routes {
		if paths[rt.Pattern] == nil {
			paths[rt.Pattern] = methods{}
		}
		paths[rt.Pattern][rt.Method] = rt
	}
	if s.site.Base() != "" {
		for _, rt := range s.oauth.MetadataRoutes() {
			paths[s.oauth.AtHostRoot(rt.Pattern)] = paths[rt.Pattern] // for a handler mounted at /.well-known/
		}
	}
	for pattern, m := range paths {
		s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.dispatch(w, r, m) })
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if s.options.PublicURL != "" && r.Method == http.MethodGet &&
			strings.Contains(r.Header.Get("Accept"), "text/html") { // a person with a browser
			request.Of(r.Context()).Dialect = request.Pages
			web.SetHeaders(w.Header())
			s.failUnknownPage(w, r)
			return
		}
		s.fail(w, r, unknownPath(r))
	})
}

// methods are the routes of one path.
type methods map[string]dialectRoute

// dialect returns the dialect that all routes of the path share, or else the API's.
func (m methods) dialect() request.Dialect {
	var common request.Dialect
	for _, rt := range m {
		common = rt.dialect
	}
	for _, rt := range m {
		if rt.dialect != common {
			return request.API
		}
	}
	return common
}

// allowed lists the methods for the Allow header.
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

// dispatch answers a request to an existing path.
func (s *Server) dispatch(w http.ResponseWriter, r *http.Request, m methods) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet // net/http omits the body
	}
	rt, known := m[method]
	switch {
	case r.Method == http.MethodOptions:
		if m.dialect() == request.Pages { // for navigation only, never for scripts of other origins (RFC 9700, section 2.6)
			web.SetHeaders(w.Header())
		} else {
			allowCrossOrigin(w.Header(), m.allowed())
		}
		w.Header().Set("Allow", m.allowed())
		w.WriteHeader(http.StatusNoContent)
		return
	case !known:
		w.Header().Set("Allow", m.allowed())
		request.Of(r.Context()).Dialect = m.dialect()
		if m.dialect() == request.Pages {
			web.SetHeaders(w.Header())
		}
		s.fail(w, r, &failure.Error{Status: http.StatusMethodNotAllowed, Message: "method " + failure.Quote(r.Method) +
			" is not allowed here; expected " + m.allowed()})
		return
	}
	request.Of(r.Context()).Route = rt.Method + " " + rt.Pattern
	request.Of(r.Context()).Dialect = rt.dialect
	if rt.dialect == request.Pages {
		web.SetHeaders(w.Header())
		if method == http.MethodGet {
			r = r.WithContext(readahead.WithKey(r.Context(), sameRequest(r)))
		}
	}
	var c request.Caller
	if rt.Needs != route.Public {
		var err error
		c, err = s.authorize(r, rt.Needs)
		request.Of(r.Context()).Caller = c
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
	answer, err := s.handle(w, r, rt, c)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	switch answer := answer.(type) {
	case nil:
	case web.Rendered:
		s.site.Send(w, r, answer)
	case web.Redirect:
		s.site.GoTo(w, r, answer)
	default:
		s.answer(w, r, http.StatusOK, answer)
	}
}

// sameRequest returns a key that is equal for requests of the same browser for the same page.
func sameRequest(r *http.Request) string {
	sum := sha256.Sum256([]byte(r.Header.Get("Cookie") + "\n" + r.URL.RequestURI()))
	return string(sum[:])
}

// handle calls the handler of a route. A page is returned already rendered: it shows one state of the store, and the
// snapshot ends before a slow client reads the page. A page that needs a model of another program is made again once
// that has answered, so that no snapshot waits for it.
func (s *Server) handle(w http.ResponseWriter, r *http.Request, rt dialectRoute, c request.Caller) (answer any,
	err error) {
	call := func(ctx context.Context) error {
		r := r.WithContext(ctx)
		if rt.dialect == request.Pages && r.Method == http.MethodGet {
			if r, err = web.WithProjects(r); err != nil {
				return nil //nolint:nilerr // handle returns err, as it does a handler's
			}
		}
		answer, err = rt.Handle(w, r, c)
		if page, ok := answer.(web.Page); ok && err == nil && !deferredcall.Waits(ctx) {
			answer = s.site.Render(w, r, http.StatusOK, page)
		}
		return nil
	}
	if !rt.OneState {
		_ = call(r.Context()) // it sets err
		return answer, err
	}
	before := w.Header().Clone()
	failed := deferredcall.Repeat(r.Context(), func(ctx context.Context) error {
		clear(w.Header()) // of headers of an earlier time
		maps.Copy(w.Header(), before)
		return s.store.Snapshot(ctx, call)
	})
	if failed != nil {
		return nil, failed
	}
	return answer, err
}

// clean reports whether a path is in its shortest form. The mux would redirect others; under a prefix such a
// redirect is wrong, and clients follow it without their body.
func clean(r *http.Request) bool {
	escaped := r.URL.EscapedPath()
	return escaped == "/" || strings.HasPrefix(escaped, "/") && path.Clean(escaped) == escaped
}

// failUnknownPage answers a person who opens a page that does not exist, with the menu if the person has signed in.
func (s *Server) failUnknownPage(w http.ResponseWriter, r *http.Request) {
	if caller, err := s.signin.RequirePerson(r, route.Person); err == nil {
		request.Of(r.Context()).Caller = caller
	}
	s.fail(w, r, &failure.Error{Status: http.StatusNotFound,
		Message: "there is no page at " + failure.Quote(r.URL.Path)})
}

func unknownPath(r *http.Request) error {
	return &failure.Error{Status: http.StatusNotFound, Message: "path " + failure.Quote(r.URL.Path) +
		" does not exist; /openapi.json lists all endpoints"}
}

// allowCrossOrigin answers a CORS preflight request. It allows all origins: credentials are sent in headers, so the
// page must know them, and browsers never send the cookie with "*".
func allowCrossOrigin(h http.Header, methods string) {
	h.Set("Access-Control-Allow-Methods", methods)
	h.Set("Access-Control-Allow-Headers",
		"Authorization, Content-Type, X-MCP-Token, X-Request-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name, "+
			"Mcp-Session-Id, Last-Event-ID, Range, If-Range, If-Match, If-None-Match, If-Modified-Since, If-Unmodified-Since")
	h.Set("Access-Control-Max-Age", "7200")
}

// prepare reads the body of a request and waits for its turn.
func (s *Server) prepare(w http.ResponseWriter, r *http.Request, rt dialectRoute) error {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodDelete, http.MethodOptions:
	default:
		if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && kind == "multipart/form-data" {
			return nil // a stream
		}
		read, err := s.readBody(w, r)
		if err != nil {
			return err
		}
		r.Body = read
		if read.failed != nil {
			return nil //nolint:nilerr // its handler reports it
		}
	}
	if rt.Pattern == "/mcp" {
		return nil // the message decides whether it takes a turn
	}
	return takeTurn(r)
}
