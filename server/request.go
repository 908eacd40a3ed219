package server

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

// exchange is one request and its answer, as the log knows it.
type exchange struct {
	id     string // of the request
	route  string // "METHOD /pattern"; empty: none fits
	speaks dialect
	caller caller

	address netip.Addr // of whoever sent it; see remote

	mcpMethod string              // of a message of the Model Context Protocol; "batch": of several
	mcpName   string              // the tool that it calls
	lacks     souvenir.Scope      // the one that it needs and the credential does not carry
	failed    error               // what fail answered; nil: nothing has failed
	fileID    string              // of a file that was uploaded
	project   souvenir.ProjectRef // in which lies what the request is to change
	activity  activity            // calls of tools
	signedIn  string              // value of the session that this request has begun; empty: none

	ticket   *fairqueue.Ticket // its place in the queue
	holds    int64             // bytes of the budget for bodies
	holder   string            // whose part of the budget that is
	streamed int64             // bytes since its last turn
}

type exchangeKey struct{}

// exchangeOf returns the exchange of a request's context.
func exchangeOf(ctx context.Context) *exchange {
	if e, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return e
	}
	return &exchange{}
}

// caller is who a request speaks for. The context of a request holds it: exchangeOf(ctx).caller.
type caller struct {
	souvenir.Principal
	store *souvenir.Store // the view that the credential reaches; nil on open routes
}

const (
	tokenCookie = "auth_token"
)

const (
	mcpTokenStart = "mcp_"
)

// dialect is how a route tells its errors: in the interface's body (the zero value), as OAuth does, or to people, on a page.
type dialect int

const (
	speaksInterface dialect = iota
	speaksOAuth
	speaksPages
)

// activity is the calls of tools that an exchange has made: one, or those of a batch.
type activity struct {
	mu    sync.Mutex
	calls []souvenir.NewActivity
	over  bool // the exchange is: what comes yet was given up by its caller
}

// add notes a call. It reports false when the exchange is over.
func (a *activity) add(n souvenir.NewActivity) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.over {
		a.calls = append(a.calls, n)
	}
	return !a.over
}

// end returns the calls; further ones are not added.
func (a *activity) end() []souvenir.NewActivity {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	return a.calls
}

// client is what the client of an exchange has called itself.
func (a *activity) client() string {
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

// line is in whose line a request waits; empty: it speaks for no one.
func (e *exchange) line() string { return cmp.Or(e.caller.User.ID, e.caller.Access.User) }

// pace waits for a turn after so many bytes of a stream.
func (e *exchange) pace(r *http.Request, bytes int64) {
	if e.streamed += bytes; e.streamed >= paceBytes {
		e.streamed = 0
		e.ticket.Turn(r.Context(), e.line())
	}
}

// through says what a request came by, for the trash.
func through(r *http.Request) string {
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/tools/call"), strings.HasSuffix(path, "/mcp"), strings.HasSuffix(path, "/mcp/"):
		return "tool"
	case strings.Contains(path, "/api/"):
		return "api"
	}
	return "page"
}

const (
	sessionStart = "ses_"
)

const (
	invitationStart = "inv_"
)
