// Package upkeep serves the pages of settings, export and import, and those for admins: users, backups, and the
// state of the server.
package upkeep

import (
	"log/slog"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/route"
	"github.com/souvenir-ai/souvenir/server/internal/signin"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// Settings are the server's settings, for the pages that show them.
type Settings struct {
	Version, APIVersion string

	Flags    []Flag // nil: only the following are known
	Provider string // the name of an external provider; empty: none

	MaxRunning, MaxRunningPerUser, QueuePerUser int
	QueueWait                                   time.Duration
	BodyMemory                                  int64
	NoActivity, NoQueryTokens, ReadOnly         bool
}

// Flag is a setting with which the program was started: the Setting of package server.
type Flag struct {
	Name    string
	Value   string
	Meaning string
	Given   bool

	Variable string
}

// Options are the dependencies of a Service.
type Options struct {
	Site     *web.Site
	SignIn   *signin.Service
	Store    *souvenir.Store // the operator's
	Logger   *slog.Logger
	Settings Settings
}

// Service serves the pages of upkeep. Create one with [New].
type Service struct {
	site   *web.Site
	signin *signin.Service
	store  *souvenir.Store
	log    *slog.Logger
	config Settings
	jobs   jobs // work that takes longer than a request

	verifying chan struct{} // holds a token while the audit log is checked
}

// New creates a Service.
func New(o Options) *Service {
	return &Service{site: o.Site, signin: o.SignIn, store: o.Store, log: o.Logger, config: o.Settings,
		verifying: make(chan struct{}, 1)}
}

// Routes are the settings, and the pages for admins.
func (s *Service) Routes() []route.Route {
	return []route.Route{
		route.Page("/users", route.Administrator, s.showUsers),
		route.Post("/users", route.Administrator, s.updateUser),
		route.Page("/invitations", route.Administrator, s.showInvitations),
		route.Post("/invitations", route.Administrator, s.invite),
		route.Post("/invitations/end", route.Administrator, s.revokeInvitation),

		route.Page("/settings", route.Person, s.showSettings),
		route.Post("/settings", route.Person, s.changeSettings),
		route.Post("/settings/whole", route.Person, s.replaceSettings),
		route.Post("/settings/server", route.Administrator, s.signin.Confirmed("/settings", s.changeServer)),

		route.Page("/transfer", route.Person, s.showTransfer),
		route.Post("/transfer/export", route.Person, s.exportStore),
		route.Post("/transfer/import", route.Administrator, s.importExport),

		route.Page("/backup", route.Administrator, s.showBackup),
		route.Post("/backup/download", route.Administrator, s.downloadBackup),
		route.Post("/backup/work", route.Administrator, s.workOnFile),
		route.Post("/backup/stop", route.Administrator, s.stopWork),

		route.Page("/audit", route.Administrator, s.showAudit),
		route.Post("/audit/verify", route.Administrator, s.verifyAudit),

		route.Page("/about", route.Person, s.showAbout),
	}
}
