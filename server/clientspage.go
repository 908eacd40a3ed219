package server

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// clientsPage is what the page shows on which users look after the OAuth clients that they have made themselves.
type clientsPage struct {
	pageForm
	URIs      field // one to a line
	Method    string
	Clients   []ownClient
	Pages     pager
	Made      *souvenir.RegisteredClient // with the secret, which was just made
	Renewed   bool                       // the secret is a new one of a client that there was
	Endpoints []fact                     // what an application has to be told
}

// ownClient is an OAuth client of the user's.
type ownClient struct {
	souvenir.Client
	LetIn    time.Time // when the user let it in; zero: not
	LastUsed time.Time
}

// Method says in words how the client shows who it is.
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

// ownClients gathers the page, as it is before anything is typed.
func (s *Server) ownClients(r *http.Request, c caller) (page, *clientsPage, error) {
	data := &clientsPage{
		Method: souvenir.AuthSecretBasic,
		pageForm: pageForm{Fields: []field{
			{Name: "name", argument: "client_name", Label: "Name", Type: "text", Autocomplete: "off", Hint: "People are shown it when they are asked to let the application in."},
			{Name: "client_id", Label: "Id", Type: "text", Autocomplete: "off", Hint: "What the application calls itself here, if it is fixed there already. Otherwise one is made.", Optional: true},
		}},
		URIs: field{Name: "redirect_uris", Label: "Redirect URIs", Hint: "Where people come back to the application, exactly as it sends them, one to a line: https, http on this machine only, or a scheme of its own."},
		Endpoints: []fact{
			{"Issuer", s.options.PublicURL},
			{"Authorization endpoint", s.options.PublicURL + authorizePath},
			{"Token endpoint", s.options.PublicURL + "/oauth/token"},
			{"MCP endpoint", s.connection("").Address},
		},
	}
	clients, err := c.store.Clients(r.Context())
	if err != nil {
		return page{}, nil, err
	}
	grants, err := c.store.Grants(r.Context())
	if err != nil {
		return page{}, nil, err
	}
	slices.SortStableFunc(clients, func(a, b souvenir.Client) int { // those that work come first
		switch {
		case a.Active == b.Active:
			return 0
		case a.Active:
			return -1
		}
		return 1
	})
	clients, data.Pages = part(clients, r, "clients")
	for _, client := range clients {
		own := ownClient{Client: client}
		if i := slices.IndexFunc(grants, func(g souvenir.Grant) bool { return g.ClientID == client.ID }); i >= 0 {
			own.LetIn, own.LastUsed = grants[i].CreatedAt, grants[i].LastUsedAt
		}
		data.Clients = append(data.Clients, own)
	}
	return page{template: "clients", title: "OAuth clients", data: data}, data, nil
}

func (s *Server) showClients(_ http.ResponseWriter, r *http.Request, c caller) (any, error) {
	p, _, err := s.ownClients(r, c)
	return p, err
}

// makeClient makes a client and shows its secret, this once.
func (s *Server) makeClient(w http.ResponseWriter, r *http.Request, c caller) (any, error) {
	values, err := s.readForm(w, r)
	if err != nil {
		return nil, err
	}
	var made souvenir.RegisteredClient
	if strings.TrimSpace(values.Get("name")) == "" {
		err = invalid("client_name", "client_name is empty; people must be shown a name")
	} else {
		made, err = c.store.AddClient(r.Context(), souvenir.NewClient{
			ID: strings.TrimSpace(values.Get("client_id")), Name: values.Get("name"), RedirectURIs: lines(values.Get("redirect_uris")), AuthMethod: values.Get("method")})
	}
	p, data, failed := s.ownClients(r, c)
	if failed != nil {
		return nil, failed
	}
	if err != nil {
		data.Method = values.Get("method")
		data.Fields = append(data.Fields, data.URIs)
		data.fill(values.Get)
		data.refuse(err)
		last := len(data.Fields) - 1
		data.URIs, data.Fields = data.Fields[last], data.Fields[:last]
		return again(p, err)
	}
	data.Made = &made
	return p, nil
}

// lines are the lines of a text that are not empty.
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
func (s *Server) changeClient(w http.ResponseWriter, r *http.Request, c caller) (any, error) {
	values, err := s.readForm(w, r)
	if err != nil {
		return nil, err
	}
	id := values.Get("id")
	switch change := values.Get("change"); change {
	case "secret":
		if asks, err := s.confirm(w, r, c, values, "/clients"); asks != nil || err != nil {
			return asks, err
		}
		renewed, err := c.store.RegenerateClientSecret(r.Context(), id)
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
		if err := c.store.DeactivateClient(r.Context(), id); err != nil {
			return nil, err
		}
		return s.done("/clients", "client"), nil
	default:
		return nil, invalid("change", "change is "+quoted(change)+"; allowed are secret and deactivate")
	}
}
