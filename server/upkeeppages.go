package server

import "github.com/souvenir-ai/souvenir/server/internal/route"

// upkeepRoutes are the settings, and what an admin looks after.
func (s *Server) upkeepRoutes() []route.Route {
	return []route.Route{
		route.Get("/users", route.Administrator, s.showUsers),
		route.Post("/users", route.Administrator, s.updateUser),
		route.Get("/invitations", route.Administrator, s.showInvitations),
		route.Post("/invitations", route.Administrator, s.invite),
		route.Post("/invitations/end", route.Administrator, s.endInvitation),

		route.Get("/settings", route.Person, s.showSettings),
		route.Post("/settings", route.Person, s.changeSettings),
		route.Post("/settings/whole", route.Person, s.replaceSettings),

		route.Get("/transfer", route.Person, s.showTransfer),
		route.Post("/transfer/export", route.Person, s.exportStore),
		route.Post("/transfer/import", route.Administrator, s.importExport),

		route.Get("/backup", route.Administrator, s.showBackup),
		route.Post("/backup/download", route.Administrator, s.downloadBackup),
		route.Post("/backup/work", route.Administrator, s.workOnFile),
		route.Post("/backup/stop", route.Administrator, s.stopWork),

		route.Get("/about", route.Person, s.showAbout),
	}
}

// upkeepState is what the pages of upkeep keep.
type upkeepState struct {
	working work // what takes longer than a request
}
