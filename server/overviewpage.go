package server

// overviewRoutes are the overview, how clients are connected, and what was called.
func overviewRoutes() []route {
	return []route{
		{"GET", "/{$}", person, (*Server).start},
	}
}
