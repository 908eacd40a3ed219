package souvenir

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/internal/text"
)

// Fuzz targets for what comes from outside: go test -fuzz FuzzQuery -fuzztime 30s

// openBoth opens one file twice: with an index in memory, and on disk only.
func openBoth(tb testing.TB) (inMemory, onDisk *Store) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "fuzz.db")
	return openWords(tb, path, Options{}), openWords(tb, path, Options{IndexMemory: -1})
}

var library = []NewMemory{
	{Content: "The quick brown fox jumps over the lazy dog."},
	{Content: "Deploy with `kubectl apply -f deploy.yaml --namespace=prod`; roll back with helm.", Tags: []string{"ops", "kubernetes"}},
	{Content: "getUserByID(ctx, id) returns ErrNotFound; see user_store.go:142"},
	{Content: "O'Brien said: \"NEAR AND OR NOT\" is what the query was, with a * and a ^ and (brackets)."},
	{Content: "Grüße aus Köln; naïve café, Straße, ﬁnancial ﬂow."},
	{Content: "東京タワーは東京都港区にある電波塔である。"},
	{Content: "中文分词没有空格。我喜欢喝咖啡。"},
	{Content: "서울은 대한민국의 수도이다."},
	{Content: "กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย"},
	{Content: "Москва — столица России. Ёлка и ёжик."},
	{Content: "القاهرة عاصمة مصر", Tags: []string{"مصر"}},
	{Content: "v1.2.3-rc.4+build.5, 192.168.0.1, 3.14159, 1e-9, 50%"},
	{Content: "aaa aaa aaa aaa bbb"},
	{Content: "bbb aaa"},
	{Content: "the of and to a in is it"},
	{Content: "US WHO IT it who us"},
	{Content: "🦊🐶 emoji and ZWJ 👩‍👩‍👧 sequences"},
	{Content: "a\x00zero and \u200bzero-width and a tab\tand\r\nlines"},
	{Content: strings.Repeat("A long memory is split into passages, each of which is searched. ", 80) + "The end speaks of a fox."},
	{Content: strings.Repeat("x", 5000) + " after one long word"},
}

func FuzzQuery(f *testing.F) {
	for _, m := range library {
		f.Add(m.Content)
	}
	for _, q := range []string{
		"", " ", "\x00", `"`, `""`, `"unclosed`, "fox AND", "NOT fox", "NEAR(fox dog, 2)", "content:fox", "tags : x", "fox*", "^fox", "(fox", ")", "{content tags}: fox",
		"-fox", "+fox", "fox OR OR dog", "'; DROP TABLE memory; --", "%_", "\\", "fox\"dog", "東京", "京", "กรุง", "\xff\xfe", "ﬁ", "İ", "ß", "�", "a b c d e f g h",
		"AND", "OR", "NOT", "NEAR", "user_store.go:142", "1e-9", "kubectl --namespace=prod", strings.Repeat("fox ", 300),
	} {
		f.Add(q)
	}
	inMemory, onDisk := openBoth(f)
	if _, err := inMemory.AddMemories(context.Background(), library, nil); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, query string) {
		q := Query{Text: query, Limit: MaxLimit}
		a, errA := inMemory.Search(context.Background(), q)
		b, errB := onDisk.Search(context.Background(), q)
		if errA != nil || errB != nil {
			allowed := errors.Is(errA, ErrInvalid) && !utf8.ValidString(query) || errors.Is(errA, ErrTooLarge) && len(query) > MaxQuery
			if !allowed || errB == nil || errA.Error() != errB.Error() {
				t.Fatalf("search for %q: %v in memory, %v on disk", query, errA, errB)
			}
			return
		}
		sameHits(t, a, b)
	})
}

