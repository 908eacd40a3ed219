package souvenir

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// countedEmbedder counts the calls for searches, and the texts in them.
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

// BenchmarkWithoutContent finds and lists 100 of 2,000 memories of 10 KB, with and without their content, and reads the
// hundredth page.
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
				for _, err := range s.Memories(b.Context(), List{WithoutContent: without}) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
