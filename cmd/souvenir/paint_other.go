//go:build !windows

package main

import "os"

// understandsPaint reports whether a terminal understands SGR sequences.
func understandsPaint(*os.File) bool { return true }
