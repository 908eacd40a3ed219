package index

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// TestTermsAddUpAsTheFormulaSays adds up terms with lists of all densities, repeated terms, long passages and dead
// ones.
func TestTermsAddUpAsTheFormulaSays(t *testing.T) {
	g := newGenerator(11)
	ix := New()
	ix.settleAt = 3000
	for row := range int64(2500) {
		e := Entry{Passage: row}
		length := 1 + g.IntN(12)
		if g.IntN(50) == 0 {
			length = 200 + g.IntN(200)
		}
		for range length {
			e.Terms = append(e.Terms, fmt.Sprint("w", int(math.Exp(g.Float64()*math.Log(600)))))
		}
		ix.Put(Memory{Row: row, ID: fmt.Sprint(row), Partition: 1 + row%2, Entries: []Entry{e}})
	}
	for range 2 {
		sum := func(fast bool) *search {
			s := &search{ctx: t.Context(), q: &Query{Partitions: []int64{1, 2}}, scratch: new(scratch)}
			s.open(ix.partitions)
			s.saturations.prepare(BM25{K1: 0.9, B: 0.4, Pivot: 6}.Saturation())
			for word := range 600 {
				factor := 0.1 + float32(word%7)
				for _, r := range s.regions {
					lists := r.find(fmt.Sprint("w", word))
					if fast {
						if err := s.addTerm(r, lists, factor); err != nil {
							t.Fatal(err)
						}
						continue
					}
					lists.each(&s.postings, func(list []posting) bool {
						for _, e := range list {
							if r.owners[e.slot] != nil {
								s.bm25[r.from+int(e.slot)] += float32(factor * s.of.Of(e.frequency, r.lengths[e.slot]))
							}
						}
						return true
					})
				}
			}
			return s
		}
		got, want := sum(true), sum(false)
		if !slices.Equal(got.bm25, want.bm25) || slices.Max(want.bm25) == 0 {
			t.Fatalf("the sums differ: got %v, want %v, not all 0", got.bm25, want.bm25)
		}
		for row := range int64(2500) {
			if row%7 == 0 {
				ix.Delete(row)
			}
		}
	}
}
