package souvenir

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

// kindsOf returns the kinds of a store's problems.
func kindsOf(t *testing.T, s *Store) (kinds []ProblemKind) {
	t.Helper()
	all, err := s.Upkeep().Problems(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.Message == "" || !slices.Contains(ProblemKinds(), p.Kind) {
			t.Errorf("got %+v, want a known kind and a message", p)
		}
		kinds = append(kinds, p.Kind)
	}
	return kinds
}

func TestAnEmbedderThatIsDownIsAProblemUntilItWorks(t *testing.T) {
	broken := make(chan bool, 1)
	broken <- true
	embedder := EmbedderFunc("own-1", 2, func(_ context.Context, _ Purpose, texts []string) ([][]float32, error) {
		down := <-broken
		broken <- down
		if down {
			return nil, errors.New("connection refused")
		}
		return slices.Repeat([][]float32{{1, 0}}, len(texts)), nil
	})
	s, err := Open(t.Context(), ":memory:", &Options{Embedder: embedder})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if got := kindsOf(t, s); len(got) != 0 {
		t.Fatalf("a new store has the problems %v, want none", got)
	}
	mustAdd(t, s, NewMemory{Content: "waits for its vector"})
	wait := func(want ...ProblemKind) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			got := kindsOf(t, s)
			if slices.Equal(got, want) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("got the problems %v, want %v", got, want)
			}
		}
	}
	wait(ProblemEmbedder)
	<-broken
	broken <- false
	if err := s.Upkeep().WaitEmbedded(t.Context()); err != nil {
		t.Fatal(err)
	}
	wait()
}

func TestRuntimeCountsSearchesByWhereTheyRun(t *testing.T) {
	for _, c := range []struct {
		name             string
		memory           int64
		inMemory, inBase uint64
	}{{"with an index", 1 << 20, 1, 0}, {"without", -1, 0, 1}} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Open(t.Context(), ":memory:", &Options{IndexMemory: c.memory})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			mustAdd(t, s, NewMemory{Content: "tea at four"})
			before, err := s.Upkeep().Runtime(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Search(t.Context(), Query{Text: "when is tea?"}); err != nil {
				t.Fatal(err)
			}
			after, err := s.Upkeep().Runtime(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if inMemory, inBase := after.SearchesInMemory-before.SearchesInMemory,
				after.SearchesInDatabase-before.SearchesInDatabase; inMemory != c.inMemory || inBase != c.inBase {
				t.Errorf("%d searches in memory and %d in the database were counted, want %d and %d", inMemory, inBase,
					c.inMemory, c.inBase)
			}
			if holds := after.IndexPartitions > 0 && after.IndexBytes > 0; holds != (c.memory > 0) {
				t.Errorf("got %+v, want a partition held: %v", after, c.memory > 0)
			}
			if after.IndexLimit != c.memory || after.Writing != 0 {
				t.Errorf("got %+v, want the limit %d and no writes", after, c.memory)
			}
		})
	}
}
