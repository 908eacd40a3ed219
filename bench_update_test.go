package souvenir_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/souvenir-ai/souvenir"
)

// BenchmarkUpdateMemory updates 10,000 memories from 8 goroutines: their state, their content, and their content by a
// put over their key.
func BenchmarkUpdateMemory(b *testing.B) {
	memories := sentences(20_000)
	given, later := memories[:10_000], memories[10_000:]
	for _, kind := range []string{"state", "content", "put"} {
		b.Run(kind, func(b *testing.B) {
			ctx := context.Background()
			store, err := souvenir.Open(ctx, filepath.Join(b.TempDir(), "bench.db"), nil)
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			for i := range given {
				given[i].Key = fmt.Sprint("key ", i)
			}
			stored, err := store.AddMemories(ctx, given, nil)
			if err != nil {
				b.Fatal(err)
			}
			update := func(i int) (err error) {
				which, round := i%len(stored), i/len(stored)
				next := later[(which+round)%len(later)]
				switch kind {
				case "state":
					state := fmt.Sprint("state ", round)
					_, err = store.UpdateMemory(ctx, stored[which].ID, souvenir.MemoryUpdate{State: &state})
				case "content":
					_, err = store.UpdateMemory(ctx, stored[which].ID, souvenir.MemoryUpdate{Content: &next.Content})
				case "put":
					next.Key = fmt.Sprint("key ", which)
					_, err = store.PutMemory(ctx, next)
				}
				return err
			}
			inGoroutines(b, 8, "updates/s", update)
		})
	}
}
