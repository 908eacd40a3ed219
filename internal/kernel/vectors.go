package kernel

import (
	"fmt"
	"math"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/vectorform"
)

// OwnVectors is the model of vectors that callers supply.
const OwnVectors = "own"

// EncodeVector returns the stored form of a vector in a place: short if a model can make the vector again, and exact if
// callers supply vectors. Nil gives NULL.
func EncodeVector(v []float32, at *Place) []byte {
	if at.OwnProfile != 0 {
		return vectorform.Exact(v)
	}
	return vectorform.Short(v)
}

// sealVector returns the argument for the stored form of a vector: sealed, if the store has user keys.
func sealVector(tx db.Tx, stored []byte, at *Place) (any, error) {
	return sealedrows.SealBytes(tx, at.Owner, sealedrows.PassageVector, stored)
}

// DecodeVector reads a stored vector. NULL gives nil, and so does an empty one, such as that of an erased user.
func DecodeVector(blob []byte) ([]float32, error) {
	if len(blob) == 0 {
		return nil, nil
	}
	v, err := vectorform.Decode(blob)
	if err != nil {
		return nil, fault.Damaged(err, "a vector")
	}
	return v, nil
}

// UnitVector returns a copy of v of length one. A vector of zeros, which has no direction, stays as it is.
func UnitVector(v []float32, size int) ([]float32, error) {
	if len(v) != size {
		return nil, fmt.Errorf("the vector has %d dimensions; expected %d", len(v), size)
	}
	var sum float64
	for i, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return nil, fmt.Errorf("the vector's element %d is %v; expected finite numbers", i, x)
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
