package clients

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/route"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// clientsPage is the data of the page on which users manage the OAuth clients that they have created.
type clientsPage struct {
	web.Form
	URIs      web.Field // one per line
	Method    string
	Clients   []ownClient
	Pages     web.Pager
	Made      *souvenir.RegisteredClient // just created, with the secret
	Renewed   bool                       // the secret is a new one of an existing client
	Endpoints []web.Fact                 // settings for an application
}

// ownClient is an OAuth client of the user's.
type ownClient struct {
	souvenir.Client
	AuthorizedAt time.Time // when the user authorized it; zero: not yet
	LastUsed     time.Time
}

// Method describes how the client authenticates.
func (c ownClient) Method() string {
	switch c.Metadata.TokenEndpointAuthMethod {
	case souvenir.AuthNone:
		return "no secret"
	case souvenir.AuthSecretPost:
		return "secret in the form"
	}
	return "secret in the header"
}

// Secret reports whether the client has one.
func (c ownClient) Secret() bool { return c.Metadata.TokenEndpointAuthMethod != souvenir.AuthNone }

// ownClients loads the page before any input.
func (s *Service) ownClients(r *http.Request, c request.Caller) (web.Page, *clientsPage, error) {
	data := &clientsPage{
		Method: souvenir.AuthSecretBasic,
		Form: web.Form{Fields: []web.Field{
			{Name: "name", Argument: "client_name", Label: "Name", Type: "text", Autocomplete: "off",
				Hint: "Shown to people when the application asks for access."},
			{Name: "client_id", Label: "Id", Type: "text", Autocomplete: "off",
				Hint:     "The client id that the application requires, if any. Left empty, the server creates one.",
				Optional: true},
		}},
		URIs: web.Field{Name: "redirect_uris", Label: "Redirect URIs",
			Hint: "Where people return to the application, exactly as it sends them, one per line: https, http on this " +
				"machine only, or its own scheme."},
		Endpoints: []web.Fact{
			{Key: "Issuer", Value: s.site.PublicURL},
			{Key: "Authorization endpoint", Value: s.site.PublicURL + route.AuthorizePath},
			{Key: "Token endpoint", Value: s.site.PublicURL + "/oauth/token"},
			{Key: "MCP endpoint", Value: s.connection("").Address},
		},
	}
	clients, err := c.Store.Accounts().Clients(r.Context())
	if err != nil {
		return web.Page{}, nil, err
	}
	grants, err := c.Store.Accounts().Grants(r.Context())
	if err != nil {
		return web.Page{}, nil, err
	}
	slices.SortStableFunc(clients, func(a, b souvenir.Client) int { // active ones first
		switch {
		case a.Active == b.Active:
			return 0
		case a.Active:
			return -1
		}
		return 1
	})
	clients, data.Pages = web.Paginate(clients, r, "clients")
	for _, client := range clients {
		own := ownClient{Client: client}
		if i := slices.IndexFunc(grants, func(g souvenir.Grant) bool { return g.ClientID == client.ID }); i >= 0 {
			own.AuthorizedAt, own.LastUsed = grants[i].CreatedAt, grants[i].LastUsedAt
		}
		data.Clients = append(data.Clients, own)
	}
	return web.Page{Template: "clients", Title: "OAuth clients", Data: data}, data, nil
}

func (s *Service) showClients(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	p, _, err := s.ownClients(r, c)
	return p, err
}

// addClient creates a client and shows its secret, this once.
func (s *Service) addClient(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	var made souvenir.RegisteredClient
	if strings.TrimSpace(values.Get("name")) == "" {
		err = failure.Invalid("client_name", "client_name is empty; people need to see a name")
	} else {
		made, err = c.Store.Accounts().AddClient(r.Context(), souvenir.NewClient{
			ID: strings.TrimSpace(values.Get("client_id")), Name: values.Get("name"),
			RedirectURIs: lines(values.Get("redirect_uris")), AuthMethod: values.Get("method")})
	}
	p, data, failed := s.ownClients(r, c)
	if failed != nil {
		return nil, failed
	}
	if err != nil {
		data.Method = values.Get("method")
		data.Fields = append(data.Fields, data.URIs)
		data.Fill(values.Get)
		data.Refuse(err)
		last := len(data.Fields) - 1
		data.URIs, data.Fields = data.Fields[last], data.Fields[:last]
		return web.Again(p, err)
	}
	data.Made = &made
	return p, nil
}

// lines returns the non-empty lines of a text.
func lines(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// changeClient gives a client a new secret and shows it, or deactivates it for good.
func (s *Service) changeClient(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	id := values.Get("id")
	switch change := values.Get("change"); change {
	case "secret":
		if asks, err := s.signin.Confirm(w, r, c, values, "/clients"); asks != nil || err != nil {
			return asks, err
		}
		renewed, err := c.Store.Accounts().RegenerateClientSecret(r.Context(), id)
		if err != nil {
			return nil, err
		}
		p, data, err := s.ownClients(r, c)
		if err != nil {
			return nil, err
		}
		data.Made, data.Renewed = &renewed, true
		return p, nil
	case "deactivate":
		if err := c.Store.Accounts().DeactivateClient(r.Context(), id); err != nil {
			return nil, err
		}
		return s.site.Done("/clients", "client"), nil
	default:
		return nil, failure.Invalid("change", "change is "+failure.Quote(change)+"; expected secret or deactivate")
	}
}
