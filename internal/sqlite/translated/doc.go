// Package translated helps a file system under SQLite to call C code that was translated to Go, and to be called by it.
package translated
