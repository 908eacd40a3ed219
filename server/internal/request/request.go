// Package request holds the state of a request while the server answers it: its caller, its route, its place in the
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

// State is one request and its answer, as logged.
type State struct {
	ID      string // of the request
	Route   string // "METHOD /pattern"; empty: no match
	Dialect Dialect
	Caller  Caller

	Address netip.Addr // of the sender; see remote

	MCPMethod    string              // of a message of the Model Context Protocol; "batch": of several
	MCPName      string              // the tool that it calls
	MissingScope souvenir.Scope      // needed, but missing from the credential
	Failed       error               // the error that fail answered; nil: none
	FileID       string              // of an uploaded file
	Project      souvenir.ProjectRef // of the object that the request changes
	Calls        Calls               // calls of tools
	SignedIn     string              // value of the session that this request has begun; empty: none

	Ticket   *fairqueue.Ticket // its place in the queue
	Holds    int64             // bytes of the budget for bodies
	Holder   string            // whose share of the budget that is
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

// With returns a context with the state of a request: the audit log attributes changes to its caller.
func With(ctx context.Context, e *State) context.Context {
	ctx = souvenir.WithActor(ctx, func() souvenir.Actor { return souvenir.ActorOf(e.Caller.Principal) })
	return context.WithValue(ctx, stateKey{}, e)
}

// Caller is the authenticated caller of a request. The context of a request holds it: Of(ctx).Caller.
type Caller struct {
	souvenir.Principal
	Store *souvenir.Store // the view of the credential; nil on open routes
}

// CredentialCookie is the cookie with a credential: in browsers, that of a session.
const CredentialCookie = "auth_token"

// Prefixes of credentials.
const (
	MCPTokenPrefix   = "mcp_"
	SessionPrefix    = "ses_"
	InvitationPrefix = "inv_"
)

// Dialect is the form of a route's errors: the body of the API (the zero value), OAuth's, or a page.
type Dialect int

// The dialects.
const (
	API Dialect = iota
	OAuth
	Pages
)

// Calls are the tool calls of a request: one, or those of a batch.
type Calls struct {
	mu    sync.Mutex
	calls []souvenir.NewActivity
	over  bool // the request has ended; its caller gave up later calls
}

// Add adds a call. It reports false when the request is over.
func (a *Calls) Add(n souvenir.NewActivity) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.over {
		a.calls = append(a.calls, n)
	}
	return !a.over
}

// End returns the calls; later ones are not added.
func (a *Calls) End() []souvenir.NewActivity {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	return a.calls
}

// Client returns the name of the request's client.
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
	paceBytes = 256 << 10 // of a stream, per turn
)

// Line returns the user in whose queue the request waits; empty: none.
func (e *State) Line() string { return cmp.Or(e.Caller.User.ID, e.Caller.Access.User) }

// Pace waits for a turn after a number of bytes of a stream.
func (e *State) Pace(r *http.Request, bytes int64) {
	if e.streamed += bytes; e.streamed >= paceBytes {
		e.streamed = 0
		e.Ticket.Turn(r.Context(), e.Line())
	}
}

// Through describes the client of a request, for the trash.
func Through(r *http.Request) string {
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/tools/call"), strings.HasSuffix(path, "/mcp"), strings.HasSuffix(path, "/mcp/"):
		return "tool"
	case strings.Contains(path, "/api/"):
		return "api"
	}
	return "page"
}
