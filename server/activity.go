package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/mcpserver"
	"github.com/souvenir-ai/souvenir/tools"
)

// Who has called what is recorded for the person whose memories they are. A call has been answered by then, and waits in memory
// until the store writes many at once.

const activityPath = "/api/activity"

// clientNames remembers what MCP clients call themselves: in most revisions of the protocol they do so once, and then come with
// the User-Agent of a library.
type clientNames struct {
	mu    sync.Mutex
	names map[string]string
}

// maxClientNames bounds how many are remembered.
const maxClientNames = 10_000

// noteCall notes the call of a tool.
func (s *Server) noteCall(ctx context.Context, c tools.Call) {
	s.addCall(ctx, c.Activity())
}

// noteMCPCall does so for MCP.
func (s *Server) noteMCPCall(ctx context.Context, c mcpserver.Call) {
	n := c.Activity()
	n.Client = c.Client
	s.addCall(ctx, n)
}

func (s *Server) addCall(ctx context.Context, n souvenir.NewActivity) {
	if s.options.NoActivity {
		return
	}
	e := exchangeOf(ctx)
	if n.Tool == "" {
		n.Tool = e.route
	}
	if !e.activity.add(n) {
		n.Principal = e.caller.Principal
		s.keep(ctx, n)
	}
}

// record records what an exchange was.
func (s *Server) record(r *http.Request, e *exchange, out *response, took time.Duration) {
	if s.options.NoActivity || e.caller.Access.User == "" {
		return // strangers would fill the store
	}
	calls := e.activity.end()
	if len(calls) == 1 {
		calls[0].Bytes = out.bytes
	}
	if len(calls) == 0 && recorded(r, e, out) {
		calls = append(calls, s.routeCall(r, e, out, took))
	}
	agent := r.UserAgent()
	for _, n := range calls {
		n.Principal = e.caller.Principal
		n.Client = s.clientName(r, e, agent, n.Client)
		s.keep(r.Context(), n)
	}
}

// keep gives a call to the store.
func (s *Server) keep(ctx context.Context, n souvenir.NewActivity) {
	err := s.store.RecordActivity(context.WithoutCancel(ctx), n)
	if err != nil && !errors.Is(err, souvenir.ErrReadOnly) && !errors.Is(err, souvenir.ErrClosed) {
		s.log.WarnContext(ctx, "a call was not recorded", "request_id", exchangeOf(ctx).id, "error", err)
	}
}

// noteProject notes the project of the memory or file that a request is to change: afterwards it may be gone.
func (s *Server) noteProject(r *http.Request, rt spokenRoute, c caller) {
	if s.options.NoActivity || rt.needs == nothing || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return
	}
	e, id := exchangeOf(r.Context()), r.PathValue("id")
	switch {
	case strings.HasPrefix(rt.pattern, "/memories/{id}/"):
		if m, err := c.store.GetMemoryStatus(r.Context(), id); err == nil && m.ProjectID != "" {
			e.project.ID = m.ProjectOwner + "/" + m.ProjectID
		}
	case strings.HasPrefix(rt.pattern, "/api/files/{id}"), strings.HasPrefix(rt.pattern, "/files/{id}/"):
		if f, err := c.store.GetFile(r.Context(), id); err == nil {
			e.project.ID = f.ProjectID
		}
	}
}

// recorded reports whether an exchange that has called no tool is recorded: endpoints are, and what people change on pages;
// neither looking at pages, nor at what was recorded, nor the messages of MCP that ask for nothing of the user's.
func recorded(r *http.Request, e *exchange, out *response) bool {
	_, pattern, _ := strings.Cut(e.route, " ")
	switch {
	case e.route == "" || pattern == activityPath:
		return false
	case pattern == "/mcp":
		return r.Method == http.MethodPost && out.status >= http.StatusBadRequest
	case e.speaks == speaksPages:
		return r.Method != http.MethodGet && r.Method != http.MethodHead
	}
	return true
}

// routeCall is an exchange that has called no tool.
func (s *Server) routeCall(r *http.Request, e *exchange, out *response, took time.Duration) souvenir.NewActivity {
	n := souvenir.NewActivity{Tool: e.route, Outcome: outcomeOf(e, out), Duration: took, Bytes: out.bytes, FileID: e.fileID, Project: e.project}
	_, pattern, _ := strings.Cut(e.route, " ")
	switch {
	case strings.HasPrefix(pattern, "/api/projects/{id}"):
		n.Project = projectOf(r)
	case strings.HasPrefix(pattern, "/memories/{id}/") && n.Outcome == souvenir.OutcomeOK:
		n.MemoryID = r.PathValue("id")
	case (strings.HasPrefix(pattern, "/api/files/{id}") || strings.HasPrefix(pattern, "/files/{id}/")) && n.Outcome == souvenir.OutcomeOK:
		n.FileID = r.PathValue("id")
	}
	return n
}

// outcomeOf is how an exchange ended.
func outcomeOf(e *exchange, out *response) souvenir.Outcome {
	var wrong *failure
	if e.failed != nil && !errors.As(e.failed, &wrong) {
		return souvenir.OutcomeOf(e.failed)
	}
	if out.status < http.StatusBadRequest {
		return souvenir.OutcomeOK
	}
	for kind, status := range statuses {
		if status == out.status && status != http.StatusBadRequest && kind != souvenir.KindReadOnly {
			return souvenir.OutcomeOf(&souvenir.Error{Kind: kind})
		}
	}
	if out.status >= http.StatusInternalServerError {
		return souvenir.OutcomeOf(souvenir.ErrInternal)
	}
	return souvenir.OutcomeOf(souvenir.ErrInvalid)
}

