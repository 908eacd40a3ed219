package server

// clientPageRoutes are what connects AI clients: tokens, applications and OAuth clients.
func (s *Server) clientPageRoutes() []route {
	return []route{
		get("/connect", person, s.showConnect),
		post("/connect", person, s.confirmed("/connect", s.connectClient)),

		get("/tokens", person, s.showTokens),
		post("/tokens", person, s.confirmed("/tokens", s.makeToken)),
		post("/tokens/end", person, s.endToken),

		get("/connected", person, s.showConnected),
		post("/connected/end", person, s.endConnected),

		get("/clients", person, s.showClients),
		post("/clients", person, s.confirmed("/clients", s.makeClient)),
		post("/clients/change", person, s.changeClient),
	}
}

// upkeepRoutes are the settings, and what an admin looks after.
func (s *Server) upkeepRoutes() []route {
	return []route{
		get("/users", administrator, s.showUsers),
		post("/users", administrator, s.updateUser),
		get("/invitations", administrator, s.showInvitations),
		post("/invitations", administrator, s.invite),
		post("/invitations/end", administrator, s.endInvitation),

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
