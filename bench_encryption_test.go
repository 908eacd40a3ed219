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
	"github.com/souvenir-ai/souvenir/internal/testing/usage"
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

// BenchmarkKeys compares a store with user keys, and one in an encrypted file, with a plain one. It alternates the
// steps, so that other load on the machine affects all of them.
func BenchmarkKeys(b *testing.B) {
	const size = 20_000
	memories, queries := sentences(size), sentences(500)
	dir := b.TempDir()
	contexts := []context.Context{b.Context(), withKeys(b, dir), b.Context()}
	masters := []souvenir.MasterKey{{}, {}, souvenir.GenerateMasterKey()}
	try := func(i int, memory int64) (*souvenir.Store, error) {
		return souvenir.Open(contexts[i], filepath.Join(dir, ways[i]+".db"), &souvenir.Options{IndexMemory: memory,
			MasterKey: masters[i]})
	}
	open := func(b *testing.B, memory int64) (stores []*souvenir.Store) {
		b.Helper()
		for i := range ways {
			store, err := try(i, memory)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { store.Close() })
			stores = append(stores, store)
		}
		return stores
	}
	b.Run("add", func(b *testing.B) {
		stores := open(b, 0)
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
			stores := open(b, memory)
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
			store, err := try(i, 0)
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
			inTurnOf(b, len(stores), func(i, _ int) error {
				found, err := stores[i].Search(b.Context(), souvenir.Query{Filter: f, Limit: 10})
				if err == nil && found.Total != 10 {
					err = fmt.Errorf("got %d memories, want 10", found.Total)
				}
				return err
			})
		})
	}
}

// ways are the stores that are compared, the plain one first.
var ways = []string{"plain", "keys", "encrypted"}

// inTurn runs each step in each store, in turn, and reports the medians of wall and processor time.
func inTurn(b *testing.B, step func(i, n int) error) { inTurnOf(b, len(ways), step) }

func inTurnOf(b *testing.B, stores int, step func(i, n int) error) {
	b.Helper()
	wall, processor := make([][]float64, stores), make([][]float64, stores)
	for n := 0; b.Loop(); n++ {
		for k := range stores {
			i := (k + n) % stores
			start, used := time.Now(), usage.Seconds()
			if err := step(i, n); err != nil {
				b.Fatal(err)
			}
			wall[i] = append(wall[i], time.Since(start).Seconds())
			processor[i] = append(processor[i], usage.Seconds()-used)
		}
	}
	median := func(took []float64) float64 {
		slices.Sort(took)
		return 1000 * took[len(took)/2]
	}
	for i := range stores {
		b.ReportMetric(median(wall[i]), "ms-"+ways[i])
		b.ReportMetric(median(processor[i]), "ms-cpu-"+ways[i])
		if i > 0 {
			b.ReportMetric(100*(median(wall[i])/median(wall[0])-1), "%-slower-"+ways[i])
			b.ReportMetric(100*(median(processor[i])/median(processor[0])-1), "%-more-cpu-"+ways[i])
		}
	}
}
