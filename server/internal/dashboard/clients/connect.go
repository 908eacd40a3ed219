package clients

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// Snippet is the Snippet of package server.
type Snippet struct {
	Client string // its name, such as Claude Code
	Where  string // where the text belongs
	Text   string // to be pasted
}

// ID is the id of the text on a page.
func (s Snippet) ID() string {
	sum := sha256.Sum256([]byte(s.Client))
	return "paste-" + hex.EncodeToString(sum[:4])
}

// connection is what the pages show of how clients are connected.
type connection struct {
	Address  string        // of the MCP endpoint
	Token    string        // its value, where one was just made; else empty
	Mark     connectedMark // of that token, which tells when it is used first; without a TokenID the page has none
	Snippets []Snippet
}

// connection tells how clients are connected, with a token or by signing in ("").
func (s *Service) connection(token string) connection {
	c := connection{Address: s.site.PublicURL + "/mcp", Token: token}
	if s.snippets != nil {
		c.Snippets = s.snippets(c.Address, token)
	}
	return c
}

// anyClient is what a client is called here that there is no snippet for.
const anyClient = "Another client"

// firstToken is the name of the token that is made with an account.
const firstToken = "First client"

// Welcome greets somebody who has just made an account: with a token, so that the first client can be connected at
// once.
func (s *Service) Welcome(r *http.Request, user souvenir.User, title string) (any, error) {
	n := souvenir.NewToken{Name: firstToken, SessionID: request.Of(r.Context()).Caller.SessionID}
	token, err := s.store.As(souvenir.Access{User: user.ID}).Accounts().AddToken(r.Context(), n)
	if err != nil {
		return nil, err
	}
	return s.freshToken(token, title), nil
}

// freshToken is the page that shows a new token, this once, within what each client wants to have pasted.
func (s *Service) freshToken(added souvenir.AddedToken, title string) web.Page {
	data := s.connection(added.Value)
	data.Mark = connectedMark{TokenID: added.ID, State: stateWaiting}
	return web.Page{Template: "connect", Title: title, Data: data}
}

// clientPage is what the page shows on which somebody chooses a client and connects it.
type clientPage struct {
	Address string
	Clients []clientChoice
	Chosen  string
	Signing *Snippet // for letting it open the browser; nil: it cannot
	Tokens  bool     // it takes a token
	Other   bool     // it is anyClient
	Mark    connectedMark
}

// clientChoice is a client that can be chosen.
type clientChoice struct {
	Name   string
	Chosen bool
}

// showConnect asks which client is to be connected, and says how. A script asks for the mark that tells when it is.
func (s *Service) showConnect(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	if web.FromScript(r) && r.Header.Get("HX-Target") == connectedID {
		return s.showConnectedMark(w, r, c)
	}
	return s.clientPage(r.URL.Query().Get("client"))
}

// clientPage is the page for a client; empty: for the first.
func (s *Service) clientPage(chosen string) (web.Page, error) {
	signing, withToken := s.connection("").Snippets, s.connection(tokenStandIn).Snippets
	names := clientNamesOf(signing, withToken)
	chosen = cmp.Or(chosen, names[0])
	if !slices.Contains(names, chosen) {
		return web.Page{}, failure.Invalid("client", "client is "+failure.Quote(chosen)+
			"; one of those on the page is needed, such as "+names[0])
	}
	data := clientPage{Address: s.connection("").Address, Chosen: chosen, Other: chosen == anyClient,
		Mark: connectedMark{Since: time.Now().UTC().Format(time.RFC3339), State: stateWaiting}}
	for _, name := range names {
		data.Clients = append(data.Clients, clientChoice{name, name == chosen})
	}
	if i := slices.IndexFunc(signing, func(one Snippet) bool { return one.Client == chosen }); i >= 0 {
		data.Signing = &signing[i]
	}
	data.Tokens = data.Other || slices.ContainsFunc(withToken, func(one Snippet) bool { return one.Client == chosen })
	return web.Page{Template: "connectclient", Title: "Connect a client", Data: data}, nil
}

// tokenStandIn stands where a token belongs, where it is only looked who takes one.
const tokenStandIn = request.MCPTokenPrefix + "YOUR_TOKEN"

// clientNamesOf are the names of all clients that there are snippets for, and of any other.
func clientNamesOf(lists ...[]Snippet) []string {
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

// connectClient makes a token for a client and shows it, this once, in what that client wants to have pasted.
func (s *Service) connectClient(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	chosen := values.Get("client")
	if !slices.Contains(clientNamesOf(s.connection("").Snippets, s.connection(tokenStandIn).Snippets), chosen) {
		return nil, failure.Invalid("client", "client is "+failure.Quote(chosen)+"; choose one of those on the page")
	}
	n := souvenir.NewToken{Name: chosen, SessionID: c.SessionID}
	if values.Get("access") == tokenReads {
		n.Scopes = []souvenir.Scope{souvenir.ScopeMemoryRead, souvenir.ScopeFilesRead}
	}
	if chosen == anyClient {
		n.Name = "Client"
	}
	n.Name = cutName(n.Name)
	added, err := c.Store.Accounts().AddToken(r.Context(), n)
	if err != nil {
		return nil, err
	}
	p := s.freshToken(added, "Connect "+chosen)
	if data, ok := p.Data.(connection); ok {
		data.Snippets = slices.DeleteFunc(data.Snippets, func(one Snippet) bool { return one.Client != chosen })
		p.Data = data
	}
	if chosen == anyClient {
		p.Title = "Connect a client"
	}
	return p, nil
}

// cutName is a name that is not too long for a token.
func cutName(name string) string {
	const most = 128
	if runes := []rune(name); len(runes) > most {
		return string(runes[:most])
	}
	return name
}
