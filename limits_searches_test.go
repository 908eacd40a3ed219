package souvenir

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/longtest"
)

// pageAttacks are on parts of results.
func pageAttacks(add adder) {
	for _, limit := range []int{-1, 101, math.MaxInt, math.MinInt} {
		add(fmt.Sprint("Search: limit ", limit), ErrInvalid, "limit", searching(Query{Limit: limit}), fmt.Sprint(limit),
			"1 to 100")
	}
	for _, offset := range []int{-1, math.MaxInt, math.MinInt} {
		add(fmt.Sprint("Search: offset ", offset), ErrInvalid, "offset", searching(Query{Offset: offset}), fmt.Sprint(offset),
			"0 to")
	}
}

// searchAttacks are on searches and listings.
func searchAttacks(add adder) {
	add("Search: query too long", ErrTooLarge, "query", searching(Query{Text: strings.Repeat("x", MaxQuery+1)}), "65537",
		"65536")
	add("Search: query not UTF-8", ErrInvalid, "query", searching(Query{Text: badUTF8}), badUTF8Says...)
	add("Search: sort order", ErrInvalid, "sort_order", searching(Query{Sort: "newest"}), `"newest"`, `"relevance"`,
		`"created_at_desc"`)
	add("Search: classification", ErrInvalid, "classification", searching(Query{Classification: "maybe"}), `"maybe"`,
		`"do", "dont", "todo" or "notes"`)
	add("Search: tag not UTF-8", ErrInvalid, "tags", searching(Query{Tags: []string{badUTF8}}), "UTF-8")
	add("Search: 1,001 tags", ErrTooLarge, "tags", searching(Query{Tags: numbered(1001)}), "1001")
	add("Search: id and name disagree", ErrInvalid, "project_name",
		searching(Query{ProjectID: "kitchen", ProjectName: "Garage"}), `"Garage"`, `"kitchen"`)
	add("Memories: sort order relevance", ErrInvalid, "sort_order", listing(List{Sort: SortRelevance}), `"relevance"`,
		`"updated_at_asc"`)
	add("Memories: sort order", ErrInvalid, "sort_order", listing(List{Sort: "newest"}), `"newest"`, `"created_at_desc"`)
	add("Memories: tag not UTF-8", ErrInvalid, "tags", listing(List{Tags: []string{badUTF8}}), "UTF-8")
	add("Memories: filter", ErrInvalid, "filter", listing(List{Filter: Filter{"state": 7}}), "filter.state is 7", "string")
}

