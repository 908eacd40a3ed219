// Quickstart stores several hundred memories of an invented company and family in Souvenir, and finds them again by
// meaning: no network, no key, no C compiler.
//
//	go run ./examples/quickstart                     in a temporary file
//	go run ./examples/quickstart agent.db            in a file that stays
//	go run ./examples/quickstart agent.db QUESTION   your own questions
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/examples/quickstart/data"
)

// started is as close to the start of the process as Go code gets.
var started = time.Now()

func main() {
	if _, err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// answer is the result of a search for one question.
type answer struct {
	data.Question
	hits []souvenir.Hit
	took time.Duration
}

// rank is the place of the memory that answers the question, from 1; 0 if it is not among the hits.
func (a answer) rank() int {
	return 1 + slices.IndexFunc(a.hits, func(h souvenir.Hit) bool {
		return a.Expect != "" && strings.Contains(h.Content, a.Expect)
	})
}

// run is the whole program. Arguments are the store's file and the user's own questions; both are optional.
func run(ctx context.Context, args []string, w io.Writer) ([]answer, error) {
	var file string
	var questions []data.Question
	if len(args) > 0 {
		file = args[0]
		for _, ask := range args[1:] {
			questions = append(questions, data.Question{Ask: ask})
		}
	} else {
		folder, err := os.MkdirTemp("", "souvenir-quickstart-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(folder)
		file = filepath.Join(folder, "agent.db")
	}
	own := len(questions) > 0
	if !own {
		var err error
		if questions, err = data.Questions(); err != nil {
			return nil, err
		}
	}

	began := time.Now()
	store, err := souvenir.Open(ctx, file, nil)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	printStep(w, "open", file, time.Since(began))

	if err := fill(ctx, store, w); err != nil {
		return nil, err
	}

	var answers []answer
	var firstAnswer time.Duration
	for _, q := range questions {
		began := time.Now()
		found, err := store.Search(ctx, souvenir.Query{Text: q.Ask, Limit: 3})
		if err != nil {
			return nil, err
		}
		a := answer{Question: q, hits: found.Hits, took: time.Since(began)}
		if len(answers) == 0 {
			firstAnswer = time.Since(started)
		}
		answers = append(answers, a)
		printAnswer(w, a)
	}
	printSummary(w, answers, firstAnswer, own)
	return answers, store.Close()
}

// fill stores the memories of the shipped files, unless an earlier run has done so.
func fill(ctx context.Context, store *souvenir.Store, w io.Writer) error {
	collections, err := store.Collections(ctx)
	if err != nil {
		return err
	}
	for _, c := range collections {
		if c.Name == souvenir.DefaultCollection && c.MemoryCount > 0 {
			printStep(w, "store", fmt.Sprintf("nothing: the file holds %d memories already", c.MemoryCount), 0)
			return nil
		}
	}

	began := time.Now()
	memories, err := data.Memories()
	if err != nil {
		return err
	}
	printStep(w, "read", fmt.Sprintf("%d memories from the files of this example", len(memories)), time.Since(began))

	began = time.Now()
	added, err := store.AddMemories(ctx, memories, nil)
	if err != nil {
		return err
	}
	took := time.Since(began)
	rate := float64(len(added)) / took.Seconds()
	printStep(w, "store", fmt.Sprintf("%d memories, embedded and indexed, in one commit (%.0f a second)", len(added),
		rate), took)
	return nil
}
