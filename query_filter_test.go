package souvenir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// described are memories that filters tell apart.
var described = []NewMemory{
	{Content: "one", EventType: "decision", State: "active", Importance: ImportanceHigh, Tags: []string{"a", "b"},
		ShownMetadata: map[string]any{"n": 1, "s": "x", "list": []any{1, "x", true}}},
	{Content: "two", EventType: "conversation", Tags: []string{"b", "c"}, ProjectID: "p1",
		ShownMetadata: map[string]any{"n": 2.5, "s": "y", "b": true, "null": []any{nil}}},
	{Content: "three", Classification: ClassNotes, ProjectID: "p1",
		ShownMetadata: map[string]any{"n": -3, "s": "", "b": false, "list": []any{}}},
	{Content: "four", EventType: EventProjectRule, RuleType: RuleDo,
		ShownMetadata: map[string]any{"n": "1", "o": map[string]any{"n": 1}, "": "empty key"}},
	{Content: "five", State: "archived", Tags: []string{"x"},
		ShownMetadata: map[string]any{`q"uo'te`: 7, "ключ": "значение", "a.b": "dotted", "$": "dollar", "[0]": "brackets"}},
	{Content: "six", ShownMetadata: map[string]any{"n": 1e300, "s": "a\x01b",
		"list": []any{[]any{1}, map[string]any{"x": "y"}, "z", 2}}},
	{Content: "seven"},
}

// filterStore holds the described memories.
func filterStore(tb testing.TB) (*Store, []Memory) {
	tb.Helper()
	clock := newMovingClock(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC))
	s := openWords(tb, filepath.Join(tb.TempDir(), "filters.db"), Options{Now: clock.Tick})
	for _, m := range described {
		mustAdd(tb, s, m)
	}
	var all []Memory
	for m, err := range s.Memories(context.Background(), MemoryList{}) {
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, m)
	}
	return s, all
}

