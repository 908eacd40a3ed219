// Package tool is a stand-in for the framework's package of this name in tests.
package tool

// Tool is a tool of the framework; it only matters here that it is an interface.
type Tool interface{ Declaration() string }
