package server

// projectPageRoutes are the projects, their members, rules and to-do documents.
func projectPageRoutes() []route { return nil }
