package souvenir_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/sealing"
	"github.com/souvenir-ai/souvenir/internal/sealing/keyring"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
)

// withKeys returns a context with user keys in their own file.
func withKeys(b *testing.B, dir string) context.Context {
	b.Helper()
	place, err := sqlite.OpenKeys(b.Context(), filepath.Join(dir, "store.keys"), false, nil)
	if err != nil {
		b.Fatal(err)
	}
	ring, err := keyring.Open(b.Context(), place, sealing.GenerateMasterKey(), time.Now)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = ring.Close() })
	return keyring.With(b.Context(), ring)
}

// BenchmarkKeys compares a store with user keys and one without. It alternates the steps, so that other load on the
// machine affects both.
func BenchmarkKeys(b *testing.B) {
	const size = 20_000
	memories, queries := sentences(size), sentences(500)
	dir := b.TempDir()
	contexts := []context.Context{b.Context(), withKeys(b, dir)}
	paths := []string{filepath.Join(dir, "without.db"), filepath.Join(dir, "with.db")}
	open := func(b *testing.B, i int, o souvenir.Options) *souvenir.Store {
		b.Helper()
		store, err := souvenir.Open(contexts[i], paths[i], &o)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { store.Close() })
		return store
	}
	b.Run("add", func(b *testing.B) {
		stores := []*souvenir.Store{open(b, 0, souvenir.Options{}), open(b, 1, souvenir.Options{})}
		inTurn(b, func(i, n int) error {
			_, err := stores[i].AddMemories(b.Context(), memories[n*500%size:][:500], nil)
			return err
		})
		for n := b.N; n < size/500; n++ {
			for _, s := range stores {
				if _, err := s.AddMemories(b.Context(), memories[n*500:][:500], nil); err != nil {
					b.Fatal(err)
				}
			}
		}
		for _, s := range stores {
			if err := s.Upkeep().StoreIndex(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, memory := range map[string]int64{"in memory": 0, "on disk": -1} {
		b.Run(name, func(b *testing.B) {
			o := souvenir.Options{IndexMemory: memory}
			stores := []*souvenir.Store{open(b, 0, o), open(b, 1, o)}
			for _, s := range stores {
				if _, err := s.Search(b.Context(), souvenir.Query{Text: "load"}); err != nil {
					b.Fatal(err)
				}
			}
			inTurn(b, func(i, n int) error {
				_, err := stores[i].Search(b.Context(), souvenir.Query{Text: queries[n%len(queries)].Content})
				return err
			})
		})
	}
	b.Run("open and load", func(b *testing.B) {
		inTurn(b, func(i, _ int) error {
			store, err := souvenir.Open(contexts[i], paths[i], nil)
			if err == nil {
				err = store.Upkeep().LoadIndex(b.Context())
			}
			if err == nil {
				_, err = store.Search(b.Context(), souvenir.Query{Text: "load"})
			}
			if err == nil {
				err = store.Close() // waits until it is loaded
			}
			return err
		})
	})
}

// BenchmarkFiltersWithKeys compares filters that match a few of 20,000 memories, with and without user keys.
func BenchmarkFiltersWithKeys(b *testing.B) {
	dir := b.TempDir()
	memories := make([]souvenir.NewMemory, 20_000)
	for i := range memories {
		memories[i] = souvenir.NewMemory{Content: fmt.Sprint("memory ", i), Key: fmt.Sprintf("k%05d", i),
			Metadata: map[string]any{"session": fmt.Sprint("s", i/10), "n": i, "lead": i%3 == 0}}
	}
	var stores []*souvenir.Store
	for i, ctx := range []context.Context{b.Context(), withKeys(b, dir)} {
		store, err := souvenir.Open(ctx, filepath.Join(dir, fmt.Sprint(i)), nil)
		if err == nil {
			_, err = store.AddMemories(b.Context(), memories, nil)
		}
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { store.Close() })
		stores = append(stores, store)
	}
	for name, f := range map[string]souvenir.Filter{
		"own metadata equal":    {"session": "s77"},
		"own metadata is set":   {"n": souvenir.Condition{Not: []any{nil}}, "session": "s77"},
		"own metadata not less": {"n": souvenir.Condition{AtLeast: 19_990}},
		"a key not less":        {"key": souvenir.Condition{AtLeast: "k19990"}},
	} {
		b.Run(name, func(b *testing.B) {
			inTurn(b, func(i, _ int) error {
				found, err := stores[i].Search(b.Context(), souvenir.Query{Filter: f, Limit: 10})
				if err == nil && found.Total != 10 {
					err = fmt.Errorf("got %d memories, want 10", found.Total)
				}
				return err
			})
		})
	}
}

// inTurn runs each step without keys and with them, in turn, and reports the medians.
func inTurn(b *testing.B, step func(i, n int) error) {
	b.Helper()
	took := make([][]time.Duration, 2)
	for n := 0; b.Loop(); n++ {
		for k := range took {
			i := (k + n) % 2
			start := time.Now()
			if err := step(i, n); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(start))
		}
	}
	medians := make([]float64, 2)
	for i := range took {
		slices.Sort(took[i])
		medians[i] = float64(took[i][len(took[i])/2].Microseconds()) / 1000
	}
	b.ReportMetric(medians[0], "ms-without")
	b.ReportMetric(medians[1], "ms-with")
	b.ReportMetric(100*(medians[1]/medians[0]-1), "%-slower")
}
