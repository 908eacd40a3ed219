package souvenir

import (
	"fmt"
	"testing"
)

// BenchmarkFilterByOwnKey finds 10 of 20,000 memories by a key of their own metadata.
func BenchmarkFilterByOwnKey(b *testing.B) {
	s := openWords(b, "", Options{})
	memories := make([]NewMemory, 20_000)
	for i := range memories {
		memories[i] = NewMemory{Content: fmt.Sprint("memory ", i), Metadata: map[string]any{
			"session": fmt.Sprint("s", i/10), "n": i, "lead": i%3 == 0}}
	}
	if _, err := s.AddMemories(b.Context(), memories, nil); err != nil {
		b.Fatal(err)
	}
	filter := Filter{"session": "s77"}
	b.Run("search", func(b *testing.B) {
		for b.Loop() {
			found, err := s.Search(b.Context(), Query{Filter: filter, Limit: 10})
			if err != nil || found.Total != 10 {
				b.Fatalf("got %v %v, want no error and total 10", found, err)
			}
		}
	})
	b.Run("count", func(b *testing.B) {
		for b.Loop() {
			found, err := s.Search(b.Context(), Query{Filter: filter, Limit: 1})
			if err != nil || found.Total != 10 {
				b.Fatalf("got %v %v, want no error and total 10", found, err)
			}
		}
	})
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			n := 0
			for _, err := range s.Memories(b.Context(), List{Filter: filter}) {
				if n++; err != nil {
					b.Fatal(err)
				}
			}
			if n != 10 {
				b.Fatalf("got %v, want 10", n)
			}
		}
	})
}

// BenchmarkAddWithMetadata stores memories with three own keys, 1,000 in a commit.
func BenchmarkAddWithMetadata(b *testing.B) {
	for name, indexed := range map[string]int{"indexed": 0, "unindexed": -1} {
		b.Run(name, func(b *testing.B) {
			s := openWords(b, "", Options{IndexedMetadata: indexed})
			n := 0
			for b.Loop() {
				memories := make([]NewMemory, 1000)
				for i := range memories {
					n++
					memories[i] = NewMemory{Content: fmt.Sprint("memory ", n), Metadata: map[string]any{
						"session": fmt.Sprint("s", n/10), "n": n, "lead": n%3 == 0}}
				}
				if _, err := s.AddMemories(b.Context(), memories, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
