// Embedder stores memories with your own embedding model, which runs as a service on the network, and shows what
// happens while that service is down.
//
//	go run ./examples/embedder                 with a stand-in for the service, in this process
//	go run ./examples/embedder -url http://127.0.0.1:11434/v1 -model nomic-embed-text -dimensions 768
//
// The second form is for Ollama; any service with an OpenAI-compatible embeddings endpoint works. The variable
// EMBEDDINGS_KEY may hold a key.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func main() {
	var r remote
	flag.StringVar(&r.url, "url", "", "the service, up to and without /embeddings; empty: a stand-in in this process")
	flag.StringVar(&r.model, "model", "stand-in", "the model, as the service names it")
	flag.IntVar(&r.dimensions, "dimensions", concepts, "the length of the model's vectors")
	flag.Parse()
	r.key, r.client = os.Getenv("EMBEDDINGS_KEY"), &http.Client{Timeout: time.Minute}
	if err := run(context.Background(), r, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "embedder:", err)
		os.Exit(1)
	}
}

// run is the whole program. Without a url it uses the stand-in, which is down at first.
func run(ctx context.Context, r remote, w io.Writer) error {
	var up atomic.Bool
	if r.url == "" {
		service := httptest.NewServer(standIn(&up))
		defer service.Close()
		r.url = service.URL
	}
	store, err := souvenir.Open(ctx, ":memory:", &souvenir.Options{Embedder: r})
	if err != nil {
		return err
	}
	defer store.Close()

	for _, content := range []string{
		"Anna cannot eat peanuts.",
		"The train to Bergen leaves at 8:05 from platform 3.",
		"Ben plays the cello in a quartet.",
	} {
		stored, err := store.AddMemory(ctx, souvenir.NewMemory{Content: content})
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "stored %q, found by meaning already: %v\n", content, stored.Indexed)
	}
	if err := ask(ctx, store, w, "railway peanuts"); err != nil { // one word matches literally, the other only in meaning
		return err
	}

	up.Store(true)
	fmt.Fprintln(w, "\nThe service answers now. What waited is embedded in the background.")
	if err := store.Upkeep().WaitEmbedded(ctx); err != nil {
		return err
	}
	for _, question := range []string{"railway departure", "food allergy", "musical instruments"} {
		if err := ask(ctx, store, w, question); err != nil {
			return err
		}
	}
	return nil
}

func ask(ctx context.Context, store *souvenir.Store, w io.Writer, question string) error {
	found, err := store.Search(ctx, souvenir.Query{Text: question, Limit: 1})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%s?\n", question)
	for _, hit := range found.Hits {
		fmt.Fprintf(w, "  %s (meaning %.2f, words %.2f)\n", hit.Content, hit.Parts.Vector, hit.Parts.Text)
	}
	if len(found.Warnings) > 0 {
		fmt.Fprintln(w, "  by words only for now")
	}
	return nil
}
