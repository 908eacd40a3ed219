package transformer_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/embedders/transformer"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// unpackModel copies a model of the fixtures to a folder, and unpacks its files.
func unpackModel(model, to string) error {
	from := filepath.Join("testdata", model)
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		var contents io.Reader = file
		if strings.HasSuffix(name, ".gz") {
			if contents, err = gzip.NewReader(file); err != nil {
				return err
			}
		}
		data, err := io.ReadAll(contents)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, strings.TrimSuffix(name, ".gz")), data, 0o600)
	})
}

// slowly waits before it embeds documents, so that a test can observe the change of the model.
type slowly struct {
	*transformer.Embedder
	turns chan struct{}
}

func (s slowly) Embed(ctx context.Context, purpose souvenir.Purpose, texts []string) ([][]float32, error) {
	if purpose == souvenir.ForDocument {
		select {
		case <-s.turns:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return s.Embedder.Embed(ctx, purpose, texts)
}

// TestChangingToATransformerWhileSearchesGoOn stores memories with the built-in model, opens the store with a
// transformer, and searches from several goroutines while everything is embedded again.
func TestChangingToATransformerWhileSearchesGoOn(t *testing.T) {
	longtest.Only(t)
	const memories = 300
	path := filepath.Join(t.TempDir(), "agent.db")
	store, err := souvenir.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []souvenir.NewMemory
	for i := range memories {
		all = append(all, souvenir.NewMemory{Content: fmt.Sprintf("Note number%d: the cat of house %d sleeps on the sofa.", i,
			i)})
	}
	if _, err := store.AddMemories(t.Context(), all, nil); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "xlmr")
	if err := unpackModel("xlmr", dir); err != nil {
		t.Fatal(err)
	}
	model, err := transformer.Open(dir, &transformer.Options{Precision: transformer.Int8})
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	slow := slowly{model, make(chan struct{})}
	store, err = souvenir.Open(t.Context(), path, &souvenir.Options{Embedder: slow})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()

	var running sync.WaitGroup
	var done atomic.Bool
	var during atomic.Int64
	for worker := range 4 {
		running.Go(func() {
			for i := worker; !done.Load(); i = (i + 4) % memories {
				found, err := store.Search(t.Context(), souvenir.Query{Text: fmt.Sprintf("note number%d", i), Limit: 3})
				if err != nil || len(found.Hits) == 0 || !strings.Contains(found.Hits[0].Content, fmt.Sprintf("number%d:", i)) {
					t.Errorf("search %d: %v, %+v, want no error, some hits and %q in the content", i, err, found,
						fmt.Sprintf("number%d:", i))
					return
				}
				during.Add(1)
			}
		})
	}
	status, err := store.Upkeep().EmbeddingStatus(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if status.Model != model.Model() || !status.Changing || status.From == "" {
		t.Errorf("before the change the status is %+v, want a change from a model", status)
	}
	for during.Load() < 8 && !t.Failed() { // while nothing is embedded again yet
		time.Sleep(time.Millisecond)
	}
	close(slow.turns)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := store.Upkeep().WaitEmbedded(ctx); err != nil {
		t.Fatal(err)
	}
	done.Store(true)
	running.Wait()
	if status, err = store.Upkeep().EmbeddingStatus(t.Context()); err != nil || status.Changing ||
		status.Pending != 0 || status.Changed != memories {
		t.Errorf("after the change the status is %+v, %v, want no error, no change under way, none pending and %v "+
			"changed", status, err, memories)
	}
	found, err := store.Search(t.Context(), souvenir.Query{Text: "note number7", Limit: 3})
	if err != nil || len(found.Hits) == 0 || !strings.Contains(found.Hits[0].Content, "number7:") {
		t.Errorf(`after the change: %v, %+v, want no error, some hits and "number7:" in the content`, err, found)
	}
}

func ExampleOpen() {
	dir, err := os.MkdirTemp("", "model")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := unpackModel("bert", dir); err != nil { // you have such a folder already
		log.Fatal(err)
	}
	model, err := transformer.Open(dir, &transformer.Options{Precision: transformer.Int8, Name: "tiny"})
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()

	ctx := context.Background()
	store, err := souvenir.Open(ctx, ":memory:", &souvenir.Options{Embedder: model})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if _, err := store.AddMemory(ctx, souvenir.NewMemory{Content: "Anna is allergic to peanuts."}); err != nil {
		log.Fatal(err)
	}
	found, err := store.Search(ctx, souvenir.Query{Text: "allergic to what?", Limit: 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(model.Dimensions(), found.Hits[0].Content)
	// Output: 32 Anna is allergic to peanuts.
}