// clientName is what the client of a request calls itself: what it says in the message, or has said when it began its MCP session. Only clients that
// keep no session are known by their credential and User-Agent.
func (s *Server) clientName(r *http.Request, e *exchange, agent, told string) string {
	if _, pattern, _ := strings.Cut(e.route, " "); pattern != "/mcp" {
		return agent
	}
	if began := sessionClient(r.Header.Get(sessionHeader)); told == "" && began != "" {
		return began
	}
	return s.clients.name(e.caller.Principal, agent, told)
}

// sessionHeader names the session of an MCP client, in the revisions of the protocol that have sessions.
const sessionHeader = "Mcp-Session-Id"

// newSessionID makes the id of a session. It holds what the client calls itself, so that nothing has to be remembered, by any process: sessions are
// for telling calls apart, and open nothing.
func newSessionID(client string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(client[:min(len(client), maxSessionClient)])) + "." + rand.Text()
}

// maxSessionClient is how many bytes of a client's name a session id holds.
const maxSessionClient = 200

// sessionClient is what a client has called itself when its session began; empty: the id is none of this server's.
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

// name returns what a client calls itself: what it tells now, or what all clients with this credential and User-Agent have told, or its
// User-Agent. Of several that have told different names, nobody can say which one calls.
func (c *clientNames) name(p souvenir.Principal, agent, told string) string {
	key := p.Access.User + "\x00" + cmp.Or(p.TokenID, p.ClientID, p.SessionID) + "\x00" + agent[:min(len(agent), 200)]
	c.mu.Lock()
	defer c.mu.Unlock()
	before, known := c.names[key]
	if told == "" {
		return cmp.Or(before, agent)
	}
	if c.names == nil || len(c.names) >= maxClientNames {
		c.names = map[string]string{}
	}
	short := told[:min(len(told), 200)]
	if known && before != short {
		short = "" // several
	}
	c.names[key] = short
	return told
}

// listActivity answers with calls that were recorded: the caller's own, and others' to an admin who asks for them.
func (s *Server) listActivity(_ http.ResponseWriter, r *http.Request, c caller) (any, error) {
	wanted, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, invalid("query", "the query cannot be read: "+err.Error())
	}
	q := souvenir.ActivityQuery{
		User: wanted.Get("user"), ID: wanted.Get("credential_id"), Client: wanted.Get("client"),
		Tool: wanted.Get("tool"), Action: wanted.Get("action"), ProjectID: wanted.Get("project_id"), Before: wanted.Get("before"),
	}
	if q.Credential, err = wordIn(wanted, "credential", credentialKinds()...); err != nil {
		return nil, err
	}
	if q.Outcome, err = wordIn(wanted, "outcome", askedOutcomes()...); err != nil {
		return nil, err
	}
	if q.Limit, err = numberIn(wanted, "limit", 1, souvenir.MaxActivityLimit); err != nil {
		return nil, err
	}
	if q.Since, err = timeIn(wanted, "since"); err != nil {
		return nil, err
	}
	if q.Until, err = timeIn(wanted, "until"); err != nil {
		return nil, err
	}
	if q.User == "" || q.User == c.Access.User || q.User == c.User.Name || c.Access.Projects != nil {
		q.User = "" // a view that is limited to projects is refused all of it
		return c.store.Activities(r.Context(), q)
	}
	if !c.Allows(souvenir.ScopeAdmin) {
		return nil, refuse(souvenir.ScopeAdmin)
	}
	if q.User == "*" {
		q.User = ""
	}
	return s.store.Activities(r.Context(), q)
}

// credentialKinds are the kinds of credentials that calls can be asked for by.
func credentialKinds() []souvenir.CredentialKind {
	return []souvenir.CredentialKind{souvenir.CredentialToken, souvenir.CredentialClient, souvenir.CredentialSession}
}

// askedOutcomes are the outcomes that calls can be asked for by.
func askedOutcomes() []souvenir.Outcome { return append(souvenir.Outcomes(), souvenir.OutcomeError) }

// timeForm is the form of a time that [time.Parse] is not strict about: it takes 9:00 and a comma, too.
var timeForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)

// timeIn reads a time of a query; zero when it is not there.
func timeIn(query url.Values, name string) (time.Time, error) {
	if !query.Has(name) {
		return time.Time{}, nil
	}
	given := query.Get(name)
	at, err := time.Parse(time.RFC3339, given)
	if err != nil || !timeForm.MatchString(given) {
		return time.Time{}, invalid(name, name+" is "+quoted(given)+"; a time of RFC 3339 is needed, such as 2026-03-01T09:00:00Z")
	}
	return at, nil
}

// wordIn reads a word of a query that is one of some; empty when it is not there.
func wordIn[S ~string](query url.Values, name string, allowed ...S) (S, error) {
	given := S(query.Get(name))
	if !query.Has(name) || slices.Contains(allowed, given) {
		return given, nil
	}
	words := make([]string, len(allowed))
	for i, one := range allowed {
		words[i] = string(one)
	}
	return "", invalid(name, name+" is "+quoted(string(given))+"; allowed are "+strings.Join(words, ", "))
}
