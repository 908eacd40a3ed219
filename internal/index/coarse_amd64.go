package index

import "github.com/viterin/vek"

// fastestCoarse returns the comparison of codes by AVX2, if the processor has it. Otherwise it would be slower
// than comparing the vectors.
func fastestCoarse() coarseDots {
	if vek.Info().Acceleration {
		return coarseDotsAVX2
	}
	return nil
}

func coarseDotsAVX2(codes []int8, vector []int16, products []int32) {
	if len(products) == 0 || len(vector) == 0 {
		return
	}
	_ = codes[len(products)*len(vector)-1]
	dotRows(&codes[0], &vector[0], &products[0], len(products), len(vector))
}

// dotRows writes the inner products of a vector with rows of the same width, a multiple of 32. It needs AVX2.
//
//go:noescape
func dotRows(codes *int8, vector *int16, products *int32, rows, width int)
