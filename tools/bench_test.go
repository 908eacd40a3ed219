package tools_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/tools"
)

func BenchmarkList(b *testing.B) {
	for b.Loop() {
		if len(tools.List()) != 8 {
			b.Fatalf("got %d tools, want 8", len(tools.List()))
		}
	}
}

// BenchmarkSearch compares a search through the tools, from JSON to JSON, with the same search in the store.
func BenchmarkSearch(b *testing.B) {
	store, err := souvenir.Open(b.Context(), filepath.Join(b.TempDir(), "bench.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	memories := make([]souvenir.NewMemory, 1000)
	for i := range memories {
		memories[i] = souvenir.NewMemory{Content: fmt.Sprintf("note %d: the shipment %d of granite arrives at gate %d", i,
			i*7, i%9), Tags: []string{"shipment"}}
	}
	if _, err := store.AddMemories(b.Context(), memories, nil); err != nil {
		b.Fatal(err)
	}
	b.Run("tools", func(b *testing.B) {
		for b.Loop() {
			result, err := tools.New(store, nil).Call(b.Context(), "memory",
				json.RawMessage(`{"action": "search", "query": "where does granite arrive", "tags": "shipment"}`))
			if err != nil {
				b.Fatal(err)
			}
			if _, err := json.Marshal(result); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("store", func(b *testing.B) {
		for b.Loop() {
			if _, err := store.Search(b.Context(),
				souvenir.Query{Text: "where does granite arrive", Tags: []string{"shipment"}}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
