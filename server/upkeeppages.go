package server

// upkeepRoutes are tokens, OAuth clients, settings and what an admin looks after.
func upkeepRoutes() []route {
	return []route{
		{"GET", "/tokens", person, (*Server).showTokens},
		{"POST", "/tokens", person, confirmed("/tokens", (*Server).makeToken)},
		{"POST", "/tokens/end", person, (*Server).endToken},

		{"GET", "/clients", person, (*Server).showClients},
		{"POST", "/clients", person, confirmed("/clients", (*Server).makeClient)},
		{"POST", "/clients/change", person, (*Server).changeClient},

		{"GET", "/settings", person, (*Server).showSettings},
		{"POST", "/settings", person, (*Server).changeSettings},
		{"POST", "/settings/whole", person, (*Server).replaceSettings},

		{"GET", "/transfer", person, (*Server).showTransfer},
		{"POST", "/transfer/export", person, (*Server).exportStore},
		{"POST", "/transfer/import", administrator, (*Server).importExport},

		{"GET", "/backup", administrator, (*Server).showBackup},
		{"POST", "/backup/download", administrator, (*Server).downloadBackup},
		{"POST", "/backup/work", administrator, (*Server).workOnFile},
		{"POST", "/backup/stop", administrator, (*Server).stopWork},

		{"GET", "/about", person, (*Server).showAbout},
	}
}
