// Toolloop gives a language model a memory: it passes Souvenir's tools to a model that supports the function
// calling of OpenAI's chat completions, and executes the model's calls until it answers.
//
//	go run ./examples/toolloop                                                        with a stand-in for a model
//	go run ./examples/toolloop -model qwen3 http://localhost:11434/v1/chat/completions   with a real one
//
// The stand-in is a few rules behind the same HTTP interface, so that the example runs everywhere with the same
// output. Like models it makes mistakes, reads the error, and corrects its call.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/tools"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "toolloop:", err)
		os.Exit(1)
	}
}

// conversations run one after the other. The model sees nothing of the earlier ones: what it knows of them later
// comes from the memory.
var conversations = []string{
	"Please remember: we release on Thursdays, never on Fridays.",
	"On which day do we release?",
}

// run is the whole program.
func run(ctx context.Context, args []string, w io.Writer) error {
	flags := flag.NewFlagSet("toolloop", flag.ContinueOnError)
	name := flags.String("model", "stand-in", "name of the model")
	if err := flags.Parse(args); err != nil {
		return err
	}
	url := flags.Arg(0)
	if url == "" {
		server := httptest.NewServer(http.HandlerFunc(standIn))
		defer server.Close()
		url = server.URL
	}
	store, err := souvenir.Open(ctx, ":memory:", nil)
	if err != nil {
		return err
	}
	defer store.Close()
	if _, err := store.AddCollection(ctx,
		souvenir.NewCollection{Name: "team-notes", Description: "what the team has agreed on"}); err != nil {
		return err
	}
	agent := agent{model: model{url: url, name: *name}, tools: tools.New(store, nil), out: w}
	for _, text := range conversations {
		if err := agent.converse(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// agent is a model with tools.
type agent struct {
	model model
	tools *tools.Set
	out   io.Writer // receives the transcript
}

// mostRounds bounds how often a model may call tools before it answers.
const mostRounds = 10

// converse sends one message to the model and executes its calls until it answers.
func (a agent) converse(ctx context.Context, text string) error {
	fmt.Fprintln(a.out, "you:  ", text)
	messages := []message{
		{Role: "system", Content: "You are a helpful assistant. You have a memory: begin with memory get_context, search " +
			"before you answer, store what you are asked to remember."},
		{Role: "user", Content: text},
	}
	for range mostRounds {
		answer, err := a.model.complete(ctx, messages, functions())
		if err != nil {
			return err
		}
		messages = append(messages, answer)
		if len(answer.ToolCalls) == 0 {
			fmt.Fprintln(a.out, "model:", answer.Content)
			return nil
		}
		for _, call := range answer.ToolCalls {
			messages = append(messages, message{Role: "tool", ToolCallID: call.ID, Content: a.do(ctx, call)})
		}
	}
	return fmt.Errorf("the model has called tools %d times without an answer", mostRounds)
}

// do executes one call. Errors go to the model, too: they say what was wrong and what would be right.
func (a agent) do(ctx context.Context, call toolCall) string {
	fmt.Fprintln(a.out, "call: ", call.Function.Name, call.Function.Arguments)
	result, err := a.tools.Call(ctx, call.Function.Name, json.RawMessage(call.Function.Arguments))
	if err == nil {
		var encoded []byte
		if encoded, err = json.Marshal(result); err == nil {
			return string(encoded)
		}
	}
	fmt.Fprintln(a.out, "error:", err)
	return "Error: " + err.Error()
}

// functions are the tools in the form of function calling.
func functions() []function {
	var list []function
	for _, tool := range tools.List() {
		list = append(list, function{Type: "function", Function: declaration{tool.Name, tool.Description, tool.InputSchema}})
	}
	return list
}
