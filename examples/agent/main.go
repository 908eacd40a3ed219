// Agent is a loop around a language model that remembers between runs: it stores what the user says in a file, and
// recalls the relevant memories before each turn. Start it twice.
//
//	go run ./examples/agent agent.db
//
// To run anywhere, it uses a stand-in of a few lines for the language model; model.go shows where a real one goes.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: agent FILE")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

// run is one session: a turn for each line of in.
func run(ctx context.Context, file string, in io.Reader, out io.Writer) error {
	store, err := souvenir.Open(ctx, file, nil)
	if err != nil {
		return err
	}
	defer store.Close()
	a := agent{memory: store, model: standIn{}}

	lines := bufio.NewScanner(in)
	for fmt.Fprint(out, "you:   "); lines.Scan(); fmt.Fprint(out, "you:   ") {
		input := strings.TrimSpace(lines.Text())
		fmt.Fprintln(out, input)
		if input == "" {
			continue
		}
		reply, err := a.turn(ctx, input)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "agent: %s\n", reply)
	}
	fmt.Fprintln(out)
	return lines.Err()
}

// agent is a model with a memory.
type agent struct {
	memory *souvenir.Store
	model  model
}

// turn recalls, asks the model, and applies what it wants to remember.
func (a agent) turn(ctx context.Context, input string) (string, error) {
	known, err := a.memory.GetContext(ctx, souvenir.ContextQuery{Query: input, Related: 3, TokenBudget: 2000})
	if err != nil {
		return "", err
	}
	answer, err := a.model.reply(ctx, prompt(known), input)
	if err != nil {
		return "", err
	}
	for _, fact := range answer.remember {
		if err := a.remember(ctx, fact); err != nil {
			return "", err
		}
	}
	return answer.text, nil
}

// remember stores a fact. If nearly the same fact is known, it updates that memory, which keeps its history.
func (a agent) remember(ctx context.Context, fact string) error {
	known, err := a.memory.Search(ctx, souvenir.Query{Text: fact, Limit: 1})
	if err != nil {
		return err
	}
	if len(known.Hits) > 0 && known.Hits[0].Parts.Vector > 0.7 {
		_, err = a.memory.UpdateMemory(ctx, known.Hits[0].ID, souvenir.MemoryUpdate{Content: &fact})
		return err
	}
	_, err = a.memory.AddMemory(ctx, souvenir.NewMemory{Content: fact})
	return err
}
