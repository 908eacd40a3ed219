package systemtest

import (
	"context"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/souvenir-ai/souvenir"
)

// wordSize is the length of wordEmbedder's vectors.
const wordSize = 32

// wordEmbedder is a small deterministic model: each word counts in one dimension.
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

// openWords opens the store in a database, with wordEmbedder unless the options name another one, and closes it at the
// end of the test.
func openWords(tb testing.TB, d database, o Options) *Store {
	tb.Helper()
	if o.Embedder == nil {
		o.Embedder = wordEmbedder("words-1")
	}
	s, err := d.open(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error("close:", err)
		}
	})
	know(tb, s, d)
	return s
}

// emptyStore returns the bytes of a file of an empty store.
var emptyStore = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "souvenir-empty-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "empty.db")
	long := func() time.Time { return time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC) } // earlier than the clock of any test
	s, err := Open(context.Background(), path, &Options{Embedder: wordEmbedder("words-1"), Now: long})
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

func mustAdd(t testing.TB, s *Store, m NewMemory) StoredMemory {
	t.Helper()
	added, err := s.AddMemory(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return added
}
