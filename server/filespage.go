package server

// filePageRoutes are the files.
func filePageRoutes() []route { return nil }
