//go:build !unix

// Package usage says how much of the processor a measurement takes.
package usage

import "time"

var began = time.Now()

// Seconds is the clock's time where the processor's is not to be had.
func Seconds() float64 { return time.Since(began).Seconds() }
