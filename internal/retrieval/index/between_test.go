package index

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/simd"
)

func TestLowestBoundsKeepTheHighest(t *testing.T) {
	g := newGenerator(3)
	for _, limit := range []int{1, 2, 7, 30, 200} {
		l := newLows(limit)
		var all []float32
		for i := range 400 {
			low := float32(g.IntN(100)) // often equal ones
			l.offer(low)
			all = append(all, low)
			slices.Sort(all)
			want := float32(math.Inf(-1))
			if i+1 >= limit {
				want = all[len(all)-limit]
			}
			if got := l.least(); got != want {
				t.Fatalf("of %d: after %d the least is %v, want %v", limit, i+1, got, want)
			}
		}
	}
}

// TestFewVectorsAreCompared counts the exact comparisons of a search whose words decide little.
func TestFewVectorsAreCompared(t *testing.T) {
	g := newGenerator(4)
	compared := 0
	ix := New()
	ix.coarse = coarseDotsPlain
	ix.dot = func(a, b []float32) float32 {
		compared++
		return simd.DotFloatsPlain(a, b)
	}
	const memories, wanted = 5000, 30
	o := &oracle{memories: map[int64]Memory{}}
	for row := range int64(memories) {
		m := Memory{Row: row, ID: fmt.Sprintf("%05d", row), Partition: 1,
			Entries: []Entry{{Passage: row, Vector: g.unit(64), Terms: []string{g.word(), g.word()}}}}
		ix.Put(m)
		o.put(m)
	}
	q := Query{Vector: g.unit(64), Terms: terms("w0 w1 w2"), Partitions: []int64{1}, Limit: wanted,
		BM25: BM25{K1: 0.9, B: 0.4, Pivot: 30}, Fuse: sum}
	compared = 0
	mustSearch(t, ix, q)
	// The candidates by words that set the floor, and the best.
	if compared > 4*wanted {
		t.Errorf("%d vectors of %d are compared exactly for the best %d, want at most %d", compared, memories, wanted,
			4*wanted)
	}
	ix.dot = simd.DotFloatsPlain
	o.compare(t, ix, Query{Vector: q.Vector, Terms: q.Terms, Partitions: q.Partitions, Limit: wanted, BM25: q.BM25}, 1)
}
