//go:build unix

// Package usage says how much of the processor a measurement takes.
package usage

import "syscall"

// Seconds is the processor time that this process has used. Unlike the clock's time it hardly depends on what
// else the machine does.
func Seconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}
