package server

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/signin"
	"github.com/souvenir-ai/souvenir/tools"
)

// Answered describes a request that was answered, for [Options].OnRequest. Its fields have few different values, and
// none reveals who sent the request or what it was about.
type Answered struct {
	Route    string // "METHOD /pattern", from a fixed table; empty: there is no such path or method
	Status   int    // 0: the client was gone before anything was sent
	Bytes    int64  // of the body
	Duration time.Duration
	Refusal  Refusal // why it was refused; empty: it was not, or for another reason
}

// Refusal is why a request was refused. It has values only for refusals that an operator should watch.
type Refusal string

// The values of [Refusal].
const (
	RefusedSignIn     Refusal = "sign_in"    // a wrong name or password, or a provider that denied
	RefusedCredential Refusal = "credential" // no valid token, session, code or client
	RefusedRate       Refusal = "rate"       // too many attempts from one address or for one name
	RefusedBusy       Refusal = "busy"       // too many requests at once; see Options.QueuePerUser and QueueWait
)

// Refusals returns all values.
func Refusals() []Refusal {
	return []Refusal{RefusedSignIn, RefusedCredential, RefusedRate, RefusedBusy}
}

// Called describes a call of a tool, for [Options].OnCall. Its fields have few different values, and none reveals who
// called or what the call was about.
type Called struct {
	Tool     string // empty: the requested tool is unknown
	Action   string // empty: the tool has no actions, or the requested one is unknown
	Duration time.Duration
	Outcome  souvenir.Outcome
}

// observe reports an answered request.
func (s *Server) observe(e *request.State, out *response, took time.Duration) {
	if s.options.OnRequest != nil {
		s.options.OnRequest(Answered{Route: e.Route, Status: out.status, Bytes: out.bytes, Duration: took,
			Refusal: refusalOf(e, out.status)})
	}
}

// observeCall reports a call of a tool.
func (s *Server) observeCall(c tools.Call) {
	if s.options.OnCall != nil {
		s.options.OnCall(Called{Tool: c.Tool, Action: c.Action, Duration: c.Duration, Outcome: souvenir.OutcomeOf(c.Err)})
	}
}

func refusalOf(e *request.State, status int) Refusal {
	if _, _, busy := failure.Refused(e.Failed); busy {
		return RefusedBusy
	}
	switch {
	case status == http.StatusTooManyRequests:
		return RefusedRate
	case signin.Failed(e.Route, status):
		return RefusedSignIn
	case status == http.StatusUnauthorized:
		return RefusedCredential
	}
	return ""
}

// LogHandler returns a handler that adds the id of a request, as request_id, to every line that is logged for it: by
// the server, and by the store if it has the same logger ([souvenir.Options].Logger). [New] wraps its own logger in
// one.
func LogHandler(inner slog.Handler) slog.Handler {
	if _, is := inner.(requestLog); is {
		return inner
	}
	return requestLog{inner}
}

// requestLog is the handler of [LogHandler].
type requestLog struct{ slog.Handler }

// Handle adds the id as the first attribute.
func (h requestLog) Handle(ctx context.Context, line slog.Record) error {
	id := request.Of(ctx).ID
	if id == "" {
		return h.Handler.Handle(ctx, line)
	}
	named := slog.NewRecord(line.Time, line.Level, line.Message, line.PC)
	named.AddAttrs(slog.String("request_id", id))
	line.Attrs(func(a slog.Attr) bool {
		named.AddAttrs(a)
		return true
	})
	return h.Handler.Handle(ctx, named)
}

// WithAttrs returns a handler with further attributes.
func (h requestLog) WithAttrs(all []slog.Attr) slog.Handler {
	return requestLog{h.Handler.WithAttrs(all)}
}

// WithGroup returns a handler whose attributes are in a group.
func (h requestLog) WithGroup(name string) slog.Handler { return requestLog{h.Handler.WithGroup(name)} }
