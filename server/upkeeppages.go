package server

// upkeepRoutes are tokens, OAuth clients, settings and what an admin looks after.
func (s *Server) upkeepRoutes() []route {
	return []route{
		get("/tokens", person, s.showTokens),
		post("/tokens", person, s.confirmed("/tokens", s.makeToken)),
		post("/tokens/end", person, s.endToken),

		get("/clients", person, s.showClients),
		post("/clients", person, s.confirmed("/clients", s.makeClient)),
		post("/clients/change", person, s.changeClient),

		get("/settings", person, s.showSettings),
		post("/settings", person, s.changeSettings),
		post("/settings/whole", person, s.replaceSettings),

		get("/transfer", person, s.showTransfer),
		post("/transfer/export", person, s.exportStore),
		post("/transfer/import", administrator, s.importExport),

		get("/backup", administrator, s.showBackup),
		post("/backup/download", administrator, s.downloadBackup),
		post("/backup/work", administrator, s.workOnFile),
		post("/backup/stop", administrator, s.stopWork),

		get("/about", person, s.showAbout),
	}
}
