package server

import (
	"net/http"

	"github.com/souvenir-ai/souvenir"
)

// Snippet is what connects an AI client with the server: a command to run, a piece of a configuration file, or what to do.
type Snippet struct {
	Client string // its name, such as Claude Code
	Where  string // where the text belongs
	Text   string // to be pasted
}

// connection is what the pages show of how clients are connected.
type connection struct {
	Address  string // of the MCP endpoint
	Token    string // its value, where one was just made; else empty
	Snippets []Snippet
}

// connection tells how clients are connected, with a token or by signing in ("").
func (s *Server) connection(token string) connection {
	c := connection{Address: s.options.PublicURL + "/mcp", Token: token}
	if s.options.Snippets != nil {
		c.Snippets = s.options.Snippets(c.Address, token)
	}
	return c
}

// startPage is what the first page shows.
type startPage struct {
	Connection                       connection
	Memories, Projects, Tokens, Apps int // how many
}

// start shows what there is, and how to connect clients.
func (s *Server) start(_ http.ResponseWriter, r *http.Request, c caller) (any, error) {
	data := startPage{Connection: s.connection("")}
	collections, err := c.store.Collections(r.Context())
	if err != nil {
		return nil, err
	}
	for _, collection := range collections {
		data.Memories += collection.MemoryCount
	}
	projects, err := c.store.Projects(r.Context())
	if err != nil {
		return nil, err
	}
	tokens, err := c.store.Tokens(r.Context())
	if err != nil {
		return nil, err
	}
	grants, err := c.store.Grants(r.Context())
	if err != nil {
		return nil, err
	}
	data.Projects, data.Tokens, data.Apps = len(projects), len(tokens), len(grants)
	return page{template: "start", title: "Hello, " + c.User.Name, data: data}, nil
}

// firstToken is the name of the token that is made with an account.
const firstToken = "First client"

// connectPage greets somebody who has just made an account: with a token, so that the first client can be connected at once.
func (s *Server) connectPage(r *http.Request, user souvenir.User, title string) (any, error) {
	token, err := s.store.As(souvenir.Access{User: user.ID}).AddToken(r.Context(), souvenir.NewToken{Name: firstToken})
	if err != nil {
		return nil, err
	}
	return page{template: "connect", title: title, data: s.connection(token.Value)}, nil
}
