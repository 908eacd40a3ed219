package index

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
)

// TestNeighbourhoodsAgreeWithOracle adds, moves and removes turns at random, and compares the results of Rerank with
// those from a plain list.
func TestNeighbourhoodsAgreeWithOracle(t *testing.T) {
	g := newGenerator(7)
	ix := New()
	ix.coded = 1
	held := map[int64]Memory{}
	const depth, reach = 6, 3
	for range 300 {
		row := g.Int64N(60)
		if g.IntN(4) == 0 {
			ix.Delete(row)
			delete(held, row)
			continue
		}
		m := Memory{Row: row, ID: fmt.Sprintf("%03d", row), Partition: g.Int64N(2)}
		if g.IntN(5) > 0 {
			m.Turn = &Turn{Conversation: 1 + g.Int64N(3), At: g.Int64N(20), Speaker: fmt.Sprint("s", g.IntN(3)),
				Asks: g.IntN(2) == 0}
		}
		for i := range 1 + g.IntN(2) {
			e := Entry{Passage: row*10 + int64(i), Vector: g.unit(8), Words: []uint16{uint16(row), uint16(i), uint16(g.IntN(9))}}
			if g.IntN(2) == 0 {
				e.Terms = []string{"heron"}
			}
			m.Entries = append(m.Entries, e)
		}
		ix.Put(m)
		held[row] = m
		if m.Turn != nil {
			copied := *m.Turn
			*m.Turn = Turn{} // the index holds a copy
			m.Turn = &copied
			held[row] = m
		}
		compareNeighbourhoods(t, ix, held, depth, reach, g.unit(8))
	}
}

func compareNeighbourhoods(t *testing.T, ix *Index, held map[int64]Memory, depth, reach int, vector []float32) {
	t.Helper()
	partition := int64(1)
	keep := func(row int64) bool { return row%3 > 0 }
	var order []Memory // of conversations
	for _, m := range held {
		if m.Partition == partition && m.Turn != nil {
			order = append(order, m)
		}
	}
	slices.SortFunc(order, func(a, b Memory) int {
		return cmp.Or(cmp.Compare(a.Turn.Conversation, b.Turn.Conversation), cmp.Compare(a.Turn.At, b.Turn.At),
			cmp.Compare(a.Row, b.Row))
	})
	around := func(row int64, reach int) (rows []int64) {
		at := slices.IndexFunc(order, func(m Memory) bool { return m.Row == row })
		if at < 0 {
			return []int64{row}
		}
		for i, m := range order {
			if i >= at-reach && i <= at+reach && m.Turn.Conversation == order[at].Turn.Conversation {
				rows = append(rows, m.Row)
			}
		}
		return rows
	}
	score := func(p Parts) float32 { return p.Cosine + p.BM25 }
	q := Query{Vector: vector, Terms: []Term{{Text: "heron", Weight: 1}}, Partitions: []int64{partition}, Keep: keep,
		Limit: 2,
		Fuse:  func(Stats) func(Parts) float32 { return score }}
	q.Rerank = &Rerank{Depth: depth, Reach: reach, Rank: func(f Found) []Hit {
		seen := map[int64]bool{}
		for _, members := range f.Neighbourhoods {
			for i, one := range members {
				m := held[one.Row]
				if seen[one.Row] || m.Partition != partition {
					t.Errorf("memory %d is a member twice, or of another partition, want each once, of this partition", one.Row)
				}
				seen[one.Row] = true
				if (m.Turn == nil) != (one.Turn == nil) || m.Turn != nil && *m.Turn != *one.Turn {
					t.Errorf("turn of %d is %+v, want %+v", one.Row, one.Turn, m.Turn)
				}
				if !one.Known || one.Kept != keep(one.Row) || one.Score != score(one.Parts) || len(one.Words) != len(m.Entries) {
					t.Errorf("%+v, want what is known of %+v", one, m)
				}
				for j, e := range m.Entries {
					if !slices.Equal(one.Words[j], e.Words) {
						t.Errorf("words of %d are %v, want %v", one.Row, one.Words[j], e.Words)
					}
				}
				if (one.BM25 > 0) != slices.ContainsFunc(m.Entries,
					func(e Entry) bool { return e.Passage == one.Passage && len(e.Terms) > 0 }) {
					t.Errorf("BM25 of %d is %v, want more than 0 where it has terms, whatever the filter", one.Row, one.BM25)
				}
				if i > 0 && !slices.Contains(around(one.Row, 1), members[i-1].Row) {
					t.Errorf("got %d after %d, want a memory that follows it in its conversation", one.Row, members[i-1].Row)
				}
			}
		}
		if len(f.Ranked) != min(depth, len(f.Hits)) {
			t.Errorf("got %d places of %d hits, want %v", len(f.Ranked), len(f.Hits), min(depth, len(f.Hits)))
		}
		for i, p := range f.Ranked {
			members := f.Neighbourhoods[p.Neighbourhood]
			if members[p.Member].Row != f.Hits[i].Row {
				t.Errorf("place %d is that of %d, want %d", i, members[p.Member].Row, f.Hits[i].Row)
			}
			for _, row := range around(f.Hits[i].Row, reach) {
				if !slices.ContainsFunc(members, func(m Member) bool { return m.Row == row }) {
					t.Errorf("got the neighbours %+v of %d, want %d among them", members, f.Hits[i].Row, row)
				}
			}
		}
		return f.Hits
	}}
	hits, total, err := ix.Search(t.Context(), q)
	if err != nil || len(hits) != min(2, total) {
		t.Fatalf("%d hits of %d, %v, want no error and %v hits", len(hits), total, err, min(2, total))
	}
}

// TestConversationsAreFreed checks that removed turns and words leave nothing behind.
func TestConversationsAreFreed(t *testing.T) {
	ix := New()
	put := func(row int64) {
		ix.Put(Memory{Row: row, ID: "x", Partition: 1,
			Turn:    &Turn{Conversation: row % 5, At: row, Speaker: fmt.Sprint("speaker ", row)},
			Entries: []Entry{{Passage: row, Terms: []string{"a"}, Words: make([]uint16, 30)}}})
	}
	for row := range int64(2000) {
		put(row)
	}
	full := ix.Bytes()
	if full < 2000*(turnBytes+60) {
		t.Errorf("%d bytes do not hold the turns and words, want at least %v", full, 2000*(turnBytes+60))
	}
	for row := range int64(1999) {
		ix.Delete(row)
	}
	if left := ix.Bytes(); left > full/10 {
		t.Errorf("%d bytes of %d are left for one memory, want at most %v", left, full, full/10)
	}
	if n := len(ix.partitions[1].conversations); n != 1 {
		t.Errorf("%d conversations, want 1", n)
	}
}

func TestRankingAgainNeedsAFunction(t *testing.T) {
	q := Query{Fuse: func(Stats) func(Parts) float32 { return func(Parts) float32 { return 0 } }, Rerank: &Rerank{}}
	if _, _, err := New().Search(t.Context(), q); err == nil {
		t.Error("a query that ranks again with nothing, want an error")
	}
}
