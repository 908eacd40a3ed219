package retrieval

import (
	"fmt"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/index"
)

// fill keeps distinct conditions until the first of them is dropped.
func fill(f *Filters) (first string) {
	for n := 0; n == 0 || f.kept[first] != nil; n++ {
		sel := Selection{Partitions: []Partition{{ID: 1}}, Condition: "m.state = ?", Args: []any{fmt.Sprint(n)}}
		if n == 0 {
			first = sel.key()
		}
		f.put(&filtered{key: sel.key(), rows: index.NewRowSet(nil)})
	}
	return first
}

func TestFiltersEvictTheLeastRecentlyUsed(t *testing.T) {
	var f Filters
	first := fill(&f)
	second := f.uses.Back().Value.(*filtered).key
	f.get(second)
	f.put(&filtered{key: first, rows: index.NewRowSet(nil)})
	apart := make([]int64, mostFiltered/16)
	for i := range apart {
		apart[i] = int64(i) * 1000
	}
	f.put(&filtered{key: "large", rows: index.NewRowSet(apart)})
	if f.get(second) == nil || f.get(first) == nil || f.get("large") == nil {
		t.Error("got that a condition used just now is dropped, want that older ones are")
	}
	sum := 0
	for at := f.uses.Front(); at != nil; at = at.Next() {
		sum += at.Value.(*filtered).size()
	}
	if sum != f.bytes || sum > mostFiltered || len(f.kept) != f.uses.Len() {
		t.Errorf("got %d bytes counted, %d kept in %d entries of %d, want the same, at most %d", f.bytes, sum,
			f.uses.Len(), len(f.kept), mostFiltered)
	}
	f.put(&filtered{key: string(make([]byte, mostFiltered)), rows: index.NewRowSet(nil)})
	if f.bytes != 0 || len(f.kept) != 0 {
		t.Errorf("after a key beyond the limit: got %d bytes in %d entries, want none", f.bytes, len(f.kept))
	}
}

// Dropping the oldest condition must not take longer the more are kept.
func BenchmarkFiltersDropTheOldest(b *testing.B) {
	var f Filters
	fill(&f)
	n := 0
	for b.Loop() {
		n++
		f.put(&filtered{key: fmt.Sprint("m.state = ? ", n), rows: index.NewRowSet(nil)})
	}
}
