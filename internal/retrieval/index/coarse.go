package index

import (
	"math"

	"github.com/souvenir-ai/souvenir/internal/simd"
)

// A vector is kept as two rows of codes, of 8 bits a number each: the coarse ones, and the fine ones of the remainder.
// Together they have 16 bits, half the size of the floats, and are off by a few millionths. Most vectors are nowhere
// near the wanted one, and the coarse codes are enough to show that. For nearly all of these, even the upper halves of
// the coarse codes are enough (simd.Split). A comparison with many vectors is bound by the traffic through the
// processor's caches, so it reads 4 bits a number. The upper halves decide nothing alone: they give an upper bound of
// an inner product. If that bound could suffice, the coarse codes give a closer one, and if that one could, both rows
// are compared.

// coarse says how to read the codes of a vector: each number is scale * (coarse code + fine code / fineSteps).
type coarse struct {
	scale float32
	slack float32 // upper bound of the length of the coarse codes' rest
	rough float32 // upper bound of the length of the rest of the coarse codes' upper halves
}

// fineSteps is the number of steps of the fine codes in one of the coarse codes.
const fineSteps = 2 * math.MaxInt8

// halfwayUp is the mean of the coarse codes whose upper half is 0. Those with the next one are 16 higher.
const halfwayUp = math.MinInt8 + 7.5

// leastCoded is the least size of the vectors that are kept as codes. Shorter ones stay floats: codes would save 120
// bytes at most, and are less exact the more of the length is in one number.
const leastCoded = 64

// codeWidth is the number of codes per vector: the rest are 0.
func codeWidth(size int) int { return roundUp(size, simd.HalvesWidth) }

// encode writes the codes of a vector, and returns the length of the vector that they stand for.
func encode(codes, fine []int8, v []float32) (c coarse, long float64) {
	most := float32(0)
	for _, x := range v {
		most = max(most, x, -x)
	}
	c.scale = most / math.MaxInt8
	if c.scale == 0 { // or too small for a float32
		return c, 0
	}
	off, rough, scale := 0.0, 0.0, float64(c.scale)
	for i, x := range v {
		steps := float64(x) / scale
		codes[i] = int8(math.RoundToEven(steps))
		left := math.RoundToEven((steps - float64(codes[i])) * fineSteps)
		fine[i] = int8(max(-math.MaxInt8, min(math.MaxInt8, left)))
		left = float64(fine[i]) / fineSteps
		off += left * left
		whole := float64(codes[i]) + left
		long += whole * whole
		upper := float64((int(codes[i])-math.MinInt8)>>4<<4) + halfwayUp
		rough += (whole - upper) * (whole - upper)
	}
	c.slack = math.Nextafter32(float32(math.Sqrt(off)*scale), float32(math.Inf(1)))
	c.rough = math.Nextafter32(float32(math.Sqrt(rough)*scale), float32(math.Inf(1)))
	return c, math.Sqrt(long) * scale * (1 + 1e-9)
}

// decode returns the vector that codes stand for.
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
	rest     []int16 // of the vector, less the codes
	scale    float64
	slack    float64 // the length of the codes' rest
	restStep float64 // the scale of rest

	short      []int8 // codes of vector for the upper halves
	shortScale float64
	shortSlack float64 // the length of short's rest
	shortSum   int64

	row      []int8 // codes of the row that is being compared
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
		c.short, c.row = make([]int8, width), make([]int8, width)
	}
	c.codes, c.rest, c.short, c.row = c.codes[:width], c.rest[:width], c.short[:width], c.row[:width]
	clear(c.codes)
	clear(c.rest)
	clear(c.short)
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
	c.beginShort(most)
}

// beginShort prepares the comparison with upper halves. most is the largest number of the vector.
func (c *comparison) beginShort(most float64) {
	c.shortScale, c.shortSum = most/math.MaxInt8, 0
	off := 0.0
	for i, x := range c.vector {
		if c.shortScale > 0 {
			c.short[i] = int8(math.RoundToEven(float64(x) / c.shortScale))
		}
		c.shortSum += int64(c.short[i])
		d := float64(x) - c.shortScale*float64(c.short[i])
		off += d * d
	}
	c.shortSlack = math.Sqrt(off) * (1 + 1e-9)
}

