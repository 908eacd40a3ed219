package extract_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/extract"
)

func Example() {
	ctx := context.Background()
	store, err := souvenir.Open(ctx, ":memory:", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	_, err = store.Conversation("thread-42").Append(ctx, souvenir.Turn{Role: "user", Content: "Fact: Anna works in Kiel."})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer((&model{answer: factual}).handler()) // a stand-in, for this example
	defer server.Close()
	key, url := testKey, server.URL+"/v1"

	chat, err := extract.Chat(extract.ModelOptions{Model: "gpt-4.1-mini", Key: key, BaseURL: url}) // without a URL: OpenAI
	if err != nil {
		log.Fatal(err)
	}
	learner, err := extract.New(store, extract.Options{Extractor: chat})
	if err != nil {
		log.Fatal(err)
	}
	report, err := learner.Learn(ctx, "thread-42") // reads what was said since the last call
	if err != nil {
		log.Fatal(err)
	}
	for _, a := range report.Applied {
		fmt.Println(a.Proposal.Action, a.Proposal.Content) // add Anna works in Kiel.
	}
	// Output: add Anna works in Kiel.
}
