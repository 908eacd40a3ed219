package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// sum is the simplest fusion.
func sum(Stats) func(Parts) float32 { return func(p Parts) float32 { return p.Cosine + p.BM25 } }

var usual = BM25{K1: 1.2, B: 0.75, Pivot: 2.5}

func terms(text string) (ts []Term) {
	for _, w := range strings.Fields(text) {
		ts = append(ts, Term{Text: w, Weight: 1})
	}
	return ts
}

func entry(passage int64, text string, vector ...float32) Entry {
	return Entry{Passage: passage, Terms: strings.Fields(text), Vector: vector}
}

func mustSearch(t *testing.T, ix *Index, q Query) ([]Hit, int) {
	t.Helper()
	if q.Fuse == nil {
		q.Fuse = sum
	}
	hits, total, err := ix.Search(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return hits, total
}

func rows(hits []Hit) []int64 {
	rows := []int64{}
	for _, h := range hits {
		rows = append(rows, h.Row)
	}
	return rows
}

func TestSearchFindsNothingInEmptyIndex(t *testing.T) {
	ix := New()
	queries := map[string]Query{
		"no query at all":   {Partitions: []int64{1}, Limit: 5},
		"text":              {Partitions: []int64{1}, Limit: 5, Terms: terms("a")},
		"vector":            {Partitions: []int64{1}, Limit: 5, Vector: []float32{1}},
		"no partition":      {Limit: 5, Terms: terms("a"), Vector: []float32{1}},
		"unknown partition": {Partitions: []int64{-1}, Limit: 5, Terms: terms("a"), Vector: []float32{1}},
	}
	check := func(t *testing.T, names ...string) {
		for _, name := range names {
			if hits, total := mustSearch(t, ix, queries[name]); len(hits) != 0 || total != 0 {
				t.Errorf("%s: %v of %d, want no hits and total 0", name, hits, total)
			}
		}
	}
	check(t, "no query at all", "text", "vector", "no partition", "unknown partition")

	ix.Put(Memory{Row: 1, Partition: 1, Entries: []Entry{entry(1, "a", 1)}})
	check(t, "no query at all", "no partition", "unknown partition")
	if _, total := mustSearch(t, ix, queries["text"]); total != 1 {
		t.Errorf("not found after Put: got %v, want 1", total)
	}
	ix.Put(Memory{Row: 1, Partition: 1})
	check(t, "text", "vector")
	ix.Put(Memory{Row: 1, Partition: 1, Entries: []Entry{{Passage: 1}}})
	check(t, "text", "vector")
	if m, p := ix.Len(); m != 1 || p != 1 {
		t.Errorf("holds %d memories, %d passages; want the one that has neither words nor vector", m, p)
	}
	ix.Put(Memory{Row: 1, Partition: 1, Entries: []Entry{entry(1, "a", 1)}})
	ix.Reset()
	check(t, "text", "vector")
	ix.Delete(1, 2)
	ix.Put()
	ix.Delete()
}

func TestSearchRejectsQueryThatCannotRank(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, q := range map[string]Query{
		"Fuse":  {},
		"K1":    {Fuse: sum, BM25: BM25{K1: -0.1}},
		"NaN":   {Fuse: sum, BM25: BM25{K1: nan}},
		"Inf":   {Fuse: sum, BM25: BM25{K1: inf}},
		"B is":  {Fuse: sum, BM25: BM25{B: 1.1}},
		"Pivot": {Fuse: sum, BM25: BM25{B: 0.5}},
	} {
		if _, _, err := New().Search(t.Context(), q); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v, want an error and it in the error", name, err)
		}
	}
}

func TestMemoryScoresAsItsBestPassage(t *testing.T) {
	ix := New()
	ix.Put(
		Memory{Row: 1, ID: "b", Partition: 1,
			Entries: []Entry{entry(12, "x", 0.6, 0.8), entry(11, "y", 0.8, 0.6), entry(10, "z", 0.8, 0.6)}},
		Memory{Row: 2, ID: "a", Partition: 1, Entries: []Entry{entry(20, "x", 1, 0)}},
	)
	hits, total := mustSearch(t, ix, Query{Partitions: []int64{1}, Vector: []float32{1, 0}, Limit: 9})
	want := []Hit{
		{Row: 2, ID: "a", Passage: 20, Parts: Parts{Cosine: 1, HasVector: true}, Score: 1},
		{Row: 1, ID: "b", Passage: 10, Parts: Parts{Cosine: 0.8, HasVector: true}, Score: 0.8}, // the lower of two equals
	}
	if total != 2 || !reflect.DeepEqual(hits, want) {
		t.Errorf("found %+v of %d, want %+v", hits, total, want)
	}
}