// sameHits sees that two searches found the same in the same order, where the scores differ by more than rounding.
func sameHits(t *testing.T, a, b Results) {
	t.Helper()
	if a.Total != b.Total || len(a.Hits) != len(b.Hits) || a.Sort != b.Sort || !slices.Equal(a.Warnings, b.Warnings) {
		t.Fatalf("in memory %d of %d by %s %v, on disk %d of %d by %s %v", len(a.Hits), a.Total, a.Sort, a.Warnings, len(b.Hits), b.Total, b.Sort, b.Warnings)
	}
	const rounding = 1e-5
	scores := map[string]Hit{}
	for _, h := range b.Hits {
		scores[h.ID] = h
	}
	for i, h := range a.Hits {
		other, ok := scores[h.ID]
		if !ok {
			t.Fatalf("%q is found in memory only", h.Content)
		}
		if math.Abs(h.Score-other.Score) > rounding || math.Abs(h.Parts.Text-other.Parts.Text) > rounding || math.Abs(h.Parts.Vector-other.Parts.Vector) > rounding {
			t.Fatalf("%q scores %v %+v in memory, %v %+v on disk", h.Content, h.Score, h.Parts, other.Score, other.Parts)
		}
		if there := b.Hits[i]; there.ID != h.ID && math.Abs(there.Score-h.Score) > rounding {
			t.Fatalf("place %d is %q in memory, %q on disk", i, h.Content, there.Content)
		}
	}
}