// filterAttacks are on filters.
func filterAttacks(add adder) {
	add("Search: filter by a function", ErrInvalid, "filter", filtering("a", func() {}), "func")
	add("Search: filter by a channel", ErrInvalid, "filter", filtering("a", make(chan int)), "chan")
	add("Search: filter by a cyclic map", ErrInvalid, "filter", filtering("a", cyclicMap()), `"self"`)
	add("Search: filter by a cyclic pointer", ErrInvalid, "filter", filtering("a", cyclicPointer()), "ring")
	add("Search: filter in a cycle", ErrInvalid, "filter", filtering("a", map[string]any{"in": []any{cyclicMap()}}), "map")
	add("Search: filter by a struct", ErrInvalid, "filter", filtering("a", struct{ A int }{1}), `{"A":1}`)
	add("Search: filter by an empty object", ErrInvalid, "filter", filtering("a", map[string]any{}), "filter.a", `"in"`)
	add("Search: filter by nothing", ErrInvalid, "filter", filtering("a", Condition{}), "filter.a")
	add("Search: filter operator", ErrInvalid, "filter", filtering("a", map[string]any{"$gt": 1}), `"$gt"`, `"gte"`)
	add("Search: filter in no list", ErrInvalid, "filter", filtering("a", map[string]any{"in": "x"}), "filter.a.in", `"x"`,
		"list")
	add("Search: filter all of no list", ErrInvalid, "filter", filtering("tags", map[string]any{"all": "x"}),
		"filter.tags.all", `"x"`, "list")
	for _, operator := range []string{"gte", "gt", "lte", "lt"} {
		add("Search: filter "+operator+" null", ErrInvalid, "filter",
			filtering("a", map[string]any{operator: nil, "in": []any{1}}), "filter.a."+operator, "null")
		add("Search: filter "+operator+" a list", ErrInvalid, "filter", filtering("a", map[string]any{operator: []any{1}}),
			"filter.a", "[1]")
	}
	add("Search: filter by a nested list", ErrInvalid, "filter", filtering("a", []any{[]any{1}}), "[1]")
	add("Search: filter by a list of bytes", ErrInvalid, "filter", filtering("a", []byte("x")), "filter.a")
	add("Search: filter by NaN", ErrInvalid, "filter", filtering("a", math.NaN()), "filter.a", "NaN")
	add("Search: filter text not UTF-8", ErrInvalid, "filter", filtering("a", badUTF8), "UTF-8")
	add("Search: filter known text not UTF-8", ErrInvalid, "filter", filtering("state", badUTF8), "UTF-8")
	add("Search: filter key not UTF-8", ErrInvalid, "filter", filtering(badUTF8, 1), "UTF-8")
	add("Search: filter by 1,001 values", ErrTooLarge, "filter", filtering("a", numbered(1001)), "filter.a", "1001",
		"1000")
	add("Search: filter by not 1,001 values", ErrTooLarge, "filter", filtering("a", Not(numbered(1001))), "filter.a",
		"1001", "1000")
	add("Search: filter by all of 1,001 values", ErrTooLarge, "filter", filtering("tags", All(numbered(1001)...)),
		"filter.tags", "1001", "64")
	add("Search: 33 filter keys", ErrTooLarge, "filter", searching(Query{Filter: manyKeys(33)}), "33", "32")
	for _, key := range []string{"event_type", "state", "importance", "classification", "rule_type", "project_id",
		"project_name", "collection_name", "tags", "related_memory_ids"} {
		add("Search: filter."+key+" is a number", ErrInvalid, "filter", filtering(key, 7), "filter."+key+" is 7", "string")
		add("Search: filter."+key+" is a bool", ErrInvalid, "filter", filtering(key, true), "filter."+key+" is true",
			"string")
	}
	for _, key := range []string{"created_at", "updated_at"} {
		for _, value := range []any{"yesterday", 7, true, "2026-13-01", ""} {
			add(fmt.Sprintf("Search: filter.%s is %v", key, value), ErrInvalid, "filter", filtering(key, value), "filter."+key+
				" is "+jsonobject.Show(value), "2026-03-01")
		}
	}
}

