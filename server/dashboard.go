package server

// dashboardRoutes are the tables of the pages that need somebody who has signed in, each in the file of its subject.
func (s *Server) dashboardRoutes() [][]route {
	return [][]route{
		s.overviewRoutes(), s.memoryListRoutes(), s.memoryRoutes(), s.projectPageRoutes(), s.sharingPageRoutes(), s.trashPageRoutes(), s.filePageRoutes(), s.pictureRoutes(), s.upkeepRoutes(),
	}
}

// htmxConfig is how the script that fetches parts of pages works: nothing that the policy of the pages forbids, answers that are errors
// are shown, and going back loads the page anew, for others may have changed it.
const htmxConfig = `{"includeIndicatorStyles":false,"allowEval":false,"allowScriptTags":false,"selfRequestsOnly":true,"historyCacheSize":0,"refreshOnHistoryMiss":true,` +
	`"scrollIntoViewOnBoost":false,"responseHandling":[{"code":"204","swap":false},{"code":"[23]..","swap":true},{"code":"[45]..","swap":true,"error":true}]}`
