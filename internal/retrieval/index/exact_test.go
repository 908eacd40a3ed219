package index

import (
	"slices"
	"testing"
)

// TestRarestPartOfAChunkIsExact covers paths whose folders are also in other paths.
func TestRarestPartOfAChunkIsExact(t *testing.T) {
	for _, test := range []struct {
		name       string
		chunks     []int
		containing []int
		want       []int
	}{
		{"the file of a path", []int{1, 1, 1}, []int{4, 4, 1}, []int{2}},
		{"in any order", []int{1, 1, 1}, []int{1, 4, 2}, []int{0}},
		{"all that are equally rare", []int{1, 1, 1}, []int{2, 4, 2}, []int{0, 2}},
		{"what no passage contains does not count", []int{1, 1}, []int{0, 3}, []int{1}},
		{"each path by itself", []int{1, 1, 2, 2}, []int{3, 1, 5, 4}, []int{1, 3}},
		{"identifiers outside of paths all count", []int{0, 0}, []int{1, 5}, []int{0, 1}},
	} {
		x := NewExact(10_000)
		for i, n := range test.containing {
			x.Consider(i, Term{Exact: Identifier, Chunk: test.chunks[i]}, n, func(int) int { return n })
		}
		if got := x.Terms(); !slices.Equal(got, test.want) {
			t.Errorf("%s: exact are the terms %v, want %v", test.name, got, test.want)
		}
	}
}
