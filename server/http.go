package server

import (
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/fairqueue"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/shorten"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

const requestID = "X-Request-Id"

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	e := &request.State{ID: s.idOf(r), Ticket: s.queue.Ticket()}
	out := &response{ResponseWriter: w, control: http.NewResponseController(w), patience: s.options.Patience}
	r = r.WithContext(fairqueue.With(request.With(r.Context(), e), e.Ticket))
	e.Address = s.remote(r)
	r.Body = s.newBody(out.control, r)
	out.sending = func(bytes int) {
		e.Ticket.Leave()
		e.Pace(r, int64(bytes))
	}
	defer func() {
		broken := recover()
		if broken != nil {
			broken = s.recoverPanics(out, r, broken)
		}
		out.finish()
		e.Ticket.Leave()
		if e.Holds > 0 {
			s.bodies.Return(e.Holder, e.Holds)
		}
		took := time.Since(began)
		s.note(r, e, out, took)
		s.observe(e, out, took)
		s.record(r, e, out, took)
		if broken != nil {
			panic(broken)
		}
	}()
	setHeaders(out.Header(), e.ID)
	if s.site.Secure() { // RFC 6797; other names below the host may belong to other servers
		out.Header().Set("Strict-Transport-Security", "max-age=31536000")
	}
	if r.URL.Path == "/mcp/" { // some clients add the slash
		at := *r.URL
		at.Path, at.RawPath, r.URL = "/mcp", "", &at
	}
	if !clean(r) {
		s.fail(out, r, unknownPath(r))
		return
	}
	if encoding := r.Header.Get("Content-Encoding"); r.ContentLength != 0 && encoding != "" &&
		!strings.EqualFold(encoding, "identity") {
		s.fail(out, r, failure.Invalid("Content-Encoding", "Content-Encoding is "+
			jsonobject.Show(shorten.Bytes(encoding, 40))+"; send the body as it is, without this header"))
		return
	}
	s.mux.ServeHTTP(out, r)
}

// recoverPanics answers for a handler that panicked, and returns the value to panic with again: http.ErrAbortHandler,
// which aborts the response, or nil.
func (s *Server) recoverPanics(out *response, r *http.Request, broken any) (left any) {
	if err, ok := broken.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		return broken
	}
	e := request.Of(r.Context())
	s.log.ErrorContext(r.Context(), "a request caused a panic", "route", e.Route, "panic",
		broken, "stack", string(debug.Stack()))
	if out.status != 0 {
		return http.ErrAbortHandler
	}
	s.answer(out, r, http.StatusInternalServerError,
		ErrorBody{Error: failure.Internal, Content: []TextBlock{{"text", "Error: " + failure.Internal}}, IsError: true})
	return nil
}

// note logs the request.
func (s *Server) note(r *http.Request, e *request.State, out *response, took time.Duration) {
	attributes := []slog.Attr{
		slog.String("method", r.Method),
		slog.String("route", e.Route),
		slog.String("path", withoutTokens(r.URL.Path)),
		slog.Int("status", out.status),
		slog.Int64("bytes", out.bytes),
		slog.Duration("duration", took),
	}
	if e.MCPMethod != "" {
		attributes = append(attributes, slog.String("mcp_method", e.MCPMethod))
	}
	if e.MCPName != "" {
		attributes = append(attributes, slog.String("mcp_tool", e.MCPName))
	}
	if c := e.Caller; c.User.ID != "" {
		attributes = append(attributes, slog.String("user", c.User.ID))
		if c.TokenID != "" {
			attributes = append(attributes, slog.String("token_id", c.TokenID))
		}
		if c.ClientID != "" {
			attributes = append(attributes, slog.String("client", c.ClientID))
		}
		if c.SignInID != "" {
			attributes = append(attributes, slog.String("session_id", c.SignInID))
		}
	}
	s.log.LogAttrs(r.Context(), slog.LevelInfo, "request", attributes...)
}

// withoutTokens hides tokens in a path, where a caller may have put one by mistake.
func withoutTokens(path string) string {
	parts := strings.Split(path, "/")
	for i := range parts {
		for _, start := range []string{request.MCPTokenPrefix, request.SessionPrefix, request.InvitationPrefix} {
			if before, _, found := strings.Cut(parts[i], start); found {
				parts[i] = before + start + "…"
			}
		}
	}
	return strings.Join(parts, "/")
}

// idOf returns the id of a request: that of a trusted proxy, or a new one. Other clients could choose ids that confuse
// the readers of the log.
func (s *Server) idOf(r *http.Request) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if id := r.Header.Get(requestID); err == nil && s.trusted(peer.Addr().Unmap()) && validRequestID(id) {
		return id
	}
	return rand.Text()
}

// validRequestID accepts common ids, and nothing that could be misread in a log, or be a token.
func validRequestID(id string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	return id != "" && len(id) <= 64 && strings.Trim(id, letters) == "" && withoutTokens(id) == id
}

// setHeaders sets the headers of every answer; a handler may override them.
func setHeaders(h http.Header, id string) {
	h.Set(requestID, id)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers",
		"WWW-Authenticate, X-Request-Id, Mcp-Session-Id, ETag, Content-Disposition, Content-Range, Accept-Ranges")
}
