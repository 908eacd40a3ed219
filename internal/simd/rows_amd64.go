package simd

import "github.com/viterin/vek"

var fast = vek.Info().Acceleration

// Fast reports whether [DotRows] is many times as fast as a loop.
func Fast() bool { return fast }

func dotRowsFast(rows []int8, vector []int16, products []int32) {
	if len(products) == 0 || len(vector) == 0 {
		return
	}
	_ = rows[len(products)*len(vector)-1]
	dotRows(&rows[0], &vector[0], &products[0], len(products), len(vector))
}

// dotRows writes the inner products of a vector with rows of the same width, a multiple of 32. It needs AVX2.
//
//go:noescape
func dotRows(codes *int8, vector *int16, products *int32, rows, width int)

func dotVectorsFast(row []int8, vectors []int16, products []int32) {
	if len(products) == 0 || len(row) == 0 {
		return
	}
	_ = vectors[len(products)*len(row)-1]
	dotVectors(&row[0], &vectors[0], &products[0], len(products)/Together, len(row))
}

// dotVectors writes the inner products of a row with vectors of the same width, a multiple of 32, in groups of four. It
// needs AVX2.
//
//go:noescape
func dotVectors(row *int8, vectors *int16, products *int32, groups, width int)

// Prefetch tells the processor that a row will be read soon, so that several rows are on their way at once.
func Prefetch(row []int8) {
	if len(row) > 0 {
		prefetch(&row[0], len(row))
	}
}

// prefetch fetches cache lines.
//
//go:noescape
func prefetch(row *int8, width int)