// TestPagesFormOneTotalOrder has equal scores, so that ids must decide, and reads pages.
func TestPagesFormOneTotalOrder(t *testing.T) {
	g := newGenerator(3)
	var memories []Memory
	for i := range 200 {
		e := entry(int64(i), "", []float32{1, 0.5, 0}[i%3])
		memories = append(memories, Memory{Row: int64(i), ID: fmt.Sprint("id", g.IntN(150)), Partition: int64(i % 4),
			Entries: []Entry{e}})
	}
	want := slices.Clone(memories)
	slices.SortFunc(want, func(a, b Memory) int {
		return cmp.Or(
			cmp.Compare(b.Entries[0].Vector[0], a.Entries[0].Vector[0]),
			cmp.Compare(a.ID, b.ID),
			cmp.Compare(a.Row, b.Row),
		)
	})
	for range 5 {
		g.Shuffle(len(memories), func(i, j int) { memories[i], memories[j] = memories[j], memories[i] })
		ix := New()
		ix.Put(memories...)
		q := Query{Partitions: []int64{3, 1, 0, 2, 1}, Vector: []float32{1}}
		for _, page := range []int{1, 7, 64, 200, 1000} {
			var got []int64
			for offset := 0; offset < len(want); offset += page {
				q.Limit = offset + page
				hits, total := mustSearch(t, ix, q)
				if total != len(want) {
					t.Fatalf("total %d, want %d", total, len(want))
				}
				got = append(got, rows(hits[min(offset, len(hits)):])...)
			}
			for i, m := range want {
				if i >= len(got) || got[i] != m.Row {
					t.Fatalf("pages of %d: got %d hits that differ from the total order at place %d, want memory %v "+
						"there", page, len(got), i, m.Row)
				}
			}
		}
	}
}

func TestOtherPartitionsHaveNoInfluence(t *testing.T) {
	g := newGenerator(4)
	ix := New()
	ix.coded = 1
	var q Query
	var stats Stats
	for i := range 300 {
		m := g.memory(1 << 30)
		m.Row, m.Partition = int64(i), int64(1+i%2)
		ix.Put(m)
	}
	q.Partitions, q.Limit, q.BM25 = []int64{1, 2}, 100, usual
	q.Vector, q.Terms = g.unit(33), terms("w0 w3 w17 hidden")
	q.Fuse = func(s Stats) func(Parts) float32 { stats = s; return sum(s) }
	hits, total := mustSearch(t, ix, q)
	before := stats
	if total < 100 || stats.Matches == 0 {
		t.Fatalf("the test finds too little: %d, %+v, want at least 100 in all and some matches", total, stats)
	}
	same := func(after string) {
		t.Helper()
		h, n := mustSearch(t, ix, q)
		if n != total || !reflect.DeepEqual(h, hits) || stats != before {
			t.Fatalf("after %s in another partition: got another result, want %v hits, %v, and the same statistics",
				after, total, hits)
		}
	}
	for i := range 300 {
		m := g.memory(1 << 30)
		m.Row, m.Partition = int64(1000+i), 3
		m.Entries = append(m.Entries, entry(1<<30+int64(i), "w0 w3 hidden hidden", q.Vector...))
		ix.Put(m)
	}
	same("Put")
	for i := range 250 {
		ix.Delete(int64(1000 + i))
	}
	same("Delete")
	q.Partitions = []int64{2, 1, 1}
	same("nothing, partitions named in another order and twice,")
}

func TestKeepFiltersWithoutChangingScores(t *testing.T) {
	g := newGenerator(5)
	ix := New()
	for i := range 200 {
		m := g.memory(1 << 30)
		m.Row, m.Partition = int64(i), 1
		ix.Put(m)
	}
	q := Query{Partitions: []int64{1}, Vector: g.unit(33), Terms: terms("w0 w5 w9"), BM25: usual, Limit: 1000,
		Fuse: func(s Stats) func(Parts) float32 {
			return func(p Parts) float32 { return 3*p.Cosine + p.BM25/s.MaxBM25 }
		}}
	all, _ := mustSearch(t, ix, q)
	asked := map[int64]int{}
	q.Keep = func(row int64) bool { asked[row]++; return row%3 == 1 }
	want := slices.DeleteFunc(slices.Clone(all), func(h Hit) bool { return h.Row%3 != 1 })
	hits, total := mustSearch(t, ix, q)
	if total != len(want) || !reflect.DeepEqual(hits, want) {
		t.Errorf("kept %d of %d, want the %d kept ones of the full result", len(hits), total, len(want))
	}
	if len(asked) != len(all) {
		t.Errorf("asked about %d memories, want the %d candidates", len(asked), len(all))
	}
	for row, n := range asked {
		if n != 1 {
			t.Errorf("asked %d times about row %d, want 1", n, row)
		}
	}
	q.Keep = func(int64) bool { return false }
	if hits, total := mustSearch(t, ix, q); len(hits) != 0 || total != 0 {
		t.Errorf("found %v of %d although nothing is kept, want no hits and total 0", hits, total)
	}
	q.Keep = nil
	for _, limit := range []int{0, -1} {
		q.Limit = limit
		if hits, total := mustSearch(t, ix, q); len(hits) != 0 || total != len(all) {
			t.Errorf("limit %d: %d hits of %d, want none of %d", limit, len(hits), total, len(all))
		}
	}
}

