package index

import (
	"math"

	"github.com/souvenir-ai/souvenir/internal/simd"
)

// Most vectors are nowhere near the wanted one, and 8 bits of each number are enough to show that. The codes are a
// quarter of the size of the vectors, and a comparison with many vectors is bound by what passes through the
// processor's caches. The coarse copies alone decide nothing: they give an upper bound of an inner product, and if
// that could suffice, the vectors themselves are compared.

// coarse says how to read the codes of a vector.
type coarse struct {
	scale float32 // code * scale approximates the number
	slack float32 // upper bound of the distance between the vector and its codes
}

// codeWidth is the number of codes per vector: the rest are 0.
func codeWidth(size int) int { return roundUp(size, simd.Width) }

// encode writes the codes of a vector.
func encode(codes []int8, v []float32) coarse {
	most := float32(0)
	for _, x := range v {
		most = max(most, x, -x)
	}
	c := coarse{scale: most / math.MaxInt8}
	off := 0.0
	for i, x := range v {
		if c.scale > 0 { // it might be too small for a float32
			codes[i] = int8(math.RoundToEven(float64(x) / float64(c.scale)))
		}
		d := float64(x) - float64(c.scale)*float64(codes[i])
		off += d * d
	}
	c.slack = math.Nextafter32(float32(math.Sqrt(off)), float32(math.Inf(1)))
	return c
}

// coarseDots computes the inner products of a vector with some rows of codes. The width of a row is a multiple of 32.
type coarseDots func(codes []int8, vector []int16, products []int32)

// fastestCoarse returns the fast comparison of codes, nil if there is none: without one it would be slower than
// comparing the vectors.
func fastestCoarse() coarseDots {
	if simd.Fast() {
		return simd.DotRows
	}
	return nil
}

// comparison compares one vector with many.
type comparison struct {
	dot    dotFunc
	coarse coarseDots // nil: the vectors themselves are compared
	vector []float32
	length float64

	codes    []int16 // of vector, for coarse
	scale    float64
	slack    float64
	products [blockRows]int32
	some     [blockRows]float32
}

// begin prepares the comparison with a vector.
func (c *comparison) begin(ix *Index, vector []float32) {
	c.dot, c.coarse, c.vector, c.length = ix.dot, ix.coarse, vector, length(vector)
	if c.coarse == nil || !ordinary(c.length) {
		c.coarse = nil
		return
	}
	width := codeWidth(len(vector))
	if cap(c.codes) < width {
		c.codes = make([]int16, width)
	}
	c.codes = c.codes[:width]
	clear(c.codes)
	most := 0.0
	for _, x := range vector {
		most = max(most, math.Abs(float64(x)))
	}
	// As fine as the sum of all products leaves room for.
	c.scale = most / float64(min(math.MaxInt16, math.MaxInt32/(-math.MinInt8*width)))
	off := 0.0
	for i, x := range vector {
		if c.scale > 0 {
			c.codes[i] = int16(math.RoundToEven(float64(x) / c.scale))
		}
		d := float64(x) - c.scale*float64(c.codes[i])
		off += d * d
	}
	c.slack = math.Sqrt(off) * (1 + 1e-9)
}

// ordinary reports whether a length is such that results computed from it in float32 have full precision. Those of
// unit vectors are.
func ordinary(length float64) bool { return length > 1e-6 && length < 1e6 }

// tiny is an upper bound of what float32 loses in a sum of products of ordinary and smaller numbers, where it has
// few bits left.
const tiny = 1e-24

// isExact reports whether block returns the inner products themselves.
func (c *comparison) isExact(m *matrix) bool {
	return c.coarse == nil || m.codes.width == 0 || !ordinary(m.longest)
}

// block writes an upper bound of the inner product with the vector for each row of a block.
func (c *comparison) block(m *matrix, block int, bounds []float32) {
	rows := m.rows.list[block]
	n := len(rows) / m.size
	bounds = bounds[:n]
	if c.isExact(m) {
		for i := range bounds {
			bounds[i] = c.dot(rows[i*m.size:(i+1)*m.size], c.vector)
		}
		return
	}
	c.bound(m, m.codes.list[block], m.coarse[block*blockRows:block*blockRows+n], bounds)
}

// bound writes, for some rows given by their codes, an upper bound of the inner product with the vector.
func (c *comparison) bound(m *matrix, codes []int8, meanings []coarse, bounds []float32) {
	products := c.products[:len(meanings)]
	c.coarse(codes, c.codes, products)
	// With v = v' + e and q = q' + f, where v' and q' are what the codes say, v*q = v'*q' + v'*f + e*q, and the length of
	// v' is at most that of v and e together.
	fixed := float32(m.longest*c.slack + 4*roundOff(m.size)*m.longest*c.length + tiny)
	perSlack, scale := float32(c.slack+c.length), float32(c.scale)
	for i, meaning := range meanings {
		bounds[i] = float32(products[i])*(scale*meaning.scale) + meaning.slack*perSlack + fixed
	}
}

// rowBound returns an upper bound of the inner product with a row, or the product itself if the codes cannot be
// used.
func (c *comparison) rowBound(m *matrix, row int) float32 {
	if c.isExact(m) {
		return c.exact(m, row)
	}
	var bound [1]float32
	c.bound(m, m.codes.row(row), m.coarse[row:row+1], bound[:])
	return bound[0]
}

// most returns an upper bound of the inner product with any vector of the matrix.
func (c *comparison) most(m *matrix) float32 {
	return float32(c.length*m.longest*(1+roundOff(m.size)) + tiny)
}

// exact returns the inner product with a row.
func (c *comparison) exact(m *matrix, row int) float32 { return c.dot(m.row(row), c.vector) }
