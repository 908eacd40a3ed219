package souvenir

import (
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/longtest"
)

// described are memories for filters to tell apart.
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
	for m, err := range s.Memories(context.Background(), List{}) {
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

// checkFilter compares what a filter finds in the store with what it should.
func checkFilter(t *testing.T, s *Store, all []Memory, filter Filter) {
	t.Helper()
	found, err := s.Search(context.Background(), Query{Filter: filter, Limit: MaxLimit, Sort: SortCreatedAsc})
	var listed []string
	var listErr error
	for m, err := range s.Memories(context.Background(), List{Filter: filter}) {
		if listErr = err; err == nil {
			listed = append(listed, m.Content)
		}
	}
	if err != nil || listErr != nil {
		for _, kind := range []error{ErrInvalid, ErrTooLarge} {
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
		t.Fatalf("filter %#v: search finds %v (total %d), listing %v; it should be %v, want names %v, listed %v and total %v",
			filter, names, found.Total, listed, want, want, want, len(want))
	}
}

// fits is what a filter that the store accepts means, written as plainly as can be.
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

// valuesOf are the values of a memory under a key that can be compared, and whether there is anything at all.
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

// demandedTime is the time that a value means, in microseconds: a day, or a moment, which is 1 µs long.
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

// compareValues compares what is stored with what is demanded; not ok means that they are of different sorts.
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
		f, err := v.Float64() // a filter compares doubles where integers do not reach
		return n.SetFloat64(f), err == nil
	}
	return nil, false
}

func TestFiltersAgreeWithANaiveImplementation(t *testing.T) {
	s, all := filterStore(t)
	random := rand.New(rand.NewPCG(7, 11))
	pick := func(list ...any) any { return list[random.IntN(len(list))] }
	scalar := func() any {
		return pick(1, 2.5, -3, 0, 1e300, true, false, "x", "y", "", "1", "a", "b", "decision", "active", "p1", "a\x01b",
			"dotted", "2026-03-01T12:00:00Z", nil, 7, "значение", "high")
	}
	several := func() []any {
		list := make([]any, random.IntN(4))
		for i := range list {
			list[i] = scalar()
		}
		return list
	}
	for i := range 4000 {
		if !longtest.Part(i, 1, 12) {
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
