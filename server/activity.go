package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/mcpserver"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/params"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/route"
	"github.com/souvenir-ai/souvenir/tools"
)

// A call is recorded for the user whose memories it is about. It is recorded after the answer, and waits in memory
// until the store writes many calls at once.

const activityPath = "/api/activity"

// clientNames remembers the names of MCP clients: in most revisions of the protocol a client sends its name once, and
// later only the User-Agent of a library.
type clientNames struct {
	mu    sync.Mutex
	names map[string]string
}

// maxClientNames bounds the number of remembered names.
const maxClientNames = 10_000

// noteCall notes the call of a tool.
func (s *Server) noteCall(ctx context.Context, c tools.Call) {
	s.observeCall(c)
	s.addCall(ctx, c.Activity())
}

// noteMCPCall notes the call of an MCP client.
func (s *Server) noteMCPCall(ctx context.Context, c mcpserver.Call) {
	s.observeCall(c.Call)
	n := c.Activity()
	n.Client = c.Client
	s.addCall(ctx, n)
}

func (s *Server) addCall(ctx context.Context, n souvenir.NewActivity) {
	if s.options.NoActivity {
		return
	}
	e := request.Of(ctx)
	if n.Tool == "" {
		n.Tool = e.Route
	}
	if !e.Calls.Add(n) {
		n.Principal = e.Caller.Principal
		s.keep(ctx, n)
	}
}

// record records a request.
func (s *Server) record(r *http.Request, e *request.State, out *response, took time.Duration) {
	if s.options.NoActivity || e.Caller.Access.User == "" {
		return // or strangers could fill the store
	}
	calls := e.Calls.End()
	if len(calls) == 1 {
		calls[0].Bytes = out.bytes
	}
	if len(calls) == 0 && recorded(r, e, out) {
		calls = append(calls, s.routeCall(r, e, out, took))
	}
	agent := r.UserAgent()
	for _, n := range calls {
		n.Principal = e.Caller.Principal
		n.Client = s.clientName(r, e, agent, n.Client)
		s.keep(r.Context(), n)
	}
}

// keep passes a call to the store.
func (s *Server) keep(ctx context.Context, n souvenir.NewActivity) {
	err := s.store.Upkeep().RecordActivity(context.WithoutCancel(ctx), n)
	if err != nil && !errors.Is(err, souvenir.ErrReadOnly) && !errors.Is(err, souvenir.ErrClosed) {
		s.log.WarnContext(ctx, "could not record a call", "error", err)
	}
}

// noteProject notes the project of the memory or file that a request changes: afterwards it may be gone.
func (s *Server) noteProject(r *http.Request, rt dialectRoute, c request.Caller) {
	if s.options.NoActivity || rt.Needs == route.Public || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return
	}
	e, id := request.Of(r.Context()), r.PathValue("id")
	switch {
	case strings.HasPrefix(rt.Pattern, "/memories/{id}/"):
		if m, err := c.Store.Insights().MemoryStatus(r.Context(), id); err == nil && m.ProjectID != "" {
			e.Project.ID = m.ProjectOwner + "/" + m.ProjectID
		}
	case strings.HasPrefix(rt.Pattern, "/api/files/{id}"), strings.HasPrefix(rt.Pattern, "/files/{id}/"):
		if f, err := c.Store.GetFile(r.Context(), id); err == nil && f.ProjectID != "" {
			e.Project.ID = f.Owner + "/" + f.ProjectID // the caller's own may have the same id
		}
	}
}

// recorded reports whether a request without tool calls is recorded: requests to endpoints and changes on pages are,
// but not views of pages, previews or recorded calls, nor MCP messages that access no user data.
func recorded(r *http.Request, e *request.State, out *response) bool {
	_, pattern, _ := strings.Cut(e.Route, " ")
	switch {
	case e.Route == "" || pattern == activityPath:
		return false
	case pattern == "/mcp":
		return r.Method == http.MethodPost && out.status >= http.StatusBadRequest
	case e.Dialect == request.Pages:
		return r.Method != http.MethodGet && r.Method != http.MethodHead && !strings.HasSuffix(pattern, "/preview")
	}
	return true
}

// routeCall describes a request without tool calls.
func (s *Server) routeCall(r *http.Request, e *request.State, out *response, took time.Duration) souvenir.NewActivity {
	n := souvenir.NewActivity{Tool: e.Route, Outcome: outcomeOf(e, out), Duration: took, Bytes: out.bytes,
		FileID: e.FileID, Project: e.Project}
	_, pattern, _ := strings.Cut(e.Route, " ")
	switch {
	case strings.HasPrefix(pattern, "/api/projects/{id}"):
		n.Project = projectOf(r)
	case strings.HasPrefix(pattern, "/memories/{id}/") && n.Outcome == souvenir.OutcomeOK:
		n.MemoryID = r.PathValue("id")
	case (strings.HasPrefix(pattern, "/api/files/{id}") || strings.HasPrefix(pattern, "/files/{id}/")) &&
		n.Outcome == souvenir.OutcomeOK:
		n.FileID = r.PathValue("id")
	}
	return n
}

