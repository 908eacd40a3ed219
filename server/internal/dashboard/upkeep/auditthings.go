package upkeep

import (
	"context"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// auditThings returns the names of what entries are about, by the ids of the log: of an admin's own tokens and
// applications, and of the projects and collections that they see. Those of others stay without a name.
func auditThings(ctx context.Context, c request.Caller) (map[string]string, error) {
	things := map[string]string{}
	accounts := c.Store.Accounts()
	tokens, err := accounts.Tokens(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range tokens {
		things[t.ID] = web.ShortName(t.Name)
	}
	grants, err := accounts.Grants(ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range grants {
		name := web.ShortName(g.ClientName)
		things[g.ID], things[souvenir.AuditID("client", g.ClientID)] = name, name
	}
	clients, err := accounts.Clients(ctx)
	if err != nil {
		return nil, err
	}
	for _, one := range clients {
		things[souvenir.AuditID("client", one.ID)] = web.ShortName(one.Metadata.ClientName)
	}
	projects, err := c.Store.Projects(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range projects {
		things[souvenir.AuditID("project", p.Owner, p.ID)] = p.Name
	}
	collections, err := c.Store.Collections(ctx)
	if err != nil {
		return nil, err
	}
	for _, one := range collections {
		things[souvenir.AuditID("collection", c.User.ID, one.Name)] = one.Name
	}
	return things, nil
}
