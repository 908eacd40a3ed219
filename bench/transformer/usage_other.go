//go:build !unix

package main

import "time"

var began = time.Now()

// processorSeconds is the clock's time where the processor's is not to be had.
func processorSeconds() float64 { return time.Since(began).Seconds() }
