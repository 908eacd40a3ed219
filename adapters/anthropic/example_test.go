package anthropic_test

import (
	"context"
	"fmt"
	"log"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/souvenir-ai/souvenir"
	adapter "github.com/souvenir-ai/souvenir/adapters/anthropic"
)

// A tool runner with Anthropic's memory tool, which keeps its files in the store, and with Souvenir's own search.
func Example() {
	service := script( // in a program: the API, with a key
		calls("memory", `{"command": "create", "path": "/memories/deploy.md", "file_text": "Never on Fridays.\n"}`),
		calls("memory", `{"command": "view", "path": "/memories"}`),
		says("Noted: never on Fridays."))
	defer service.Close()
	client := anthropic.NewClient(option.WithBaseURL(service.URL), option.WithAPIKey("none"))
	ctx := context.Background()

	store, err := souvenir.Open(ctx, ":memory:", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	anna := store.As(souvenir.Access{User: "anna"})
	set, err := adapter.Tools(anna, &adapter.Options{Only: []string{"memory"}, Prefix: "souvenir_"})
	if err != nil {
		log.Fatal(err)
	}
	set = append(set, adapter.NewMemory(anna, nil))
	runner := client.Beta.Messages.NewToolRunner(set, anthropic.BetaToolRunnerParams{
		BetaMessageNewParams: anthropic.BetaMessageNewParams{Model: "claude-sonnet-4-5", MaxTokens: 1024,
			Messages: []anthropic.BetaMessageParam{anthropic.NewBetaUserMessage(
				anthropic.NewBetaTextBlock("We never deploy on Fridays."))}}})
	runner.Params.Tools = set.BetaParams() // the memory tool by its type, memory_20250818
	reply, err := runner.RunToCompletion(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.Content[0].Text)
	found, err := anna.Search(ctx, souvenir.Query{Text: "When may we deploy?"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(found.Hits[0].Metadata["path"], ": ", found.Hits[0].Content)
	// Output:
	// Noted: never on Fridays.
	// /memories/deploy.md: Never on Fridays.
}

// Your own loop over the Messages API.
func ExampleSet_Results() {
	service := script(
		calls("rules", `{"action": "store", "rule_type": "dont", "content": "Never deploy on Fridays."}`),
		says("Noted."))
	defer service.Close()
	client := anthropic.NewClient(option.WithBaseURL(service.URL), option.WithAPIKey("none"))
	ctx := context.Background()

	store, err := souvenir.Open(ctx, ":memory:", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	set, err := adapter.Tools(store, nil) // all eight
	if err != nil {
		log.Fatal(err)
	}
	params := anthropic.MessageNewParams{Model: "claude-sonnet-4-5", MaxTokens: 1024, Tools: set.Params(),
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("No deploys on Fridays."))}}
	for {
		reply, err := client.Messages.New(ctx, params)
		if err != nil {
			log.Fatal(err)
		}
		results := set.Results(ctx, reply)
		if len(results) == 0 {
			fmt.Println(reply.Content[0].Text)
			break
		}
		params.Messages = append(params.Messages, reply.ToParam(), anthropic.NewUserMessage(results...))
	}

	rules, err := store.Rules(ctx, souvenir.ProjectRef{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(rules.Dont.Content)
	// Output:
	// Noted.
	// Never deploy on Fridays.
}
