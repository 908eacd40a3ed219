package index

import (
	"math"

	"github.com/viterin/vek"
	"github.com/viterin/vek/vek32"
)

// dotFunc is the inner product of two vectors of one size, at least 1. For one machine it is a pure
// function of the values: equal vectors compare equal wherever they are stored.
type dotFunc func(a, b []float32) float32

// fastestDot returns the SIMD inner product if vek has one (amd64 with AVX2 and FMA, not on darwin). Elsewhere vek
// falls back to a loop with one running sum, correct but bound by the latency of the addition; dotUnrolled is
// several times faster there.
func fastestDot() dotFunc {
	if vek.Info().Acceleration {
		return vek32.Dot
	}
	return dotUnrolled
}

// dotUnrolled keeps eight independent sums, so that additions overlap.
func dotUnrolled(a, b []float32) float32 {
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

// accepts reports whether a vector is fit for ranking. Its squared length is finite exactly when all its numbers
// are finite and small enough that, by the Cauchy-Schwarz inequality, its inner product with any other such vector
// is finite too: no comparison can yield NaN or infinity.
func (dot dotFunc) accepts(v []float32) bool {
	return len(v) > 0 && dot(v, v) <= math.MaxFloat32
}

// length is the Euclidean length of a vector.
func length(v []float32) float64 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum)
}

// roundOff bounds, for vectors of a size, by how much a dotFunc's result exceeds the exact inner product, as a
// part of the product of their lengths. In any order of adding n products in float32, the sum is off by less than
// n units in the last place of the sum of their absolute values (Higham, "Accuracy and Stability of Numerical
// Algorithms", section 3.1), which the Cauchy-Schwarz inequality bounds. The figure allows for twice that and a
// few more roundings.
func roundOff(size int) float64 { return float64(size+16) / (1 << 23) }