func FuzzFilter(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"n":1}`, `{"n":{"gte":1,"lt":3}}`, `{"s":["x","y"]}`, `{"b":true}`, `{"b":null}`, `{"n":{"ne":1}}`,
		`{"tags":"a"}`, `{"tags":{"all":["a","b"]}}`,
		`{"tags":null}`, `{"tags":{"ne":["a"]}}`, `{"event_type":{"in":["decision",null]}}`, `{"state":{"ne":null}}`,
		`{"created_at":{"gte":"2026-03-01T11:00:00Z"}}`,
		`{"created_at":"2026-03-01"}`, `{"list":1,"s":"x"}`, `{"o":{"n":1}}`, `{"":"empty key"}`, `{"a.b":"dotted"}`,
		`{"$":"dollar"}`, `{"[0]":"brackets"}`, `{"q\"uo'te":7}`,
		`{"n":{"in":[]}}`, `{"n":{"eq":1,"in":[1,2]}}`, `{"n":{"gt":"a"}}`, `{"n":1e999}`, `{"n":9223372036854775808}`,
		`{"s":"a\u0001b"}`, `{"list":[[1]]}`, `{"rule_type":7}`, `{"n":{}}`,
		`{"collection_name":{"gte":"a"},"project_id":"p1"}`, `{"n":{"ne":[1,"x",null]}}`, `{"id":{"ne":"x"}}`,
		`{"n":{"all":[]}}`, `{"n":{"gte":null,"in":[1]}}`,
	} {
		f.Add(seed)
	}
	s, all := filterStore(f)
	f.Fuzz(func(t *testing.T, encoded string) {
		var filter Filter
		decoder := json.NewDecoder(strings.NewReader(encoded))
		if len(encoded)%2 == 0 {
			decoder.UseNumber()
		}
		if decoder.Decode(&filter) != nil {
			return
		}
		checkFilter(t, s, all, filter)
	})
}

// checkFilter compares what a filter finds with what fits says it should find.
func checkFilter(t *testing.T, s *Store, all []Memory, filter Filter) {
	t.Helper()
	found, err := s.Search(context.Background(), Query{Filter: filter, Limit: MaxLimit, Sort: SortCreatedAsc})
	var listed []string
	var listErr error
	for m, err := range s.Memories(context.Background(), MemoryList{Filter: filter}) {
		if listErr = err; err == nil {
			listed = append(listed, m.Content)
		}
	}
	if err != nil || listErr != nil {
		for _, kind := range []error{ErrInvalid, ErrTooLarge, ErrNotFound} {
			if errors.Is(err, kind) && errors.Is(listErr, kind) {
				return
			}
		}
		t.Fatalf("filter %v: search gives %v, listing %v, want no error of either", filter, err, listErr)
	}
	var names, want []string
	for _, h := range found.Hits {
		names = append(names, h.Content)
	}
	for _, m := range all {
		if fits(m, filter) {
			want = append(want, m.Content)
		}
	}
	if !slices.Equal(names, want) || !slices.Equal(listed, want) || found.Total != len(want) {
		t.Fatalf("filter %#v: search finds %v (total %d), listing %v; want %v (total %d) from both", filter, names,
			found.Total, listed, want, len(want))
	}
}

// fits reports whether a memory matches a filter that the store accepts, in the simplest way.
func fits(m Memory, filter Filter) bool {
	for key, demand := range filter {
		isSet, values := valuesOf(m, key)
		equal := func(v any) bool {
			if v == nil {
				return !isSet
			}
			return slices.ContainsFunc(values, func(x any) bool { c, ok := compareValues(key, x, v); return ok && c == 0 })
		}
		anyOf := func(v any) bool { return slices.ContainsFunc(v.([]any), equal) }
		bounded := func(v any, holds func(int) bool) bool {
			return slices.ContainsFunc(values, func(x any) bool { c, ok := compareValues(key, x, v); return ok && holds(c) })
		}
		conditions, ok := demand.(map[string]any)
		if !ok {
			conditions = map[string]any{"eq": demand}
			if _, list := demand.([]any); list {
				conditions = map[string]any{"in": demand}
			}
		}
		for operator, v := range conditions {
			holds := false
			switch operator {
			case "eq":
				holds = equal(v)
			case "in":
				holds = anyOf(v)
			case "ne":
				if _, list := v.([]any); !list {
					v = []any{v}
				}
				holds = !anyOf(v)
			case "all":
				holds = !slices.ContainsFunc(v.([]any), func(v any) bool { return !equal(v) })
			case "gte":
				holds = bounded(v, func(c int) bool { return c >= 0 })
			case "gt":
				holds = bounded(v, func(c int) bool { return c > 0 })
			case "lte":
				holds = bounded(v, func(c int) bool { return c <= 0 })
			case "lt":
				holds = bounded(v, func(c int) bool { return c < 0 })
			}
			if !holds {
				return false
			}
		}
	}
	return true
}

// valuesOf returns the comparable values of a memory under a key, and whether the key is set.
func valuesOf(m Memory, key string) (isSet bool, values []any) {
	switch key {
	case "created_at":
		return true, []any{m.CreatedAt}
	case "updated_at":
		return true, []any{m.UpdatedAt}
	case "id":
		return true, []any{m.ID}
	case "collection_name":
		return true, []any{m.Collection}
	}
	value, ok := m.ShownMetadata()[key]
	if !ok || value == nil {
		return false, nil
	}
	switch v := value.(type) {
	case []any:
		return true, v
	case []string:
		return true, anys(v)
	}
	return true, []any{value}
}

// demandedTime returns the time of a value as a range in microseconds: a day, or a moment of 1 µs.
func demandedTime(demanded any) (from, to int64, ok bool) {
	if t, isTime := demanded.(time.Time); isTime {
		return t.UnixMicro(), t.UnixMicro() + 1, true
	}
	text, _ := demanded.(string)
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UnixMicro(), t.UnixMicro() + 1, true
		}
	}
	t, err := time.Parse(time.DateOnly, text)
	return t.UnixMicro(), t.AddDate(0, 0, 1).UnixMicro(), err == nil
}

// compareValues compares a stored value with a demanded one. It returns false if their types differ.
func compareValues(key string, stored, demanded any) (c int, ok bool) {
	if at, isTime := stored.(time.Time); isTime {
		from, to, ok := demandedTime(demanded)
		switch micros := at.UnixMicro(); {
		case micros < from:
			return -1, ok
		case micros >= to:
			return 1, ok
		}
		return 0, ok
	}
	a, aText := stored.(string)
	b, bText := demanded.(string)
	if aText && bText && key == "importance" {
		order := []string{"low", "medium", "high", "critical"}
		return slices.Index(order, a) - slices.Index(order, b), true
	}
	if aText && bText {
		return strings.Compare(a, b), true
	}
	x, okX := number(stored)
	y, okY := number(demanded)
	if !okX || !okY {
		return 0, false
	}
	return x.Cmp(y), true
}

func number(v any) (*big.Float, bool) {
	n := new(big.Float).SetPrec(2000)
	switch v := v.(type) {
	case bool:
		if v {
			return n.SetInt64(1), true
		}
		return n, true
	case int:
		return n.SetInt64(int64(v)), true
	case float64:
		return n.SetFloat64(v), true
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return n.SetInt64(i), true
		}
		f, err := v.Float64() // filters compare as doubles what does not fit an integer
		return n.SetFloat64(f), err == nil
	}
	return nil, false
}

func TestFiltersAgreeWithANaiveImplementation(t *testing.T) {
	s, all := filterStore(t)
	random := rand.New(rand.NewPCG(7, 11))
	pick := func(list ...any) any { return list[random.IntN(len(list))] }
	scalar := func() any {
		return pick(1, 2.5, -3, 0, 1e300, true, false, "x", "y", "", "1", "a", "b", "low", "critical", "decision", "active",
			"p1", "a\x01b", "dotted", "2026-03-01T12:00:00Z", nil, 7, "значение", "high")
	}
	several := func() []any {
		list := make([]any, random.IntN(4))
		for i := range list {
			list[i] = scalar()
		}
		return list
	}
	for i := range 4000 {
		if !longtest.Part(i, 1, 24) {
			continue
		}
		filter := Filter{}
		for range 1 + random.IntN(2) {
			key := pick("n", "s", "b", "list", "o", "", "null", `q"uo'te`, "ключ", "a.b", "$", "[0]", "none", "event_type",
				"state", "importance", "classification", "rule_type", "tags", "project_id", "created_at", "id").(string)
			var demand any
			switch random.IntN(4) {
			case 0:
				demand = scalar()
			case 1:
				demand = several()
			default:
				conditions := map[string]any{}
				for range 1 + random.IntN(2) {
					switch operator := pick("eq", "ne", "gte", "gt", "lte", "lt", "in", "all").(string); operator {
					case "in", "all":
						conditions[operator] = several()
					case "ne":
						conditions[operator] = pick(scalar(), several())
					default:
						conditions[operator] = scalar()
					}
				}
				demand = conditions
			}
			filter[key] = demand
		}
		checkFilter(t, s, all, filter)
	}
}

