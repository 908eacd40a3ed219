//go:build !windows

package main

import "os"

// enablePaint reports whether a terminal understands SGR sequences.
func enablePaint(*os.File) bool { return true }
