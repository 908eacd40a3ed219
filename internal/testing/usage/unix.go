//go:build unix

// Package usage measures processor time for benchmarks.
package usage

import "syscall"

// Seconds returns the processor time of this process. Unlike wall time, it hardly depends on other work on the machine.
func Seconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}
