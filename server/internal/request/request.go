// Package request holds what the server knows of a request while it answers it: its caller, its route, its place in the
// queue.
package request

import (
	"cmp"
	"context"
	"net/http"
	"net/netip"
	"strings"
	"sync"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/fairqueue"
)

// State is one request and its answer, as the log knows it.
type State struct {
	ID      string // of the request
	Route   string // "METHOD /pattern"; empty: none fits
	Dialect Dialect
	Caller  Caller

	Address netip.Addr // of whoever sent it; see remote

	MCPMethod    string              // of a message of the Model Context Protocol; "batch": of several
	MCPName      string              // the tool that it calls
	MissingScope souvenir.Scope      // the one that it needs and the credential does not carry
	Failed       error               // what fail answered; nil: nothing has failed
	FileID       string              // of a file that was uploaded
	Project      souvenir.ProjectRef // in which lies what the request is to change
	Calls        Calls               // calls of tools
	SignedIn     string              // value of the session that this request has begun; empty: none

	Ticket   *fairqueue.Ticket // its place in the queue
	Holds    int64             // bytes of the budget for bodies
	Holder   string            // whose part of the budget that is
	streamed int64             // bytes since its last turn
}

type stateKey struct{}

// Of returns the state of the request that a context belongs to.
func Of(ctx context.Context) *State {
	if e, ok := ctx.Value(stateKey{}).(*State); ok {
		return e
	}
	return &State{}
}

// With returns a context with the state of a request.
func With(ctx context.Context, e *State) context.Context {
	return context.WithValue(ctx, stateKey{}, e)
}

// Caller is who a request speaks for. The context of a request holds it: Of(ctx).Caller.
type Caller struct {
	souvenir.Principal
	Store *souvenir.Store // the view that the credential reaches; nil on open routes
}

// CredentialCookie holds a credential: in browsers, that of a session.
const CredentialCookie = "auth_token"

// What credentials begin with.
const (
	MCPTokenPrefix   = "mcp_"
	SessionPrefix    = "ses_"
	InvitationPrefix = "inv_"
)

// Dialect is how a route answers with errors: in the body of the API (the zero value), as OAuth does, or on a page.
type Dialect int

// The dialects.
const (
	API Dialect = iota
	OAuth
	Pages
)

// Calls are the calls of tools that a request has made: one, or those of a batch.
type Calls struct {
	mu    sync.Mutex
	calls []souvenir.NewActivity
	over  bool // the request is: what comes yet was given up by its caller
}

// Add notes a call. It reports false when the request is over.
func (a *Calls) Add(n souvenir.NewActivity) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.over {
		a.calls = append(a.calls, n)
	}
	return !a.over
}

// End returns the calls; further ones are not added.
func (a *Calls) End() []souvenir.NewActivity {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	return a.calls
}

// Client is what the client of the request calls itself.
func (a *Calls) Client() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range a.calls {
		if n.Client != "" {
			return n.Client
		}
	}
	return ""
}

const (
	paceBytes = 256 << 10 // of a stream, for each turn
)

// Line is in whose line a request waits; empty: it speaks for no one.
func (e *State) Line() string { return cmp.Or(e.Caller.User.ID, e.Caller.Access.User) }

// Pace waits for a turn after so many bytes of a stream.
func (e *State) Pace(r *http.Request, bytes int64) {
	if e.streamed += bytes; e.streamed >= paceBytes {
		e.streamed = 0
		e.Ticket.Turn(r.Context(), e.Line())
	}
}

// Through says what a request came by, for the trash.
func Through(r *http.Request) string {
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/tools/call"), strings.HasSuffix(path, "/mcp"), strings.HasSuffix(path, "/mcp/"):
		return "tool"
	case strings.Contains(path, "/api/"):
		return "api"
	}
	return "page"
}
