package clients

import (
	"cmp"
	"errors"
	"net/http"
	"slices"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// connectedPage is the data of the page of connected applications.
type connectedPage struct {
	Grants  []connectedApp
	Pages   web.Pager
	Address string // of the MCP endpoint
}

// connectedApp is an application that the user has authorized.
type connectedApp struct {
	souvenir.Grant
	Names []string // of its projects
}

// Everything reports whether it can see all projects.
func (a connectedApp) Everything() bool { return a.Projects == nil }

func (s *Service) showConnected(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	grants, err := c.Store.Accounts().Grants(r.Context())
	if err != nil {
		return nil, err
	}
	projects, err := c.Store.Projects(r.Context())
	if err != nil {
		return nil, err
	}
	data := connectedPage{Address: s.connection("").Address}
	grants, data.Pages = web.Paginate(grants, r, "applications")
	for _, grant := range grants {
		data.Grants = append(data.Grants, connectedApp{grant, namesOf(grant.Projects, projects, c.User.ID)})
	}
	return web.Page{Template: "connected", Title: "Applications", Data: data}, nil
}

// namesOf returns the names, as a user sees them, of the projects to which a token or an application is limited. Of
// many, it returns the first ones.
func namesOf(limits []string, visible []souvenir.Project, user string) []string {
	const most = 5
	var names []string
	for n, limit := range limits {
		if n == most-1 && len(limits) > most {
			return append(names, web.Thousands(len(limits)-n)+" more")
		}
		i := slices.IndexFunc(visible, func(p souvenir.Project) bool { return limit == p.Owner+"/"+p.ID })
		switch {
		case i < 0:
			names = append(names, "a project that you can no longer see")
		case visible[i].Owner == user:
			names = append(names, visible[i].Name)
		default:
			names = append(names, visible[i].Name+" of "+cmp.Or(visible[i].OwnerName, visible[i].Owner))
		}
	}
	return names
}

// endConnected revokes one grant of an application, or all of its grants.
func (s *Service) endConnected(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	err = eachGrant(r.Context(), c, values,
		func(id string) error { return c.Store.Accounts().RevokeGrant(r.Context(), id) })
	if err != nil && !errors.Is(err, souvenir.ErrNotFound) {
		return nil, err
	}
	return s.site.Done("/connected", "application"), nil
}
