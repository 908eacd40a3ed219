// Package session is a stand-in for the framework's package of this name in tests.
package session

// Session is a session of the framework.
type Session struct{ ID string }
