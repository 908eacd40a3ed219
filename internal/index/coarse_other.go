//go:build !amd64

package index

// fastestCoarse is nil: vectors themselves are compared.
func fastestCoarse() coarseDots { return nil }
