package simd

import "slices"

func mostFast(table []float32, places []uint32, most []float32) {
	if len(places) == 0 || len(most) == 0 {
		return
	}
	_ = table[(int(slices.Max(places))+1)*len(most)-1]
	mostRows(&table[0], &places[0], &most[0], len(places), len(most)/Together)
}

// mostRows writes the highest number of each column, in groups of four columns. It needs AVX.
//
//go:noescape
func mostRows(table *float32, places *uint32, most *float32, count, groups int)
