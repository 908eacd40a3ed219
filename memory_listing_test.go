package souvenir

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// Listings, graphs, and deletions and updates of many memories all find their memories by this query.
func TestTheQueryOfAListHasEachOfItsFields(t *testing.T) {
	l := MemoryList{Collections: []string{"notes"}, ProjectID: "p", ProjectName: "harbour", Tags: []string{"a"},
		Keys: []string{"k"}, Filter: Filter{"event_type": "fact"}, WithoutContent: true, AsOf: time.Unix(1, 0),
		whenever: true, Sort: SortUpdatedAsc}
	list, query := reflect.ValueOf(l), reflect.ValueOf(l.query())
	for i := range list.NumField() {
		name, want := list.Type().Field(i).Name, list.Field(i)
		if want.IsZero() {
			t.Errorf("%s: the test leaves it empty, want a value", name)
		}
		if name == "WithoutContent" { // not about which memories
			continue
		}
		if got := query.FieldByName(name); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s of the query: got %v, want %v", name, got, want)
		}
	}
}

// listings are queries without a text, and which memories fit them.
var listings = map[string]struct {
	q    Query
	fits func(Memory) bool
}{
	"all": {Query{}, func(Memory) bool { return true }},
	"most": {Query{Filter: Filter{"state": Not("archived")}},
		func(m Memory) bool { return m.State != "archived" }},
	"a type": {Query{Filter: Filter{"event_type": "decision"}},
		func(m Memory) bool { return m.EventType == "decision" }},
	"a rare type": {Query{Filter: Filter{"event_type": "rare"}},
		func(m Memory) bool { return m.EventType == "rare" }},
	"type and state": {Query{Filter: Filter{"event_type": "fact", "state": nil}},
		func(m Memory) bool { return m.EventType == "fact" && m.State == "" }},
	"no type": {Query{Filter: Filter{"event_type": nil}}, func(m Memory) bool { return m.EventType == "" }},
	"a tag":   {Query{Tags: []string{"a"}}, func(m Memory) bool { return slices.Contains(m.Tags, "a") }},
	"not a tag": {Query{Filter: Filter{"tags": Not("a")}},
		func(m Memory) bool { return !slices.Contains(m.Tags, "a") }},
	"own metadata": {Query{Filter: Filter{"n": 3}},
		func(m Memory) bool { return fmt.Sprint(m.Metadata["n"]) == "3" }},
	"a collection": {Query{Filter: Filter{"collection_name": "two"}},
		func(m Memory) bool { return m.Collection == "two" }},
	"named collections": {Query{Collections: []string{"one", "three"}, Filter: Filter{"importance": "high"}},
		func(m Memory) bool { return m.Collection != "two" && m.Importance == "high" }},
	"nothing": {Query{Filter: Filter{"importance": "critical"}}, func(Memory) bool { return false }},
}

