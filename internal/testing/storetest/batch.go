package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

func searchBatch(f *fixture) {
	stocked(f)
	f.addCollection(souvenir.NewCollection{Name: "other"})
	f.add(souvenir.NewMemory{Content: "A note on ferries.", Tags: []string{"sea"}, Collection: "other"})
	queries := []souvenir.Query{{Text: answered}, {Text: unanswered, MinScore: 0.5}, {},
		{Text: "ferry", Limit: 2, Offset: 1},
		{Text: "ferry", Tags: []string{"sea"}}, {Text: "note", Tags: []string{"sea"}}, {Collections: []string{"other"}},
		{Text: "tide", Sort: souvenir.SortCreatedAsc}, {Text: answered, Explain: true}, {ProjectID: "nowhere"}}
	all, err := f.reader.SearchBatch(f.ctx, queries)
	f.check("SearchBatch", err)
	f.equal("results", len(all), len(queries))
	for i, got := range all {
		f.sameJSON(fmt.Sprint("query ", i), got, f.search(queries[i]))
	}
	none, err := f.reader.SearchBatch(f.ctx, nil)
	f.check("SearchBatch of nothing", err)
	f.equal("results of nothing", len(none), 0)
}

func searchAll(f *fixture) {
	notes := make([]souvenir.NewMemory, 250)
	for i := range notes {
		notes[i] = souvenir.NewMemory{Content: fmt.Sprint("note ", i, " of the ferry ", strings.Repeat("tide ", i%7)),
			Tags: []string{fmt.Sprint("t", i%2)}}
	}
	_, err := f.store.AddMemories(f.ctx, notes, nil)
	f.check("AddMemories", err)
	for _, q := range []souvenir.Query{{}, {Sort: souvenir.SortCreatedAsc, Offset: 120}, {Tags: []string{"t1"}},
		{Text: "tide"}, {Text: "tide", Explain: true, WithoutContent: true, Offset: 30},
		{Text: "ferry", Sort: souvenir.SortCreatedDesc}, {Text: "tide", MinScore: 0.2}} {
		paged, page := []souvenir.Hit{}, q
		for page.Limit = souvenir.MaxLimit; ; page.Offset += page.Limit {
			found := f.search(page)
			paged = append(paged, found.Hits...)
			if !found.HasMore() {
				break
			}
		}
		sequence := f.reader.SearchAll(f.ctx, q)
		for _, loop := range []string{"first", "second"} {
			all := []souvenir.Hit{}
			for h, err := range sequence {
				f.check("SearchAll", err)
				all = append(all, h)
			}
			f.sameJSON(fmt.Sprintf("all hits of %+v in the %s loop", q, loop), all, paged)
		}
	}
	for _, err := range f.reader.SearchAll(f.ctx, souvenir.Query{Limit: 5}) {
		f.failsAt("a limit", err, souvenir.ErrInvalid, "limit", "limit is 5; it must be 0 here")
	}
	left := 0
	for h, err := range f.reader.SearchAll(f.ctx, souvenir.Query{Sort: souvenir.SortCreatedAsc}) {
		f.check("SearchAll", err)
		if left++; left == 1 { // memories that the loop has not read yet may be deleted
			last := f.search(souvenir.Query{Sort: souvenir.SortCreatedAsc, Offset: len(notes) - 1}).Hits[0]
			f.check("DeleteMemory", f.store.DeleteMemory(f.ctx, last.ID, nil))
		}
		f.equal("the rank", h.Rank, left)
	}
	f.equal("hits of a loop while one is deleted", left, len(notes)-1)
}

