// Package tool is a stand-in for the framework's package of this name in tests.
package tool

// Tool is a tool of the framework; that it is an interface is all that matters here.
type Tool interface{ Declaration() string }
