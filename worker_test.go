package souvenir

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// picky embeds everything but texts about the forbidden; while off, nothing.
func picky(model string, off *atomic.Bool) Embedder {
	return EmbedderFunc(model, 2, func(_ context.Context, _ Purpose, texts []string) ([][]float32, error) {
		if off.Load() || slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(t, "forbidden") }) {
			return nil, errors.New("refused")
		}
		return slices.Repeat([][]float32{{1, 0}}, len(texts)), nil
	})
}

func TestRefusedTextsDoNotBlockOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "picky.db")
	var off atomic.Bool
	off.Store(true)
	pendingIs := func(s *Store, want int) {
		t.Helper()
		for start := time.Now(); ; time.Sleep(time.Millisecond) {
			e, err := s.Upkeep().EmbeddingStatus(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if e.Pending == want && !e.Changing {
				return
			}
			if time.Since(start) > time.Minute {
				t.Fatalf("after a minute the state is %+v, want %d pending", e, want)
			}
			s.worker.Wake()
		}
	}
	for _, model := range []string{"first", "second"} { // the second time for all, since the model has changed
		s, err := Open(t.Context(), path, &Options{Embedder: picky(model, &off)})
		if err != nil {
			t.Fatal(err)
		}
		if model == "first" {
			for _, content := range []string{"forbidden fruit", "an apple", "a pear"} {
				if _, err := s.AddMemory(t.Context(), NewMemory{Content: content}); err != nil {
					t.Fatal(err)
				}
			}
		}
		off.Store(false)
		pendingIs(s, 1)
		results, err := s.Search(t.Context(), Query{Text: "fruit"})
		if err != nil || results.Total != 3 || len(results.Warnings) != 1 {
			t.Errorf("%s: found %+v, %v, want no error, total 3 and 1 warning", model, results, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// narrow refuses texts of more than 200 bytes, and says so.
type narrow struct{ Embedder }

func (narrow) MaxInput() int { return 200 }

func TestEmbedderNeverGetsMoreThanItTakes(t *testing.T) {
	longest := 0
	embedder := narrow{EmbedderFunc("narrow", 2, func(_ context.Context, _ Purpose, texts []string) ([][]float32, error) {
		for _, text := range texts {
			longest = max(longest, len(text))
		}
		return slices.Repeat([][]float32{{1, 0}}, len(texts)), nil
	})}
	s, err := Open(t.Context(), ":memory:", &Options{Embedder: embedder})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	long := strings.Repeat("The pear tree in the garden blossoms early. ", 100)
	if _, err := s.AddMemory(t.Context(), NewMemory{Content: long}); err != nil {
		t.Fatal(err)
	}
	results, err := s.Search(t.Context(), Query{Text: long})
	if err != nil || results.Total != 1 || len(results.Warnings) > 0 {
		t.Errorf("found %d, warned %v, %v, want no error, total 1 and no warnings", results.Total, results.Warnings, err)
	}
	if longest == 0 || longest > 200 {
		t.Errorf("the longest text has %d bytes, 200 are allowed, want the longest between 1 and 200", longest)
	}
}

func TestVectorOfAWrongSizeIsRefusedBeforeAnythingIsStored(t *testing.T) {
	var off atomic.Bool
	s, err := Open(t.Context(), ":memory:", &Options{Embedder: picky("two", &off)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for range 2 {
		_, err := s.Search(t.Context(), Query{Vector: []float32{1, 2, 3}})
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "3 dimensions") ||
			!strings.Contains(err.Error(), "have 2") {
			t.Errorf(`the error is %v, want ErrInvalid, "3 dimensions" in the error and "have 2" in the error`, err)
		}
		if _, err := s.Search(t.Context(), Query{Vector: []float32{1, 2}}); err != nil {
			t.Error(err)
		}
		if _, err := s.AddMemory(t.Context(), NewMemory{Content: "x"}); err != nil {
			t.Fatal(err)
		}
	}
}
