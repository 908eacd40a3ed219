package systemtest

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
)

// The built-in model embeds a few short texts before it is known where they go. A refused call gets the same error,
// from the write. Other embedders are not called for it.
func TestAWriteToAnUnknownCollectionIsRefusedWithEachEmbedder(t *testing.T) {
	ctx, asked := t.Context(), 0
	counting := souvenir.EmbedderFunc("counting", 2, func(_ context.Context, _ souvenir.Purpose,
		texts []string) ([][]float32, error) {
		asked++
		vectors := make([][]float32, len(texts))
		for i := range vectors {
			vectors[i] = []float32{1, 0}
		}
		return vectors, nil
	})
	var messages []string
	for name, options := range map[string]*souvenir.Options{"builtin": nil, "own": {Embedder: counting}} {
		store, err := souvenir.Open(ctx, filepath.Join(t.TempDir(), name+".db"), options)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		for _, content := range []string{"short", strings.Repeat("long enough to be looked at first ", 1000)} {
			m := souvenir.NewMemory{Content: content, Collection: "unknown"}
			_, added := store.AddMemory(ctx, m)
			m.Key = "k"
			_, put := store.PutMemory(ctx, m)
			for _, err := range []error{added, put} {
				if !errors.Is(err, souvenir.ErrNotFound) {
					t.Fatalf("%s embedder, %d bytes: got %v, want ErrNotFound", name, len(content), err)
				}
				messages = append(messages, err.Error())
			}
		}
		_, err = store.AddMemories(ctx, []souvenir.NewMemory{{Content: "one"}, {Content: "two", Collection: "unknown"}}, nil)
		if !errors.Is(err, souvenir.ErrNotFound) {
			t.Errorf("%s embedder, several: got %v, want ErrNotFound", name, err)
		}
		for m, err := range store.Memories(ctx, souvenir.MemoryList{}) {
			t.Errorf("%s embedder: got memory %q, %v after refused writes, want none", name, m.Content, err)
		}
	}
	for _, m := range messages {
		if m != messages[0] {
			t.Errorf("got %q and %q, want one message for each way to store", messages[0], m)
		}
	}
	if asked > 0 {
		t.Errorf("got %d calls of the embedder for refused memories, want 0", asked)
	}
}
