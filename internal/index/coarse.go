package index

import (
	"math"

	"github.com/souvenir-ai/souvenir/internal/simd"
)

// A vector is kept as two rows of codes, of 8 bits a number each: the coarse ones, and the fine ones of what they leave
// over. Together they have 16 bits, half the size of the floats, and are off by some millionths. Most vectors are
// nowhere near the wanted one, and the coarse codes are enough to show that; a comparison with many vectors is bound by
// what passes through the processor's caches. The coarse codes alone decide nothing: they give an upper bound of an
// inner product, and if that could suffice, both are compared.

// coarse says how to read the codes of a vector: each number is scale * (coarse code + fine code / fineSteps).
type coarse struct {
	scale float32
	slack float32 // upper bound of the length of what the coarse codes leave over
}

// fineSteps is the number of steps of the fine codes in one of the coarse codes.
const fineSteps = 2 * math.MaxInt8

// leastCoded is the least size of the vectors that are kept as codes. Shorter ones stay floats: codes would save 120
// bytes at most, and are less exact the larger a part of the length is in one number.
const leastCoded = 64

// codeWidth is the number of codes per vector: the rest are 0.
func codeWidth(size int) int { return roundUp(size, simd.Width) }

// encode writes the codes of a vector, and returns the length of what they say.
func encode(codes, fine []int8, v []float32) (c coarse, long float64) {
	most := float32(0)
	for _, x := range v {
		most = max(most, x, -x)
	}
	c.scale = most / math.MaxInt8
	if c.scale == 0 { // or too small for a float32
		return c, 0
	}
	off, scale := 0.0, float64(c.scale)
	for i, x := range v {
		steps := float64(x) / scale
		codes[i] = int8(math.RoundToEven(steps))
		left := math.RoundToEven((steps - float64(codes[i])) * fineSteps)
		fine[i] = int8(max(-math.MaxInt8, min(math.MaxInt8, left)))
		left = float64(fine[i]) / fineSteps
		off += left * left
		long += (float64(codes[i]) + left) * (float64(codes[i]) + left)
	}
	c.slack = math.Nextafter32(float32(math.Sqrt(off)*scale), float32(math.Inf(1)))
	return c, math.Sqrt(long) * scale * (1 + 1e-9)
}

// decode returns the vector that codes say.
func (c coarse) decode(codes, fine []int8, size int) []float32 {
	v := make([]float32, size)
	for i := range v {
		v[i] = float32(float64(c.scale) * (float64(codes[i]) + float64(fine[i])/fineSteps))
	}
	return v
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
	rest     []int16 // of what they leave over
	scale    float64
	slack    float64 // the length of what codes leave over
	restStep float64 // the scale of rest
	products [blockRows]int32
	some     [blockRows]float32
}

// begin prepares the comparison with a vector.
func (c *comparison) begin(ix *Index, vector []float32) {
	c.dot, c.coarse, c.vector, c.length = ix.dot, ix.coarse, vector, length(vector)
	if c.coarse == nil || len(vector) == 0 {
		return
	}
	width := codeWidth(len(vector))
	if cap(c.codes) < width {
		c.codes, c.rest = make([]int16, width), make([]int16, width)
	}
	c.codes, c.rest = c.codes[:width], c.rest[:width]
	clear(c.codes)
	clear(c.rest)
	most := 0.0
	for _, x := range vector {
		most = max(most, math.Abs(float64(x)))
	}
	// As fine as the sum of all products leaves room for.
	steps := float64(min(math.MaxInt16, math.MaxInt32/(-math.MinInt8*width)))
	c.scale = most / steps
	c.restStep = c.scale / (2 * steps)
	off := 0.0
	for i, x := range vector {
		if c.scale > 0 {
			c.codes[i] = int16(math.RoundToEven(float64(x) / c.scale))
		}
		d := float64(x) - c.scale*float64(c.codes[i])
		off += d * d
		if c.restStep > 0 {
			c.rest[i] = int16(max(-steps, min(steps, math.RoundToEven(d/c.restStep))))
		}
	}
	// rest is off by half a step at most, which the second term allows for.
	c.slack = math.Sqrt(off)*(1+1e-9) + c.restStep*math.Sqrt(float64(width))
}

// ordinary reports whether a length is such that results computed from it in float32 have full precision. Those of
// unit vectors are.
func ordinary(length float64) bool { return length > 1e-6 && length < 1e6 }

// tiny is an upper bound of what float32 loses in a sum of products of ordinary and smaller numbers, where it has
// few bits left.
const tiny = 1e-24

// isExact reports whether block returns the inner products themselves.
func (c *comparison) isExact(m *matrix) bool {
	return m.codes.width == 0 || !ordinary(m.longest) || !ordinary(c.length)
}

// block writes an upper bound of the inner product with the vector for each row of a block.
func (c *comparison) block(m *matrix, block int, bounds []float32) {
	n := min(blockRows, len(m.slots)-block*blockRows)
	bounds = bounds[:n]
	if c.isExact(m) {
		for i := range bounds {
			bounds[i] = c.exact(m, block*blockRows+i)
		}
		return
	}
	c.bound(m, m.codes.list[block], m.coarse[block*blockRows:block*blockRows+n], bounds)
}

// bound writes, for some rows given by their codes, an upper bound of the inner product with the vector.
func (c *comparison) bound(m *matrix, codes []int8, meanings []coarse, bounds []float32) {
	products := c.products[:len(meanings)]
	c.coarse(codes, c.codes, products)
	scale, perSlack, fixed := c.loss(m)
	for i, meaning := range meanings {
		bounds[i] = float32(products[i])*(scale*meaning.scale) + meaning.slack*perSlack + fixed
	}
}

// loss returns what an inner product of codes is multiplied with, beside the scale of the row, and how far at most the
// outcome is off: fixed and perSlack times the slack of the row.
func (c *comparison) loss(m *matrix) (scale, perSlack, fixed float32) {
	// With v = v' + e and q = q' + f, where v' and q' are what the coarse codes say, v*q = v'*q' + e*q' + v*f - e*f, and
	// the length of q' is at most that of q and f together.
	fixed = float32(m.longest*c.slack + 4*roundOff(m.size)*m.longest*c.length + tiny)
	return float32(c.scale), float32(2*c.slack + c.length), fixed
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

// exact returns the inner product with a row, as its codes say it.
func (c *comparison) exact(m *matrix, row int) float32 {
	if m.codes.width == 0 {
		return c.dot(m.rows.row(row), c.vector)
	}
	coarse, fine := m.codes.row(row), m.fine.row(row)
	c.coarse(coarse, c.codes, c.products[:1])
	c.coarse(fine, c.codes, c.products[1:2])
	c.coarse(coarse, c.rest, c.products[2:3]) // fine times rest is too small to count
	sum := c.scale*(float64(c.products[0])+float64(c.products[1])/fineSteps) + c.restStep*float64(c.products[2])
	return float32(max(-math.MaxFloat32, min(math.MaxFloat32, sum*float64(m.coarse[row].scale))))
}
