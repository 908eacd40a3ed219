package souvenir_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/seed"
)

// The benchmarks behind docs/benchmarks.md: go test -run '^$' -bench . -benchtime 3s

// sentences makes n different memories.
func sentences(n int) []souvenir.NewMemory { return seed.Sentences(2, n) }

func openBench(b *testing.B, memories int) *souvenir.Store {
	b.Helper()
	store, err := souvenir.Open(context.Background(), filepath.Join(b.TempDir(), "bench.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	if _, err := store.AddMemories(context.Background(), sentences(memories), nil); err != nil {
		b.Fatal(err)
	}
	return store
}

// reportMedian adds the median of single durations: the mean of a shared machine says little.
func reportMedian(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-median")
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "ms-p95")
}

func BenchmarkOpenEmpty(b *testing.B) {
	dir := b.TempDir()
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		store, err := souvenir.Open(context.Background(), filepath.Join(dir, fmt.Sprint(i, ".db")), nil)
		took = append(took, time.Since(start))
		if err != nil {
			b.Fatal(err)
		}
		store.Close()
	}
	reportMedian(b, took)
}

func BenchmarkAddMemory(b *testing.B) {
	for _, goroutines := range []int{1, 8} {
		b.Run(fmt.Sprint(goroutines, "goroutines"), func(b *testing.B) {
			store := openBench(b, 1)
			memories := sentences(10_000)
			inGoroutines(b, goroutines, "memories/s", func(i int) error {
				_, err := store.AddMemory(context.Background(), memories[i%len(memories)])
				return err
			})
		})
	}
}

func BenchmarkPutMemory(b *testing.B) {
	for _, goroutines := range []int{1, 8} {
		b.Run(fmt.Sprint(goroutines, "goroutines"), func(b *testing.B) {
			store := openBench(b, 1)
			memories := sentences(10_000)
			inGoroutines(b, goroutines, "memories/s", func(i int) error {
				m := memories[i%len(memories)]
				m.Key = fmt.Sprint("key ", i)
				_, err := store.PutMemory(context.Background(), m)
				return err
			})
		})
	}
}

// BenchmarkTenPuts puts ten memories: each in a transaction of its own, and all in one.
func BenchmarkTenPuts(b *testing.B) {
	s := openBench(b, 1)
	put := func(ctx context.Context, round int) error {
		for i := range 10 {
			m := souvenir.NewMemory{Key: fmt.Sprint("key ", i),
				Content: fmt.Sprintf("version %d of the text number %d", round, i)}
			if _, err := s.PutMemory(ctx, m); err != nil {
				return err
			}
		}
		return nil
	}
	round := 0
	for name, run := range map[string]func() error{
		"each alone": func() error { return put(b.Context(), round) },
		"one transaction": func() error {
			return s.Transaction(b.Context(), func(ctx context.Context) error { return put(ctx, round) })
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				round++
				if err := run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAddMemories(b *testing.B) {
	memories := sentences(10_000)
	var took []time.Duration
	for b.Loop() {
		store := openBench(b, 1)
		start := time.Now()
		if _, err := store.AddMemories(context.Background(), memories, nil); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
		store.Close()
	}
	slices.Sort(took)
	b.ReportMetric(float64(len(memories))/took[len(took)/2].Seconds(), "memories/s")
}

func BenchmarkSearch(b *testing.B) {
	store := openBench(b, 10_000)
	queries := sentences(500)
	for _, c := range []struct {
		name  string
		query souvenir.Query
	}{
		{"hybrid", souvenir.Query{}},
		{"tags", souvenir.Query{Tags: []string{"tag7", "tag8"}}},
		{"filter", souvenir.Query{Filter: souvenir.Filter{"event_type": "decision"}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				q := c.query
				q.Text = strings.Join(strings.Fields(queries[i%len(queries)].Content)[:8], " ")
				start := time.Now()
				results, err := store.Search(context.Background(), q)
				took = append(took, time.Since(start))
				if err != nil || len(results.Hits) == 0 {
					b.Fatalf("got %v %v, want no error and some hits", results, err)
				}
			}
			reportMedian(b, took)
		})
	}
}

// inGoroutines measures how many calls a second some goroutines make together. call gets the number of each call.
func inGoroutines(b *testing.B, goroutines int, unit string, call func(i int) error) {
	work := make(chan int)
	var group sync.WaitGroup
	for range goroutines {
		group.Go(func() {
			for i := range work {
				if err := call(i); err != nil {
					b.Error(err)
				}
			}
		})
	}
	start := time.Now()
	n := 0
	for ; b.Loop(); n++ {
		work <- n
	}
	close(work)
	group.Wait()
	b.ReportMetric(float64(n)/time.Since(start).Seconds(), unit)
}
