//go:build !amd64

package simd

func markFast(numbers []float32, bound float32, marks []uint64) float32 {
	return MarkPlain(numbers, bound, marks)
}
