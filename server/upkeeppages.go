package server

// upkeepRoutes are tokens, OAuth clients, settings and what an admin looks after.
func upkeepRoutes() []route { return nil }
