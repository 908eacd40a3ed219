//go:build !amd64

package simd

// Sift is [Sieve.SiftPlain].
func (s *Sieve) Sift(rows, marks []byte) { s.SiftPlain(rows, marks) }
