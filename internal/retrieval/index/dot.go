package index

import "math"

// dotFunc is the inner product of two vectors of one size, at least 1. For one machine it is a pure
// function of the values: equal vectors compare equal wherever they are stored.
type dotFunc func(a, b []float32) float32

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
