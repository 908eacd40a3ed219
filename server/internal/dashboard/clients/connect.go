package clients

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/shorten"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// connection is the part of a page about connecting clients.
type connection struct {
	Address  string        // of the MCP endpoint
	Token    string        // its value, if just created; else empty
	Mark     connectedMark // shows the first use of that token; without a TokenID the page has no mark
	Snippets []web.Snippet
}

// connection returns how to connect clients, with a token or by sign-in ("").
func (s *Service) connection(token string) connection {
	c := connection{Address: s.site.PublicURL + "/mcp", Token: token}
	if s.snippets != nil {
		c.Snippets = s.snippets(c.Address, token)
	}
	return c
}

// anyClient is the name for clients without a snippet.
const anyClient = "Another client"

// Welcome greets a user who has just created an account with the page on which the first client is connected. No token
// is created until the user asks for one.
func (s *Service) Welcome(r *http.Request, user souvenir.User, title string) (any, error) {
	c := request.Caller{Principal: souvenir.Principal{User: user}, Store: s.store.As(souvenir.Access{User: user.ID})}
	p, err := s.clientPage(r, c, "")
	p.Title = title
	return p, err
}

// freshToken is the page that shows a new token, this once, inside the snippets of all clients.
func (s *Service) freshToken(added souvenir.AddedToken, title string) web.Page {
	data := s.connection(added.Value)
	data.Mark = connectedMark{TokenID: added.ID, State: stateWaiting}
	return web.Page{Template: "connect", Title: title, Data: data}
}

// clientPage is the data of the page on which a user chooses a client and connects it.
type clientPage struct {
	Address string
	Clients []clientChoice
	Chosen  string
	Signing *web.Snippet // for sign-in in the browser; nil: not supported
	Tokens  bool         // it supports tokens
	Other   bool         // it is anyClient
	Mark    connectedMark

	Paused   []string           // names of tokens and applications that the user has paused
	Days     string             // how long a token lives, by default
	Projects []souvenir.Project // to which it can be limited
	More     int                // projects left out
}

// clientChoice is an entry in the choice of clients.
type clientChoice struct {
	Name   string
	Chosen bool
}

// showConnect shows the choice of clients, and how to connect one. A script polls the mark that shows when it has
// connected.
func (s *Service) showConnect(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	if web.FromScript(r) && r.Header.Get("HX-Target") == connectedID {
		return s.showConnectedMark(w, r, c)
	}
	return s.clientPage(r, c, r.URL.Query().Get("client"))
}

// clientPage is the page for a client; empty: for the first.
func (s *Service) clientPage(r *http.Request, c request.Caller, chosen string) (web.Page, error) {
	signing, withToken := s.connection("").Snippets, s.connection(exampleToken).Snippets
	names := clientNamesOf(signing, withToken)
	chosen = cmp.Or(chosen, names[0])
	if !slices.Contains(names, chosen) {
		return web.Page{}, failure.Invalid("client", "client is "+failure.Quote(chosen)+
			"; choose a client on the page, such as "+names[0])
	}
	projects, err := c.Store.Projects(r.Context())
	if err != nil {
		return web.Page{}, err
	}
	paused, err := pausedOnes(r.Context(), c)
	if err != nil {
		return web.Page{}, err
	}
	data := clientPage{Paused: paused, Days: defaultTokenDays, Projects: projects[:min(len(projects), maxProjects)],
		More: max(0, len(projects)-maxProjects), Address: s.connection("").Address, Chosen: chosen,
		Other: chosen == anyClient,
		Mark:  connectedMark{Since: time.Now().UTC().Format(time.RFC3339), State: stateWaiting}}
	for _, name := range names {
		data.Clients = append(data.Clients, clientChoice{name, name == chosen})
	}
	if i := slices.IndexFunc(signing, func(one web.Snippet) bool { return one.Client == chosen }); i >= 0 {
		data.Signing = &signing[i]
	}
	data.Tokens = data.Other || slices.ContainsFunc(withToken, func(one web.Snippet) bool { return one.Client == chosen })
	return web.Page{Template: "connectclient", Title: "Connect a client", Data: data}, nil
}

// pausedOnes returns the names of the tokens and applications that the user has paused.
func pausedOnes(ctx context.Context, c request.Caller) (names []string, err error) {
	tokens, err := c.Store.Accounts().Tokens(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range tokens {
		if !t.PausedAt.IsZero() {
			names = append(names, t.Name)
		}
	}
	grants, err := c.Store.Accounts().Grants(ctx)
	for _, g := range grants {
		if !g.PausedAt.IsZero() {
			names = append(names, web.ShortName(g.ClientName))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

// exampleToken is the token of examples, for finding out which clients support one.
const exampleToken = request.MCPTokenPrefix + "YOUR_TOKEN"

// clientNamesOf returns the names of all clients with snippets, and anyClient.
func clientNamesOf(lists ...[]web.Snippet) []string {
	var names []string
	for _, list := range lists {
		for _, one := range list {
			if !slices.Contains(names, one.Client) {
				names = append(names, one.Client)
			}
		}
	}
	return append(names, anyClient)
}

// connectClient creates a token for a client and shows it, this once, inside that client's snippet.
func (s *Service) connectClient(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	chosen := values.Get("client")
	if !slices.Contains(clientNamesOf(s.connection("").Snippets, s.connection(exampleToken).Snippets), chosen) {
		return nil, failure.Invalid("client", "client is "+failure.Quote(chosen)+"; choose one on the page")
	}
	choice := tokenChoice{Days: defaultTokenDays, Access: cmp.Or(values.Get("access"), tokenWrites),
		Projects: values["project"]}
	if values.Has("days") {
		choice.Days = values.Get("days")
	}
	n, err := choice.token(chosen, c.User, time.Now())
	if err != nil {
		return nil, err
	}
	n.SignInID = c.SignInID
	if chosen == anyClient {
		n.Name = "Client"
	}
	n.Name = shorten.Characters(n.Name, maxTokenName)
	added, err := c.Store.Accounts().AddToken(r.Context(), n)
	if err != nil {
		return nil, err
	}
	p := s.freshToken(added, "Connect "+chosen)
	if data, ok := p.Data.(connection); ok {
		data.Snippets = slices.DeleteFunc(data.Snippets, func(one web.Snippet) bool { return one.Client != chosen })
		p.Data = data
	}
	if chosen == anyClient {
		p.Title = "Connect a client"
	}
	return p, nil
}

// maxTokenName is how many characters the name of a token may have.
const maxTokenName = 128
