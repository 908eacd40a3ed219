package eino_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cloudwego/eino/callbacks"
	"github.com/cloudwego/eino/components/embedding"
	"github.com/cloudwego/eino/components/indexer"
	"github.com/cloudwego/eino/components/retriever"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/adapters/eino"
)

// open opens a new store.
func open(t *testing.T) *souvenir.Store {
	t.Helper()
	store, err := souvenir.Open(t.Context(), filepath.Join(t.TempDir(), "test.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// add stores documents and returns their ids.
func add(t *testing.T, i *eino.Indexer, docs []*schema.Document, o ...indexer.Option) []string {
	t.Helper()
	ids, err := i.Store(t.Context(), docs, o...)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// wantFound compares the ids of the documents that a search finds, in any order.
func wantFound(t *testing.T, r *eino.Retriever, query string, want []string, o ...retriever.Option) {
	t.Helper()
	docs, err := r.Retrieve(t.Context(), query, o...)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, doc := range docs {
		got = append(got, doc.ID)
	}
	slices.Sort(got)
	if want = slices.Sorted(slices.Values(want)); !slices.Equal(got, want) {
		t.Errorf("%.60q: got %q, want %q", query, got, want)
	}
}

// doc returns a document.
func doc(id, content string) *schema.Document { return &schema.Document{ID: id, Content: content} }

func TestDocumentsAreStoredOnceUnderTheirIDs(t *testing.T) {
	store := open(t)
	i, r := eino.NewIndexer(store, nil), eino.NewRetriever(store, souvenir.Query{})
	for range 2 {
		got := add(t, i, []*schema.Document{doc("a", "Cats sleep."), doc("文档/二", "狗在叫。")})
		if !slices.Equal(got, []string{"a", "文档/二"}) {
			t.Errorf("got the ids %q, want those given", got)
		}
	}
	wantFound(t, r, "cats", []string{"a", "文档/二"})
	if m, err := store.GetMemoryByKey(t.Context(), souvenir.MemoryKey{Key: "a"}); err != nil || m.Revision != 1 {
		t.Errorf("got revision %d, %v, want 1", m.Revision, err)
	}
	got := add(t, i, []*schema.Document{doc("c", "old"), doc("a", "Cats purr."), doc("c", "Birds sing.")})
	if !slices.Equal(got, []string{"c", "a", "c"}) {
		t.Errorf("got the ids %q, want c, a and c", got)
	}
	found, err := r.Retrieve(t.Context(), "cats purr", retriever.WithTopK(1))
	if err != nil || len(found) != 1 || found[0].Content != "Cats purr." || found[0].Score() < 0.5 {
		t.Errorf("got %v, %v, want the new content with a score of at least 0.5", found, err)
	}

	without := doc("", "Fish swim.")
	fresh := add(t, i, []*schema.Document{without, doc("", "Fish swim.")})
	if fresh[0] == "" || fresh[0] == fresh[1] || without.ID != "" {
		t.Errorf("got the ids %q and %q in the document, want two new ones and none", fresh, without.ID)
	}
	wantFound(t, r, "fish", append([]string{"a", "c", "文档/二"}, fresh...))
	for _, bad := range []*schema.Document{nil, doc("x", ""), doc("x", " "), doc("a\x00b", "x"), doc("\xff", "x"),
		doc(strings.Repeat("x", 513), "x"), {Content: "x", MetaData: map[string]any{"f": func() {}}}} {
		if _, err := i.Store(t.Context(), []*schema.Document{doc("y", "Bees hum."), bad}); err == nil {
			t.Errorf("%.60s: got no error, want one", fmt.Sprint(bad))
		}
	}
	wantFound(t, r, "bees", append([]string{"a", "c", "文档/二"}, fresh...))
	if got := add(t, i, nil); got == nil || len(got) != 0 {
		t.Errorf("no documents: got %#v, want an empty list", got)
	}
}

func TestMetaDataIsReturnedAsGiven(t *testing.T) {
	store := open(t)
	i, r := eino.NewIndexer(store, nil), eino.NewRetriever(store, souvenir.Query{})
	plain := map[string]any{"state": "new", "tags": []any{"x"}, "project_id": "p", "名": "茶", "n": 1.5,
		"nested": map[string]any{"a": []any{true, nil}}, "_extra_info": "more", "_dsl": map[string]any{"k": "v"}}
	given := (&schema.Document{ID: "a", Content: "乌龙茶很好喝。", MetaData: maps.Clone(plain)}).WithScore(7).
		WithDenseVector([]float64{1, 2}).WithSparseVector(map[int]float64{3: 4}).WithSubIndexes([]string{"tea", "中文"})
	before := maps.Clone(given.MetaData)
	add(t, i, []*schema.Document{given, doc("b", "Coffee.")}, indexer.WithSubIndexes([]string{"drinks", "tea"}))
	if !reflect.DeepEqual(given.MetaData, before) {
		t.Errorf("got %v, want the document unchanged: %v", given.MetaData, before)
	}
	for key, value := range map[string]any{"state": "new", "名": "茶", "project_id": "p"} {
		found, err := r.Retrieve(t.Context(), "乌龙茶", eino.WithFilter(souvenir.Filter{souvenir.CustomKey(key): value}))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: got %v, %v, want one document", key, found, err)
		}
		want := maps.Clone(plain)
		want["_score"], want["_sub_indexes"] = found[0].Score(), []string{"tea", "中文", "drinks"}
		if !reflect.DeepEqual(found[0].MetaData, want) || found[0].Score() == 7 {
			t.Errorf("%s: got %v, want %v", key, found[0].MetaData, want)
		}
	}
	wantFound(t, r, "茶", []string{"a"}, retriever.WithSubIndex("中文"))
	wantFound(t, r, "茶", []string{"a", "b"}, retriever.WithSubIndex("drinks"))
	wantFound(t, r, "茶", []string{}, retriever.WithSubIndex("none"))
	again, err := r.Retrieve(t.Context(), "乌龙茶", retriever.WithTopK(1))
	if err != nil || len(again) != 1 {
		t.Fatalf("got %v, %v, want one document", again, err)
	}
	add(t, i, again) // what was found can be stored as it is
	if m, err := store.GetMemoryByKey(t.Context(), souvenir.MemoryKey{Key: "a"}); err != nil || m.Revision != 1 {
		t.Errorf("got revision %d, %v, want 1", m.Revision, err)
	}
}

// noEmbedder is an embedder that must not be called.
type noEmbedder struct{ embedding.Embedder }

func TestRetrieveTakesItsOptions(t *testing.T) {
	store := open(t)
	if _, err := store.AddMemory(t.Context(), souvenir.NewMemory{Content: "A fact about tea."}); err != nil {
		t.Fatal(err)
	}
	add(t, eino.NewIndexer(store, &eino.IndexerConfig{Collection: "wiki"}), []*schema.Document{
		{ID: "deploy", Content: "We deploy on Thursdays.", MetaData: map[string]any{"year": 2025}},
		{ID: "office", Content: "The office closes at eight.", MetaData: map[string]any{"year": 2026}}})
	r := eino.NewRetriever(store, souvenir.Query{Collections: []string{"wiki"},
		Filter: souvenir.Filter{"year": souvenir.Condition{AtLeast: 2025}}})
	both := []string{"deploy", "office"}
	wantFound(t, r, "tea", both)
	wantFound(t, r, "tea", []string{"office"}, eino.WithFilter(souvenir.Filter{"year": 2026}))
	wantFound(t, r, "tea", both, eino.WithFilter(nil))
	wantFound(t, r, "When do we deploy?", []string{"deploy"}, retriever.WithTopK(1))
	wantFound(t, r, "When do we deploy?", []string{"deploy"}, retriever.WithScoreThreshold(0.5))
	wantFound(t, r, "Wie repariere ich ein Fahrrad?", []string{}, retriever.WithScoreThreshold(0.5))
	wantFound(t, r, "tea", []string{}, retriever.WithIndex(souvenir.DefaultCollection))
	wantFound(t, r, "", []string{})
	wantFound(t, r, " \u200b", []string{})
	wantFound(t, r, strings.Repeat("部署 ", 30_000), both)
	facts, err := eino.NewRetriever(store, souvenir.Query{}).Retrieve(t.Context(), "tea", retriever.WithTopK(1))
	if err != nil || len(facts) != 1 || facts[0].ID == "" || facts[0].Content != "A fact about tea." {
		t.Errorf("got %v, %v, want the fact, under the id of its memory", facts, err)
	}
	wantFound(t, r, "tea", []string{}, retriever.WithIndex("none"))
	for name, o := range map[string]retriever.Option{"index": retriever.WithIndex("\xff"), "top": retriever.WithTopK(0),
		"negative": retriever.WithTopK(-1), "score": retriever.WithScoreThreshold(1.5),
		"embedding": retriever.WithEmbedding(noEmbedder{}), "dsl": retriever.WithDSLInfo(map[string]any{"k": "v"})} {
		if _, err := r.Retrieve(t.Context(), "x", o); err == nil {
			t.Errorf("%s: got no error, want one", name)
		}
	}
	_, err = eino.NewIndexer(store, nil).Store(t.Context(), []*schema.Document{doc("a", "x")},
		indexer.WithEmbedding(noEmbedder{}))
	if err == nil {
		t.Error("WithEmbedding: got no error, want one")
	}
}

func TestManyDocumentsAreFound(t *testing.T) {
	store := open(t)
	docs := make([]*schema.Document, 300)
	for i := range docs {
		docs[i] = doc("", fmt.Sprint("The cat number ", i, " sleeps."))
	}
	add(t, eino.NewIndexer(store, nil), docs)
	r := eino.NewRetriever(store, souvenir.Query{})
	for n, want := range map[int]int{100: 100, 101: 101, 250: 250, 1000: 300} {
		found, err := r.Retrieve(t.Context(), "sleeping cats", retriever.WithTopK(n))
		if err != nil || len(found) != want {
			t.Errorf("%d: got %d documents, %v, want %d", n, len(found), err, want)
		}
	}
}

func TestDeletedDocumentsAreGone(t *testing.T) {
	store := open(t)
	r := eino.NewRetriever(store, souvenir.Query{})
	none, plain := eino.NewIndexer(store, &eino.IndexerConfig{Collection: "none"}), eino.NewIndexer(store, nil)
	wiki := eino.NewIndexer(store, &eino.IndexerConfig{Collection: "wiki"})
	project := eino.NewIndexer(store, &eino.IndexerConfig{ProjectID: "p"})
	for n, i := range []*eino.Indexer{plain, wiki, project} {
		add(t, i, []*schema.Document{doc("a", fmt.Sprint("Cats ", n)), doc(fmt.Sprint("b", n), "Dogs.")})
	}
	remove := func(i *eino.Indexer, ids ...string) {
		t.Helper()
		if err := i.Delete(t.Context(), ids...); err != nil {
			t.Fatal(err)
		}
	}
	remove(none, "a")
	remove(plain)
	remove(plain, "unknown", "a")
	remove(plain, "a")
	wantFound(t, r, "cats", []string{"a", "a", "b0", "b1", "b2"})
	remove(project, "a")
	many := make([]string, 1500)
	for i := range many {
		many[i] = fmt.Sprint("id ", i)
	}
	remove(wiki, append(many, "a")...)
	wantFound(t, r, "cats", []string{"b0", "b1", "b2"})
}

func TestUsersHaveDocumentsOfTheirOwn(t *testing.T) {
	store := open(t)
	of := func(user string) (*eino.Indexer, *eino.Retriever) {
		view := store.As(souvenir.Access{User: user})
		return eino.NewIndexer(view, &eino.IndexerConfig{Collection: "wiki"}), eino.NewRetriever(view, souvenir.Query{})
	}
	annas, anna := of("anna")
	bens, ben := of("ben")
	add(t, annas, []*schema.Document{doc("a", "Cats.")})
	wantFound(t, ben, "cats", []string{})
	add(t, bens, []*schema.Document{doc("a", "Dogs."), doc("b", "Birds.")})
	if err := bens.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	wantFound(t, anna, "cats", []string{"a"})
	wantFound(t, ben, "cats", []string{"b"})
	reader := store.As(souvenir.Access{User: "anna", ReadOnly: true})
	_, err := eino.NewIndexer(reader, nil).Store(t.Context(), []*schema.Document{doc("c", "x")})
	if !errors.Is(err, souvenir.ErrReadOnly) {
		t.Errorf("got %v, want ErrReadOnly", err)
	}
}

func TestManyGoroutinesStoreTheSameDocuments(t *testing.T) {
	store := open(t)
	i := eino.NewIndexer(store, &eino.IndexerConfig{Collection: "new"})
	r := eino.NewRetriever(store, souvenir.Query{})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for n := range 10 {
				if _, err := i.Store(t.Context(), []*schema.Document{doc(fmt.Sprint(n), fmt.Sprint("cat ", n))}); err != nil {
					t.Error(err)
				}
				if _, err := r.Retrieve(t.Context(), "cat"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if found, err := r.Retrieve(t.Context(), "cat", retriever.WithTopK(100)); err != nil || len(found) != 10 {
		t.Errorf("got %d documents, %v, want 10", len(found), err)
	}
}

func TestCancelledCallsWithDocumentsEnd(t *testing.T) {
	store := open(t)
	i, r := eino.NewIndexer(store, nil), eino.NewRetriever(store, souvenir.Query{})
	add(t, i, []*schema.Document{doc("a", "Cats.")})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, stored := i.Store(ctx, []*schema.Document{doc("b", "x")})
	_, none := i.Store(ctx, nil)
	_, found := r.Retrieve(ctx, "cats")
	_, many := r.Retrieve(ctx, "cats", retriever.WithTopK(1000))
	_, blank := r.Retrieve(ctx, "")
	for name, err := range map[string]error{"Store": stored, "Store of none": none, "Retrieve": found,
		"Retrieve of many": many, "Retrieve for nothing": blank, "Delete": i.Delete(ctx, "a")} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want context.Canceled", name, err)
		}
	}
	wantFound(t, r, "cats", []string{"a"})
}

func TestComponentsWorkInAGraph(t *testing.T) {
	store := open(t)
	chain := compose.NewChain[[]*schema.Document, []*schema.Document]()
	chain.AppendIndexer(eino.NewIndexer(store, nil))
	chain.AppendLambda(compose.InvokableLambda(func(_ context.Context, ids []string) (string, error) {
		return "cats", nil
	}))
	chain.AppendRetriever(eino.NewRetriever(store, souvenir.Query{}))
	graph, err := chain.Compile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	handler := callbacks.NewHandlerBuilder().OnEndFn(func(ctx context.Context, info *callbacks.RunInfo,
		out callbacks.CallbackOutput) context.Context {
		if info.Type == "Souvenir" {
			seen = append(seen, string(info.Component))
		}
		return ctx
	}).Build()
	found, err := graph.Invoke(t.Context(), []*schema.Document{doc("a", "Cats.")}, compose.WithCallbacks(handler))
	if err != nil || len(found) != 1 || found[0].ID != "a" {
		t.Errorf("got %v, %v, want the document", found, err)
	}
	if want := []string{"Indexer", "Retriever"}; !slices.Equal(seen, want) {
		t.Errorf("got callbacks of %q, want %q", seen, want)
	}
}
