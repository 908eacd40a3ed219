// Package vectorform has the stored forms of vectors, which each engine keeps as bytes, and compares these.
//
// There are two, told apart by their length. The exact form is float32, little endian: four bytes a number. The short
// form is a byte for its version and two bytes a number, little endian: how many 32,767ths of the vector's largest
// number. It keeps only the direction, so a vector read from it has length one. Each number is off by at most a
// 65,534th of the largest, so the cosine of two vectors of 4,096 dimensions is off by less than a thousandth at worst,
// and that of 256 dimensions by some millionths.
package vectorform

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/simd"
)

const (
	version = 2 // not 1, with which sealed values begin (internal/db)
	steps   = math.MaxInt16

	leastShort = 64 // dimensions; shorter vectors save little, and their neighbours may differ by millionths
)

// ErrForm means that bytes have neither of the two forms.
var ErrForm = errors.New("its length or its first byte matches no known form")

// Exact returns the exact form. Nil gives nil.
func Exact(v []float32) []byte {
	if v == nil {
		return nil
	}
	blob := make([]byte, 0, 4*len(v))
	for _, x := range v {
		blob = binary.LittleEndian.AppendUint32(blob, math.Float32bits(x))
	}
	return blob
}

// Short returns the short form of a vector of finite numbers, or the exact form if it has few dimensions. Nil gives
// nil. The result of Decode has the same short form.
func Short(v []float32) []byte {
	if len(v) < leastShort {
		return Exact(v)
	}
	var largest float32
	for _, x := range v {
		largest = max(largest, x, -x)
	}
	var scale float64
	if largest > 0 {
		scale = steps / float64(largest)
	}
	blob := append(make([]byte, 0, ShortLength(len(v))), version)
	for _, x := range v {
		blob = binary.LittleEndian.AppendUint16(blob, uint16(int16(math.Round(float64(x)*scale))))
	}
	return blob
}

// ShortLength returns the length in bytes of the short form of a vector.
func ShortLength(dimensions int) int { return 1 + 2*dimensions }

// Dimensions returns the number of dimensions of an encoded vector, -1 if it has neither form.
func Dimensions(blob []byte) int {
	switch {
	case len(blob)%4 == 0:
		return len(blob) / 4
	case isShort(blob):
		return len(blob) / 2
	}
	return -1
}

func isShort(blob []byte) bool {
	return len(blob)%2 == 1 && len(blob) >= ShortLength(leastShort) && blob[0] == version
}

// Decode reads both forms. Nil gives nil. A vector of zeros, which has no direction, stays as it is.
func Decode(blob []byte) ([]float32, error) {
	n := Dimensions(blob)
	switch {
	case n < 0:
		return nil, ErrForm
	case blob == nil:
		return nil, nil
	}
	v := make([]float32, n)
	if !isShort(blob) {
		for i := range v {
			v[i] = exactAt(blob, i)
		}
		return v, nil
	}
	var sum int64
	for i := range v {
		k := int64(shortAt(blob, i))
		sum += k * k
	}
	if sum == 0 {
		return v, nil
	}
	scale := 1 / math.Sqrt(float64(sum))
	for i := range v {
		v[i] = float32(float64(shortAt(blob, i)) * scale)
	}
	return v, nil
}

// Query is a vector that others are compared with, one after the other.
type Query struct {
	vector, other []float32
	length        float64
}

// NewQuery returns the query for an encoded vector.
func NewQuery(blob []byte) (*Query, error) {
	v, err := Decode(blob)
	return &Query{vector: v, other: make([]float32, len(v)), length: length(v)}, err
}

// Lengths returns the lengths in bytes of the encoded vectors that the query can be compared with.
func (q *Query) Lengths() (exact, short int) { return 4 * len(q.vector), ShortLength(len(q.vector)) }

// Cosine returns the cosine of the query and an encoded vector of the same dimensions. It is NaN if one of them has no
// direction.
func (q *Query) Cosine(blob []byte) (float64, error) {
	if Dimensions(blob) != len(q.vector) {
		return 0, ErrForm
	}
	if isShort(blob) {
		for i := range q.other {
			q.other[i] = float32(shortAt(blob, i))
		}
	} else {
		for i := range q.other {
			q.other[i] = exactAt(blob, i)
		}
	}
	return float64(simd.DotFloats(q.vector, q.other)) / (q.length * length(q.other)), nil
}

// Compare sets the cosine of the query and a passage with the given vector.
func (q *Query) Compare(c *db.Compared, blob []byte) (err error) {
	if c.Cosine, err = q.Cosine(blob); err != nil {
		return fmt.Errorf("%w: the vector of passage %d: %w", db.ErrCorrupt, c.Passage, err)
	}
	return nil
}

func length(v []float32) float64 { return math.Sqrt(float64(simd.DotFloats(v, v))) }

func exactAt(blob []byte, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(blob[4*i:]))
}

func shortAt(blob []byte, i int) int16 {
	return int16(binary.LittleEndian.Uint16(blob[1+2*i:]))
}
