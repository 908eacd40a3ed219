package index

import (
	"math"
	"strings"
	"testing"
)

// TestBM25AgreesWithHand has figures computed by hand: N = 2, a pivot of 2.5 terms, idf(a) = ln 1.2, idf(b) = ln 2.
func TestBM25AgreesWithHand(t *testing.T) {
	ix := New()
	ix.Put(
		Memory{Row: 1, Partition: 1, Entries: []Entry{entry(1, "a b")}},
		Memory{Row: 2, Partition: 1, Entries: []Entry{entry(2, "a a c")}},
	)
	a1 := math.Log(1.2) * 2.2 / 2.2      // 1 + 1.2 * (0.25 + 0.75), shorter than the pivot
	a2 := math.Log(1.2) * 2 * 2.2 / 3.38 // 2 + 1.2 * (0.25 + 0.75 * 3/2.5)
	b1 := math.Log(2) * 2.2 / 2.2
	for _, c := range []struct {
		terms []Term
		bm25  BM25
		want  map[int64]float64
	}{
		{[]Term{{Text: "a", Weight: 1}}, usual, map[int64]float64{1: a1, 2: a2}},
		{[]Term{{Text: "a", Weight: 1}, {Text: "b", Weight: 1}}, usual, map[int64]float64{1: a1 + b1, 2: a2}},
		{[]Term{{Text: "a", Weight: 0.5}, {Text: "b", Weight: 3}}, usual, map[int64]float64{1: a1/2 + 3*b1, 2: a2 / 2}},
		{[]Term{{Text: "a", Weight: 1}}, BM25{}, map[int64]float64{1: math.Log(1.2), 2: math.Log(1.2)}},
		{[]Term{{Text: "a", Weight: 1}}, BM25{K1: 1.2},
			map[int64]float64{1: math.Log(1.2), 2: math.Log(1.2) * 2 * 2.2 / 3.2}},
	} {
		hits, total := mustSearch(t, ix, Query{Partitions: []int64{1}, Terms: c.terms, BM25: c.bm25, Limit: 9})
		if total != len(c.want) {
			t.Errorf("%v: found %d, want %d", c.terms, total, len(c.want))
		}
		for _, h := range hits {
			if !near(h.BM25, c.want[h.Row]) {
				t.Errorf("%v, %+v: row %d has %v, want %v", c.terms, c.bm25, h.Row, h.BM25, c.want[h.Row])
			}
		}
	}
}

func TestIDFIsPositiveAndFallsWithFrequency(t *testing.T) {
	for _, n := range []int{0, 1, 2, 1000, 1 << 30} {
		for _, df := range []int{0, 1, n / 2, n - 1} {
			if df < 0 || df >= n {
				continue
			}
			if rare, common := IDF(n, df), IDF(n, df+1); !(rare >= common && common > 0) || n < 10_000 && rare == common {
				t.Errorf("of %d passages: idf %v for %d, %v for %d; want the rarer one higher", n, rare, df, common, df+1)
			}
		}
	}
}

func TestFrequencyIsNotClipped(t *testing.T) {
	const repeated = 100_000
	ix := New()
	ix.Put(Memory{Row: 1, Partition: 1, Entries: []Entry{entry(1, strings.Repeat("a ", repeated)), entry(2, "b")}})
	c := BM25{K1: 30_000, B: 0}
	hits, _ := mustSearch(t, ix, Query{Partitions: []int64{1}, Terms: terms("a"), BM25: c, Limit: 1})
	if want := float64(IDF(2, 1)) * repeated * 30_001 / (repeated + 30_000); !near(hits[0].BM25, want) {
		t.Errorf("scores %v, want %v", hits[0].BM25, want)
	}
}
