package upkeep

import (
	"context"
	"errors"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// auditThings names the objects of entries: an admin's own tokens and applications, and the projects and collections
// that they see. Those of others stay without a name. It lists the objects of a kind for the first entry that has one.
type auditThings struct {
	ctx   context.Context // of the request for which it lives
	c     request.Caller
	known map[string]map[string]string // names by kinds and the log's ids
	err   error
}

// of returns the name of an entry's object, "" if it is not known.
func (t *auditThings) of(e souvenir.AuditEntry) string {
	names, listed := t.known[e.Kind]
	if !listed {
		names = map[string]string{}
		t.known[e.Kind] = names
		t.err = errors.Join(t.err, t.list(e.Kind, names))
	}
	return names[e.Object]
}

func (t *auditThings) list(kind string, names map[string]string) error {
	accounts := t.c.Store.Accounts()
	switch kind {
	case "token":
		tokens, err := accounts.Tokens(t.ctx)
		for _, token := range tokens {
			names[token.ID] = web.ShortName(token.Name)
		}
		return err
	case "grant", "client":
		grants, err := accounts.Grants(t.ctx)
		for _, g := range grants {
			names[g.ID], names[souvenir.AuditID("client", g.ClientID)] = web.ShortName(g.ClientName), web.ShortName(g.ClientName)
		}
		if err != nil || kind == "grant" {
			return err
		}
		clients, err := accounts.Clients(t.ctx)
		for _, client := range clients {
			names[souvenir.AuditID("client", client.ID)] = web.ShortName(client.Metadata.ClientName)
		}
		return err
	case "project":
		projects, err := t.c.Store.Projects(t.ctx)
		for _, p := range projects {
			names[souvenir.AuditID("project", p.Owner, p.ID)] = p.Name
		}
		return err
	case "collection":
		collections, err := t.c.Store.Collections(t.ctx)
		for _, one := range collections {
			names[souvenir.AuditID("collection", t.c.User.ID, one.Name)] = one.Name
		}
		return err
	}
	return nil
}
