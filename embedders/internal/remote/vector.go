package remote

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
)

const (
	maxDimensions = 16_384
	numberSize    = 32 // bytes of a number in an answer, at most, with white space
)

// maxAnswer is the largest answer that is read, in bytes.
func maxAnswer(texts, dimensions int) int64 {
	return 64<<10 + int64(texts)*int64(dimensions)*numberSize
}

// Vector is a vector in an answer. It refuses numbers that are not finite, and null, which some servers write for NaN.
type Vector []float32

// UnmarshalJSON reads a list of numbers.
func (v *Vector) UnmarshalJSON(data []byte) error {
	data = bytes.TrimSpace(data)
	if len(data) < 2 || data[0] != '[' || data[len(data)-1] != ']' {
		return fmt.Errorf("a vector is %.20q; expected a list of numbers", data)
	}
	data = bytes.TrimSpace(data[1 : len(data)-1])
	*v = make(Vector, 0, bytes.Count(data, []byte(","))+1)
	for len(data) > 0 {
		var number []byte
		number, data, _ = bytes.Cut(data, []byte(","))
		x, err := strconv.ParseFloat(string(bytes.TrimSpace(number)), 32)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("number %d of a vector is %.20q; expected a finite number", len(*v), number)
		}
		*v = append(*v, float32(x))
	}
	return nil
}
