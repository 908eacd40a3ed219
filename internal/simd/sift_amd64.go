package simd

// Sift is [Sieve.SiftPlain] several times as fast. It needs [Fast].
func (s *Sieve) Sift(rows, marks []byte) {
	if groups := len(rows) / (8 * sieveRow); groups > 0 {
		_ = marks[groups-1]
		sift(&rows[0], groups, s, &marks[0])
	}
}

// sift marks rows in groups of eight. It needs AVX2.
//
//go:noescape
func sift(rows *byte, groups int, s *Sieve, marks *byte)
