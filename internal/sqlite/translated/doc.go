// Package translated has what a file system under SQLite needs to be called from C that was translated to Go, and to
// call it.
package translated
