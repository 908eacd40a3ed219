package server

// memoryListRoutes are the memories of a user, and what is done to many of them.
func memoryListRoutes() []route { return nil }
