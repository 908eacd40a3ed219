package souvenir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// pageAttacks are attacks on pages of results.
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

// searchAttacks are attacks on searches and listings.
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
	add("Memories: sort order relevance", ErrInvalid, "sort_order", listing(MemoryList{Sort: SortRelevance}),
		`"relevance"`, `"updated_at_asc"`)
	add("Memories: sort order", ErrInvalid, "sort_order", listing(MemoryList{Sort: "newest"}), `"newest"`,
		`"created_at_desc"`)
	add("Memories: tag not UTF-8", ErrInvalid, "tags", listing(MemoryList{Tags: []string{badUTF8}}), "UTF-8")
	add("Memories: filter", ErrInvalid, "filter", listing(MemoryList{Filter: Filter{"state": 7}}), "filter.state is 7",
		"string")
}

// filterAttacks are attacks on filters.
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
	mustAdd(t, a.store, NewMemory{Content: "wanted", Tags: []string{"n7"}, EventType: "n7",
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
		must  bool // within the limits, so it must be answered and find the memory
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
			found, err := a.store.Search(t.Context(), c.query)
			if err != nil && (c.must || !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrTooLarge)) {
				t.Fatal(brief(err))
			}
			if c.must && (len(found.Hits) == 0 || found.Hits[0].Content != "wanted") {
				t.Errorf("found %d memories, not the one that fits, want that one first", len(found.Hits))
			}
		})
	}
	t.Run("a view of 40,000 projects", func(t *testing.T) {
		view := a.store.As(Access{Projects: append(numbered(40_000), "kitchen")})
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
		if _, err := a.store.Search(t.Context(), Query{Text: text}); err != nil {
			t.Errorf("search for %q: %v", text, err)
		}
	}
	before := rowsOf(t, a.store)
	for _, none := range [][]NewMemory{nil, {}} {
		added, err := a.store.AddMemories(t.Context(), none, nil)
		if err != nil || len(added) != 0 {
			t.Errorf("adding nothing: %v, %v; want none", added, err)
		}
	}
	unchanged, err := a.store.UpdateMemory(t.Context(), a.id, MemoryUpdate{ShownMetadata: map[string]any{}})
	if err != nil || unchanged.Revision != 1 {
		t.Errorf("an empty patch: revision %d, %v; want 1", unchanged.Revision, err)
	}
	if rowsOf(t, a.store) != before {
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
		if err := s.DeleteMemory(t.Context(), id, nil); err != nil {
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

// countedEmbedder counts the embedder's calls for searches, and the texts in them.
func countedEmbedder(calls, texts *int) Embedder {
	words := wordEmbedder("words-1")
	return EmbedderFunc(words.Model(), words.Dimensions(), func(ctx context.Context, p Purpose, all []string) ([][]float32,
		error) {
		if p == ForQuery {
			*calls++
			*texts += len(all)
		}
		return words.Embed(ctx, p, all)
	})
}

func TestABatchIsEmbeddedInOneCall(t *testing.T) {
	calls, texts := 0, 0
	s := openWords(t, "", Options{Embedder: countedEmbedder(&calls, &texts)})
	mustAdd(t, s, NewMemory{Content: "an apple"})
	queries := []Query{{Text: "apple"}, {}, {Text: "pear"}, {Text: "apple", Limit: 1}, {Vector: wordVector("apple")}}
	if _, err := s.SearchBatch(t.Context(), queries); err != nil {
		t.Fatal(err)
	}
	if calls != 1 || texts != 2 {
		t.Errorf("got %d calls with %d texts, want 1 with 2", calls, texts)
	}
}

func TestABatchIsOneOperationForHooks(t *testing.T) {
	var results []OperationResult
	var seen []string
	s := openWords(t, "", Options{Hooks: []Hooks{{
		Texts: true,
		BeforeSearch: func(_ context.Context, _ Operation, q *Query) error {
			if seen = append(seen, q.Text); q.Text == "forbidden" {
				return errors.New("not this one")
			}
			q.Limit = 1
			return nil
		},
		After: func(_ context.Context, o Operation, r OperationResult) {
			if o.Method == "SearchBatch" {
				results = append(results, r)
			}
		},
	}}})
	for i := range 3 {
		mustAdd(t, s, NewMemory{Content: fmt.Sprint("apple ", i)})
	}
	all, err := s.SearchBatch(t.Context(), []Query{{Text: "apple"}, {Text: "pear"}})
	if err != nil || len(all[0].Hits) != 1 || len(all[1].Hits) != 1 {
		t.Fatalf("got %+v, %v, want two pages of one hit, as the hook says", all, err)
	}
	if len(results) != 1 || results[0].Count != 2 || results[0].Query != "apple\npear" || len(results[0].Memories) != 2 {
		t.Errorf("After got %+v, want one call with both hits and both texts", results)
	}
	_, err = s.SearchBatch(t.Context(), []Query{{Text: "apple"}, {Text: "forbidden"}})
	if !errors.Is(err, ErrForbidden) && !strings.Contains(fmt.Sprint(err), "queries[1]: not this one") {
		t.Errorf("got %v, want the hook's refusal with the place of the query", err)
	}
	if !slices.Equal(seen, []string{"apple", "pear", "apple", "forbidden"}) {
		t.Errorf("BeforeSearch saw %q, want each query once", seen)
	}
}

func TestARerankerHoldsNoTransaction(t *testing.T) {
	var s *Store
	r := RerankerFunc(func(ctx context.Context, _ string, texts []string) ([]float64, error) {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second) // in memory, a write waits for every snapshot
		defer cancel()
		_, err := s.AddMemory(ctx, NewMemory{Content: "written meanwhile"})
		return make([]float64, len(texts)), err
	})
	s = openWords(t, ":memory:", Options{Reranker: r})
	mustAdd(t, s, NewMemory{Content: "an apple"})
	mustAdd(t, s, NewMemory{Content: "an apple tree"})
	found, err := s.Search(t.Context(), Query{Text: "apple"})
	if err != nil || len(found.Warnings) > 0 || len(found.Hits) != 2 {
		t.Errorf("got %+v, %v, want two hits without a warning", found, err)
	}
}

func TestARerankerGetsOnlyWhatTheCallerMaySee(t *testing.T) {
	var seen []string
	r := RerankerFunc(func(_ context.Context, query string, texts []string) ([]float64, error) {
		seen = append(append(seen, query), texts...)
		return make([]float64, len(texts)), nil
	})
	s := openWords(t, "", Options{Reranker: r})
	long := strings.Repeat("It tells of gardens and their walls. ", 400)
	for user, contents := range map[string][]string{
		"ann": {"apple of ann", "apple and pear of ann", long + "apple apple apple"},
		"bob": {"apple of bob", "apple pie of bob"},
	} {
		for _, content := range contents {
			mustAdd(t, s.As(Access{User: user}), NewMemory{Content: content})
		}
	}
	if _, err := s.As(Access{User: "ann"}).Search(t.Context(), Query{Text: "apple"}); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 4 || seen[0] != "apple" || strings.Contains(strings.Join(seen, "\n"), "bob") {
		t.Errorf("the reranker got %q, want the query and three texts of ann", seen)
	}
	for _, text := range seen {
		if len(text) > 2*defaultMaxInput {
			t.Errorf("the reranker got a text of %d bytes, want a passage", len(text))
		}
	}
}

func TestARerankerIsAskedOnlyWhereItsOrderCounts(t *testing.T) {
	calls := 0
	r := RerankerFunc(func(_ context.Context, _ string, texts []string) ([]float64, error) {
		calls++
		return make([]float64, len(texts)), nil
	})
	s := openWords(t, "", Options{Reranker: r})
	for i := range 4 {
		mustAdd(t, s, NewMemory{Content: fmt.Sprint("apple ", i), Tags: []string{fmt.Sprint("tag", i)}})
	}
	for _, q := range []Query{{}, {Vector: wordVector("apple")}, {Text: "apple", Sort: SortCreatedAsc},
		{Text: "apple", Rerank: -1}, {Text: "apple", Rerank: 2, Offset: 2}, {Text: "apple", Tags: []string{"tag1"}}} {
		if _, err := s.Search(t.Context(), q); err != nil || calls != 0 {
			t.Errorf("Search(%+v): got %d calls, %v, want none", q, calls, err)
		}
	}
	if _, err := s.Search(t.Context(), Query{Text: "apple"}); err != nil || calls != 1 {
		t.Errorf("got %d calls, %v, want 1", calls, err)
	}
}

func TestRerankersAreNotCalledWithinATransaction(t *testing.T) {
	r := RerankerFunc(func(context.Context, string, []string) ([]float64, error) {
		t.Error("the reranker is asked while a transaction holds the writer")
		return nil, errors.New("not now")
	})
	s := openWords(t, "", Options{Reranker: r})
	mustAdd(t, s, NewMemory{Content: "an apple"})
	mustAdd(t, s, NewMemory{Content: "an apple tree"})
	err := s.Transaction(t.Context(), func(ctx context.Context) error {
		found, err := s.Search(ctx, Query{Text: "apple"})
		if err == nil && len(found.Hits) != 2 {
			t.Errorf("got %d hits, want 2", len(found.Hits))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestASearchEndsWithItsContextWhileItIsReranked(t *testing.T) {
	r := RerankerFunc(func(ctx context.Context, _ string, _ []string) ([]float64, error) {
		<-ctx.Done()
		return nil, errors.New("interrupted")
	})
	s := openWords(t, "", Options{Reranker: r})
	mustAdd(t, s, NewMemory{Content: "an apple"})
	mustAdd(t, s, NewMemory{Content: "an apple tree"})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := s.Search(ctx, Query{Text: "apple"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the end of the context", err)
	}
}

func TestANilRerankerIsRefused(t *testing.T) {
	_, err := Open(t.Context(), ":memory:", &Options{Reranker: RerankerFunc(nil)})
	if !errors.Is(err, ErrInvalid) || !strings.Contains(fmt.Sprint(err), "Reranker") {
		t.Errorf("got %v, want ErrInvalid that names Reranker", err)
	}
}

// BenchmarkSearchBatch compares ten searches in 2,000 memories with one batch of ten.
func BenchmarkSearchBatch(b *testing.B) {
	s := openWords(b, "", Options{Embedder: Builtin()})
	memories := make([]NewMemory, 2000)
	for i := range memories {
		memories[i].Content = fmt.Sprintf("Note %d: the ferry of pier %d leaves at %d.", i, i%40, i%24)
		memories[i].Tags = []string{[]string{"sea", "land"}[i%2]}
	}
	if _, err := s.AddMemories(b.Context(), memories, nil); err != nil {
		b.Fatal(err)
	}
	for name, tags := range map[string][]string{"all": nil, "filtered": {"sea"}} {
		queries := make([]Query, 10)
		for i := range queries {
			queries[i] = Query{Text: fmt.Sprintf("when does the ferry of pier %d leave", i), Tags: tags}
		}
		b.Run(name+"/single", func(b *testing.B) {
			for b.Loop() {
				for _, q := range queries {
					if _, err := s.Search(b.Context(), q); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
		b.Run(name+"/batch", func(b *testing.B) {
			for b.Loop() {
				if _, err := s.SearchBatch(b.Context(), queries); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkWithoutContent searches and lists 100 of 2,000 memories of 10 KB, with and without their content, and reads
// the hundredth page.
func BenchmarkWithoutContent(b *testing.B) {
	s := openWords(b, "", Options{})
	memories := make([]NewMemory, 2000)
	for i := range memories {
		memories[i].Content = fmt.Sprintf("Note %d. ", i) + strings.Repeat("x", 10_000)
	}
	if _, err := s.AddMemories(b.Context(), memories, nil); err != nil {
		b.Fatal(err)
	}
	if _, err := s.Search(b.Context(), Query{Text: "note"}); err != nil { // loads the index
		b.Fatal(err)
	}
	for _, without := range []bool{false, true} {
		for name, q := range map[string]Query{"by time": {Limit: 100}, "by relevance": {Text: "note", Limit: 100},
			"page 100 by relevance": {Text: "note", Limit: 10, Offset: 990}} {
			q.WithoutContent = without
			b.Run(fmt.Sprintf("%s/without=%v", name, without), func(b *testing.B) {
				for b.Loop() {
					if _, err := s.Search(b.Context(), q); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run(fmt.Sprintf("list/without=%v", without), func(b *testing.B) {
			for b.Loop() {
				for _, err := range s.Memories(b.Context(), MemoryList{WithoutContent: without}) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// The fuzz targets for external input are next to what they fuzz: go test -fuzz FuzzQuery -fuzztime 30s

// openBoth opens one file twice: with an index in memory, and on disk only.
func openBoth(tb testing.TB) (inMemory, onDisk *Store) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "fuzz.db")
	return openWords(tb, path, Options{}), openWords(tb, path, Options{IndexMemory: -1})
}

var library = []NewMemory{
	{Content: "The quick brown fox jumps over the lazy dog."},
	{Content: "Deploy with `kubectl apply -f deploy.yaml --namespace=prod`; roll back with helm.",
		Tags: []string{"ops", "kubernetes"}},
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
	{Content: "a\x01one and \u200bzero-width and a tab\tand\r\nlines"},
	{Content: strings.Repeat("A long memory is split into passages, each of which is searched. ", 80) +
		"The end speaks of a fox."},
	{Content: strings.Repeat("x", 5000) + " after one long word"},
}

func FuzzQuery(f *testing.F) {
	for _, m := range library {
		f.Add(m.Content)
	}
	for _, q := range []string{
		"", " ", "\x00", `"`, `""`, `"unclosed`, "fox AND", "NOT fox", "NEAR(fox dog, 2)", "content:fox", "tags : x", "fox*",
		"^fox", "(fox", ")", "{content tags}: fox",
		"-fox", "+fox", "fox OR OR dog", "'; DROP TABLE memory; --", "%_", "\\", "fox\"dog", "東京", "京", "กรุง", "\xff\xfe",
		"ﬁ", "İ", "ß", "�", "a b c d e f g h",
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
			allowed := errors.Is(errA, ErrInvalid) && !utf8.ValidString(query) || errors.Is(errA, ErrTooLarge) &&
				len(query) > MaxQuery
			if !allowed || errB == nil || errA.Error() != errB.Error() {
				t.Fatalf("search for %q: %v in memory, %v on disk; want the same error", query, errA, errB)
			}
			return
		}
		sameHits(t, a, b)
	})
}

// sameHits checks that two searches found the same hits, in the same order unless their scores are equal after
// rounding.
func sameHits(t *testing.T, a, b Results) {
	t.Helper()
	if a.Total != b.Total || len(a.Hits) != len(b.Hits) || a.Sort != b.Sort || !slices.Equal(a.Warnings, b.Warnings) {
		t.Fatalf("in memory %d of %d by %s %v, want %d of %d by %s %v, as on disk", len(a.Hits), a.Total, a.Sort,
			a.Warnings, len(b.Hits), b.Total, b.Sort, b.Warnings)
	}
	const rounding = 4e-5 // the index in memory stores each number of a vector in 16 bits
	scores := map[string]Hit{}
	for _, h := range b.Hits {
		scores[h.ID] = h
	}
	for i, h := range a.Hits {
		other, ok := scores[h.ID]
		if !ok {
			t.Fatalf("%q is found in memory only, want it found in the file, too", h.Content)
		}
		if math.Abs(h.Score-other.Score) > rounding || math.Abs(h.Parts.Text-other.Parts.Text) > rounding ||
			math.Abs(h.Parts.Vector-other.Parts.Vector) > rounding {
			t.Fatalf("%q scores %v %+v in memory, %v %+v on disk; want the same", h.Content, h.Score, h.Parts,
				other.Score, other.Parts)
		}
		if there := b.Hits[i]; there.ID != h.ID && math.Abs(there.Score-h.Score) > rounding {
			t.Fatalf("place %d is %q in memory, %q on disk; want the same", i, h.Content, there.Content)
		}
	}
}
