package langchaingo_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tmc/langchaingo/embeddings"
	"github.com/tmc/langchaingo/schema"
	"github.com/tmc/langchaingo/vectorstores"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/adapters/langchaingo"
)

// add adds documents and returns their ids.
func add(t *testing.T, v *langchaingo.VectorStore, docs []schema.Document, o ...vectorstores.Option) []string {
	t.Helper()
	ids, err := v.AddDocuments(t.Context(), docs, o...)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// wantFound compares the contents that a search finds, in any order.
func wantFound(t *testing.T, v *langchaingo.VectorStore, query string, want []string, o ...vectorstores.Option) {
	t.Helper()
	docs, err := v.SimilaritySearch(t.Context(), query, 10, o...)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, doc := range docs {
		got = append(got, doc.PageContent)
	}
	slices.Sort(got)
	if want = slices.Sorted(slices.Values(want)); !slices.Equal(got, want) {
		t.Errorf("%q: got %q, want %q", query, got, want)
	}
}

// doc returns a document with an id.
func doc(id, content string) schema.Document {
	return schema.Document{PageContent: content, Metadata: map[string]any{"id": id}}
}

func TestDocumentsWithIDsAreStoredOnce(t *testing.T) {
	store := open(t)
	v := langchaingo.NewVectorStore(store, &langchaingo.VectorStoreOptions{IDKey: "id"})
	docs := []schema.Document{doc("a", "Cats sleep all day."), doc("b", "Dogs bark at night.")}
	for range 2 {
		if got := add(t, v, docs); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("got the ids %q, want a and b", got)
		}
	}
	wantFound(t, v, "cats", []string{"Cats sleep all day.", "Dogs bark at night."})
	if m, err := store.GetMemoryByKey(t.Context(), souvenir.MemoryKey{Key: "a"}); err != nil || m.Revision != 1 {
		t.Errorf("got revision %d, %v, want 1", m.Revision, err)
	}
	docs = []schema.Document{doc("c", "old"), doc("a", "Cats purr."), doc("c", "Birds sing.")}
	if got := add(t, v, docs); !slices.Equal(got, []string{"c", "a", "c"}) {
		t.Errorf("got the ids %q, want c, a and c", got)
	}
	wantFound(t, v, "animals", []string{"Cats purr.", "Dogs bark at night.", "Birds sing."})
	for _, id := range []any{nil, "", 7, "a\x00b", strings.Repeat("x", 513)} {
		docs := []schema.Document{doc("d", "Fish swim."), {PageContent: "x", Metadata: map[string]any{"id": id}}}
		if _, err := v.AddDocuments(t.Context(), docs); err == nil {
			t.Errorf("id %.20v: got no error, want one", id)
		}
	}
	wantFound(t, v, "fish", []string{"Cats purr.", "Dogs bark at night.", "Birds sing."})
}

func TestDocumentsWithoutIDsGetNewOnes(t *testing.T) {
	v := langchaingo.NewVectorStore(open(t), nil)
	docs := []schema.Document{{PageContent: "Cats purr."}, {PageContent: "Cats purr."}}
	ids := add(t, v, docs)
	ids = append(ids, add(t, v, docs)...)
	if n := len(slices.Compact(slices.Sorted(slices.Values(ids)))); n != 4 {
		t.Errorf("got %q, want 4 different ids", ids)
	}
	isCat := func(_ context.Context, d schema.Document) bool { return strings.HasPrefix(d.PageContent, "Cats") }
	more := []schema.Document{{PageContent: "Cats purr."}, {PageContent: "Dogs bark."}}
	if got := add(t, v, more, vectorstores.WithDeduplicater(isCat)); len(got) != 1 {
		t.Errorf("got the ids %q, want one", got)
	}
	if got := add(t, v, nil); got == nil || len(got) != 0 {
		t.Errorf("no documents: got %#v, want an empty list", got)
	}
	if _, err := v.AddDocuments(t.Context(), []schema.Document{{PageContent: " "}}); !errors.Is(err, souvenir.ErrInvalid) {
		t.Errorf("an empty document: got %v, want ErrInvalid", err)
	}
}

func TestMetadataIsReturnedAsGiven(t *testing.T) {
	v := langchaingo.NewVectorStore(open(t), nil)
	metadata := map[string]any{"state": "new", "tags": []any{"a", "b"}, "project_id": "p", "名": "茶", "n": 1.5,
		"nested": map[string]any{"a": []any{true, nil}}, "custom.x": "y", "event_type": "e", "conversation_id": "c"}
	before := maps.Clone(metadata)
	add(t, v, []schema.Document{{PageContent: "乌龙茶很好喝。", Metadata: metadata}, {PageContent: "Coffee."}})
	if !reflect.DeepEqual(metadata, before) {
		t.Errorf("got the metadata %v, want it unchanged: %v", metadata, before)
	}
	for key, value := range map[string]any{"state": "new", "名": "茶", "n": 1.5, "project_id": "p", "custom.x": "y"} {
		found, err := v.SimilaritySearch(t.Context(), "乌龙茶", 5, vectorstores.WithFilters(map[string]any{key: value}))
		if err != nil || len(found) != 1 || !reflect.DeepEqual(found[0].Metadata, before) {
			t.Errorf("%s: got %v, %v, want the document with %v", key, found, err, before)
		}
		wantFound(t, v, "乌龙茶", []string{}, vectorstores.WithFilters(map[string]any{key: "other"}))
	}
}

