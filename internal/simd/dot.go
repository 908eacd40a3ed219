package simd

// DotFloats returns the inner product of two vectors of one size. For one machine it is a pure function of their
// numbers.
func DotFloats(a, b []float32) float32 {
	if Fast() {
		return dotFloatsFast(a, b)
	}
	return DotFloatsPlain(a, b)
}

// DotFloatsPlain is DotFloats in Go alone. It keeps eight independent sums, so that additions overlap.
func DotFloatsPlain(a, b []float32) float32 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	b = b[:len(a)]
	for len(a) >= 8 && len(b) >= 8 {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
		s4 += a[4] * b[4]
		s5 += a[5] * b[5]
		s6 += a[6] * b[6]
		s7 += a[7] * b[7]
		a, b = a[8:], b[8:]
	}
	for i := range a {
		s0 += a[i] * b[i]
	}
	return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
}
