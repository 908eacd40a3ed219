package eino_test

import (
	"context"
	"fmt"
	"log"

	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/retriever"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/flow/agent/react"
	"github.com/cloudwego/eino/schema"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/adapters/eino"
)

// scripted is a model with given answers; a program has one of eino-ext.
type scripted struct{ answers []*schema.Message }

func (s *scripted) Generate(context.Context, []*schema.Message, ...model.Option) (*schema.Message, error) {
	next := s.answers[0]
	s.answers = s.answers[1:]
	return next, nil
}

func (s *scripted) Stream(ctx context.Context, in []*schema.Message, o ...model.Option) (
	*schema.StreamReader[*schema.Message], error) {
	next, err := s.Generate(ctx, in, o...)
	return schema.StreamReaderFromArray([]*schema.Message{next}), err
}

func (s *scripted) WithTools([]*schema.ToolInfo) (model.ToolCallingChatModel, error) { return s, nil }

// calling returns the message of a model that calls a tool.
func calling(name, arguments string) *schema.Message {
	return schema.AssistantMessage("", []schema.ToolCall{{ID: "call_1",
		Function: schema.FunctionCall{Name: name, Arguments: arguments}}})
}

func ExampleNewTools() {
	ctx := context.Background()
	chat := &scripted{[]*schema.Message{
		calling("souvenir_memory", `{"action": "store", "content": "Anna's tea is oolong."}`),
		schema.AssistantMessage("I will remember that.", nil),
	}}
	store, err := souvenir.Open(ctx, ":memory:", nil) // in a program: a file
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	memory, err := eino.NewTools(store, &eino.ToolsConfig{Only: []string{"memory"}, Prefix: "souvenir_"})
	if err != nil {
		log.Fatal(err)
	}
	agent, err := react.NewAgent(ctx, &react.AgentConfig{
		ToolCallingModel: chat,
		ToolsConfig:      compose.ToolsNodeConfig{Tools: memory},
	})
	if err != nil {
		log.Fatal(err)
	}
	answer, err := agent.Generate(ctx, []*schema.Message{schema.UserMessage("My tea is oolong.")})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Content)
	for m, err := range store.Memories(ctx, souvenir.MemoryList{}) {
		fmt.Println(m.Content, err)
	}
	// Output:
	// I will remember that.
	// Anna's tea is oolong. <nil>
}

func ExampleRetriever() {
	ctx := context.Background()
	store, err := souvenir.Open(ctx, ":memory:", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	index := eino.NewIndexer(store, &eino.IndexerConfig{Collection: "wiki"})
	_, err = index.Store(ctx, []*schema.Document{
		{ID: "deploy", Content: "We deploy on Thursdays.", MetaData: map[string]any{"team": "core"}},
		{ID: "office", Content: "The office closes at eight.", MetaData: map[string]any{"team": "facility"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	search := eino.NewRetriever(store, souvenir.Query{Collections: []string{"wiki"}})
	found, err := search.Retrieve(ctx, "When do we deploy?", retriever.WithTopK(3), retriever.WithScoreThreshold(0.5))
	if err != nil {
		log.Fatal(err)
	}
	for _, doc := range found {
		fmt.Println(doc.ID, doc.Content)
	}
	// Output:
	// deploy We deploy on Thursdays.
}

func ExampleCheckPointStore() {
	ctx := context.Background()
	store, err := souvenir.Open(ctx, ":memory:", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	chain := compose.NewChain[string, string]()
	for _, word := range []string{"draft", "approved"} {
		chain.AppendLambda(compose.InvokableLambda(func(_ context.Context, in string) (string, error) {
			return in + ", " + word, nil
		}), compose.WithNodeKey(word))
	}

	graph, err := chain.Compile(ctx, compose.WithCheckPointStore(eino.NewCheckPointStore(store)),
		compose.WithInterruptBeforeNodes([]string{"approved"}))
	if err != nil {
		log.Fatal(err)
	}
	_, err = graph.Invoke(ctx, "letter", compose.WithCheckPointID("letter-7"))
	if _, interrupted := compose.ExtractInterruptInfo(err); !interrupted {
		log.Fatal(err)
	}
	// Later, perhaps in another process, a person has approved.
	result, err := graph.Invoke(ctx, "", compose.WithCheckPointID("letter-7"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result)
	// Output:
	// letter, draft, approved
}
