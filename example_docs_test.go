package souvenir_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"regexp"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// These examples contain the samples of README.md and docs/, line by line
// (TestSamplesOfTheDocumentsAreExamples in internal/testing/conventions).

// inNewFolder makes a new folder the current one, until the returned function is called.
func inNewFolder() (leave func()) {
	before, err := os.Getwd()
	if err != nil {
		log.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "souvenir")
	if err != nil {
		log.Fatal(err)
	}
	if err := os.Chdir(folder); err != nil {
		log.Fatal(err)
	}
	return func() {
		if err := os.Chdir(before); err != nil {
			log.Fatal(err)
		}
		_ = os.RemoveAll(folder)
	}
}

func Example_readme() {
	ctx := context.Background()
	defer inNewFolder()()

	store, err := souvenir.Open(ctx, "agent.db", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	store.AddMemory(ctx, souvenir.NewMemory{Content: "We deploy on Thursdays, never on Fridays."})
	store.AddMemory(ctx, souvenir.NewMemory{Content: "Anna is allergic to peanuts."})
	found, err := store.Search(ctx, souvenir.Query{Text: "What food must we avoid for Anna?", Limit: 1})
	if err == nil {
		fmt.Println(found.Hits[0].Content) // Anna is allergic to peanuts.
	}
	// Output: Anna is allergic to peanuts.
}

func Example_conversations() {
	ctx := context.Background()
	store := open()
	defer store.Close()

	chat := store.Conversation("thread-42")
	_, err := chat.Append(ctx,
		souvenir.Turn{Role: "user", Speaker: "Anna", Content: "Which train do we take?"},
		souvenir.Turn{Role: "assistant", Content: "The 7:40 to Kiel."})
	if err != nil {
		log.Fatal(err)
	}
	turns, err := chat.Window(ctx, 2000) // the newest turns within 2,000 tokens
	fmt.Println(len(turns), err)
	// Output: 2 <nil>
}

func Example_sharing() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	if _, err := store.As(souvenir.Access{User: "anna"}).AddProject(ctx, souvenir.NewProject{ID: "atlas"}); err != nil {
		log.Fatal(err)
	}
	if _, err := store.Accounts().AddUser(ctx, souvenir.NewUser{ID: "ben", Name: "Ben"}); err != nil {
		log.Fatal(err)
	}

	_, err := store.AddMember(ctx, souvenir.NewMember{
		Project: souvenir.ProjectRef{ID: "anna/atlas"}, User: "ben", Role: souvenir.MemberWriter})
	fmt.Println(err)
	// Output: <nil>
}

