package server

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/fairqueue"
)

const requestID = "X-Request-Id"

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	e := &exchange{id: r.Header.Get(requestID), ticket: s.queue.Ticket()}
	if !validRequestID(e.id) {
		e.id = rand.Text()
	}
	out := &response{ResponseWriter: w, control: http.NewResponseController(w), patience: s.options.Patience}
	r = r.WithContext(fairqueue.With(context.WithValue(r.Context(), exchangeKey{}, e), e.ticket))
	e.address = s.remote(r)
	r.Body = s.newBody(out.control, r)
	out.sending = func(bytes int) {
		e.ticket.Leave()
		e.pace(r, int64(bytes))
	}
	defer func() {
		broken := recover()
		if broken != nil {
			broken = s.survive(out, r, broken)
		}
		out.finish()
		e.ticket.Leave()
		if e.holds > 0 {
			s.bodies.Return(e.holder, e.holds)
		}
		took := time.Since(began)
		s.note(r, e, out, took)
		s.record(r, e, out, took)
		if broken != nil {
			panic(broken)
		}
	}()
	setHeaders(out.Header(), e.id)
	if s.secure() { // RFC 6797; other names below the host are not this server's to speak for
		out.Header().Set("Strict-Transport-Security", "max-age=31536000")
	}
	if r.URL.Path == "/mcp/" { // as some clients write it
		at := *r.URL
		at.Path, at.RawPath, r.URL = "/mcp", "", &at
	}
	if !clean(r) {
		s.fail(out, r, unknownPath(r))
		return
	}
	s.mux.ServeHTTP(out, r)
}

// survive answers for a handler that panicked, and returns what is left to panic with: the way to break off an answer.
func (s *Server) survive(out *response, r *http.Request, broken any) (left any) {
	if err, ok := broken.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		return broken
	}
	e := exchangeOf(r.Context())
	s.log.ErrorContext(r.Context(), "a request made the server panic", "request_id", e.id, "route", e.route, "panic", broken, "stack", string(debug.Stack()))
	if out.status != 0 {
		return http.ErrAbortHandler
	}
	s.answer(out, r, http.StatusInternalServerError, ErrorBody{Error: serverError, Content: []TextBlock{{"text", "Error: " + serverError}}, IsError: true})
	return nil
}

// note writes the request into the log.
func (s *Server) note(r *http.Request, e *exchange, out *response, took time.Duration) {
	attributes := []slog.Attr{
		slog.String("request_id", e.id),
		slog.String("method", r.Method),
		slog.String("route", e.route),
		slog.String("path", withoutTokens(r.URL.Path)),
		slog.Int("status", out.status),
		slog.Int64("bytes", out.bytes),
		slog.Duration("duration", took),
	}
	if e.mcpMethod != "" {
		attributes = append(attributes, slog.String("mcp_method", e.mcpMethod))
	}
	if e.mcpName != "" {
		attributes = append(attributes, slog.String("mcp_tool", e.mcpName))
	}
	if c := e.caller; c.User.ID != "" {
		attributes = append(attributes, slog.String("user", c.User.ID))
		if c.TokenID != "" {
			attributes = append(attributes, slog.String("token_id", c.TokenID))
		}
		if c.ClientID != "" {
			attributes = append(attributes, slog.String("client", c.ClientID))
		}
		if c.SessionID != "" {
			attributes = append(attributes, slog.String("session_id", c.SessionID))
		}
	}
	s.log.LogAttrs(r.Context(), slog.LevelInfo, "request", attributes...)
}

// withoutTokens hides the tokens in a path, where somebody may put one by mistake.
func withoutTokens(path string) string {
	parts := strings.Split(path, "/")
	for i := range parts {
		for _, start := range []string{mcpTokenStart, sessionStart, invitationStart} {
			if before, _, found := strings.Cut(parts[i], start); found {
				parts[i] = before + start + "…"
			}
		}
	}
	return strings.Join(parts, "/")
}

// validRequestID accepts what is common, and nothing that could be mistaken for something else in a log, or be a token.
func validRequestID(id string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	return id != "" && len(id) <= 64 && strings.Trim(id, letters) == "" && withoutTokens(id) == id
}

// setHeaders sets what holds for every answer; a handler may say otherwise.
func setHeaders(h http.Header, id string) {
	h.Set(requestID, id)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "WWW-Authenticate, X-Request-Id, Mcp-Session-Id, ETag, Content-Disposition, Content-Range, Accept-Ranges")
}