// ordinary reports whether a length is such that results computed from it in float32 have full precision. Those of
// unit vectors are.
func ordinary(length float64) bool { return length > 1e-6 && length < 1e6 }

// tiny is an upper bound of float32's loss in a sum of products of ordinary and smaller numbers, where it has
// few bits left.
const tiny = 1e-24

// isExact reports whether block returns the inner products themselves.
func (c *comparison) isExact(m *matrix) bool {
	return m.fine.width == 0 || !ordinary(m.longest) || !ordinary(c.length)
}

// block writes an upper bound of the inner product with the vector for each row of a block.
func (c *comparison) block(m *matrix, block int, bounds []float32) {
	first := block * blockRows
	bounds = bounds[:min(blockRows, len(m.slots)-first)]
	if c.isExact(m) {
		for i := range bounds {
			bounds[i] = c.exact(m, first+i)
		}
		return
	}
	c.rough(m, m.upper.list[block], m.coarse[first:first+len(bounds)], bounds)
}

// rough writes, for some rows given by the upper halves of their codes, an upper bound of the inner product with the
// vector.
func (c *comparison) rough(m *matrix, upper []byte, meanings []coarse, bounds []float32) {
	products := c.products[:len(meanings)]
	simd.DotHalves(upper, c.short, products)
	scale, perSlack, fixed := float32(c.shortScale), float32(2*c.shortSlack+c.length), c.fixed(m, c.shortSlack)
	lowest := float32(halfwayUp * float64(c.shortSum))
	for i, meaning := range meanings {
		bounds[i] = (16*float32(products[i])+lowest)*(scale*meaning.scale) + meaning.rough*perSlack + fixed
	}
}

// loss returns how far at most an inner product of coarse codes is off: fixed and perSlack times the slack of the row.
func (c *comparison) loss(m *matrix) (perSlack, fixed float32) {
	return float32(2*c.slack + c.length), c.fixed(m, c.slack)
}

// fixed is the part of loss that is the same for all rows, given the length of what the vector's codes leave over.
func (c *comparison) fixed(m *matrix, slack float64) float32 {
	// With v = v' + e and q = q' + f, where v' and q' are the vectors of the codes, v*q = v'*q' + e*q' + v*f - e*f, and
	// the length of q' is at most that of q and f together.
	return float32(m.longest*slack + 4*roundOff(m.size)*m.longest*c.length + tiny)
}

// roughRow returns an upper bound of the inner product with a row, or the product itself if the codes cannot be used.
func (c *comparison) roughRow(m *matrix, row int) float32 {
	if c.isExact(m) {
		return c.exact(m, row)
	}
	var bound [1]float32
	c.rough(m, rowAt(&m.upper, row), m.coarse[row:row+1], bound[:])
	return bound[0]
}

// rowBound returns a closer upper bound of the inner product with a row, or the product itself if the codes cannot be
// used.
func (c *comparison) rowBound(m *matrix, row int) float32 {
	if c.isExact(m) {
		return c.exact(m, row)
	}
	simd.Join(c.row, rowAt(&m.upper, row), rowAt(&m.lower, row))
	c.coarse(c.row, c.codes, c.products[:1])
	perSlack, fixed := c.loss(m)
	meaning := m.coarse[row]
	return float32(c.products[0])*(float32(c.scale)*meaning.scale) + meaning.slack*perSlack + fixed
}

// most returns an upper bound of the inner product with any vector of the matrix.
func (c *comparison) most(m *matrix) float32 {
	return float32(c.length*m.longest*(1+roundOff(m.size)) + tiny)
}

// exact returns the inner product with a row, according to its codes.
func (c *comparison) exact(m *matrix, row int) float32 {
	if m.fine.width == 0 {
		return c.dot(rowAt(&m.rows, row), c.vector)
	}
	simd.Join(c.row, rowAt(&m.upper, row), rowAt(&m.lower, row))
	c.coarse(c.row, c.codes, c.products[:1])
	c.coarse(rowAt(&m.fine, row), c.codes, c.products[1:2])
	c.coarse(c.row, c.rest, c.products[2:3]) // fine times rest is too small to count
	sum := c.scale*(float64(c.products[0])+float64(c.products[1])/fineSteps) + c.restStep*float64(c.products[2])
	return float32(max(-math.MaxFloat32, min(math.MaxFloat32, sum*float64(m.coarse[row].scale))))
}