// described are memories for filters to tell apart.
var described = []NewMemory{
	{Content: "one", EventType: "decision", State: "active", Importance: ImportanceHigh, Tags: []string{"a", "b"}, Metadata: map[string]any{"n": 1, "s": "x", "list": []any{1, "x", true}}},
	{Content: "two", EventType: "conversation", Tags: []string{"b", "c"}, ProjectID: "p1", Metadata: map[string]any{"n": 2.5, "s": "y", "b": true, "null": []any{nil}}},
	{Content: "three", Classification: ClassNotes, ProjectID: "p1", Metadata: map[string]any{"n": -3, "s": "", "b": false, "list": []any{}}},
	{Content: "four", EventType: EventProjectRule, RuleType: RuleDo, Metadata: map[string]any{"n": "1", "o": map[string]any{"n": 1}, "": "empty key"}},
	{Content: "five", State: "archived", Tags: []string{"x"}, Metadata: map[string]any{`q"uo'te`: 7, "ключ": "значение", "a.b": "dotted", "$": "dollar", "[0]": "brackets"}},
	{Content: "six", Metadata: map[string]any{"n": 1e300, "s": "a\x00b", "list": []any{[]any{1}, map[string]any{"x": "y"}, "z", 2}}},
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
		`{}`, `{"n":1}`, `{"n":{"gte":1,"lt":3}}`, `{"s":["x","y"]}`, `{"b":true}`, `{"b":null}`, `{"n":{"ne":1}}`, `{"tags":"a"}`, `{"tags":{"all":["a","b"]}}`,
		`{"tags":null}`, `{"tags":{"ne":["a"]}}`, `{"event_type":{"in":["decision",null]}}`, `{"state":{"ne":null}}`, `{"created_at":{"gte":"2026-03-01T11:00:00Z"}}`,
		`{"created_at":"2026-03-01"}`, `{"list":1,"s":"x"}`, `{"o":{"n":1}}`, `{"":"empty key"}`, `{"a.b":"dotted"}`, `{"$":"dollar"}`, `{"[0]":"brackets"}`, `{"q\"uo'te":7}`,
		`{"n":{"in":[]}}`, `{"n":{"eq":1,"in":[1,2]}}`, `{"n":{"gt":"a"}}`, `{"n":1e999}`, `{"n":9223372036854775808}`, `{"s":"a\u0000b"}`, `{"list":[[1]]}`, `{"rule_type":7}`, `{"n":{}}`,
		`{"collection_name":{"gte":"a"},"project_id":"p1"}`, `{"n":{"ne":[1,"x",null]}}`, `{"id":{"ne":"x"}}`, `{"n":{"all":[]}}`, `{"n":{"gte":null,"in":[1]}}`,
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
		t.Fatalf("filter %v: search gives %v, listing %v", filter, err, listErr)
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
		t.Fatalf("filter %#v: search finds %v (total %d), listing %v; it should be %v", filter, names, found.Total, listed, want)
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

// compareValues compares what is stored with what is demanded; not ok means that they are of different sorts.
func compareValues(key string, stored, demanded any) (c int, ok bool) {
	if at, isTime := stored.(time.Time); isTime {
		bound, err := timeValue(demanded)
		return int(at.UnixMicro() - bound.(int64)), err == nil
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

func TestFiltersFindWhatAPlainReadingOfThemFinds(t *testing.T) {
	s, all := filterStore(t)
	random := rand.New(rand.NewPCG(7, 11))
	pick := func(list ...any) any { return list[random.IntN(len(list))] }
	scalar := func() any {
		return pick(1, 2.5, -3, 0, 1e300, true, false, "x", "y", "", "1", "a", "b", "decision", "active", "p1", "a\x00b", "dotted", "2026-03-01T12:00:00Z", nil, 7, "значение", "high")
	}
	several := func() []any {
		list := make([]any, random.IntN(4))
		for i := range list {
			list[i] = scalar()
		}
		return list
	}
	for range 4000 {
		filter := Filter{}
		for range 1 + random.IntN(2) {
			key := pick("n", "s", "b", "list", "o", "", "null", `q"uo'te`, "ключ", "a.b", "$", "[0]", "none", "event_type", "state", "importance", "classification", "rule_type", "tags", "project_id", "created_at", "id").(string)
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

func FuzzMetadataPatch(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"a":"b"}`, `{"a":"c"}`}, {`{"a":"b"}`, `{"b":"c"}`}, {`{"a":"b"}`, `{"a":null}`}, {`{"a":"b","b":"c"}`, `{"a":null}`}, {`{"a":["b"]}`, `{"a":"c"}`}, // RFC 7396, appendix A
		{`{"a":"c"}`, `{"a":["b"]}`}, {`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`}, {`{"a":[{"b":"c"}]}`, `{"a":[1]}`}, {`{"e":null}`, `{"a":1}`}, {`{}`, `{"a":{"bb":{"ccc":null}}}`},
		{`{"tags":["a"," b "],"state":"active"}`, `{"tags":null,"state":""}`}, {`{"importance":"high"}`, `{"importance":"urgent"}`}, {`{"n":1e400}`, `{"n":9007199254740993}`},
		{`{"n":1e-7,"m":-0,"k":100000000000000000000000}`, `{"n":{"deep":{"er":[null,{"x":null}]}}}`}, {`{"\u0000":"\u0000","é":"\ud83d\ude00"}`, `{"\u0000":null}`},
		{`{"event_type":"x","tags":[]}`, `{"event_type":7}`}, {`{"a":1,"a":2}`, `{"":{"":{}}}`}, {`{"a":{"b":{}}}`, `{"a":{"b":[]}}`},
	} {
		f.Add(seed[0], seed[1])
	}
	s := openWords(f, ":memory:", Options{})
	f.Fuzz(func(t *testing.T, original, patch string) {
		metadata, ok := exactObject(original)
		if !ok || strings.Contains(original+patch, "project_") || strings.Contains(original+patch, "rule_type") || strings.Contains(original+patch, "related_memory_ids") {
			return // these have rules of their own
		}
		change, ok := exactObject(patch)
		if !ok {
			return
		}
		ctx := context.Background()
		added, err := s.AddMemory(ctx, NewMemory{Content: "x", Metadata: metadata})
		if err != nil {
			mustBeRefusal(t, err)
			return
		}
		defer func() {
			if err := s.DeleteMemory(ctx, added.ID); err != nil {
				t.Fatal(err)
			}
		}()
		want := maps.Clone(metadata)
		for _, key := range knownKeys {
			if want[key] == nil { // null means "not set" for these; elsewhere it is a value
				delete(want, key)
			}
		}
		want = normal(want)
		sameJSON(t, "stored", want, added.ShownMetadata())
		read, err := s.GetMemory(ctx, added.ID)
		if err != nil {
			t.Fatal(err)
		}
		sameJSON(t, "read", want, read.ShownMetadata())

		updated, err := s.UpdateMemory(ctx, added.ID, UpdateMemory{Metadata: change})
		if err != nil {
			mustBeRefusal(t, err)
			again, err := s.GetMemory(ctx, added.ID)
			if err != nil || !reflect.DeepEqual(read, again) {
				t.Fatalf("a refused patch changed the memory: %+v, %v", again, err)
			}
			return
		}
		merged := normal(plainMerge(want, change).(map[string]any))
		sameJSON(t, "patched", merged, updated.ShownMetadata())
		if updated.Revision == 1 {
			sameJSON(t, "unchanged", want, merged)
			return
		}
		history, err := s.Revisions(ctx, added.ID)
		if err != nil || len(history) != 2 {
			t.Fatalf("history %v, %v", history, err)
		}
		sameJSON(t, "present revision", merged, history[0].Metadata)
		sameJSON(t, "former revision", want, history[1].Metadata)
		restored, err := s.RestoreRevision(ctx, added.ID, 1)
		if err != nil {
			t.Fatal(err)
		}
		sameJSON(t, "restored", want, restored.ShownMetadata())
	})
}

func mustBeRefusal(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrTooLarge) {
		t.Fatal(err)
	}
}

func exactObject(encoded string) (map[string]any, bool) {
	decoder := json.NewDecoder(strings.NewReader(encoded))
	decoder.UseNumber()
	var object map[string]any
	err := decoder.Decode(&object)
	return object, err == nil && object != nil
}

// plainMerge is MergePatch of RFC 7396, section 2, word by word.
func plainMerge(target, patch any) any {
	object, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	result := map[string]any{}
	if old, ok := target.(map[string]any); ok {
		for k, v := range old {
			result[k] = v
		}
	}
	for name, value := range object {
		if value == nil {
			delete(result, name)
		} else {
			result[name] = plainMerge(result[name], value)
		}
	}
	return result
}

// normal is how known keys are shown: empty ones are not, and tags are trimmed and without repetition.
func normal(metadata map[string]any) map[string]any {
	for _, key := range []string{"event_type", "state", "importance", "classification"} {
		if metadata[key] == "" {
			delete(metadata, key)
		}
	}
	if tags, ok := metadata["tags"].([]any); ok {
		var kept []any
		for _, tag := range tags {
			if trimmed := strings.TrimSpace(tag.(string)); !slices.Contains(kept, any(trimmed)) {
				kept = append(kept, trimmed)
			}
		}
		metadata["tags"] = kept
		if len(kept) == 0 {
			delete(metadata, "tags")
		}
	}
	return metadata
}

func sameJSON(t *testing.T, what string, want, got any) {
	t.Helper()
	a, b := toJSON(t, want), toJSON(t, got)
	if !equalJSON(a, b) {
		t.Fatalf("%s: %v, want %v", what, b, a)
	}
}

func toJSON(t *testing.T, v any) any {
	t.Helper()
	encoded, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	object, ok := exactObject(string(encoded))
	if !ok {
		t.Fatalf("%s is no object", encoded)
	}
	return object
}

func equalJSON(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k, v := range x {
			if other, ok := y[k]; !ok || !equalJSON(v, other) {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, equalJSON)
	case json.Number:
		y, ok := b.(json.Number)
		return ok && (x == y || sameNumber(x, y))
	}
	return a == b
}

func sameNumber(x, y json.Number) bool {
	a, _, errA := big.ParseFloat(x.String(), 10, 8000, big.ToNearestEven)
	b, _, errB := big.ParseFloat(y.String(), 10, 8000, big.ToNearestEven)
	return errA == nil && errB == nil && a.Cmp(b) == 0
}

func FuzzVectorBlob(f *testing.F) {
	unit := encodeVector(append(make([]float32, wordSize-1), 1))
	nan := bytes.Repeat([]byte{0, 0, 0xc0, 0x7f}, wordSize)
	for _, blob := range [][]byte{{}, {1}, {1, 2, 3, 4}, unit, unit[:127], append(slices.Clone(unit), 0), append(slices.Clone(unit), unit...), nan, bytes.Repeat([]byte{0xff, 0xff, 0x7f, 0x7f}, wordSize), encodeVector(slices.Repeat([]float32{3}, wordSize)), bytes.Repeat([]byte{0xff}, 128), make([]byte, 128), bytes.Repeat([]byte{0, 0, 0x80, 0x7f}, wordSize), make([]byte, 65537)} {
		f.Add(blob)
	}
	inMemory, onDisk := openBoth(f)
	damaged := mustAdd(f, inMemory, NewMemory{Content: "the damaged one"})
	whole := mustAdd(f, inMemory, NewMemory{Content: "the other one stays as it is"})
	ctx := context.Background()
	f.Fuzz(func(t *testing.T, blob []byte) {
		v, err := decodeVector(blob)
		if (err == nil) != (len(blob)%4 == 0) {
			t.Fatalf("%d bytes: %v", len(blob), err)
		}
		if err == nil && blob != nil && !bytes.Equal(encodeVector(v), blob) {
			t.Fatalf("%x becomes %x", blob, encodeVector(v))
		}
		err = inMemory.db.Write(ctx, func(tx *sqlite.Tx) error {
			_, err := tx.Exec(`UPDATE passage SET vector = ? WHERE memory_id = (SELECT id FROM memory WHERE uid = ?)`, blob, damaged.ID)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for name, s := range map[string]*Store{"in memory": inMemory, "on disk": onDisk} {
			found, err := s.Search(ctx, Query{Text: "other one"})
			switch {
			case err != nil:
				if !errors.Is(err, ErrCorrupt) {
					t.Fatalf("%s: %v, want ErrCorrupt", name, err)
				}
			case !slices.ContainsFunc(found.Hits, func(h Hit) bool { return h.ID == whole.ID }):
				t.Fatalf("%s: the whole one is not found: %+v", name, found.Hits)
			default:
				for _, h := range found.Hits {
					if !(h.Score >= 0 && h.Score <= 1.001) || !(math.Abs(h.Parts.Vector) <= 1.001) { // which NaN does not fulfil
						t.Fatalf("%s: %q scores %v %+v", name, h.Content, h.Score, h.Parts)
					}
				}
			}
			if _, err := s.GetMemory(ctx, damaged.ID); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := inMemory.UpdateMemory(ctx, damaged.ID, UpdateMemory{Metadata: map[string]any{"tags": []string{fmt.Sprint("t", len(blob))}}}); err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatalf("moving the passage gives %v", err)
		}
	})
}

func FuzzContent(f *testing.F) {
	for _, m := range library {
		f.Add([]byte(m.Content))
	}
	for _, c := range []string{"", " ", "\n\n\n", "\x00", "\xff", "a\xc3", "\xed\xa0\x80", "\ufeffBOM", "# Heading\n\ntext\n\n```\ncode\n```\n", strings.Repeat("word ", 2000), strings.Repeat("語", 2000), strings.Repeat("e\u0301", 1000), "?!.,", "a.b.c-d_e"} {
		f.Add([]byte(c))
	}
	inMemory, onDisk := openBoth(f)
	ctx := context.Background()
	f.Fuzz(func(t *testing.T, raw []byte) {
		content := string(raw)
		added, err := inMemory.AddMemory(ctx, NewMemory{Content: content})
		if right := content != "" && len(content) <= MaxContent && utf8.ValidString(content); right != (err == nil) {
			t.Fatalf("storing %q: %v", content, err)
		}
		if err != nil {
			mustBeRefusal(t, err)
			return
		}
		defer func() {
			if err := inMemory.DeleteMemory(ctx, added.ID); err != nil {
				t.Fatal(err)
			}
		}()
		if got, err := onDisk.GetMemory(ctx, added.ID); err != nil || got.Content != content {
			t.Fatalf("stored %q, read %q, %v", content, got.Content, err)
		}
		checkPassages(t, inMemory, content)
		tried := 0
		for _, word := range strings.Fields(content) {
			if len(word) > 200 || len(text.QueryTerms(word)) == 0 {
				continue
			}
			for name, s := range map[string]*Store{"in memory": inMemory, "on disk": onDisk} {
				found, err := s.Search(ctx, Query{Text: word})
				if err != nil {
					t.Fatal(err)
				}
				if len(found.Hits) != 1 || found.Hits[0].Parts.Text <= 0 {
					t.Fatalf("%s: %q is not found by its word %q: %+v", name, content, word, found.Hits)
				}
				if h := found.Hits[0]; h.Start < 0 || h.End > len(content) || h.Start > h.End {
					t.Fatalf("passage from %d to %d of %d", h.Start, h.End, len(content))
				}
			}
			if tried++; tried == 3 {
				break
			}
		}
	})
}

// checkPassages sees that the only memory's passages are pieces of its content, in order, that leave nothing out but space.
func checkPassages(t *testing.T, s *Store, content string) {
	t.Helper()
	end := 0
	err := s.db.Read(context.Background(), func(tx *sqlite.Tx) error {
		return tx.Each(func(row *sqlite.Rows) error {
			var start, length int
			if err := row.Scan(&start, &length); err != nil {
				return err
			}
			if start < end || length <= 0 || start+length > len(content) || !utf8.ValidString(content[start:start+length]) || strings.TrimSpace(content[end:start]) != "" {
				return fmt.Errorf("passage of %d bytes at %d, after one that ends at %d, of %d", length, start, end, len(content))
			}
			end = start + length
			return nil
		}, `SELECT start, length FROM passage ORDER BY id`)
	})
	if err == nil && strings.TrimSpace(content[end:]) != "" {
		err = fmt.Errorf("nothing of %q after %d is in a passage", content, end)
	}
	if err != nil {
		t.Fatal(err)
	}
}