func TestSearchTakesItsOptions(t *testing.T) {
	store := open(t)
	v := langchaingo.NewVectorStore(store, &langchaingo.VectorStoreOptions{Collection: "wiki"})
	wantFound(t, v, "cats", []string{})
	add(t, v, []schema.Document{{PageContent: "We deploy on Thursdays.", Metadata: map[string]any{"year": 2025}},
		{PageContent: "The office closes at eight.", Metadata: map[string]any{"year": 2026}}})
	add(t, v, []schema.Document{{PageContent: "Namespaces keep documents apart."}}, vectorstores.WithNameSpace("other"))
	all := []string{"We deploy on Thursdays.", "The office closes at eight."}
	wantFound(t, v, "namespaces", all)
	wantFound(t, v, "namespaces", []string{"Namespaces keep documents apart."}, vectorstores.WithNameSpace("other"))
	wantFound(t, v, "namespaces", []string{}, vectorstores.WithNameSpace("none"))
	wantFound(t, v, "When do we deploy?", all[:1], vectorstores.WithScoreThreshold(0.5))
	wantFound(t, v, "How do I repair a bicycle?", []string{}, vectorstores.WithScoreThreshold(0.5))
	for _, filter := range []any{map[string]any{"year": 2026},
		souvenir.Filter{"year": souvenir.Condition{MoreThan: 2025}}} {
		wantFound(t, v, "deploy", []string{"The office closes at eight."}, vectorstores.WithFilters(filter))
	}
	wantFound(t, v, "", []string{})
	wantFound(t, v, " \u200b", []string{})
	wantFound(t, v, strings.Repeat("部署 ", 30_000), all)
	docs, err := v.SimilaritySearch(t.Context(), "When do we deploy?", 1)
	if err != nil || len(docs) != 1 || docs[0].PageContent != all[0] || docs[0].Score < 0.5 || docs[0].Score > 1 {
		t.Errorf("got %v, %v, want %q with a score of at least 0.5", docs, err, all[0])
	}
	for name, o := range map[string]vectorstores.Option{"filters": vectorstores.WithFilters("year = 2026"),
		"embedder": vectorstores.WithEmbedder(&embeddings.EmbedderImpl{}), "score": vectorstores.WithScoreThreshold(1.5),
		"namespace": vectorstores.WithNameSpace("a\x00b"),
		"project":   vectorstores.WithFilters(souvenir.Filter{"project_id": "other"})} {
		if _, err := v.SimilaritySearch(t.Context(), "x", 1, o); err == nil {
			t.Errorf("%s: got no error, want one", name)
		}
	}
	if _, err := v.SimilaritySearch(t.Context(), "x", 0); err == nil {
		t.Errorf("no documents: got no error, want one")
	}
}

func TestManyDocumentsAreFound(t *testing.T) {
	v := langchaingo.NewVectorStore(open(t), nil)
	docs := make([]schema.Document, 300)
	for i := range docs {
		docs[i].PageContent = fmt.Sprint("The cat number ", i, " sleeps.")
	}
	add(t, v, docs)
	for n, want := range map[int]int{100: 100, 101: 101, 250: 250, 1000: 300} {
		found, err := v.SimilaritySearch(t.Context(), "sleeping cats", n)
		if err != nil || len(found) != want {
			t.Errorf("%d: got %d documents, %v, want %d", n, len(found), err, want)
		}
	}
}

func TestDeletedDocumentsAreGone(t *testing.T) {
	store := open(t)
	v := langchaingo.NewVectorStore(store, &langchaingo.VectorStoreOptions{IDKey: "id"})
	ofProject := langchaingo.NewVectorStore(store, &langchaingo.VectorStoreOptions{IDKey: "id", ProjectID: "p"})
	remove := func(ids []string, o ...vectorstores.Option) {
		t.Helper()
		if err := v.DeleteDocuments(t.Context(), ids, o...); err != nil {
			t.Fatal(err)
		}
	}
	remove([]string{"a"}, vectorstores.WithNameSpace("none"))
	add(t, v, []schema.Document{doc("a", "Cats purr."), doc("b", "Dogs bark.")})
	add(t, v, []schema.Document{doc("a", "Other cats.")}, vectorstores.WithNameSpace("other"))
	add(t, ofProject, []schema.Document{doc("a", "Cats of the project.")})
	remove(nil)
	remove([]string{"none", "a"})
	remove([]string{"a"})
	wantFound(t, v, "cats", []string{"Dogs bark."})
	wantFound(t, v, "cats", []string{"Other cats."}, vectorstores.WithNameSpace("other"))
	wantFound(t, ofProject, "cats", []string{"Cats of the project."})
	many := make([]string, 1500)
	for i := range many {
		many[i] = fmt.Sprint("id ", i)
	}
	remove(append(many, "b"))
	wantFound(t, v, "cats", []string{})
	add(t, v, []schema.Document{doc("a", "Cats again.")})
	wantFound(t, v, "cats", []string{"Cats again."})
}

