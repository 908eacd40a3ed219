package sqlite

func dropPrivileges() error { return nil }