// outcomeOf returns the outcome of a request.
func outcomeOf(e *request.State, out *response) souvenir.Outcome {
	var wrong *failure.Error
	if e.Failed != nil && !errors.As(e.Failed, &wrong) {
		return souvenir.OutcomeOf(e.Failed)
	}
	if out.status < http.StatusBadRequest {
		return souvenir.OutcomeOK
	}
	for kind, status := range failure.Statuses {
		if status == out.status && status != http.StatusBadRequest && kind != souvenir.KindReadOnly {
			return souvenir.OutcomeOf(&souvenir.Error{Kind: kind})
		}
	}
	if out.status >= http.StatusInternalServerError {
		return souvenir.OutcomeOf(souvenir.ErrInternal)
	}
	return souvenir.OutcomeOf(souvenir.ErrInvalid)
}

// clientName returns the name of a request's client: from the message, or from the start of its MCP session.
// Clients without a session are identified by their credential and User-Agent.
func (s *Server) clientName(r *http.Request, e *request.State, agent, declared string) string {
	if _, pattern, _ := strings.Cut(e.Route, " "); pattern != "/mcp" {
		return agent
	}
	if began := sessionClient(r.Header.Get(sessionHeader)); declared == "" && began != "" {
		return began
	}
	return s.clients.name(e.Caller.Principal, agent, declared)
}

// sessionHeader names the session of an MCP client, in the revisions of the protocol that have sessions.
const sessionHeader = "Mcp-Session-Id"

// newSessionID creates the id of a session. It contains the client's name, so that no process has to remember
// anything: sessions only distinguish calls, and grant no access.
func newSessionID(client string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(client[:min(len(client), maxSessionClient)])) + "." + rand.Text()
}

// maxSessionClient is how many bytes of a client's name a session id holds.
const maxSessionClient = 200

// sessionClient returns the client's name from a session id; empty: not an id of this server.
func sessionClient(id string) string {
	encoded, _, found := strings.Cut(id, ".")
	if !found || len(encoded) > 2*maxSessionClient {
		return ""
	}
	client, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(string(client), "")
}

// name returns a client's name: the one it sends now, else the one that all clients with this credential and User-Agent
// have sent, else its User-Agent. If these clients have sent different names, the caller cannot be identified.
func (c *clientNames) name(p souvenir.Principal, agent, declared string) string {
	key := p.Access.User + "\x00" + cmp.Or(p.TokenID, p.ClientID, p.SignInID) + "\x00" + agent[:min(len(agent), 200)]
	c.mu.Lock()
	defer c.mu.Unlock()
	before, known := c.names[key]
	if declared == "" {
		return cmp.Or(before, agent)
	}
	if c.names == nil || len(c.names) >= maxClientNames {
		c.names = map[string]string{}
	}
	short := declared[:min(len(declared), 200)]
	if known && before != short {
		short = "" // several names
	}
	c.names[key] = short
	return declared
}

// listActivity answers with recorded calls: the caller's own, and others' for an admin who requests them.
func (s *Server) listActivity(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	wanted, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, failure.Invalid("query", "the query cannot be read: "+err.Error())
	}
	q := souvenir.ActivityQuery{
		User: wanted.Get("user"), ID: wanted.Get("credential_id"), Client: wanted.Get("client"),
		Tool: wanted.Get("tool"), Action: wanted.Get("action"), ProjectID: wanted.Get("project_id"),
		Before: wanted.Get("before"),
	}
	if q.Credential, err = params.Word(wanted, "credential", credentialKinds()...); err != nil {
		return nil, err
	}
	if q.Outcome, err = params.Word(wanted, "outcome", askedOutcomes()...); err != nil {
		return nil, err
	}
	if q.Limit, err = params.Number(wanted, "limit", 1, souvenir.MaxActivityLimit); err != nil {
		return nil, err
	}
	if q.Since, err = params.Time(wanted, "since"); err != nil {
		return nil, err
	}
	if q.Until, err = params.Time(wanted, "until"); err != nil {
		return nil, err
	}
	if q.User == "" || q.User == c.Access.User || q.User == c.User.Name || c.Access.Projects != nil {
		q.User = "" // own calls; a view limited to projects sees no others
		return c.Store.Insights().ActivityPage(r.Context(), q)
	}
	if !c.Allows(souvenir.ScopeAdmin) {
		return nil, failure.MissingScope(souvenir.ScopeAdmin)
	}
	if q.User == "*" {
		q.User = ""
	}
	return s.store.Insights().ActivityPage(r.Context(), q)
}

// credentialKinds are the kinds of credentials by which calls can be filtered.
func credentialKinds() []souvenir.CredentialKind {
	return []souvenir.CredentialKind{souvenir.CredentialToken, souvenir.CredentialClient, souvenir.CredentialSignIn}
}

// askedOutcomes are the outcomes by which calls can be filtered.
func askedOutcomes() []souvenir.Outcome { return append(souvenir.Outcomes(), souvenir.OutcomeError) }
