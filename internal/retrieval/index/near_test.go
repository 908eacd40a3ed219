package index

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// seeds returns fewer seeds in the short form.
func seeds(n uint64) uint64 {
	return uint64(longtest.Size(int(n), int(n/4)))
}

// neighbours adds memories around a few centres, some of them the same, so that cosines of every size occur.
func neighbours(g *generator, ix *Index, memories, size int) {
	var centres [][]float32
	for range 5 {
		centres = append(centres, g.unit(size))
	}
	for i := range memories {
		m := Memory{Row: int64(i), ID: fmt.Sprintf("%05d", g.IntN(memories)), Partition: int64(g.IntN(3))}
		for range 1 + g.IntN(3) {
			g.passage++
			e := Entry{Passage: -g.passage, Vector: slices.Clone(centres[g.IntN(5)])}
			if g.IntN(4) > 0 {
				off := g.unit(size)
				far := float32(g.Float64() * 1.5)
				sum := float32(0)
				for j := range e.Vector {
					e.Vector[j] += far * off[j]
					sum += e.Vector[j] * e.Vector[j]
				}
				for j := range e.Vector {
					e.Vector[j] /= float32(math.Sqrt(float64(sum)))
				}
			}
			if g.IntN(20) == 0 {
				e.Vector = g.vector()
			}
			for range g.IntN(8) {
				e.Terms = append(e.Terms, g.word())
			}
			m.Entries = append(m.Entries, e)
		}
		ix.Put(m)
	}
	for range memories / 5 {
		ix.Delete(int64(g.IntN(memories)))
	}
}

// TestNearFindsWhatASearchRanksFirst compares the results bit by bit with a search by the same vector.
func TestNearFindsWhatASearchRanksFirst(t *testing.T) {
	for name, coarse := range coarses() {
		for seed := range seeds(4) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				g := newGenerator(seed)
				ix := New()
				ix.coarse, ix.coded = coarse, 1
				neighbours(g, ix, []int{30, 1500}[seed%2], []int{40, 256}[seed%2])
				found := 0
				for step := range longtest.Size(60, 30) {
					size := []int{40, 256}[seed%2]
					vector := g.unit(size)
					for _, p := range ix.partitions { // near to an existing one
						if m := p.findMatrix(size); m != nil && step%5 > 0 {
							vector = m.row(g.IntN(len(m.slots)))
						}
					}
					n := Near{Vector: vector, Partitions: []int64{2, 0, 2, 7}, Least: []float32{0.9, 0.5, 0, -2}[g.IntN(4)],
						Limit: []int{1, 3, 20, 5000}[g.IntN(4)]}
					if g.IntN(3) == 0 {
						n.Compare = func(partition int64) bool { return partition != 0 }
					}
					q := Query{Vector: n.Vector, Partitions: n.Partitions, Compare: n.Compare, Fuse: sum, Limit: 10_000}
					want, _ := mustSearch(t, ix, q)
					want = slices.DeleteFunc(want, func(h Hit) bool { return h.Score < n.Least })
					want = want[:min(len(want), n.Limit)]
					got, err := ix.Near(t.Context(), n)
					if err != nil || !slices.Equal(got, want) {
						t.Fatalf("near %v, at most %d: found %v, %v, want %v", n.Least, n.Limit, got, err, want)
					}
					found += len(want)
				}
				if found == 0 {
					t.Errorf("got %v found in all, want at least one", found)
				}
			})
		}
	}
}

func TestNearOfNothingReturnsNothing(t *testing.T) {
	ix := New()
	ix.Put(Memory{Row: 1, ID: "1", Partition: 1, Entries: []Entry{entry(1, "", 1, 0)}})
	nan := float32(math.NaN())
	for name, n := range map[string]Near{
		"no vector":         {Limit: 1},
		"NaN":               {Limit: 1, Vector: []float32{nan, 1}},
		"another size":      {Limit: 1, Vector: []float32{1}},
		"no limit":          {Vector: []float32{1, 0}},
		"too far":           {Limit: 1, Vector: []float32{1, 0}, Least: 1.5},
		"unknown partition": {Limit: 1, Vector: []float32{1, 0}, Partitions: []int64{5}},
	} {
		if n.Partitions == nil {
			n.Partitions = []int64{1}
		}
		hits, err := ix.Near(t.Context(), n)
		if len(hits) != 0 || err != nil {
			t.Errorf("%s: %v, %v; want none", name, hits, err)
		}
	}
	if hits, err := ix.Near(t.Context(),
		Near{Limit: 1, Vector: []float32{1, 0}, Partitions: []int64{1}, Least: 1}); len(hits) != 1 || err != nil {
		t.Errorf("the memory itself: %v, %v; want a length of 1", hits, err)
	}
}

func TestNearStopsWithItsContext(t *testing.T) {
	ix := New()
	for i := range int64(3 * blockRows) {
		ix.Put(Memory{Row: i, ID: fmt.Sprint(i), Partition: 1, Entries: []Entry{entry(i, "", 1)}})
	}
	n := Near{Limit: 1, Vector: []float32{1}, Partitions: []int64{1}}
	for looks := range 3 {
		if hits, err := ix.Near(&countdown{t.Context(), looks}, n); !errors.Is(err, context.Canceled) || hits != nil {
			t.Errorf("cancelled at look %d: %v, %v, want context.Canceled and no hits", looks, hits, err)
		}
	}
}

// TestPruningLosesNoResult compares short results, for which most passages are skipped, bit by bit with the beginning
// of results so long that none is skipped.
func TestPruningLosesNoResult(t *testing.T) {
	for name, coarse := range coarses() {
		for seed := range seeds(4) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				g := newGenerator(seed)
				ix := New()
				ix.coarse, ix.coded = coarse, 1
				size := []int{40, 256}[seed%2]
				neighbours(g, ix, []int{1500, 200}[seed%2], size)
				for step := range longtest.Size(60, 30) {
					q := g.query()
					q.BM25 = usual
					q.Partitions = append(q.Partitions, 1)
					q.Vector = nil
					if step%5 > 0 {
						q.Vector = g.unit(size)
					}
					for _, p := range ix.partitions {
						if m := p.findMatrix(size); m != nil && step%5 > 2 {
							q.Vector = m.row(g.IntN(len(m.slots)))
						}
					}
					words := []float32{0.65, 0.1, 0.95, 0}[g.IntN(4)]
					q.Fuse = func(s Stats) func(Parts) float32 {
						return func(p Parts) float32 { return words*p.BM25/max(s.IdealBM25, 1) + (1-words)*max(0, p.Cosine) }
					}
					q.Limit = 10_000
					all, total := mustSearch(t, ix, q)
					for _, q.Limit = range []int{1, 3, 7, 100} {
						hits, same := mustSearch(t, ix, q)
						if same != total || !slices.Equal(hits, all[:min(len(all), q.Limit)]) {
							t.Fatalf("the best %d of %d are %v of %d, want %v", q.Limit, total, hits, same, all[:min(len(all), q.Limit)])
						}
					}
				}
			})
		}
	}
}