func TestVectorsOfOtherSizesAreNotCompared(t *testing.T) {
	ix := New()
	ix.Put(
		Memory{Row: 1, ID: "1", Partition: 1, Entries: []Entry{entry(1, "a b", 1, 0)}},
		Memory{Row: 2, ID: "2", Partition: 1, Entries: []Entry{entry(2, "a", 0, 1, 0)}},
		Memory{Row: 3, ID: "3", Partition: 2, Entries: []Entry{entry(3, "c", 0, 1, 0), entry(4, "a", 0, 1)}},
		Memory{Row: 4, ID: "4", Partition: 2, Entries: []Entry{entry(5, "c")}},
	)
	for _, c := range []struct {
		name   string
		vector []float32
		terms  string
		want   []Hit
	}{
		{"two", []float32{0, 1}, "",
			[]Hit{{Row: 3, ID: "3", Passage: 4, Parts: Parts{1, true, 0}, Score: 1},
				{Row: 1, ID: "1", Passage: 1, Parts: Parts{0, true, 0}}}},
		{"three", []float32{0, 1, 0}, "",
			[]Hit{{Row: 2, ID: "2", Passage: 2, Parts: Parts{1, true, 0}, Score: 1},
				{Row: 3, ID: "3", Passage: 3, Parts: Parts{1, true, 0}, Score: 1}}},
		{"four", []float32{0, 1, 0, 0}, "", nil},
		{"four, with words", []float32{0, 1, 0, 0}, "b",
			[]Hit{{Row: 1, ID: "1", Passage: 1, Parts: Parts{0, false, IDF(5, 1)}, Score: IDF(5, 1)}}},
	} {
		hits, total := mustSearch(t, ix, Query{Partitions: []int64{1, 2}, Vector: c.vector, Terms: terms(c.terms), Limit: 10})
		if total != len(c.want) || !slices.Equal(hits, c.want) {
			t.Errorf("%s: found %+v, want %+v", c.name, hits, c.want)
		}
	}
}

func TestNaNsDoNotBreakTheOrder(t *testing.T) {
	nan, inf, huge := float32(math.NaN()), float32(math.Inf(1)), float32(math.MaxFloat32)
	for _, bad := range [][]float32{{nan, 0}, {0, inf}, {-inf, inf}, {huge, huge}} {
		ix := New()
		ix.Put(
			Memory{Row: 1, ID: "1", Partition: 1, Entries: []Entry{entry(1, "a", bad...)}},
			Memory{Row: 2, ID: "2", Partition: 1, Entries: []Entry{entry(2, "b", 1, 0)}},
			Memory{Row: 3, ID: "3", Partition: 1, Entries: []Entry{entry(3, "b", 0, 1)}},
		)
		good := Query{Partitions: []int64{1}, Vector: []float32{0, 1}, Limit: 10}
		if hits, total := mustSearch(t, ix, good); total != 2 || !slices.Equal(rows(hits), []int64{3, 2}) {
			t.Errorf("stored vector %v: found %+v, want rows 3 and 2", bad, hits)
		}
		good.Vector, good.Terms = bad, terms("a")
		if hits, total := mustSearch(t, ix, good); total != 1 || !slices.Equal(rows(hits), []int64{1}) {
			t.Errorf("query vector %v: found %+v, want row 1", bad, hits)
		}
	}

	ix := New()
	for i := range int64(20) {
		ix.Put(Memory{Row: i, ID: fmt.Sprintf("%02d", i), Partition: 1,
			Entries: []Entry{entry(2*i, "a"), entry(2*i+1, "a", float32(i))}})
	}
	q := Query{Partitions: []int64{1}, Vector: []float32{1}, Limit: 20}
	q.Fuse = func(Stats) func(Parts) float32 {
		return func(p Parts) float32 {
			if !p.HasVector || int(p.Cosine)%2 == 1 {
				return nan
			}
			return p.Cosine
		}
	}
	want := []int64{18, 16, 14, 12, 10, 8, 6, 4, 2, 0, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19}
	q.Terms = terms("a")
	if hits, _ := mustSearch(t, ix, q); !slices.Equal(rows(hits), want) {
		t.Errorf("with scores of NaN the order is %v, want %v", rows(hits), want)
	}
}

