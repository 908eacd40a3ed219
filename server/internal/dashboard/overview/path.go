package overview

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// firstPath is the path of a new account, on its overview: connect a client, store a memory, find it.
type firstPath struct {
	Clients []pathClient
	Chosen  string       // client
	Signing *web.Snippet // for sign-in in the browser; nil: it needs a token
	Other   bool         // a client without a snippet
	Address string       // of the MCP endpoint
	Client  string       // the connected client's name for itself; empty: none yet, or unknown
	First   string       // the newest memory, shortened
	Ask     string       // the query on this page
	Found   []pathHit
	State   pathState
	Changed pathChange // which steps a script has to replace
}

// Poll is the path at which a script polls the progress.
func (p firstPath) Poll() string {
	return "/?" + url.Values{"client": {p.Chosen}, "state": {p.State.String()}}.Encode()
}

// pathClient is an entry in the choice of clients.
type pathClient struct {
	Name, Path string
	Chosen     bool
}

// pathHit is a memory that the last step has found.
type pathHit struct {
	ID, Text string
	Percent  int // how likely it is about the question
}

// pathState is the progress of a user on the path.
type pathState struct {
	Connected int // connectedNo and so on
	Stored    bool
	Searched  bool
}

const (
	connectedNo      = iota
	connectedAllowed // an application was allowed, or a token used, and no tool was called yet
	connectedYes
)

// Done reports whether all steps are done.
func (s pathState) Done() bool { return s.Connected == connectedYes && s.Stored && s.Searched }

// String returns the state in the form in which a script sends it back: 2-true-false.
func (s pathState) String() string {
	return strings.Join([]string{strconv.Itoa(s.Connected), strconv.FormatBool(s.Stored),
		strconv.FormatBool(s.Searched)}, "-")
}

// pathChange says which steps differ from what a page shows.
type pathChange struct{ Connect, Store, Search bool }

func changed(before string, s pathState) pathChange {
	shown, now := strings.Split(before, "-"), strings.Split(s.String(), "-")
	if len(shown) != len(now) {
		return pathChange{true, true, true}
	}
	return pathChange{shown[0] != now[0], shown[1] != now[1], shown[2] != now[2]}
}

const (
	pathID     = "path-mark"     // the element that a script polls
	pathCookie = "souvenir_path" // of a browser in which the path is hidden, or its last step was done
	pathHidden = "hidden"
	pathFound  = "found"
	pathKept   = 365 * 24 * 60 * 60 // seconds
	pathHits   = 3

	accountIsNew  = 30 * 24 * time.Hour
	memoriesAtNew = 20 // with more, an account with a client is past its beginning

	anyClient = "Another client"
)

// fillPath adds the path to an overview that is to show it.
func (s *Service) fillPath(w http.ResponseWriter, r *http.Request, c request.Caller, data *overviewPage,
	grants []souvenir.Grant) error {
	query := r.URL.Query()
	if query.Get("path") == pathHidden {
		s.site.SetCookie(w, pathCookie, pathHidden, pathKept)
		return nil
	}
	kept := ""
	if cookie, err := r.Cookie(pathCookie); err == nil {
		kept = cookie.Value
	}
	isNew := time.Since(c.User.CreatedAt) < accountIsNew
	if kept == pathHidden || data.Memories > 0 && !isNew || data.Memories > memoriesAtNew && data.Callers > 0 {
		return nil
	}
	p := &firstPath{Ask: strings.TrimSpace(query.Get("ask")), Address: s.site.PublicURL + "/mcp"}
	p.State.Stored, p.State.Searched = data.Memories > 0, kept == pathFound
	if len(data.Recent) > 0 {
		p.First = textview.Clip(data.Recent[0].Content, 80)
	}
	for _, client := range data.Clients { // a client that has called is connected
		if !web.IsBrowser(client.Name) && p.State.Connected == connectedNo {
			p.State.Connected, p.Client = connectedYes, web.ClientName(client.Name)
		}
	}
	if err := s.lookForFirstCalls(r, c, p, grants); err != nil {
		return err
	}
	if p.Ask != "" {
		if err := p.search(r, c); err != nil {
			return err
		}
		if len(p.Found) > 0 {
			p.State.Searched = true
			s.site.SetCookie(w, pathCookie, pathFound, pathKept)
		}
	}
	if p.State.Done() && p.Ask == "" {
		return nil
	}
	data.Path = p
	return s.chooseClient(query.Get("client"), p)
}

