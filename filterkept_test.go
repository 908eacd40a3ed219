package souvenir

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/longtest"
)

// noteFilters are filters that the searches of the tests below use again and again.
var noteFilters = map[string]Query{
	"a tag":          {Tags: []string{"t1"}},
	"two tags":       {Filter: Filter{"tags": All("t0", "t1")}},
	"event type":     {Filter: Filter{"event_type": "decision"}},
	"no state":       {Filter: Filter{"state": Not("done")}},
	"created":        {Filter: Filter{"created_at": Condition{MoreThan: time.Unix(0, 0)}}},
	"project":        {ProjectID: "p1", Tags: []string{"t1"}},
	"name of it":     {Filter: Filter{"project_name": "p1", "event_type": "decision"}},
	"own metadata":   {Filter: Filter{"colour": "red"}},
	"type and state": {Filter: Filter{"event_type": "decision", "state": "done"}},
	"nothing":        {Tags: []string{"unheard of"}},
}

// checkNotes compares what a search finds, each memory having the word note, with the listing by the same filter.
func checkNotes(t *testing.T, ctx context.Context, s *Store, when string) {
	t.Helper()
	for name, q := range noteFilters {
		q.Text, q.Limit = "note", 100
		found, err := s.Search(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		var got, want []string
		for _, h := range found.Hits {
			got = append(got, h.ID)
		}
		for m, err := range s.Memories(ctx, List{ProjectID: q.ProjectID, Tags: q.Tags, Filter: q.Filter}) {
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, m.ID)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) || found.Total != len(want) {
			t.Fatalf("%s, filter %s: the search finds %d memories %v, want the %d listed %v", when, name, found.Total, got,
				len(want), want)
		}
	}
}

// checkOrders compares the pages of listings, in each order of time, with the listing of all by the same filter.
func checkOrders(t *testing.T, s *Store, when string) {
	t.Helper()
	for name, q := range noteFilters {
		for _, sort := range []SortOrder{SortCreatedAsc, SortCreatedDesc, SortUpdatedAsc, SortUpdatedDesc} {
			var got, want []string
			all := List{ProjectID: q.ProjectID, Tags: q.Tags, Filter: q.Filter, Sort: sort}
			for m, err := range s.Memories(t.Context(), all) {
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, m.ID)
			}
			for q.Offset, q.Limit, q.Sort = 0, 7, sort; q.Offset <= len(want); q.Offset += q.Limit {
				page, err := s.Search(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				for _, h := range page.Hits {
					got = append(got, h.ID)
				}
				if page.Total != len(want) || page.Found != len(want) {
					t.Fatalf("%s, filter %s, %s: a page says that %d match, want %d", when, name, sort, page.Total, len(want))
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s, filter %s, %s: the pages have %d memories %v,\nwant the %d listed %v", when, name, sort,
					len(got), got, len(want), want)
			}
		}
	}
}

// What a filter selects is kept, and only what has changed since is tested again, so each kind of change must show.
func TestAFilterFindsWhatMatchesAfterEachChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "filters.db")
	one, other := openWords(t, path, Options{}), openWords(t, path, Options{})
	one.orders.Few, other.orders.Few = 1, 1
	random := rand.New(rand.NewPCG(1, 16))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	tags := func() (list []string) {
		for i := range 3 {
			if random.IntN(3) == 0 {
				list = append(list, fmt.Sprint("t", i))
			}
		}
		return list
	}
	var ids []string
	steps, many := 25, 0
	if longtest.On() {
		steps = 120
	}
	for step := range steps {
		s, reader := one, other
		if random.IntN(2) == 0 {
			s, reader = other, one
		}
		when := ""
		switch n := random.IntN(10); {
		case n < 5 && len(ids) < 60 || len(ids) < 10:
			when = "after an addition"
			m := NewMemory{Content: fmt.Sprint("note ", step), EventType: pick("", "decision", "code"), Tags: tags(),
				State: pick("", "done"), ProjectID: pick("", "p1", "p2"), Metadata: map[string]any{"colour": pick("red", "blue")}}
			if random.IntN(6) == 0 && len(ids) > 0 {
				m.ValidUntil = time.Now().Add(-time.Hour)
			}
			ids = append(ids, mustAdd(t, s, m).ID)
		case n < 8:
			when = "after an update"
			event, state, list := pick("", "decision", "code"), pick("", "done"), tags()
			u := MemoryUpdate{EventType: &event, State: &state, Tags: &list}
			if random.IntN(3) == 0 {
				project := pick("p1", "p2")
				u = MemoryUpdate{ProjectID: &project, Metadata: map[string]any{"colour": pick("red", "blue")}}
			}
			if _, err := s.UpdateMemory(t.Context(), ids[random.IntN(len(ids))], u); err != nil {
				t.Fatal(err)
			}
		case n < 9:
			when = "after a deletion"
			at := random.IntN(len(ids))
			if err := s.DeleteMemory(t.Context(), ids[at]); err != nil {
				t.Fatal(err)
			}
			ids = slices.Delete(ids, at, at+1)
		case step%3 == 0 || many == 0:
			when = "after more changes than are tested again"
			many++
			others := make([]NewMemory, 2_100)
			for i := range others {
				others[i].Content = fmt.Sprint("another user's ", i)
			}
			if _, err := s.As(Access{User: fmt.Sprint("bob", step)}).AddMemories(t.Context(), others, nil); err != nil {
				t.Fatal(err)
			}
		}
		checkNotes(t, t.Context(), s, fmt.Sprintf("step %d, %s", step, when))
		checkOrders(t, s, fmt.Sprintf("step %d, %s", step, when))
		checkNotes(t, t.Context(), reader, fmt.Sprintf("step %d, %s through another handle", step, when))
	}
	if many == 0 {
		t.Errorf("got no step of %d with more changes than are tested again, want one", steps)
	}
}

// A search of an older snapshot neither sees what a newer one has kept, nor gives its own to later ones.
func TestAFilterInASnapshotIsOfItsTime(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "filters.db"), Options{})
	first := mustAdd(t, s, NewMemory{Content: "note 1", Tags: []string{"t1"}, EventType: "decision"})
	mustAdd(t, s, NewMemory{Content: "note 2", Tags: []string{"t0", "t1"}, ProjectID: "p1"})
	checkNotes(t, t.Context(), s, "at first")
	err := s.Snapshot(t.Context(), func(ctx context.Context) error {
		if _, err := s.GetMemory(ctx, first.ID); err != nil {
			return err
		}
		if _, err := s.UpdateMemory(t.Context(), first.ID, MemoryUpdate{Tags: &[]string{"t2"}}); err != nil {
			return err
		}
		mustAdd(t, s, NewMemory{Content: "note 3", Tags: []string{"t1"}})
		for range 2 {
			checkNotes(t, t.Context(), s, "after the changes")
			found, err := s.Search(ctx, Query{Text: "note", Tags: []string{"t1"}})
			if err != nil || found.Total != 2 || !slices.ContainsFunc(found.Hits, func(h Hit) bool { return h.ID == first.ID }) {
				t.Errorf("the snapshot finds %v, %v; want the two memories that had the tag then", found.Hits, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	checkNotes(t, t.Context(), s, "after the snapshot")
}