// addListed stores 1,200 memories in three collections, changes some, and returns all.
func addListed(t *testing.T, s *Store) (all []Memory) {
	t.Helper()
	for _, name := range []string{"one", "two", "three"} {
		if _, err := s.AddCollection(t.Context(), NewCollection{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(3, 4))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	var many []NewMemory
	for i := range 1200 {
		m := NewMemory{Content: fmt.Sprintf("memory %d", i), Collection: pick("one", "one", "one", "two", "three"),
			State:     pick("", "active", "active", "archived"),
			EventType: pick("", "fact", "fact", "decision", "rare"), Importance: Importance(pick("", "low", "high")),
			ShownMetadata: map[string]any{"n": random.IntN(5)}}
		if i%3 == 0 {
			m.Tags = []string{pick("a", "b")}
		}
		if m.EventType == "rare" && i%20 > 0 {
			m.EventType = "fact"
		}
		many = append(many, m)
	}
	stored, err := s.AddMemories(t.Context(), many, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 { // so that the two times order them differently
		content := "changed"
		if _, err := s.UpdateMemory(t.Context(), stored[i*5].ID, MemoryUpdate{Content: &content}); err != nil {
			t.Fatal(err)
		}
	}
	for m, err := range s.Memories(t.Context(), MemoryList{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// Pages of a listing are read in different ways, depending on how many memories match. Each page must equal the same
// part of a plain reading of all memories.
func TestPagesOfFilteredListingsMatchTheWholeList(t *testing.T) {
	longtest.Only(t)
	s := openWords(t, filepath.Join(t.TempDir(), "s.db"), Options{})
	all := addListed(t, s)
	for name, c := range listings {
		fits := slices.DeleteFunc(slices.Clone(all), func(m Memory) bool { return !c.fits(m) })
		for _, sort := range sortOrders[1:] {
			slices.SortFunc(fits, func(a, b Memory) int {
				at, bt := a.UpdatedAt, b.UpdatedAt
				if sort == SortCreatedAsc || sort == SortCreatedDesc {
					at, bt = a.CreatedAt, b.CreatedAt
				}
				if sort == SortCreatedDesc || sort == SortUpdatedDesc {
					at, bt = bt, at
				}
				if at.Equal(bt) {
					return strings.Compare(a.ID, b.ID)
				}
				return at.Compare(bt)
			})
			for _, at := range [][2]int{{0, 1}, {0, 25}, {3, 25}, {100, 100}, {len(fits) - 5, 10}, {len(fits), 5}} {
				q := c.q
				q.Sort, q.Offset, q.Limit = sort, max(at[0], 0), at[1]
				r, err := s.Search(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				var got, want []string
				for _, h := range r.Hits {
					got = append(got, h.ID)
				}
				for _, m := range fits[min(q.Offset, len(fits)):min(q.Offset+q.Limit, len(fits))] {
					want = append(want, m.ID)
				}
				if r.Total != len(fits) || !slices.Equal(got, want) {
					t.Errorf("%s in order %q, %d after %d: %d of %d, wanted %d of %d", name, sort, q.Limit, q.Offset, len(got),
						r.Total, len(want), len(fits))
				}
			}
		}
	}
}

// If all of the newest memories are in one collection, its share is not enough for a page.
func TestPagesOfCollectionsFilledOneAfterTheOther(t *testing.T) {
	longtest.Only(t)
	var minutes atomic.Int64
	s := openWords(t, filepath.Join(t.TempDir(), "s.db"), Options{Now: func() time.Time {
		return time.Date(2026, 3, 1, 9, int(minutes.Load()), 0, 0, time.UTC)
	}})
	for _, name := range []string{"one", "two", "three"} {
		if _, err := s.AddCollection(t.Context(), NewCollection{Name: name}); err != nil {
			t.Fatal(err)
		}
		for n := range longtest.Size(30, 10) {
			minutes.Add(1)
			if _, err := s.AddMemories(t.Context(),
				slices.Repeat([]NewMemory{{Content: fmt.Sprint("memory ", n), Collection: name}}, 10), nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, order := range sortOrders[1:] {
		var want []string
		for m, err := range s.Memories(t.Context(), MemoryList{Sort: order}) {
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, m.ID)
		}
		for _, offset := range []int{0, 90, 170, 260, 550, 800} {
			if offset > len(want) {
				continue
			}
			r, err := s.Search(t.Context(), Query{Sort: order, Offset: offset, Limit: 100})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, h := range r.Hits {
				got = append(got, h.ID)
			}
			if !slices.Equal(got, want[offset:min(offset+100, len(want))]) {
				t.Errorf("in order %s after %d: other memories than in the listing, got %v, want %v", order, offset, got,
					want[offset:min(offset+100, len(want))])
			}
		}
	}
}

// Wrong counts of partitions in a damaged file only make a page shorter.
func TestWrongCountsBreakNoListing(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "s.db"), Options{})
	for i, name := range []string{"one", "two", "three"} {
		if _, err := s.AddCollection(t.Context(), NewCollection{Name: name}); err != nil {
			t.Fatal(err)
		}
		var many []NewMemory
		for n := range 40 + i {
			many = append(many, NewMemory{Content: fmt.Sprint("memory ", n), Collection: name})
		}
		if _, err := s.AddMemories(t.Context(), many, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, wrong := range []string{"memories - 38", "memories + 1000", "1"} {
		damage(t, s, `UPDATE partition SET memories = `+wrong)
		for _, offset := range []int{0, 2, 10, 100, 1000} {
			if _, err := s.Search(t.Context(), Query{Offset: offset, Limit: 5}); err != nil {
				t.Errorf("memories = %s, after %d: %v", wrong, offset, err)
			}
		}
	}
}
