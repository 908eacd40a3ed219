// Package dashboard serves the pages on which people manage their memories. Each package below it holds the pages
// of one subject; this one combines them.
package dashboard

import (
	"log/slog"
	"slices"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/clients"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/files"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/memories"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/overview"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/pictures"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/projects"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/proposals"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/trash"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/upkeep"
	"github.com/souvenir-ai/souvenir/server/internal/route"
	"github.com/souvenir-ai/souvenir/server/internal/signin"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// Options are the dependencies of the packages below.
type Options struct {
	Site   *web.Site
	SignIn *signin.Service
	Store  *souvenir.Store // the operator's
	Logger *slog.Logger

	// NoActivity means that calls are not recorded.
	NoActivity bool

	// ToolNames are the tools by which calls can be filtered.
	ToolNames []string

	// Snippets returns how to connect clients; nil: the pages show only the address and the token.
	Snippets func(address, token string) []web.Snippet

	// Backups is the state of the backups that the server makes; nil: it makes none.
	Backups func() overview.Backups

	// Settings are the server settings on the settings page.
	Settings upkeep.Settings
}

// Dashboard combines the services of the packages below.
type Dashboard struct {
	Overview  *overview.Service
	Memories  *memories.Service
	Proposals *proposals.Service
	Projects  *projects.Service
	Files     *files.Service
	Pictures  *pictures.Service
	Trash     *trash.Service
	Clients   *clients.Service
	Upkeep    *upkeep.Service
}

// New creates a Dashboard.
func New(o Options) *Dashboard {
	drawn := pictures.New(o.Site, o.Logger)
	return &Dashboard{
		Overview: overview.New(overview.Options{Site: o.Site, Store: o.Store, NoActivity: o.NoActivity,
			ToolNames: o.ToolNames, Snippets: o.Snippets, Graph: drawn.ReadGraph, Backups: o.Backups}),
		Memories:  memories.New(memories.Options{Site: o.Site, Store: o.Store, Logger: o.Logger, Graph: drawn.ReadGraph}),
		Proposals: proposals.New(o.Site),
		Projects:  projects.New(o.Site, o.Store),
		Files:     files.New(o.Site, o.Store),
		Pictures:  drawn,
		Trash:     trash.New(o.Site),
		Clients: clients.New(clients.Options{Site: o.Site, SignIn: o.SignIn, Store: o.Store, NoActivity: o.NoActivity,
			Snippets: o.Snippets}),
		Upkeep: upkeep.New(upkeep.Options{Site: o.Site, SignIn: o.SignIn, Store: o.Store, Logger: o.Logger,
			Settings: o.Settings}),
	}
}

// Routes are all pages of the dashboard, for signed-in people.
func (d *Dashboard) Routes() []route.Route {
	return slices.Concat(d.Overview.Routes(), d.Memories.Routes(), d.Proposals.Routes(), d.Projects.Routes(),
		d.Files.Routes(), d.Pictures.Routes(), d.Trash.Routes(),
		d.Clients.Routes(), d.Upkeep.Routes())
}
