//go:build !amd64

package simd

// CanSift reports whether this machine supports [Sieve.Sift].
func CanSift() bool { return false }

// Sift is [Sieve.SiftPlain] several times as fast.
func (s *Sieve) Sift(rows, marks []byte) { s.SiftPlain(rows, marks) }
