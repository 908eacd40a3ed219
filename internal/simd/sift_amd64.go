package simd

import "golang.org/x/sys/cpu"

var sifts = cpu.X86.HasAVX512 && cpu.X86.HasAVX512VPOPCNTDQ

// CanSift reports whether this machine supports [Sieve.Sift].
func CanSift() bool { return sifts }

// Sift is [Sieve.SiftPlain] several times as fast.
func (s *Sieve) Sift(rows, marks []byte) {
	if groups := len(rows) / (8 * sieveRow); groups > 0 {
		_ = marks[groups-1]
		sift(&rows[0], groups, s, &marks[0])
	}
}

// sift marks rows in groups of eight. It needs AVX-512.
//
//go:noescape
func sift(rows *byte, groups int, s *Sieve, marks *byte)
