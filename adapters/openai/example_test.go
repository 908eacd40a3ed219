package openai_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/souvenir-ai/souvenir"
	memory "github.com/souvenir-ai/souvenir/adapters/openai"
)

// play starts a server with given answers, and returns a client for it. A program uses the real API.
func play(answers ...string) (openai.Client, func()) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, answers[0])
		answers = answers[1:]
	}))
	return openai.NewClient(option.WithBaseURL(server.URL), option.WithAPIKey("none")), server.Close
}

func ExampleTools_Complete() {
	ctx := context.Background()
	client, stop := play(
		`{"choices": [{"message": {"role": "assistant", "tool_calls": [{"id": "call_1", "type": "function", "function": {
			"name": "souvenir_memory", "arguments": "{\"action\": \"store\", \"content\": \"Anna's tea is oolong.\"}"}}]}}]}`,
		`{"choices": [{"message": {"role": "assistant", "content": "I will remember that."}}]}`)
	defer stop()
	store, err := souvenir.Open(ctx, ":memory:", nil) // in a program: a file
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	tools, err := memory.NewTools(store, &memory.ToolsConfig{Only: []string{"memory"}, Prefix: "souvenir_"})
	if err != nil {
		log.Fatal(err)
	}
	params := openai.ChatCompletionNewParams{
		Model:    openai.ChatModelGPT5Mini,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("My tea is oolong.")},
	}
	completion, err := tools.Complete(ctx, client.Chat.Completions, &params)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(completion.Choices[0].Message.Content)

	for m, err := range store.Memories(ctx, souvenir.MemoryList{}) {
		fmt.Println(m.Content, err)
	}
	// Output:
	// I will remember that.
	// Anna's tea is oolong. <nil>
}

func ExampleTools_Respond() {
	ctx := context.Background()
	client, stop := play(
		`{"output": [{"type": "function_call", "call_id": "call_1", "name": "memory",
			"arguments": "{\"action\": \"search\", \"query\": \"tea\"}"}]}`,
		`{"output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Oolong."}]}]}`)
	defer stop()
	store, err := souvenir.Open(ctx, ":memory:", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	tools, err := memory.NewTools(store, &memory.ToolsConfig{ReadOnly: true})
	if err != nil {
		log.Fatal(err)
	}
	params := responses.ResponseNewParams{
		Model: openai.ChatModelGPT5Mini,
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("What is my tea?")},
	}
	response, err := tools.Respond(ctx, client.Responses, &params)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(response.OutputText())

	// Output:
	// Oolong.
}
