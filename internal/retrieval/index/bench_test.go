package index

import (
	"fmt"
	"math"
	"testing"
)

const (
	benchSize  = 256 // floats per vector
	benchTerms = 30  // terms per passage
)

// benchMemories makes memories of one passage each, whose words follow Zipf's law over 20,000 words, as in real text.
func benchMemories(n int) []Memory {
	g := newGenerator(1)
	words := make([]string, 20_000)
	for i := range words {
		words[i] = fmt.Sprintf("word%d", i)
	}
	memories := make([]Memory, n)
	for i := range memories {
		e := Entry{Passage: int64(i), Vector: g.unit(benchSize)}
		for range benchTerms {
			// The inverse distribution function of the density 1/rank.
			rank := math.Exp(g.Float64() * math.Log(float64(len(words))))
			e.Terms = append(e.Terms, words[int(rank)-1])
		}
		memories[i] = Memory{Row: int64(i), ID: fmt.Sprintf("01890000-0000-7000-8000-%012d", i), Partition: 1,
			Entries: []Entry{e}}
	}
	return memories
}

// benchmarkSearch searches n memories, after one in dead has been deleted; 0 = none.
func benchmarkSearch(b *testing.B, n, dead int) {
	ix := New()
	ix.Put(benchMemories(n)...)
	for row := 0; dead > 0 && row < n; row += dead {
		ix.Delete(int64(row))
	}
	b.Logf("%d bytes per passage", ix.Bytes()/int64(n))
	g := newGenerator(2)
	vector := g.unit(benchSize)
	// Terms between a word of every second passage and a rare one.
	var terms []Term
	for _, rank := range []int{1, 10, 50, 200, 1000, 5000} {
		terms = append(terms, Term{Text: fmt.Sprintf("word%d", rank), Weight: 1})
	}
	base := Query{
		Partitions: []int64{1}, BM25: BM25{K1: 0.9, B: 0.4, Pivot: 30}, Limit: 20,
		Fuse: func(s Stats) func(Parts) float32 {
			scale := 1 / max(s.MaxBM25, 1e-6)
			return func(p Parts) float32 { return 0.5*p.Cosine + 0.5*p.BM25*scale }
		},
	}
	hundredth := func(row int64) bool { return row%100 == 0 }
	var listed []int64
	for row := range int64(n) {
		if hundredth(row) {
			listed = append(listed, row)
		}
	}
	for _, c := range []struct {
		name          string
		vector, terms bool
		keep          func(int64) bool
		rows          *RowSet
	}{
		{"hybrid", true, true, nil, nil},
		{"vector", true, false, nil, nil},
		{"text", false, true, nil, nil},
		{"keep", true, true, func(row int64) bool { return row%10 == 0 }, nil},
		{"keep-1%", true, true, hundredth, nil},
		{"rows-1%", true, true, hundredth, NewRowSet(listed)},
	} {
		b.Run(c.name, func(b *testing.B) {
			q := base
			q.Keep, q.Rows = c.keep, c.rows
			if c.vector {
				q.Vector = vector
			}
			if c.terms {
				q.Terms = terms
			}
			b.ReportAllocs()
			for b.Loop() {
				if hits, _, err := ix.Search(b.Context(), q); err != nil || len(hits) != q.Limit {
					b.Fatalf("got %v %v, want no error and %v hits", len(hits), err, q.Limit)
				}
			}
		})
	}
}

func BenchmarkSearch10k(b *testing.B)  { benchmarkSearch(b, 10_000, 0) }
func BenchmarkSearch100k(b *testing.B) { benchmarkSearch(b, 100_000, 0) }

func BenchmarkSearchAfterDeletions(b *testing.B) { benchmarkSearch(b, 100_000, 20) }

// BenchmarkPut reports the time for one memory when an index is filled with 20,000 in calls of 200.
func BenchmarkPut(b *testing.B) {
	memories := benchMemories(20_000)
	ix := New()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		at := n % len(memories)
		if at == 0 {
			ix.Reset()
		}
		if at%200 == 0 {
			ix.Put(memories[at : at+200]...)
		}
		n++
	}
}

// BenchmarkReplace reports the time for replacing a memory with itself, one by one, in a partition of 10,000, including
// its share of a compaction.
func BenchmarkReplace(b *testing.B) {
	memories := benchMemories(10_000)
	ix := New()
	ix.Put(memories...)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		ix.Put(memories[n%len(memories)])
		n += 7919
	}
}

// BenchmarkCompact reports how long searches wait while a partition of 100,000 passages, a third of them dead, is
// compacted.
func BenchmarkCompact(b *testing.B) {
	memories := benchMemories(100_000)
	ix := New()
	for b.Loop() {
		b.StopTimer()
		ix.Reset()
		ix.Put(memories...)
		p := ix.partitions[1]
		for row := range int64(len(memories) / 3) {
			ix.Delete(3 * row)
		}
		b.StartTimer()
		p.compact()
	}
}

func BenchmarkDot(b *testing.B) {
	g := newGenerator(3)
	x, y := g.unit(benchSize), g.unit(benchSize)
	for name, dot := range dots() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				dot(x, y)
			}
		})
	}
}
