package server

import "github.com/souvenir-ai/souvenir/server/internal/route"

// dashboardRoutes are the tables of the pages that need somebody who has signed in, each in the file of its subject.
func (s *Server) dashboardRoutes() [][]route.Route {
	return [][]route.Route{
		s.overviewRoutes(), s.memoryListRoutes(), s.memoryRoutes(), s.projectPageRoutes(), s.sharingPageRoutes(), s.trashPageRoutes(), s.filePageRoutes(), s.pictureRoutes(), s.clientPageRoutes(), s.upkeepRoutes(),
	}
}
