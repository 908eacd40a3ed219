package souvenir_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// folder returns a new folder and a function that removes it.
func folder() (dir string, remove func()) {
	dir, err := os.MkdirTemp("", "souvenir")
	if err != nil {
		log.Fatal(err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }
}

// openFile opens a store in a file, which is created if necessary.
func openFile(path string, options *souvenir.Options) *souvenir.Store {
	store, err := souvenir.Open(context.Background(), path, options)
	if err != nil {
		log.Fatal(err)
	}
	return store
}

func ExampleOpen() {
	ctx := context.Background()
	dir, remove := folder()
	defer remove()

	store, err := souvenir.Open(ctx, filepath.Join(dir, "agent.db"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if _, err := store.AddMemory(ctx, souvenir.NewMemory{Content: "The tests run on two cores."}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(store.Upkeep().Health(ctx))
	// Output: <nil>
}

// A store in memory lives until it is closed. Use it for tests and temporary data.
func ExampleOpen_inMemory() {
	store, err := souvenir.Open(context.Background(), ":memory:", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	add(store, souvenir.NewMemory{Content: "Gone when the program ends."})
	printFound(store, souvenir.Query{})
	// Output: Gone when the program ends.
}

func ExampleOpen_readOnly() {
	ctx := context.Background()
	dir, remove := folder()
	defer remove()
	path := filepath.Join(dir, "agent.db")
	store := openFile(path, nil)
	add(store, souvenir.NewMemory{Content: "The archive is complete."})
	store.Close()

	archive, err := souvenir.Open(ctx, path, &souvenir.Options{ReadOnly: true})
	if err != nil {
		log.Fatal(err)
	}
	defer archive.Close()
	printFound(archive, souvenir.Query{Text: "Is the archive complete?"})
	_, err = archive.AddMemory(ctx, souvenir.NewMemory{Content: "One more."})
	fmt.Println(errors.Is(err, souvenir.ErrReadOnly))
	// Output:
	// The archive is complete.
	// true
}

// With their own clock and ids, tests get the same results each time.
func ExampleOptions() {
	ids := 0
	store := openFile(":memory:", &souvenir.Options{
		Now: func() time.Time { return time.Date(2025, 5, 1, 8, 0, 0, 0, time.UTC) },
		NewID: func() string {
			ids++
			return fmt.Sprintf("memory-%d", ids)
		},
		KeepTrash: 7 * 24 * time.Hour,
		Quota:     souvenir.Quota{Memories: 2},
	})
	defer store.Close()

	stored := add(store, souvenir.NewMemory{Content: "First."}, souvenir.NewMemory{Content: "Second."})
	fmt.Println(stored[0].ID, stored[0].CreatedAt.Format(time.DateOnly))
	_, err := store.AddMemory(context.Background(), souvenir.NewMemory{Content: "Third."})
	fmt.Println(errors.Is(err, souvenir.ErrTooLarge))
	// Output:
	// memory-1 2025-05-01
	// true
}

// A backup is itself a store, of one moment. Writes go on meanwhile.
func ExampleUpkeep_Backup() {
	ctx := context.Background()
	dir, remove := folder()
	defer remove()
	store := open()
	defer store.Close()
	add(store, souvenir.NewMemory{Content: "Backups are made at night."})

	path := filepath.Join(dir, "backup.db")
	if err := store.Upkeep().Backup(ctx, path, nil); err != nil {
		log.Fatal(err)
	}
	backup := openFile(path, &souvenir.Options{ReadOnly: true})
	defer backup.Close()
	printFound(backup, souvenir.Query{Text: "When are backups made?"})
	// Output: Backups are made at night.
}

// Restore checks a backup while it copies it to a new file.
func ExampleRestore() {
	ctx := context.Background()
	dir, remove := folder()
	defer remove()
	store := open()
	add(store, souvenir.NewMemory{Content: "Backups are made at night."})
	backup := filepath.Join(dir, "backup.db")
	if err := store.Upkeep().Backup(ctx, backup, nil); err != nil {
		log.Fatal(err)
	}
	store.Close()

	restored := filepath.Join(dir, "agent.db")
	if err := souvenir.Restore(ctx, souvenir.Restoration{From: backup, To: restored}); err != nil {
		log.Fatal(err)
	}
	store = openFile(restored, nil)
	defer store.Close()
	printFound(store, souvenir.Query{})
	// Output: Backups are made at night.
}

// A check verifies the file, all stored bytes and everything derived from them.
func ExampleUpkeep_Check() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	add(store, souvenir.NewMemory{Content: "Every byte counts."})

	report, err := store.Upkeep().Check(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.OK, report.Total, report.Unverified)
	// Output: true 0 0
}

// Purge keeps a store small. Here each memory keeps two past versions.
func ExampleUpkeep_Purge() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	memory := add(store, souvenir.NewMemory{Content: "Draft 1."})[0]
	for i := range 5 {
		content := fmt.Sprintf("Draft %d.", i+2)
		if _, err := store.UpdateMemory(ctx, memory.ID, souvenir.MemoryUpdate{Content: &content}); err != nil {
			log.Fatal(err)
		}
	}

	report, err := store.Upkeep().Purge(ctx, &souvenir.PurgeOptions{KeepRevisions: 2})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Revisions)
	// Output: 3
}

// letters is an embedder that counts letters: a stand-in for a model of your own.
func letters(model, alphabet string) souvenir.Embedder {
	return souvenir.EmbedderFunc(model, len(alphabet),
		func(_ context.Context, _ souvenir.Purpose, texts []string) ([][]float32, error) {
			vectors := make([][]float32, len(texts))
			for i, text := range texts {
				vectors[i] = make([]float32, len(alphabet))
				for j, letter := range alphabet {
					vectors[i][j] = float32(strings.Count(text, string(letter)))
				}
			}
			return vectors, nil
		})
}

// If a store is opened with another model, it embeds everything again in the background. Until then, searches match
// words only.
func ExampleUpkeep_WaitEmbedded() {
	ctx := context.Background()
	dir, remove := folder()
	defer remove()
	path := filepath.Join(dir, "agent.db")
	store := openFile(path, &souvenir.Options{Embedder: letters("letters-v1", "abc")})
	add(store, souvenir.NewMemory{Content: "a cab"})
	store.Close()

	store = openFile(path, &souvenir.Options{Embedder: letters("letters-v2", "abcdef")})
	defer store.Close()
	if err := store.Upkeep().WaitEmbedded(ctx); err != nil {
		log.Fatal(err)
	}
	status, err := store.Upkeep().EmbeddingStatus(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(status.Model, status.Dimensions, status.Pending, status.Changing)
	// Output: letters-v2 6 0 false
}

// Reindex computes all vectors again, for an embedder that has changed but kept its name.
func ExampleUpkeep_Reindex() {
	ctx := context.Background()
	store := openFile(":memory:", &souvenir.Options{Embedder: letters("letters-v1", "abc")})
	defer store.Close()
	add(store, souvenir.NewMemory{Content: "a cab"}, souvenir.NewMemory{Content: "bbc"})

	var embedded int
	err := store.Upkeep().Reindex(ctx, &souvenir.ReindexingOptions{
		Progress: func(_ string, done, _ int) { embedded = done },
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(embedded)
	// Output: 2
}

// If an embedder fails, memories are still stored and can be found by their words.
func ExampleEmbedder_failing() {
	ctx := context.Background()
	down := souvenir.EmbedderFunc("remote-v1", 3,
		func(context.Context, souvenir.Purpose, []string) ([][]float32, error) {
			return nil, errors.New("the service is down")
		})
	store := openFile(":memory:", &souvenir.Options{Embedder: down})
	defer store.Close()

	stored, err := store.AddMemory(ctx, souvenir.NewMemory{Content: "The meeting is in room 12."})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stored.Indexed)
	printFound(store, souvenir.Query{Text: "meeting"})
	// Output:
	// false
	// The meeting is in room 12.
}

// Use errors.Is to distinguish the kinds of errors.
func ExampleError_is() {
	ctx := context.Background()
	store := open()
	defer store.Close()

	_, err := store.GetMemory(ctx, "unknown")
	fmt.Println(errors.Is(err, souvenir.ErrNotFound), errors.Is(err, souvenir.ErrInvalid))

	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = store.Search(ended, souvenir.Query{Text: "anything"})
	fmt.Println(errors.Is(err, context.Canceled))
	// Output:
	// true false
	// true
}

// Export and Import copy a whole store, with its ids, times and history.
func ExampleUpkeep_Export() {
	ctx := context.Background()
	from, to := open(), open()
	defer from.Close()
	defer to.Close()
	add(from, souvenir.NewMemory{Content: "The office plant is called Ferdinand."})

	var export bytes.Buffer
	if _, err := from.Upkeep().Export(ctx, &export, nil); err != nil {
		log.Fatal(err)
	}
	for range 2 {
		report, err := to.Upkeep().Import(ctx, bytes.NewReader(export.Bytes()), nil)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("memories: %d added, %d unchanged\n", report.Counts["memory"].Added, report.Counts["memory"].Unchanged)
	}
	// Output:
	// memories: 1 added, 0 unchanged
	// memories: 0 added, 1 unchanged
}

// An import of other data needs a header and one line for each memory.
func ExampleUpkeep_Import() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	lines := `{"souvenir":"export","version":1}
{"type":"memory","content":"Ferdinand is watered on Mondays.","tags":["plants"],"created_at":"2024-05-01T08:00:00Z"}
{"type":"memory","content":"The printer is on the second floor.","collection_name":"office"}
`
	if _, err := store.Upkeep().Import(ctx, strings.NewReader(lines), nil); err != nil {
		log.Fatal(err)
	}
	found, err := store.Search(ctx, souvenir.Query{Text: "when to water Ferdinand", Limit: 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found.Hits[0].Content)
	// Output: Ferdinand is watered on Mondays.
}