func TestLargeFiltersAreAnsweredOrRefused(t *testing.T) {
	longtest.Only(t)
	a := openAttacked(t)
	mustAdd(t, a.Store, NewMemory{Content: "wanted", Tags: []string{"n7"}, EventType: "n7",
		ShownMetadata: map[string]any{"a": "n7", "list": numbered(1000)}})
	wide := func(keys, values int) Filter {
		f := Filter{}
		for i := range keys {
			f[fmt.Sprintf("key%d", i)] = Not(numbered(values))
		}
		return f
	}
	for _, c := range []struct {
		name  string
		query Query
		must  bool // it is within the limits, so it must be answered, and find the memory
	}{
		{"1,000 event types", Query{Filter: Filter{"event_type": numbered(1000)}}, true},
		{"1,000 tags in the filter", Query{Filter: Filter{"tags": numbered(1000)}}, true},
		{"1,000 tags", Query{Tags: numbered(1000)}, true},
		{"1,000 values of metadata", Query{Filter: Filter{"a": numbered(1000)}}, true},
		{"all of 64 values of metadata", Query{Filter: Filter{"list": All(numbered(64)...)}}, true},
		{"not 1,000 values", Query{Text: "wanted", Filter: Filter{"b": Not(numbered(1000))}}, true},
		{"32 keys", Query{Text: "wanted", Filter: wide(32, 10)}, true},
		{"32 keys of 1,000 values", Query{Text: "wanted", Filter: wide(32, 1000)}, false},
		{"no value at all", Query{Text: "wanted", Filter: Filter{"a": []any{}}}, false},
		{"empty but not nil", Query{Text: "wanted", Filter: Filter{}, Tags: []string{}, Collections: []string{},
			Vector: []float32{}}, false},
		{"the furthest offset", Query{Text: "wanted", Offset: maxOffset, Limit: MaxLimit}, false},
		{"the furthest offset by time", Query{Offset: maxOffset, Limit: MaxLimit}, false},
		{"one collection 40,000 times", Query{Text: "wanted", Collections: slices.Repeat([]string{"default"}, 40_000)},
			false},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, err := a.Search(t.Context(), c.query)
			if err != nil && (c.must || !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrTooLarge)) {
				t.Fatal(brief(err))
			}
			if c.must && (len(found.Hits) == 0 || found.Hits[0].Content != "wanted") {
				t.Errorf("found %d memories, not the one that fits", len(found.Hits))
			}
		})
	}
	t.Run("a view of 40,000 projects", func(t *testing.T) {
		view := a.As(Access{Projects: append(numbered(40_000), "kitchen")})
		found, err := view.Search(t.Context(), Query{Text: "kettle"})
		if err != nil && !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrTooLarge) {
			t.Fatal(brief(err))
		}
		if err == nil && len(found.Hits) != 1 {
			t.Errorf("found %d memories, want 1 hit", len(found.Hits))
		}
	})
}

func TestNoSearchWordsAndNoMemories(t *testing.T) {
	a := openAttacked(t)
	for _, text := range []string{"", " ", "\n\t", "\x00", "\u00a0", "\u200b", "?!", "the"} {
		if _, err := a.Search(t.Context(), Query{Text: text}); err != nil {
			t.Errorf("search for %q: %v", text, err)
		}
	}
	before := rowsOf(t, a.Store)
	for _, none := range [][]NewMemory{nil, {}} {
		added, err := a.AddMemories(t.Context(), none, nil)
		if err != nil || len(added) != 0 {
			t.Errorf("adding nothing: %v, %v; want none", added, err)
		}
	}
	unchanged, err := a.UpdateMemory(t.Context(), a.id, MemoryUpdate{ShownMetadata: map[string]any{}})
	if err != nil || unchanged.Revision != 1 {
		t.Errorf("an empty patch: revision %d, %v; want 1", unchanged.Revision, err)
	}
	if rowsOf(t, a.Store) != before {
		t.Error("doing nothing changed the store, want no change")
	}
}

func TestFiltersAcceptAllMetadataValues(t *testing.T) {
	s := openWords(t, "", Options{})
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	for _, value := range []any{1, int8(1), int16(1), int32(1), int64(1), uint(1), uint8(1), uint16(1), uint32(1),
		uint64(1), float32(0.1), 0.1, json.Number("7"), true, "x", ImportanceHigh, at} {
		id := mustAdd(t, s, NewMemory{Content: "known by its value", ShownMetadata: map[string]any{"v": value}}).ID
		for _, demand := range []any{value, In(value), Between(value, value)} {
			found, err := s.Search(t.Context(), Query{Filter: Filter{"v": demand}})
			if err != nil || len(found.Hits) != 1 || found.Hits[0].ID != id {
				t.Errorf("stored with %T %v, a filter by %T finds %d: %v, want no error, 1 hit and ID %v", value, value, demand,
					len(found.Hits), err, id)
			}
		}
		if err := s.DeleteMemory(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	mustAdd(t, s, NewMemory{Content: "one of several", Importance: ImportanceHigh, ShownMetadata: map[string]any{"v": 2}})
	for _, f := range []Filter{{"v": []int{1, 2}}, {"v": []float64{2}}, {"importance": []Importance{ImportanceHigh}}} {
		if found, err := s.Search(t.Context(), Query{Filter: f}); err != nil || len(found.Hits) != 1 {
			t.Errorf("a filter by %v finds %d: %v, want 1", f, len(found.Hits), err)
		}
	}
}
