package souvenir

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/retrieval"
)

// A list reads only a stretch of an order, and more of it if what matches is further away.
func TestAListReachesMatchesFarFromItsEnds(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "stretches.db"), Options{})
	bobs := s.As(Access{User: "bob"})
	want := map[string][]string{}
	for i := range 60 {
		m := NewMemory{Content: fmt.Sprint("note ", i), Tags: []string{"all"}}
		if i >= 20 && i < 40 {
			m.Tags = append(m.Tags, "middle")
		}
		if i%10 == 5 { // no longer valid, so lists do not have it
			m.ValidUntil = time.Now().Add(-time.Hour)
		}
		stored := mustAdd(t, s, m)
		for _, tag := range m.Tags {
			if i%10 != 5 {
				want[tag] = append(want[tag], stored.ID)
			}
		}
	}
	forget := func() { s.orders = retrieval.Orders{Few: 1, Alone: -1, Least: 2} }
	page := func(when, tag string, limit, offset int) {
		t.Helper()
		found, err := s.Search(t.Context(), Query{Tags: []string{tag}, Sort: SortCreatedAsc, Limit: limit, Offset: offset})
		if err != nil {
			t.Fatal(err)
		}
		got, all := []string{}, want[tag]
		for _, hit := range found.Hits {
			got = append(got, hit.ID)
		}
		part := all[min(offset, len(all)):min(offset+limit, len(all))]
		if found.Total != len(all) || !slices.Equal(got, part) {
			t.Errorf("%s, tag %s, %d from %d on: got %v of %d, want %v of %d", when, tag, limit, offset, got, found.Total, part,
				len(all))
		}
	}
	check := func(when string) {
		t.Helper()
		ends := func() {
			for tag, all := range want {
				page(when, tag, 4, 0)
				page(when, tag, 4, len(all)-3)
			}
		}
		ends() // by what was kept before a change
		for tag, all := range want {
			for _, limit := range []int{1, 4, 30} {
				for offset := 0; offset < len(all)+4; offset += limit {
					forget()
					page(when, tag, limit, offset)
				}
			}
		}
		forget()
		ends()
	}
	check("alone")
	change := func(when string, others int) { // of another user's memories with the same tag, and of one at each end
		for i := range others {
			mustAdd(t, bobs, NewMemory{Content: fmt.Sprint(when, i), Tags: []string{"all", "middle"}})
		}
		ids := want["all"]
		for _, id := range []string{ids[0], ids[len(ids)-1]} {
			if err := s.DeleteMemory(t.Context(), id, nil); err != nil {
				t.Fatal(err)
			}
		}
		want["all"] = append(slices.Clone(ids[1:len(ids)-1]),
			mustAdd(t, s, NewMemory{Content: "note " + when, Tags: []string{"all"}}).ID)
		check(when)
	}
	change("with a few of another user", 3)
	change("with many of another user", 150)
}
