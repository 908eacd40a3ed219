package langchaingo_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms/fake"
	"github.com/tmc/langchaingo/schema"
	"github.com/tmc/langchaingo/vectorstores"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/adapters/langchaingo"
)

func ExampleMemory() {
	ctx := context.Background()
	model := fake.NewFakeLLM([]string{"I will remember that.", "Oolong."}) // in a program: openai.New() or another model

	store, err := souvenir.Open(ctx, ":memory:", nil) // in a program: a file
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	anna := store.As(souvenir.Access{User: "anna"})
	history := langchaingo.NewChatMessageHistory(anna, "session-42")
	chain := chains.NewConversation(model, langchaingo.NewMemory(history, 2000))
	for _, input := range []string{"My tea is oolong.", "What is my tea?"} {
		if _, err := chains.Run(ctx, chain, input); err != nil {
			log.Fatal(err)
		}
	}

	messages, err := history.Messages(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, message := range messages {
		fmt.Printf("%s: %s\n", message.GetType(), message.GetContent())
	}
	// Output:
	// human: My tea is oolong.
	// ai: I will remember that.
	// human: What is my tea?
	// ai: Oolong.
}

func ExampleVectorStore() {
	ctx := context.Background()
	store, err := souvenir.Open(ctx, ":memory:", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	documents := langchaingo.NewVectorStore(store, &langchaingo.VectorStoreOptions{Collection: "wiki", IDKey: "id"})
	_, err = documents.AddDocuments(ctx, []schema.Document{
		{PageContent: "We deploy on Thursdays.", Metadata: map[string]any{"id": "deploy", "team": "core"}},
		{PageContent: "The office closes at eight.", Metadata: map[string]any{"id": "office", "team": "facility"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	retriever := vectorstores.ToRetriever(documents, 1, vectorstores.WithFilters(map[string]any{"team": "core"}))
	found, err := retriever.GetRelevantDocuments(ctx, "When do we deploy?")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found[0].PageContent, found[0].Metadata["id"])
	// Output:
	// We deploy on Thursdays. deploy
}
