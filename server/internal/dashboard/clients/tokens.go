package clients

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/params"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// tokensPage is the data of the page on which people create and revoke their MCP tokens.
type tokensPage struct {
	web.Form
	Tokens   []ownToken
	Pages    web.Pager
	Projects []souvenir.Project // to which a token can be limited
	More     int                // projects left out
	Chosen   tokenChoice
	Made     *connection // with the value of a new token
	Address  string      // of the MCP endpoint
}

// defaultTokenDays is how many days a token lives unless its creator chooses otherwise.
const defaultTokenDays = "90"

// maxProjects is how many projects are offered; others are typed.
const maxProjects = 50

// ownToken is a token of the user's.
type ownToken struct {
	souvenir.Token
	Names []string // of its projects
}

// Origin describes the credential that created the token, with which the token ends; empty if unknown. Applications
// choose their own names.
func (t ownToken) Origin() string {
	switch {
	case t.TokenID != "":
		return "with the token " + cmp.Or(web.ShortName(t.TokenName), t.TokenID)
	case t.GrantID != "":
		return "with " + cmp.Or(web.ShortName(t.ClientName), "an unnamed application")
	case t.SignInID != "":
		return "in the browser session of " + web.BrowserName(t.Browser)
	}
	return ""
}

// Rights describes briefly what a token may do.
func (t ownToken) Rights() string {
	words := "reads"
	if slices.Contains(t.Scopes, souvenir.ScopeMemoryWrite) || slices.Contains(t.Scopes, souvenir.ScopeFilesWrite) {
		words = "reads and writes"
	}
	if slices.Contains(t.Scopes, souvenir.ScopeAccount) {
		words += ", manages tokens and members"
	}
	if slices.Contains(t.Scopes, souvenir.ScopeAdmin) {
		words += ", manages the service"
	}
	if t.Projects != nil {
		words += " in " + cmp.Or(strings.Join(t.Names, ", "), "no project")
	}
	return words
}

// tokenChoice is the input for a new token.
type tokenChoice struct {
	Days     string
	Access   string
	Account  bool
	Admin    bool
	Session  bool // it ends with the session
	Projects []string
}

// Limited reports whether a project is among the chosen ones.
func (c tokenChoice) Limited(project souvenir.Project) bool {
	return slices.Contains(c.Projects, project.Ref())
}

// tokens loads the page before any input.
func (s *Service) tokens(r *http.Request, c request.Caller) (web.Page, *tokensPage, error) {
	data := &tokensPage{Chosen: tokenChoice{Days: defaultTokenDays, Access: tokenWrites},
		Address: s.connection("").Address,
		Form: web.Form{Fields: []web.Field{
			{Name: "name", Label: "Name", Type: "text", Autocomplete: "off",
				Hint: "A name to recognize it by, such as its client and device."},
		}}}
	tokens, err := c.Store.Accounts().Tokens(r.Context())
	if err != nil {
		return web.Page{}, nil, err
	}
	projects, err := c.Store.Projects(r.Context())
	if err != nil {
		return web.Page{}, nil, err
	}
	data.Projects, data.More = projects[:min(len(projects), maxProjects)], max(0, len(projects)-maxProjects)
	tokens, data.Pages = web.Paginate(tokens, r, "tokens")
	for _, token := range tokens {
		data.Tokens = append(data.Tokens, ownToken{token, namesOf(token.Projects, projects, c.User.ID)})
	}
	return web.Page{Template: "tokens", Title: "Tokens", Data: data}, data, nil
}

func (s *Service) showTokens(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	p, _, err := s.tokens(r, c)
	return p, err
}

const (
	tokenReads  = "read"
	tokenWrites = "write"
)

// createToken creates an MCP token and shows it, this once, with the snippets for clients.
func (s *Service) createToken(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	chosen := tokenChoice{values.Get("days"), values.Get("access"), values.Has("account"), values.Has("admin"),
		values.Has("with-session"), values["project"]}
	n, err := chosen.token(values.Get("name"), c.User, time.Now())
	var added souvenir.AddedToken
	if err == nil {
		n.SignInID, n.WithSignIn = c.SignInID, chosen.Session
		added, err = c.Store.Accounts().AddToken(r.Context(), n)
	}
	p, data, failed := s.tokens(r, c)
	if failed != nil {
		return nil, failed
	}
	if err != nil {
		data.Chosen = chosen
		data.Fill(values.Get)
		data.Refuse(err)
		return web.Again(p, err)
	}
	made := s.connection(added.Value)
	data.Made = &made
	return p, nil
}

// token returns the token to create.
func (c tokenChoice) token(name string, user souvenir.User, now time.Time) (souvenir.NewToken, error) {
	n := souvenir.NewToken{Name: name, Projects: c.Projects}
	switch c.Access {
	case tokenWrites:
		n.Scopes = souvenir.DefaultScopes()
	case tokenReads:
		n.Scopes = []souvenir.Scope{souvenir.ScopeMemoryRead, souvenir.ScopeFilesRead}
	default:
		return n, failure.Invalid("access", "access is "+failure.Quote(c.Access)+"; expected read or write")
	}
	if c.Account {
		n.Scopes = append(n.Scopes, souvenir.ScopeAccount)
	}
	if c.Admin {
		if user.Role != souvenir.RoleAdmin {
			return n, &souvenir.Error{Kind: souvenir.KindForbidden, Argument: "admin",
				Message: "only admins can create tokens with admin; omit it"}
		}
		n.Scopes = append(n.Scopes, souvenir.ScopeAdmin)
	}
	if c.Days != "" {
		days, err := strconv.Atoi(c.Days)
		if err != nil || days < 1 || days > params.MaxTokenDays {
			return n, failure.Invalid("days", "days is "+failure.Quote(c.Days)+
				"; expected a whole number of days, or nothing for a token that does not expire")
		}
		n.ExpiresAt = now.Add(time.Duration(days) * web.Day)
	}
	return n, nil
}

func (s *Service) revokeToken(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	if err := c.Store.Accounts().RevokeToken(r.Context(), values.Get("id")); err != nil &&
		!errors.Is(err, souvenir.ErrNotFound) {
		return nil, err
	}
	return s.site.Done("/tokens", "token"), nil
}
