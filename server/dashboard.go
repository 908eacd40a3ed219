package server

// dashboardRoutes are the tables of the pages that need somebody who has signed in, each in the file of its subject.
func (s *Server) dashboardRoutes() [][]route {
	return [][]route{
		s.overviewRoutes(), s.memoryListRoutes(), s.memoryRoutes(), s.projectPageRoutes(), s.sharingPageRoutes(), s.trashPageRoutes(), s.filePageRoutes(), s.pictureRoutes(), s.clientPageRoutes(), s.upkeepRoutes(),
	}
}
