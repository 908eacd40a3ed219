//go:build !linux

package documents

import "os/exec"

// limitProcess leaves the bounds to the parent, which ends the process after a time.
func limitProcess() {}

// endWithUs does nothing: the process ends itself after a time.
func endWithUs(*exec.Cmd) {}
