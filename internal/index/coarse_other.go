//go:build !amd64

package index

// fastestCoarse returns nil: the vectors themselves are compared.
func fastestCoarse() coarseDots { return nil }
