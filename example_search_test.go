package souvenir_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// printFound prints what a search found.
func printFound(store *souvenir.Store, q souvenir.Query) {
	found, err := store.Search(context.Background(), q)
	if err != nil {
		log.Fatal(err)
	}
	for _, hit := range found.Hits {
		fmt.Println(hit.Content)
	}
}

// Filters match your own metadata by key. All keys are indexed.
func ExampleFilter() {
	store := open()
	defer store.Close()
	add(store,
		souvenir.NewMemory{Content: "Hello, I am Anna.", Metadata: map[string]any{"session": "s-17", "turn": 1}},
		souvenir.NewMemory{Content: "I moved to Lisbon.", Metadata: map[string]any{"session": "s-17", "turn": 2}},
		souvenir.NewMemory{Content: "I moved to Tokyo.", Metadata: map[string]any{"session": "s-18", "turn": 1}})

	printFound(store, souvenir.Query{
		Text:   "where does she live?",
		Filter: souvenir.Filter{"session": "s-17", "turn": souvenir.Condition{AtLeast: 2}},
	})
	// Output: I moved to Lisbon.
}

func ExampleCondition() {
	store := open()
	defer store.Close()
	add(store,
		souvenir.NewMemory{Content: "Soup", Tags: []string{"vegan", "quick"}, Metadata: map[string]any{"minutes": 20}},
		souvenir.NewMemory{Content: "Bread", Tags: []string{"vegan"}, Metadata: map[string]any{"minutes": 180}},
		souvenir.NewMemory{Content: "Omelette", Tags: []string{"quick"}, Metadata: map[string]any{"minutes": 10}})

	fmt.Println("All:")
	printFound(store, souvenir.Query{Filter: souvenir.Filter{"tags": souvenir.All("vegan", "quick")}})
	fmt.Println("Between:")
	printFound(store, souvenir.Query{Filter: souvenir.Filter{"minutes": souvenir.Between(15, 60)}})
	fmt.Println("In:")
	printFound(store, souvenir.Query{Filter: souvenir.Filter{"minutes": souvenir.In(10, 30)}})
	fmt.Println("Not:")
	printFound(store, souvenir.Query{Filter: souvenir.Filter{"tags": souvenir.Not("quick")}})
	// Output:
	// All:
	// Soup
	// Between:
	// Soup
	// In:
	// Omelette
	// Not:
	// Bread
}

// Tags of a query match memories with any of them.
func ExampleQuery_tags() {
	store := open()
	defer store.Close()
	add(store,
		souvenir.NewMemory{Content: "Anna is allergic to peanuts.", Tags: []string{"health"}},
		souvenir.NewMemory{Content: "Anna likes peanuts in films only.", Tags: []string{"culture"}})

	printFound(store, souvenir.Query{Text: "peanuts", Tags: []string{"health", "diet"}})
	// Output: Anna is allergic to peanuts.
}

// EventTime is when something happened, as opposed to when it was stored. Filters accept times and dates.
func ExampleQuery_timeRange() {
	store := open()
	defer store.Close()
	on := func(month time.Month) time.Time { return time.Date(2025, month, 15, 12, 0, 0, 0, time.UTC) }
	add(store,
		souvenir.NewMemory{Content: "We met in Porto.", EventTime: on(time.February)},
		souvenir.NewMemory{Content: "We met in Oslo.", EventTime: on(time.May)},
		souvenir.NewMemory{Content: "We met in Rome.", EventTime: on(time.November)})

	printFound(store, souvenir.Query{
		Text:   "Where did we meet?",
		Filter: souvenir.Filter{"event_time": souvenir.Between("2025-04-01", on(time.June))},
	})
	// Output: We met in Oslo.
}

// A question that no memory answers finds nothing.
func ExampleQuery_minScore() {
	store := open()
	defer store.Close()
	add(store,
		souvenir.NewMemory{Content: "Anna is allergic to peanuts."},
		souvenir.NewMemory{Content: "We deploy on Thursdays."})

	for _, text := range []string{"Which day do we deploy?", "What is the boiling point of lead?"} {
		found, err := store.Search(context.Background(), souvenir.Query{Text: text, MinScore: 0.5})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(found.Total)
	}
	// Output:
	// 1
	// 0
}

func ExampleResults_HasMore() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	for i := range 5 {
		add(store, souvenir.NewMemory{Content: fmt.Sprintf("Note %d", i+1)})
	}

	for q := (souvenir.Query{Sort: souvenir.SortCreatedAsc, Limit: 2}); ; q.Offset += q.Limit {
		page, err := store.Search(ctx, q)
		if err != nil {
			log.Fatal(err)
		}
		for _, hit := range page.Hits {
			fmt.Println(hit.Rank, hit.Content)
		}
		if !page.HasMore() {
			break
		}
	}
	// Output:
	// 1 Note 1
	// 2 Note 2
	// 3 Note 3
	// 4 Note 4
	// 5 Note 5
}

// Explain shows the parts of each hit's score.
func ExampleQuery_explain() {
	store := open()
	defer store.Close()
	add(store, souvenir.NewMemory{Content: "We deploy on Thursdays, never on Fridays."})

	found, err := store.Search(context.Background(), souvenir.Query{Text: "deploy on Fridays?", Explain: true})
	if err != nil {
		log.Fatal(err)
	}
	hit := found.Hits[0]
	fmt.Println(hit.Content[hit.Start:hit.End])
	fmt.Println(hit.Explanation != nil, hit.Parts.Vector > 0, hit.Parts.Text > 0)
	// Output:
	// We deploy on Thursdays, never on Fridays.
	// true true true
}

// Tags counts the memories of each tag, most frequent first.
func ExampleInsights_Tags() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	add(store,
		souvenir.NewMemory{Content: "Soup", Tags: []string{"vegan", "quick"}},
		souvenir.NewMemory{Content: "Bread", Tags: []string{"vegan"}})

	tags, err := store.Insights().Tags(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, tag := range tags {
		fmt.Println(tag.Name, tag.Count)
	}
	// Output:
	// vegan 2
	// quick 1
}
