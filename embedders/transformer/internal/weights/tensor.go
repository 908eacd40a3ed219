// Package weights reads the tensors of a model from a safetensors file, or from the initializers of an ONNX file. The
// files are untrusted: reading any content gives tensors or an error, and takes memory in proportion to the file's real
// size, not to the sizes that it claims.
package weights

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Type is how a tensor's numbers are stored.
type Type int

// The values of [Type].
const (
	F32 Type = iota + 1
	F16
	BF16
	F64
	I8
	U8
	I32
	I64
)

func (t Type) String() string {
	names := [...]string{"unknown", "F32", "F16", "BF16", "F64", "I8", "U8", "I32", "I64"}
	if int(t) < len(names) && t > 0 {
		return names[t]
	}
	return names[0]
}

// Size is the number of bytes of one number.
func (t Type) Size() int {
	sizes := [...]int{0, 4, 2, 2, 8, 1, 1, 4, 8}
	if int(t) < len(sizes) && t > 0 {
		return sizes[t]
	}
	return 0
}

// Tensor is an array of numbers, little-endian and in row order, as the file stores them.
type Tensor struct {
	Type  Type
	Shape []int
	Data  []byte
}

// Source is a file of named tensors.
type Source interface {
	// Path is the file.
	Path() string
	// Has reports whether the file has a tensor of this name.
	Has(name string) bool
	// Shape returns a tensor's shape, nil if there is none of this name.
	Shape(name string) []int
	// Read returns a tensor. Its Data may be shared with the source and must not be changed.
	Read(name string) (Tensor, error)
	// Names returns all names, sorted.
	Names() []string
	// Close releases the file.
	Close() error
}

// maxDimensions bounds the number of a tensor's dimensions.
const maxDimensions = 8

// elements multiplies a shape's sizes; false if one is negative or the product exceeds what a file can hold.
func elements(shape []int64) (int64, bool) {
	if len(shape) > maxDimensions {
		return 0, false
	}
	n := int64(1)
	for _, size := range shape {
		if size < 0 || size > 1<<40 {
			return 0, false
		}
		if size > 0 && n > (1<<42)/size {
			return 0, false
		}
		n *= size
	}
	return n, true
}

// Float reads number i of the tensor's data as a float32.
func (t Tensor) Float(i int) float32 {
	switch t.Type {
	case F32:
		return math.Float32frombits(binary.LittleEndian.Uint32(t.Data[4*i:]))
	case F16:
		return HalfToFloat(binary.LittleEndian.Uint16(t.Data[2*i:]))
	case BF16:
		return math.Float32frombits(uint32(binary.LittleEndian.Uint16(t.Data[2*i:])) << 16)
	case F64:
		return float32(math.Float64frombits(binary.LittleEndian.Uint64(t.Data[8*i:])))
	case I8:
		return float32(int8(t.Data[i]))
	case U8:
		return float32(t.Data[i])
	case I32:
		return float32(int32(binary.LittleEndian.Uint32(t.Data[4*i:])))
	case I64:
		return float32(int64(binary.LittleEndian.Uint64(t.Data[8*i:])))
	}
	return 0
}

// Len is the number of numbers in the tensor's data.
func (t Tensor) Len() int {
	if t.Type.Size() == 0 {
		return 0
	}
	return len(t.Data) / t.Type.Size()
}

// Floats returns all numbers as float32.
func (t Tensor) Floats() []float32 {
	out := make([]float32, t.Len())
	if t.Type == F32 {
		for i := range out {
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(t.Data[4*i:]))
		}
		return out
	}
	for i := range out {
		out[i] = t.Float(i)
	}
	return out
}

// HalfToFloat converts an IEEE 754 binary16 number.
func HalfToFloat(h uint16) float32 {
	sign, exponent, fraction := uint32(h&0x8000)<<16, uint32(h>>10)&31, uint32(h&0x3FF)
	switch exponent {
	case 0: // zero and subnormal numbers: fraction * 2^-24, exact in float32
		f := float32(fraction) / (1 << 24)
		return math.Float32frombits(math.Float32bits(f) | sign)
	case 31:
		return math.Float32frombits(sign | 0x7F800000 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}

// Matrix reads a tensor that must be floating-point, and have exactly this shape.
func Matrix(s Source, name string, shape ...int) (Tensor, error) {
	got := s.Shape(name)
	if got == nil {
		return Tensor{}, fmt.Errorf("%s has no tensor %q; expected a %s tensor of shape %v%s", s.Path(), name, "float",
			shape, similar(s, name))
	}
	if !slices.Equal(got, shape) {
		return Tensor{}, fmt.Errorf("%s: tensor %q has shape %v; config.json requires %v", s.Path(), name, got, shape)
	}
	t, err := s.Read(name)
	if err != nil {
		return Tensor{}, err
	}
	switch t.Type {
	case F32, F16, BF16, F64:
		return t, nil
	}
	return Tensor{}, fmt.Errorf("%s: tensor %q holds %v numbers; expected F32, F16 or BF16", s.Path(), name, t.Type)
}

// similar names a few tensors of the file, as a hint at the kind of model.
func similar(s Source, name string) string {
	names := s.Names()
	if len(names) == 0 {
		return "; the file has no tensors"
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	var some []string
	for _, n := range names {
		if strings.HasSuffix(n, last) {
			some = append(some, n)
		}
	}
	if len(some) == 0 {
		some = names
	}
	some = some[:min(len(some), 3)]
	for i, n := range some {
		some[i] = fmt.Sprintf("%.80q", n)
	}
	return fmt.Sprintf("; the file has %d tensors, such as %s", len(names), strings.Join(some, ", "))
}
