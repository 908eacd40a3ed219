package genkit_test

import (
	"context"
	"fmt"
	"log"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"

	"github.com/souvenir-ai/souvenir"
	adapter "github.com/souvenir-ai/souvenir/adapters/genkit"
)

// A flow that answers from documents, and can store what it learns.
func Example() {
	ctx := context.Background()
	store, err := souvenir.Open(ctx, ":memory:", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	g := genkit.Init(ctx, genkit.WithDefaultModel("test/script"))
	model := script(g, // in a program: a model of a plugin
		calls("memory", map[string]any{"action": "store", "content": "Anna asked about the ferry."}),
		says("It leaves on Thursdays."))

	notes := adapter.New(store, nil)
	retriever := notes.DefineRetriever(g, "notes", nil)
	toolset, err := notes.DefineTools(g, &adapter.ToolOptions{Only: []string{"memory"}})
	if err != nil {
		log.Fatal(err)
	}
	ferry := ai.DocumentFromText("The ferry to Oslo leaves on Thursdays.", map[string]any{"id": "ferry", "page": 3})
	if _, err := notes.Index(ctx, ferry); err != nil {
		log.Fatal(err)
	}
	found, err := genkit.Retrieve(ctx, g, ai.WithRetriever(retriever), ai.WithTextDocs("When does the ferry leave?"))
	if err != nil {
		log.Fatal(err)
	}
	reply, err := genkit.GenerateText(ctx, g, ai.WithDocs(found.Documents...), ai.WithTools(toolset...),
		ai.WithPrompt("When does the ferry leave?"))
	if err != nil {
		log.Fatal(err)
	}

	fmt.Println(reply)
	fmt.Println("the model read the document:", model.saw("The ferry to Oslo leaves on Thursdays."))
	stored, err := store.Search(ctx, souvenir.Query{Text: "What did Anna ask?", Limit: 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stored.Hits[0].Content)
	// Output:
	// It leaves on Thursdays.
	// the model read the document: true
	// Anna asked about the ferry.
}
