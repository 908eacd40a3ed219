package index

import (
	"fmt"
	"testing"
)

// TestRememberedSlotsFollowChanges repeatedly asks for the memories of the same sets of rows, while memories are added,
// deleted and moved, and compares the answers with those of an index without a cache.
func TestRememberedSlotsFollowChanges(t *testing.T) {
	g := newGenerator(21)
	ix := New()
	ix.coded = 1
	const n = 900
	put := func(row int64) {
		m := Memory{Row: row, ID: fmt.Sprint(row), Partition: 1 + int64(g.IntN(2))}
		for i := range 1 + g.IntN(2) {
			m.Entries = append(m.Entries, Entry{Passage: 2*row + int64(i), Vector: g.unit(16), Terms: []string{"w"}[:g.IntN(2)]})
		}
		ix.Put(m)
	}
	for row := range int64(n) {
		put(row)
	}
	var sets []*RowSet
	for _, part := range []int64{1, 2, 3, 30, 200, 1000} {
		var rows []int64
		for row := range int64(n + 50) {
			if row%part == 0 {
				rows = append(rows, row)
			}
		}
		sets = append(sets, NewRowSet(rows))
	}
	for step := range 400 {
		set := sets[g.IntN(len(sets))]
		q := Query{Partitions: []int64{1, 2}, Vector: g.unit(16), Terms: terms("w"), Limit: 30, Rows: set, Keep: set.Has}
		want, wantTotal := mustSearch(t, ix, q)
		q.Exactly = true
		got, total := mustSearch(t, ix, q)
		if fmt.Sprint(got) != fmt.Sprint(want) || total != wantTotal {
			t.Fatalf("step %d: got %d hits of %d, want %d of %d: %+v, want %+v", step, len(got), total, len(want), wantTotal,
				got, want)
		}
		switch g.IntN(4) {
		case 0:
			ix.Delete(int64(g.IntN(n)))
		case 1:
			put(int64(g.IntN(n + 50)))
		case 2: // until something moves
			for range 100 {
				ix.Delete(int64(g.IntN(n)))
			}
			for range 100 {
				put(int64(g.IntN(n)))
			}
		}
	}
	if kept := len(ix.partitions[1].sets.list); kept == 0 || kept > mostSlotSets {
		t.Errorf("got %d sets remembered, want some, and %d at most", kept, mostSlotSets)
	}
}
