//go:build !amd64

package kernel

// Available returns the loops that this processor has, the slowest first.
func Available() []*Kernels { return []*Kernels{Portable()} }
