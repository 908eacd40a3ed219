//go:build !linux

package documents

// limitProcess leaves the bounds to the parent, which ends the process after a time.
func limitProcess() {}
