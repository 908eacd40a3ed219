package simd

import "math"

func markFast(numbers []float32, bound float32, marks []uint64) (highest float32) {
	words := len(numbers) / 64
	if words == 0 {
		return float32(math.Inf(-1))
	}
	_ = marks[words-1]
	return mark(&numbers[0], bound, &marks[0], words)
}

// mark marks words of 64 numbers. It needs AVX2.
//
//go:noescape
func mark(numbers *float32, bound float32, marks *uint64, words int) (highest float32)
