package simd

import "math"

// Mark writes a bit for each number, 64 to a word of marks, the first one in the lowest: 1 if it is at least bound. It
// returns the highest number. Their count is a multiple of 64. A NaN is neither marked nor returned.
func Mark(numbers []float32, bound float32, marks []uint64) (highest float32) {
	if Fast() {
		return markFast(numbers, bound, marks)
	}
	return MarkPlain(numbers, bound, marks)
}

// MarkPlain is [Mark] in Go alone.
func MarkPlain(numbers []float32, bound float32, marks []uint64) (highest float32) {
	highest = float32(math.Inf(-1))
	for w := range len(numbers) / 64 {
		word := uint64(0)
		for _, x := range numbers[64*w:][:64] {
			bit := uint64(0)
			if x >= bound {
				bit = 1 // compiled without a jump, which could not be foreseen
			}
			word = word>>1 | bit<<63
			if x > highest {
				highest = x
			}
		}
		marks[w] = word
	}
	return highest
}
