package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/souvenir-ai/souvenir/internal/fault"
)

// OwnVectors is the model of vectors that callers supply.
const OwnVectors = "own"

// EncodeVector returns the stored form: float32, little endian, which sqlite-vec reads as well. Nil gives NULL.
func EncodeVector(v []float32) []byte {
	if v == nil {
		return nil
	}
	blob := make([]byte, 0, 4*len(v))
	for _, x := range v {
		blob = binary.LittleEndian.AppendUint32(blob, math.Float32bits(x))
	}
	return blob
}

// DecodeVector reads the result of [EncodeVector]. NULL gives nil.
func DecodeVector(blob []byte) ([]float32, error) {
	if blob == nil {
		return nil, nil
	}
	if len(blob)%4 != 0 {
		return nil, fault.Damaged(errors.New("its length is not a multiple of 4 bytes"), "a vector")
	}
	v := make([]float32, len(blob)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(blob[4*i:]))
	}
	return v, nil
}

// UnitVector returns a copy of v of length one. A vector of zeros, which has no direction, stays as it is.
func UnitVector(v []float32, size int) ([]float32, error) {
	if len(v) != size {
		return nil, fmt.Errorf("the vector has %d dimensions; %d are expected", len(v), size)
	}
	var sum float64
	for i, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return nil, fmt.Errorf("the vector's element %d is %v; finite numbers are expected", i, x)
		}
		sum += float64(x) * float64(x)
	}
	unit := make([]float32, size)
	if sum == 0 {
		return unit, nil
	}
	scale := 1 / math.Sqrt(sum)
	for i, x := range v {
		unit[i] = float32(float64(x) * scale)
	}
	return unit, nil
}