func searchBatchArguments(f *fixture) {
	f.addTexts("a note")
	ok := souvenir.Query{Text: "note"}
	for _, bad := range []struct {
		queries  []souvenir.Query
		kind     *souvenir.Error
		argument string
		says     string
	}{
		{[]souvenir.Query{ok, {Limit: 101}}, souvenir.ErrInvalid, "limit", "queries[1]: limit is 101"},
		{[]souvenir.Query{ok, ok, {Collections: []string{"nowhere"}}}, souvenir.ErrNotFound, "collection_name",
			"queries[2]: "},
		{[]souvenir.Query{{Filter: souvenir.Filter{"state": struct{}{}}}, ok}, souvenir.ErrInvalid, "", "queries[0]: "},
		{slices.Repeat([]souvenir.Query{ok}, souvenir.MaxQueries+1), souvenir.ErrTooLarge, "queries", "at most 100"},
		{slices.Repeat([]souvenir.Query{{Limit: 100}}, 11), souvenir.ErrTooLarge, "queries", "add up to 1100"},
	} {
		all, err := f.reader.SearchBatch(f.ctx, bad.queries)
		if bad.argument == "" {
			f.fails(bad.says, err, bad.kind, bad.says)
		} else {
			f.failsAt(bad.says, err, bad.kind, bad.argument, bad.says)
		}
		f.equal("results besides an error", len(all), 0)
	}
	most, err := f.reader.SearchBatch(f.ctx,
		slices.Repeat([]souvenir.Query{{Text: "note", Limit: 10}}, souvenir.MaxQueries))
	f.check("SearchBatch of the most", err)
	f.equal("the last one's hits", len(most[souvenir.MaxQueries-1].Hits), 1)
}

func searchKeys(f *fixture) {
	for _, key := range []string{"a", "b", "c", ""} {
		f.add(souvenir.NewMemory{Content: "note " + key, Key: key})
	}
	for _, text := range []string{"", "note"} {
		got := f.search(souvenir.Query{Text: text, Keys: []string{"c", "a", "nowhere"}, Sort: souvenir.SortKeyAsc})
		f.equal("keys", []any{got.Total, got.Hits[0].Key, got.Hits[1].Key}, []any{2, "a", "c"})
	}
	f.equal("an unknown key", f.search(souvenir.Query{Keys: []string{"nowhere"}}).Total, 0)
	b := souvenir.MemoryList{Keys: []string{"b"}}
	f.equal("listed", len(f.list(b)), 1)
	graph, err := f.reader.Insights().Graph(f.ctx, souvenir.GraphQuery{MemoryList: b})
	f.check("Graph", err)
	f.equal("in a graph", graph.Total, 1)
	gone, err := f.store.DeleteMemories(f.ctx, souvenir.MemoriesDeletion{MemoryList: b})
	f.check("DeleteMemories", err)
	f.equal("deleted", gone, souvenir.BulkReport{Selected: 1, Changed: 1})
	f.equal("the others", len(f.list(souvenir.MemoryList{})), 3)
	_, err = f.reader.Search(f.ctx, souvenir.Query{Keys: slices.Repeat([]string{"a"}, 1001)})
	f.failsAt("too many keys", err, souvenir.ErrTooLarge, "keys", "at most 1000")
}

func searchWithoutContent(f *fixture) {
	stocked(f)
	bare := func(m souvenir.Memory) souvenir.Memory { m.Content = ""; return m }
	for _, q := range []souvenir.Query{{Text: answered}, {}, {Text: "tide", Sort: souvenir.SortCreatedAsc}} {
		want := f.search(q)
		for i := range want.Hits {
			h := &want.Hits[i]
			h.Memory, h.Start, h.End = bare(h.Memory), 0, 0
		}
		q.WithoutContent = true
		f.sameJSON(fmt.Sprintf("search %+v", q), f.search(q), want)
	}
	past := souvenir.Query{Text: answered, AsOf: f.clock.Now(), WithoutContent: true}
	for _, h := range f.search(past).Hits {
		f.equal("content and passage as of now", []any{h.Content, h.Start, h.End}, []any{"", 0, 0})
	}
	var want []souvenir.Memory
	for _, m := range f.list(souvenir.MemoryList{}) {
		want = append(want, bare(m))
	}
	f.sameJSON("listed", f.list(souvenir.MemoryList{WithoutContent: true}), want)
}

// longest is a reranker that puts the longest texts first.
func longest(_ context.Context, _ string, texts []string) ([]float64, error) {
	scores := make([]float64, len(texts))
	for i, text := range texts {
		scores[i] = float64(len(text))
	}
	return scores, nil
}