// chooseClient fills in how the chosen client is connected; the first that signs in by itself, if none is chosen.
func (s *Service) chooseClient(chosen string, p *firstPath) error {
	var signing, withToken []web.Snippet
	if s.snippets != nil {
		signing, withToken = s.snippets(p.Address, ""), s.snippets(p.Address, request.MCPTokenPrefix+"YOUR_TOKEN")
	}
	var names []string
	for _, one := range slices.Concat(signing, withToken) {
		if !slices.Contains(names, one.Client) {
			names = append(names, one.Client)
		}
	}
	names = append(names, anyClient)
	p.Chosen = cmp.Or(chosen, names[0])
	if !slices.Contains(names, p.Chosen) {
		return failure.Invalid("client", "client is "+failure.Quote(p.Chosen)+
			"; choose a client on the page, such as "+names[0])
	}
	for _, name := range names {
		p.Clients = append(p.Clients, pathClient{name, "/?" + url.Values{"client": {name}}.Encode(), name == p.Chosen})
	}
	p.Other = p.Chosen == anyClient
	if i := slices.IndexFunc(signing, func(one web.Snippet) bool { return one.Client == p.Chosen }); i >= 0 {
		p.Signing = &signing[i]
	}
	return nil
}

// lookForFirstCalls finds out whether a client has called, or may, and whether it has searched.
func (s *Service) lookForFirstCalls(r *http.Request, c request.Caller, p *firstPath, grants []souvenir.Grant) error {
	for _, kind := range []souvenir.CredentialKind{souvenir.CredentialClient, souvenir.CredentialToken} {
		if p.State.Connected == connectedYes {
			break
		}
		calls, err := c.Store.Insights().ActivityPage(r.Context(), souvenir.ActivityQuery{Credential: kind, Limit: 1})
		if err != nil {
			return err
		}
		if len(calls.Activities) > 0 {
			p.State.Connected = connectedYes
			p.Client = cmp.Or(web.ClientName(calls.Activities[0].Client), calls.Activities[0].Credential.Name)
		}
	}
	if p.State.Connected == connectedNo {
		if err := s.lookForCredentials(r, c, p, grants); err != nil {
			return err
		}
	}
	if p.State.Searched || !p.State.Stored || p.State.Connected != connectedYes {
		return nil
	}
	searches, err := c.Store.Insights().ActivityPage(r.Context(), souvenir.ActivityQuery{Limit: 1,
		Calls: []souvenir.ToolAction{{Tool: "memory", Action: "search"}, {Tool: "memory", Action: "get_context"}}})
	p.State.Searched = err == nil && len(searches.Activities) > 0
	return err
}

// lookForCredentials finds out whether an application was allowed, or a token used. If calls are not recorded, nothing
// more is known.
func (s *Service) lookForCredentials(r *http.Request, c request.Caller, p *firstPath, grants []souvenir.Grant) error {
	reached := connectedAllowed
	if s.noActivity {
		reached = connectedYes
	}
	if len(grants) > 0 {
		p.State.Connected, p.Client = reached, web.ShortName(grants[0].ClientName)
		return nil
	}
	tokens, err := c.Store.Accounts().Tokens(r.Context())
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(tokens, func(t souvenir.Token) bool { return !t.LastUsedAt.IsZero() }); i >= 0 {
		p.State.Connected, p.Client = reached, web.ShortName(tokens[i].Name)
	}
	return nil
}

// search fills in what the last step has found.
func (p *firstPath) search(r *http.Request, c request.Caller) error {
	found, err := c.Store.Search(r.Context(), souvenir.Query{Text: p.Ask, Limit: pathHits})
	if err != nil {
		return err
	}
	for _, hit := range found.Hits {
		p.Found = append(p.Found, pathHit{hit.ID, textview.Clip(hit.Content, 160), int(100 * hit.Score)})
	}
	return nil
}

// showPathMark answers a script that polls the progress on the path. While nothing changes the answer is empty, so that
// a screen reader stays silent.
func (s *Service) showPathMark(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	data := overviewPage{}
	grants, err := c.Store.Accounts().Grants(r.Context())
	if err != nil {
		return nil, err
	}
	recent, err := c.Store.Search(r.Context(), souvenir.Query{Sort: souvenir.SortUpdatedDesc, Limit: 1})
	if err != nil {
		return nil, err
	}
	p := &firstPath{Address: s.site.PublicURL + "/mcp"}
	if len(recent.Hits) > 0 {
		p.State.Stored, p.First = true, textview.Clip(recent.Hits[0].Content, 80)
	}
	if cookie, err := r.Cookie(pathCookie); err == nil {
		p.State.Searched = cookie.Value == pathFound
	}
	if err := s.lookForFirstCalls(r, c, p, grants); err != nil {
		return nil, err
	}
	before := r.URL.Query().Get("state")
	if before == p.State.String() {
		w.WriteHeader(http.StatusNoContent)
		return nil, nil
	}
	p.Changed = changed(before, p.State)
	data.Path = p
	return web.Page{Template: "overview", Title: "Overview", Part: "path-news", Data: data},
		s.chooseClient(r.URL.Query().Get("client"), p)
}