func Example_userKeys() {
	ctx := context.Background()
	defer inNewFolder()()
	key := souvenir.GenerateMasterKey()

	store, err := souvenir.Open(ctx, "memory.db", &souvenir.Options{UserKeys: souvenir.UserKeys{MasterKey: key}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(store.Close())
	// Output: <nil>
}

func Example_hooks() {
	ctx := context.Background()
	defer inNewFolder()()
	card := regexp.MustCompile(`\d{16}`)
	redact := func(text string) string { return card.ReplaceAllString(text, "[card]") }
	record := func(kind souvenir.OperationKind, _ time.Duration, count int, err error) {
		fmt.Println(kind, count, err)
	}

	store, err := souvenir.Open(ctx, "memory.db", &souvenir.Options{
		Hooks: []souvenir.Hooks{{
			BeforeStore: func(ctx context.Context, o souvenir.Operation, m *souvenir.NewMemory) error {
				m.Content = redact(m.Content)
				return nil
			},
			After: func(ctx context.Context, o souvenir.Operation, r souvenir.OperationResult) {
				record(o.Kind, r.Duration, r.Count, r.Err)
			},
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	fmt.Println(add(store, souvenir.NewMemory{Content: "Anna pays with 4111111111111111."})[0].Content)
	// Output:
	// store 1 <nil>
	// Anna pays with [card].
}

// lengths is a model that prefers short texts.
type lengths struct{}

func (lengths) Scores(_ context.Context, _ string, texts []string) ([]float64, error) {
	scores := make([]float64, len(texts))
	for i, text := range texts {
		scores[i] = -float64(len(text))
	}
	return scores, nil
}

func Example_reranking() {
	ctx := context.Background()
	defer inNewFolder()()
	var model lengths

	rerank := func(ctx context.Context, query string, texts []string) ([]float64, error) {
		return model.Scores(ctx, query, texts) // one finite number for each text: the higher, the more relevant
	}
	store, err := souvenir.Open(ctx, "memory.db", &souvenir.Options{Reranker: souvenir.RerankerFunc(rerank)})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	add(store, souvenir.NewMemory{Content: "A bug in the parser is open: it takes CRLF for two lines."},
		souvenir.NewMemory{Content: "An open bug in the parser."})
	printFound(store, souvenir.Query{Text: "open bugs in the parser", Limit: 1})
	// Output: An open bug in the parser.
}

func Example_priors() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	add(store, souvenir.NewMemory{Content: "A bug in the parser", State: "closed"},
		souvenir.NewMemory{Content: "A bug in the parser of dates", State: "open"})

	found, err := store.Search(ctx, souvenir.Query{Text: "open bugs in the parser", Explain: true,
		Priors: souvenir.Priors{Recency: 0.1, State: 0.2, States: map[string]float64{"open": 1}}})
	fmt.Println(found.Hits[0].State, err)
	// Output: open <nil>
}

func Example_metadata() {
	ctx := context.Background()
	store := open()
	defer store.Close()

	store.AddMemory(ctx, souvenir.NewMemory{
		Content: "Our office is in San Francisco.", State: "active",
		Metadata: map[string]any{"state": "California", "importance": 5},
	})
	add(store, souvenir.NewMemory{Content: "The deal with Berg.", State: "done",
		Metadata: map[string]any{"stage": "won", "amount": 4000}})
	won := souvenir.Filter{"stage": "won", "amount": souvenir.Between(1000, 5000)} // own keys
	active := souvenir.Filter{"state": "active"}                                   // the known key
	inState := souvenir.Filter{souvenir.CustomKey("state"): "California"}          // an own key of the same name
	for _, filter := range []souvenir.Filter{won, active, inState} {
		printFound(store, souvenir.Query{Filter: filter})
	}
	// Output:
	// The deal with Berg.
	// Our office is in San Francisco.
	// Our office is in San Francisco.
}

func Example_supersedes() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	june := time.Date(2026, time.June, 1, 0, 0, 0, 0, time.UTC)

	berlin, err := store.AddMemory(ctx, souvenir.NewMemory{Content: "Anna works in Berlin"})
	if err != nil {
		log.Fatal(err)
	}
	_, err = store.AddMemory(ctx, souvenir.NewMemory{
		Content: "Anna works in Rome", Supersedes: berlin.ID, ValidFrom: june})
	if err != nil {
		log.Fatal(err)
	}
	printFound(store, souvenir.Query{Text: "where does Anna work?"})
	// Output: Anna works in Rome
}

func Example_retention() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	if _, err := store.AddCollection(ctx, souvenir.NewCollection{Name: "diary"}); err != nil {
		log.Fatal(err)
	}
	add(store, souvenir.NewMemory{Content: "Today it rained.", Collection: "diary"})

	quarter := souvenir.Retention{After: 90 * 24 * time.Hour}
	due, err := store.Insights().CountDue(ctx, souvenir.DueQuery{Collection: "diary", Retention: quarter})
	if err != nil {
		log.Fatal(err)
	}
	_, err = store.UpdateCollection(ctx, "diary", souvenir.CollectionUpdate{Retention: &quarter})
	fmt.Println(due, err)
	// Output: 0 <nil>
}
