//go:build !amd64

package simd

// Fast reports whether [DotRows] is many times as fast as a loop.
func Fast() bool { return false }

func dotRowsFast(rows []int8, vector []int16, products []int32) { DotRowsPlain(rows, vector, products) }

func dotVectorsFast(row []int8, vectors []int16, products []int32) {
	DotVectorsPlain(row, vectors, products)
}

// Prefetch tells the processor that a row will be read soon, if it can be told.
func Prefetch([]int8) {}
