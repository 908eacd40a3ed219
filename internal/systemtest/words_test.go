package systemtest

import (
	"context"
	"hash/fnv"
	"strings"
	"testing"

	. "github.com/souvenir-ai/souvenir"
)

// wordSize is the length of wordEmbedder's vectors.
const wordSize = 32

// wordEmbedder is a small model that is the same everywhere: each word counts in one dimension.
func wordEmbedder(model string) Embedder {
	return EmbedderFunc(model, wordSize, func(ctx context.Context, _ Purpose, texts []string) ([][]float32, error) {
		vectors := make([][]float32, len(texts))
		for i, t := range texts {
			vectors[i] = wordVector(t)
		}
		return vectors, ctx.Err()
	})
}

func wordVector(t string) []float32 {
	v := make([]float32, wordSize)
	for _, word := range strings.Fields(strings.ToLower(t)) {
		h := fnv.New32a()
		h.Write([]byte(word))
		v[h.Sum32()%wordSize]++
	}
	return v
}

// openWords opens a store until the test ends.
func openWords(t *testing.T, path string, o Options) *Store {
	t.Helper()
	if o.Embedder == nil {
		o.Embedder = wordEmbedder("words-1")
	}
	s, err := Open(t.Context(), path, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error("close:", err)
		}
	})
	return s
}

func mustAdd(t *testing.T, s *Store, m NewMemory) Stored {
	t.Helper()
	added, err := s.AddMemory(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return added
}