// noteFilters are the filters that the tests below search with repeatedly.
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

// checkNotes compares a search for the word note, which each memory has, with the listing by the same filter.
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
		for m, err := range s.Memories(ctx, MemoryList{ProjectID: q.ProjectID, Tags: q.Tags, Filter: q.Filter}) {
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

// checkOrders compares the pages of listings, in each order, with the whole listing by the same filter.
func checkOrders(t *testing.T, s *Store, when string) {
	t.Helper()
	for name, q := range noteFilters {
		for _, sort := range []SortOrder{SortCreatedAsc, SortCreatedDesc, SortUpdatedAsc, SortUpdatedDesc} {
			var got, want []string
			all := MemoryList{ProjectID: q.ProjectID, Tags: q.Tags, Filter: q.Filter, Sort: sort}
			for m, err := range s.Memories(t.Context(), all) {
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, m.ID)
			}
			for q.Offset, q.Limit, q.Sort = 0, 5, sort; q.Offset <= len(want); q.Offset += q.Limit {
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

// The selection of a filter is cached, and only changed memories are tested again. The cache must follow each kind of
// change.
func TestAFilterFindsWhatMatchesAfterEachChange(t *testing.T) {
	longtest.Only(t)
	path := filepath.Join(t.TempDir(), "filters.db")
	one, other := openWords(t, path, Options{}), openWords(t, path, Options{})
	one.orders.Few, other.orders.Few = 1, 1
	one.orders.Alone = -1 // in the other one, the order itself selects what matches alone
	one.orders.Least = 3
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
	const steps = 120
	many := 0
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
			if err := s.DeleteMemory(t.Context(), ids[at], nil); err != nil {
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

// A search in an older snapshot does not see what a newer one has cached, nor leave its own results to later ones.
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

// BenchmarkSearchBesideReplacedMemories searches the 20 memories of one user while another user has replaced 100,000 of
// theirs, in the index and on disk.
func BenchmarkSearchBesideReplacedMemories(b *testing.B) {
	for name, memory := range map[string]int64{"index": 0, "disk": -1} {
		b.Run(name, func(b *testing.B) {
			s := openWords(b, filepath.Join(b.TempDir(), "replaced.db"), Options{IndexMemory: memory})
			anna, ben := s.As(Access{User: "anna"}), s.As(Access{User: "ben"})
			for range 20 {
				mustAdd(b, ben, NewMemory{Content: "a common kettle"})
			}
			mustAdd(b, anna, NewMemory{Content: "the first of many facts"})
			// Without passages, which would take minutes to make. The benchmark reads none.
			damage(b, s, `INSERT INTO memory (uid, partition_id, content, metadata, revision, created_at, updated_at, supersedes)
				WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
				SELECT 'fact ' || i, (SELECT max(partition_id) FROM memory), 'fact', '{}', 1, i, i, 'fact ' || (i - 1) FROM n`)
			search := func() {
				results, err := ben.Search(b.Context(), Query{Text: "kettle"})
				if err != nil || results.Total != 20 {
					b.Fatalf("got %d, %v, want 20", results.Total, err)
				}
			}
			search()
			for b.Loop() {
				search()
			}
		})
	}
}

// A filter for a collection that does not exist would silently find nothing, or delete nothing.
func TestAFilterForAnUnknownCollectionIsRefused(t *testing.T) {
	s := openWords(t, "", Options{})
	mustAddCollection(t, s, NewCollection{Name: "House"})
	mustAdd(t, s, NewMemory{Content: "the kettle is blue", Collection: "House"})
	for _, test := range []struct {
		condition any
		want      int // memories; -1: ErrNotFound
	}{
		{"House", 1}, {"default", 0}, {In("House", "conversations"), 1}, {Not("Hause"), 1}, {Condition{AtLeast: "Hau"}, 1},
		{nil, 0}, {"house", -1}, {In("House", "house"), -1}, {map[string]any{"eq": "house"}, -1}, {All("house"), -1},
	} {
		filter := Filter{"collection_name": test.condition}
		found, err := s.Search(t.Context(), Query{Filter: filter})
		deletion := MemoriesDeletion{MemoryList: MemoryList{Filter: filter}, DryRun: true}
		report, deleteErr := s.DeleteMemories(t.Context(), deletion)
		if test.want >= 0 {
			if err != nil || deleteErr != nil || found.Total != test.want || report.Selected != test.want {
				t.Errorf("%v: got %d found, %v, and %d to delete, %v; want %d", test.condition, found.Total, err, report.Selected,
					deleteErr, test.want)
			}
			continue
		}
		for _, err := range []error{err, deleteErr} {
			if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), `Filter.collection_name "house"`) ||
				!strings.Contains(err.Error(), `did you mean "House"?`) {
				t.Errorf("%v: got %v, want ErrNotFound that names Filter.collection_name and House", test.condition, err)
			}
		}
	}
}

// Replaced memories are looked up in the searched partitions, not in the whole file.
func TestHiddenMemoriesAreFoundByPartition(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "plan.db"), Options{})
	mustAdd(t, s, NewMemory{Content: "x"})
	at := int64(1)
	v := viewer{Bounds: kernel.Bounds{Expired: at, Ended: &at, Begins: &at, Superseded: true}}
	query, args := v.HiddenQuery(db.List([]int64{1}), false)
	plan := strings.Join(queryPlan(t, s.db, statement{query, args}), "\n")
	for _, index := range []string{"memory_expires_in", "memory_valid_from_in", "memory_valid_until_in",
		"memory_supersedes_in"} {
		if !strings.Contains(plan, "INDEX "+index+" (partition_id=?") {
			t.Errorf("got the plan\n%s\nwant a search in %s by partition", plan, index)
		}
	}
	if strings.Contains(plan, "SCAN memory") || strings.Contains(plan, "SCAN s") || strings.Contains(plan, "SCAN m") {
		t.Errorf("got the plan\n%s\nwant no scan", plan)
	}
}

// A listing as of a time finds the successors of each memory by an index, without scanning the partition.
func TestTheSuccessorsOfAListingAsOfATimeAreFoundByIndex(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "plan.db"), Options{})
	mustAdd(t, s, NewMemory{Content: "x"})
	condition, args := viewer{}.AsOf(1)
	plan := strings.Join(queryPlan(t, s.db, statement{`SELECT m.id ` + kernel.FromMemory + ` WHERE m.partition_id IN (1)
		AND m.event_type = 'x' AND ` + condition, args}), "\n")
	for _, index := range []string{"memory_event (partition_id=? AND event_type=?", "memory_supersedes"} {
		if !strings.Contains(plan, "INDEX "+index) {
			t.Errorf("got the plan\n%s\nwant a search in %s", plan, index)
		}
	}
}