// countdown is a context that is canceled after a number of checks.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestSearchStopsWithItsContext(t *testing.T) {
	const passages = 20_000
	ix := New()
	for i := range int64(passages) {
		ix.Put(Memory{Row: i, ID: fmt.Sprintf("%05d", i), Partition: 1, Entries: []Entry{entry(i, "a b", float32(i%7), 1)}})
	}
	q := Query{Partitions: []int64{1}, Vector: []float32{1, 1}, Terms: terms("a b"), BM25: usual, Limit: 50, Fuse: sum}
	want, _ := mustSearch(t, ix, q)
	for looks := 0; ; looks++ {
		hits, total, err := ix.Search(&countdown{t.Context(), looks}, q)
		if err == nil {
			// Two terms, the vectors and the ranking each pass over all rows.
			if least := 4 * (passages/checkEvery - 1); looks < least {
				t.Errorf("the context was looked at %d times, want at least %d", looks, least)
			}
			break
		}
		if !errors.Is(err, context.Canceled) || hits != nil || total != 0 {
			t.Fatalf("cancelled at look %d: got %v of %d, error %v, want context.Canceled and no hits", looks, hits,
				total, err)
		}
		if again, total := mustSearch(t, ix, q); total != passages || !slices.Equal(again, want) {
			t.Fatalf("a search after one cancelled at look %d finds something else, want total %v and again %v", looks, passages,
				want)
		}
	}
}

func TestIndexWorksAfterAPanicOfTheCaller(t *testing.T) {
	ix := New()
	for i := range int64(100) {
		ix.Put(Memory{Row: i, ID: fmt.Sprintf("%03d", i), Partition: 1, Entries: []Entry{entry(i, "a", 1)}})
	}
	q := Query{Partitions: []int64{1}, Vector: []float32{1}, Terms: terms("a"), Limit: 100}
	want, _ := mustSearch(t, ix, q)
	q.Keep = func(row int64) bool { panic(row) }
	func() {
		defer func() { recover() }()
		mustSearch(t, ix, q)
		t.Error("the panic was lost")
	}()
	q.Keep = nil
	ix.Delete(0) // must not wait for the lock of the search
	if hits, total := mustSearch(t, ix, q); total != 99 || hits[0].ID != want[1].ID || hits[0].Score >= 2*want[0].Score {
		t.Errorf("found %+v of %d, want total 99, ID %v and score less than %v", hits[0], total, want[1].ID,
			2*want[0].Score)
	}
}

// TestTiesAreForTheLowestIDs searches without weight for vectors, where few passages have a word. Nearly all memories
// have the lowest score, and those with the lowest ids must be found, wherever they are.
func TestTiesAreForTheLowestIDs(t *testing.T) {
	g := newGenerator(11)
	ix := New()
	ix.coded = 1
	var ids []string
	for row := range int64(3000) {
		m := Memory{Row: row, ID: fmt.Sprint(g.IntN(4)), Partition: 1 + row%2} // most share theirs
		for i := range 1 + g.IntN(2) {
			m.Entries = append(m.Entries, Entry{Passage: 2*row + int64(i), Vector: g.unit(64), Terms: []string{"other"}})
		}
		if row%700 == 3 {
			m.Entries[0].Terms = []string{"sought"}
		} else {
			ids = append(ids, m.ID+fmt.Sprintf(" %06d", row))
		}
		ix.Put(m)
	}
	slices.Sort(ids)
	for _, keep := range []func(int64) bool{nil, func(row int64) bool { return row%3 != 5 }} {
		hits, total := mustSearch(t, ix, Query{Partitions: []int64{1, 2}, Vector: g.unit(64), Terms: terms("sought"),
			BM25: BM25{K1: 0.9, B: 0.4, Pivot: 4}, Limit: 40, Keep: keep,
			Fuse: func(s Stats) func(Parts) float32 { return func(p Parts) float32 { return p.BM25 } }})
		if total != 3000 || len(hits) != 40 {
			t.Fatalf("got %d hits of %d, want 40 of 3000", len(hits), total)
		}
		for i, h := range hits {
			got := h.ID + fmt.Sprintf(" %06d", h.Row)
			if i < 5 && h.Row%700 != 3 || i >= 5 && got != ids[i-5] {
				t.Fatalf("hit %d is %+v, want one of 5 with the word first, then %q", i, h, ids[max(0, i-5)])
			}
		}
	}
}
