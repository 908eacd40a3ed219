package souvenir_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// The quick start of the package's documentation.
func Example_quickstart() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "souvenir")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	store, err := souvenir.Open(ctx, filepath.Join(dir, "agent.db"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	for _, text := range []string{
		"We deploy on Thursdays, never on Fridays.",
		"Anna is allergic to peanuts.",
		"The staging database is restored from production every night at 3.",
	} {
		if _, err := store.AddMemory(ctx, souvenir.NewMemory{Content: text}); err != nil {
			log.Fatal(err)
		}
	}
	found, err := store.Search(ctx, souvenir.Query{Text: "What food must we avoid for Anna?", Limit: 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found.Hits[0].Content)
	// Output: Anna is allergic to peanuts.
}

// open returns a store for one example, which closes it.
func open() *souvenir.Store {
	store, err := souvenir.Open(context.Background(), ":memory:", nil)
	if err != nil {
		log.Fatal(err)
	}
	return store
}

func add(store *souvenir.Store, memories ...souvenir.NewMemory) []souvenir.StoredMemory {
	stored, err := store.AddMemories(context.Background(), memories, nil)
	if err != nil {
		log.Fatal(err)
	}
	return stored
}

func ExampleStore_AddCollection() {
	ctx := context.Background()
	store := open()
	defer store.Close()

	if _, err := store.AddCollection(ctx,
		souvenir.NewCollection{Name: "kitchen", Description: "what we cook"}); err != nil {
		log.Fatal(err)
	}
	add(store, souvenir.NewMemory{Collection: "kitchen", Content: "Pancakes need buttermilk."})

	_, err := store.AddMemory(ctx, souvenir.NewMemory{Collection: "kitchne", Content: "Salt the water."})
	fmt.Println(err)

	collections, err := store.Collections(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range collections {
		fmt.Println(c.Name, c.MemoryCount)
	}
	// Output:
	// NewMemory.Collection "kitchne" does not exist; did you mean "kitchen"? (AddCollection creates a new one)
	// kitchen 1
}

func ExampleNewCollection_ownVectors() {
	ctx := context.Background()
	store := open()
	defer store.Close()

	if _, err := store.AddCollection(ctx,
		souvenir.NewCollection{Name: "places", VectorSize: 2, OwnVectors: true}); err != nil {
		log.Fatal(err)
	}
	add(store,
		souvenir.NewMemory{Collection: "places", Content: "Lisbon", Embedding: []float32{38.7, -9.1}},
		souvenir.NewMemory{Collection: "places", Content: "Tokyo", Embedding: []float32{35.7, 139.7}})

	found, err := store.Search(ctx, souvenir.Query{Vector: []float32{40.4, -3.7}, Limit: 1}) // Madrid
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found.Hits[0].Content)
	// Output: Lisbon
}

func ExampleQuery() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	add(store,
		souvenir.NewMemory{Content: "We chose PostgreSQL for the billing service.", EventType: "decision",
			ProjectName: "billing", Tags: []string{"database"}},
		souvenir.NewMemory{Content: "The billing service logs to standard output.", EventType: "note",
			ProjectName: "billing"},
		souvenir.NewMemory{Content: "We chose SQLite for the agent.", EventType: "decision", ProjectName: "agent",
			Tags: []string{"database"}})

	found, err := store.Search(ctx, souvenir.Query{
		Text:        "which database did we pick?",
		ProjectName: "billing",
		Filter:      souvenir.Filter{"event_type": "decision", "created_at": souvenir.Condition{AtLeast: "2020-01-01"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, hit := range found.Hits {
		fmt.Println(hit.Rank, hit.Content)
	}
	fmt.Println(found.Total, "in all, by", found.Sort)
	// Output:
	// 1 We chose PostgreSQL for the billing service.
	// 1 in all, by relevance
}

func ExampleStore_UpdateMemory() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	memory := add(store, souvenir.NewMemory{
		Content:       "The release is planned for May.",
		State:         "active",
		ShownMetadata: map[string]any{"risk": "low", "owner": "Anna"},
	})[0]

	content := "The release has moved to June."
	updated, err := store.UpdateMemory(ctx, memory.ID, souvenir.MemoryUpdate{
		Content:          &content,
		ShownMetadata:    map[string]any{"risk": "high", "owner": nil},
		ExpectedRevision: 1,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(updated.Revision, updated.Metadata)

	_, err = store.UpdateMemory(ctx, memory.ID, souvenir.MemoryUpdate{Content: &content, ExpectedRevision: 1})
	fmt.Println(errors.Is(err, souvenir.ErrConflict))

	revisions, err := store.Revisions(ctx, memory.ID)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range revisions {
		fmt.Println(r.Number, r.Content)
	}
	// Output:
	// 2 map[risk:high]
	// true
	// 2 The release has moved to June.
	// 1 The release is planned for May.
}

func ExampleStore_Memories() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	add(store,
		souvenir.NewMemory{Content: "Buy oats", State: "active"},
		souvenir.NewMemory{Content: "Call the dentist", State: "completed"},
		souvenir.NewMemory{Content: "Water the ferns", State: "active"})

	for memory, err := range store.Memories(ctx, souvenir.MemoryList{Filter: souvenir.Filter{"state": "active"}}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(memory.Content)
	}
	// Output:
	// Buy oats
	// Water the ferns
}

func ExampleStore_RelatedMemories() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	cause := add(store, souvenir.NewMemory{Content: "The disk of node 3 was full."})[0]
	incident := add(store, souvenir.NewMemory{Content: "Orders failed for an hour.", Related: []string{cause.ID}})[0]
	add(store, souvenir.NewMemory{Content: "We alert at 80 % disk use now.", Related: []string{incident.ID}})

	related, err := store.RelatedMemories(ctx, cause.ID, 2)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range related {
		fmt.Println(r.Depth, r.Direction, r.Content)
	}
	// Output:
	// 1 incoming Orders failed for an hour.
	// 2 incoming We alert at 80 % disk use now.
}

func ExampleStore_As() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	anna := store.As(souvenir.Access{User: "anna"})
	ben := store.As(souvenir.Access{User: "ben"})
	memory := add(anna, souvenir.NewMemory{Content: "The surprise party is on Saturday."})[0]

	_, err := ben.GetMemory(ctx, memory.ID)
	fmt.Println(errors.Is(err, souvenir.ErrNotFound))

	_, err = anna.As(souvenir.Access{User: "anna", ReadOnly: true}).AddMemory(ctx,
		souvenir.NewMemory{Content: "Bring cake."})
	fmt.Println(err)
	// Output:
	// true
	// this view of the store is read-only
}

func ExampleEmbedderFunc() {
	ctx := context.Background()
	// A model of three dimensions that knows three words.
	words := []string{"coffee", "train", "music"}
	embedder := souvenir.EmbedderFunc("three-words-v1", len(words),
		func(_ context.Context, _ souvenir.Purpose, texts []string) ([][]float32, error) {
			vectors := make([][]float32, len(texts))
			for i, text := range texts {
				vectors[i] = make([]float32, len(words))
				for j, word := range words {
					vectors[i][j] = float32(strings.Count(text, word))
				}
			}
			return vectors, nil
		})
	store, err := souvenir.Open(ctx, ":memory:", &souvenir.Options{Embedder: embedder})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	state, err := store.Upkeep().EmbeddingStatus(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(state.Model, state.Dimensions)
	// Output: three-words-v1 3
}

func ExampleError() {
	store := open()
	defer store.Close()

	_, err := store.AddMemory(context.Background(), souvenir.NewMemory{Content: "Tea at four.", Importance: "urgent"})
	var problem *souvenir.Error
	if errors.As(err, &problem) {
		fmt.Println(problem.Kind, problem.Argument)
		fmt.Println(problem.Message)
	}
	// Output:
	// invalid importance
	// importance is "urgent"; expected "low", "medium", "high" or "critical"
}

func ExampleStore_PutMemory() {
	ctx := context.Background()
	store := open()
	defer store.Close()

	for _, text := range []string{"Anna likes tea.", "Anna likes tea.", "Anna likes coffee now."} {
		put, err := store.PutMemory(ctx, souvenir.NewMemory{Key: "user/anna/drink", Content: text})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(put.Effect, put.Revision)
	}
	m, err := store.GetMemoryByKey(ctx, souvenir.MemoryKey{Key: "user/anna/drink"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Content)
	// Output:
	// added 1
	// unchanged 1
	// updated 2
	// Anna likes coffee now.
}

// IfAbsent stores a fact once, even if an agent notes it several times.
func ExampleStore_AddMemory_ifAbsent() {
	ctx := context.Background()
	store, err := souvenir.Open(ctx, ":memory:", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	for range 2 {
		m, err := store.AddMemory(ctx, souvenir.NewMemory{Content: "Anna is allergic to peanuts.", IfAbsent: true})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(m.Effect)
	}
	// Output:
	// added
	// unchanged
}

// Own metadata belongs to the caller. A key with the name of one of the store's fields has no meaning to the store.
func ExampleCustomKey() {
	ctx := context.Background()
	store, err := souvenir.Open(ctx, ":memory:", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	_, err = store.AddMemory(ctx, souvenir.NewMemory{Content: "Our office is in San Francisco.", State: "active",
		Metadata: map[string]any{"state": "California"}})
	if err != nil {
		log.Fatal(err)
	}
	filter := souvenir.Filter{"state": "active", souvenir.CustomKey("state"): "California"}
	for m, err := range store.Memories(ctx, souvenir.MemoryList{Filter: filter}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(m.State, m.Metadata["state"])
	}
	// Output: active California
}

func ExampleStore_AddMemory_supersedes() {
	ctx := context.Background()
	store := open()
	defer store.Close()

	may := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	berlin, err := store.AddMemory(ctx, souvenir.NewMemory{Content: "Anna works in Berlin.", CreatedAt: may})
	if err != nil {
		log.Fatal(err)
	}
	june := may.AddDate(0, 1, 0)
	if _, err := store.AddMemory(ctx, souvenir.NewMemory{Content: "Anna works in Rome.", CreatedAt: june,
		Supersedes: berlin.ID}); err != nil {
		log.Fatal(err)
	}
	for _, at := range []time.Time{{}, may.AddDate(0, 0, 14)} {
		for m, err := range store.Memories(ctx, souvenir.MemoryList{AsOf: at}) {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(m.Content)
		}
	}
	// Output:
	// Anna works in Rome.
	// Anna works in Berlin.
}

func ExampleNewMemory_expiresAt() {
	ctx := context.Background()
	nine := time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)
	var passed atomic.Int64 // a clock for this example; by default Now is the real time
	clock := func() time.Time { return nine.Add(time.Duration(passed.Load())) }
	store, err := souvenir.Open(ctx, ":memory:", &souvenir.Options{Now: clock})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	memories := []souvenir.NewMemory{
		{Content: "The build is broken.", ExpiresAt: nine.Add(time.Hour)},
		{Content: "We deploy on Tuesdays."},
	}
	if _, err := store.AddMemories(ctx, memories, nil); err != nil {
		log.Fatal(err)
	}
	passed.Store(int64(2 * time.Hour))
	for m, err := range store.Memories(ctx, souvenir.MemoryList{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(m.Content)
	}
	// Output: We deploy on Tuesdays.
}

func ExampleStore_SearchBatch() {
	ctx := context.Background()
	store := open()
	defer store.Close()

	memories := []souvenir.NewMemory{{Content: "Anna drinks her tea without sugar."}, {Content: "We deploy on Tuesdays."}}
	if _, err := store.AddMemories(ctx, memories, nil); err != nil {
		log.Fatal(err)
	}
	answers, err := store.SearchBatch(ctx, []souvenir.Query{
		{Text: "how does Anna take her tea?", Limit: 1},
		{Text: "when do we deploy?", Limit: 1},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, found := range answers {
		fmt.Println(found.Hits[0].Content)
	}
	// Output:
	// Anna drinks her tea without sugar.
	// We deploy on Tuesdays.
}

func ExampleStore_SearchAll() {
	ctx := context.Background()
	store := open()
	defer store.Close()

	memories := []souvenir.NewMemory{{Content: "Anna drinks her tea without sugar."}, {Content: "We deploy on Tuesdays."}}
	if _, err := store.AddMemories(ctx, memories, nil); err != nil {
		log.Fatal(err)
	}
	for hit, err := range store.SearchAll(ctx, souvenir.Query{Text: "when do we deploy?"}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(hit.Rank, hit.Content)
	}
	// Output:
	// 1 We deploy on Tuesdays.
	// 2 Anna drinks her tea without sugar.
}

func ExampleRerankerFunc() {
	ctx := context.Background()
	shortest := func(_ context.Context, _ string, texts []string) ([]float64, error) { // in practice, a cross-encoder
		scores := make([]float64, len(texts))
		for i, text := range texts {
			scores[i] = -float64(len(text))
		}
		return scores, nil
	}
	store, err := souvenir.Open(ctx, ":memory:", &souvenir.Options{Reranker: souvenir.RerankerFunc(shortest)})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	memories := []souvenir.NewMemory{{Content: "We deploy on Tuesdays, after the tests."}, {Content: "We deploy."}}
	if _, err := store.AddMemories(ctx, memories, nil); err != nil {
		log.Fatal(err)
	}
	found, err := store.Search(ctx, souvenir.Query{Text: "when do we deploy on Tuesdays?"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found.Hits[0].Content)
	// Output: We deploy.
}
