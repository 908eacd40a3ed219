//go:build !unix

// Package usage says how much of the processor a measurement takes.
package usage

import "time"

var began = time.Now()

// Seconds returns the time on the clock, where the processor's is not available.
func Seconds() float64 { return time.Since(began).Seconds() }
