package index

import (
	"fmt"
	"slices"
	"testing"
)

// TestFewHitsAreTheFirstOfMany searches for so few memories that most passages are passed over, and for so many that
// none is. Some memories have more passages than are passed over at once; some are deleted, and some are not kept.
func TestFewHitsAreTheFirstOfMany(t *testing.T) {
	g := newGenerator(17)
	ix := New()
	passage := int64(0)
	for row := range int64(2000) {
		m := Memory{Row: row, ID: fmt.Sprint(row), Partition: 1 + row%2}
		passages := 1
		if row%500 == 7 {
			passages = 3 * markAtOnce
		}
		for range passages {
			e := Entry{Passage: passage, Vector: g.unit(64)}
			for range 1 + g.IntN(20) {
				e.Terms = append(e.Terms, fmt.Sprint("w", g.IntN(1+g.IntN(60))))
			}
			if passages > 1 {
				e.Terms = append(e.Terms, "w1", "w1", "w2", "w3")
			}
			m.Entries, passage = append(m.Entries, e), passage+1
		}
		ix.Put(m)
	}
	for _, keep := range []func(int64) bool{nil, func(row int64) bool { return row%500 != 7 && row%3 != 0 }} {
		for n := range 60 {
			q := Query{Partitions: []int64{1, 2}, BM25: BM25{K1: 0.9, B: 0.4, Pivot: 6}, Keep: keep, Limit: maxSeeds + 1,
				Fuse: func(s Stats) func(Parts) float32 {
					return func(p Parts) float32 { return 0.02*p.Cosine + p.BM25/max(1, s.IdealBM25) }
				}}
			if n%2 == 0 {
				q.Vector = g.unit(64)
			}
			for word := range 1 + n%5 {
				q.Terms = append(q.Terms, Term{Text: fmt.Sprint("w", n%7*word), Weight: 1 + float32(word)})
			}
			all, _, err := ix.Search(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for _, q.Limit = range []int{1, 2, 5, 30} {
				got, _, err := ix.Search(t.Context(), q)
				if want := all[:min(q.Limit, len(all))]; err != nil || !slices.Equal(got, want) || len(want) == 0 {
					t.Fatalf("question %d, limit %d: got %v and error %v, want %v, not none", n, q.Limit, got, err, want)
				}
			}
		}
		for row := range int64(2000) {
			if row%9 == 0 {
				ix.Delete(row)
			}
		}
	}
}