func TestUsersHaveDocumentsOfTheirOwn(t *testing.T) {
	store := open(t)
	of := func(user string) *langchaingo.VectorStore {
		return langchaingo.NewVectorStore(store.As(souvenir.Access{User: user}),
			&langchaingo.VectorStoreOptions{Collection: "wiki", IDKey: "id"})
	}
	add(t, of("anna"), []schema.Document{doc("a", "Anna's cats.")})
	wantFound(t, of("ben"), "cats", []string{})
	if err := of("ben").DeleteDocuments(t.Context(), []string{"a"}); err != nil {
		t.Fatal(err)
	}
	add(t, of("ben"), []schema.Document{doc("a", "Ben's cats.")})
	wantFound(t, of("anna"), "cats", []string{"Anna's cats."})
	limited := langchaingo.NewVectorStore(store.As(souvenir.Access{User: "anna", Projects: []string{"p"}}),
		&langchaingo.VectorStoreOptions{IDKey: "id"})
	anna := store.As(souvenir.Access{User: "anna"})
	if _, err := anna.AddProject(t.Context(), souvenir.NewProject{ID: "p"}); err != nil {
		t.Fatal(err)
	}
	add(t, limited, []schema.Document{doc("a", "Cats of the project.")})
	wantFound(t, limited, "cats", []string{"Cats of the project."})
	wantFound(t, of("anna"), "cats", []string{"Anna's cats."})
}

func TestManyGoroutinesAddTheSameDocuments(t *testing.T) {
	v := langchaingo.NewVectorStore(open(t), &langchaingo.VectorStoreOptions{Collection: "new", IDKey: "id"})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for i := range 10 {
				docs := []schema.Document{doc(fmt.Sprint(i), fmt.Sprint("cat ", i))}
				if _, err := v.AddDocuments(t.Context(), docs); err != nil {
					t.Error(err)
				}
				if _, err := v.SimilaritySearch(t.Context(), "cat", 3); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if found, err := v.SimilaritySearch(t.Context(), "cat", 100); err != nil || len(found) != 10 {
		t.Errorf("got %d documents, %v, want 10", len(found), err)
	}
}

func TestCancelledCallsOfAVectorStoreEnd(t *testing.T) {
	v := langchaingo.NewVectorStore(open(t), &langchaingo.VectorStoreOptions{IDKey: "id"})
	add(t, v, []schema.Document{doc("a", "Cats purr.")})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, added := v.AddDocuments(ctx, []schema.Document{doc("b", "x")})
	_, none := v.AddDocuments(ctx, nil)
	_, found := v.SimilaritySearch(ctx, "cats", 1)
	_, many := v.SimilaritySearch(ctx, "cats", 1000)
	_, blank := v.SimilaritySearch(ctx, "", 1)
	for name, err := range map[string]error{"AddDocuments": added, "AddDocuments of none": none, "SimilaritySearch": found,
		"SimilaritySearch for many": many, "SimilaritySearch for nothing": blank,
		"DeleteDocuments": v.DeleteDocuments(ctx, []string{"a"})} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want context.Canceled", name, err)
		}
	}
	wantFound(t, v, "cats", []string{"Cats purr."})
}

func TestRetrieverFindsEverything(t *testing.T) {
	store := open(t)
	history := langchaingo.NewChatMessageHistory(store, "a")
	if err := history.AddUserMessage(t.Context(), "I deploy on Thursdays."); err != nil {
		t.Fatal(err)
	}
	v := langchaingo.NewVectorStore(store, &langchaingo.VectorStoreOptions{Collection: "wiki"})
	add(t, v, []schema.Document{{PageContent: "The guide says how to deploy."}})
	for collections, want := range map[string]int{"": 2, "wiki": 1} {
		q := souvenir.Query{}
		if collections != "" {
			q.Collections = []string{collections}
		}
		r := langchaingo.NewRetriever(store, q)
		if got, err := r.GetRelevantDocuments(t.Context(), "deploy"); err != nil || len(got) != want {
			t.Errorf("%q: got %v, %v, want %d documents", collections, got, err, want)
		}
		if got, err := r.GetRelevantDocuments(t.Context(), " "); err != nil || len(got) != 0 {
			t.Errorf("%q: nothing sought: got %v, %v, want none", collections, got, err)
		}
	}
}
