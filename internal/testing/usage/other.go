//go:build !unix

// Package usage measures processor time for benchmarks.
package usage

import "time"

var began = time.Now()

// Seconds returns wall time, since processor time is not available.
func Seconds() float64 { return time.Since(began).Seconds() }