// reranker opens the store again with a reranker.
func (f *fixture) reranker(r souvenir.RerankerFunc) {
	f.Helper()
	f.close()
	options := f.options(f.embedder)
	options.Reranker = r
	f.store = f.open(f.T, options)
	f.reader, f.operator = f.store, f.store
}

func searchReranked(f *fixture) {
	for i := range 9 {
		f.addTexts("ferry" + strings.Repeat(" ferry and harbour", i))
	}
	plain := f.search(souvenir.Query{Text: "ferry", Limit: 9})
	f.reranker(longest)
	byLength := func(hits []souvenir.Hit) []string {
		sorted := slices.Clone(hits)
		slices.SortStableFunc(sorted, func(a, b souvenir.Hit) int { return len(b.Content) - len(a.Content) })
		return hitContents(sorted)
	}
	f.same("all", hitContents(f.search(souvenir.Query{Text: "ferry", Limit: 9}).Hits), byLength(plain.Hits)...)
	none := f.search(souvenir.Query{Text: "ferry", Limit: 9, Rerank: -1})
	f.same("none", hitContents(none.Hits), hitContents(plain.Hits)...)
	want := append(byLength(plain.Hits[:5]), hitContents(plain.Hits[5:])...)
	var got []string
	for offset := 0; offset < 9; offset += 2 {
		page := f.search(souvenir.Query{Text: "ferry", Rerank: 5, Limit: 2, Offset: offset, Explain: true})
		f.equal("page", []int{page.Total, page.Offset, page.Limit}, []int{9, offset, 2})
		for _, h := range page.Hits {
			got = append(got, h.Content)
			f.equal("rank", h.Rank, len(got))
			if r := h.Explanation.Reranked; h.Rank <= 5 && offset < 5 &&
				(r == nil || r.Score != float64(len(h.Content)) || plain.Hits[r.From-1].Content != h.Content) {
				f.Errorf("%q is reranked by %+v; want its length and its rank before", h.Content, r)
			}
		}
	}
	f.same("five, by the page", got, want...)
	bare := f.search(souvenir.Query{Text: "ferry", WithoutContent: true})
	f.equal("without content", []any{bare.Hits[0].Content, bare.Hits[0].End}, []any{"", 0})
	batch, err := f.reader.SearchBatch(f.ctx, []souvenir.Query{{Text: "ferry", Limit: 9}, {}})
	f.check("SearchBatch", err)
	f.same("in a batch", hitContents(batch[0].Hits), byLength(plain.Hits)...)
	_, err = f.reader.Search(f.ctx, souvenir.Query{Text: "ferry", Rerank: 101})
	f.failsAt("too many", err, souvenir.ErrInvalid, "rerank", "at most 100")
}

func hitContents(hits []souvenir.Hit) []string {
	var all []string
	for _, h := range hits {
		all = append(all, h.Content)
	}
	return all
}

func searchRerankerFails(f *fixture) {
	f.addTexts("ferry", "ferry and harbour", "ferry and harbour and ferry")
	want := f.find("ferry")
	for what, r := range map[string]souvenir.RerankerFunc{
		"an error": func(context.Context, string, []string) ([]float64, error) { return nil, errors.New("secret key") },
		"a panic":  func(context.Context, string, []string) ([]float64, error) { panic("secret key") },
		"one score less": func(ctx context.Context, q string, texts []string) ([]float64, error) {
			return longest(ctx, q, texts[1:])
		},
		"no number": func(_ context.Context, _ string, texts []string) ([]float64, error) {
			return append(make([]float64, len(texts)-1), float64(nan())), nil
		},
	} {
		f.reranker(r)
		results := f.search(souvenir.Query{Text: "ferry"})
		f.same(what, fitting(results), want...)
		if text := strings.Join(results.Warnings, "\n"); !strings.Contains(text, "the reranker failed") ||
			strings.Contains(text, "secret") {
			f.Errorf("%s: warnings are %q; want that the reranker failed, without its error", what, text)
		}
	}
}
