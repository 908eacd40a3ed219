package souvenir_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// BenchmarkAfterMany measures searches in stores of different sizes, idle and in the second after 2,500 more memories
// were added at once: go test -run '^$' -bench AfterMany -benchtime 3x .
func BenchmarkAfterMany(b *testing.B) {
	for _, size := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			const rounds, many = 16, 2500
			all := sentences(size + rounds*many)
			store := openBench(b, 1)
			for part := range slices.Chunk(all[:size], 10_000) {
				if _, err := store.AddMemories(b.Context(), part, nil); err != nil {
					b.Fatal(err)
				}
			}
			loadIndex(b, store)
			asked := 0
			searchFor := func(d time.Duration) (took []time.Duration) {
				for end := time.Now().Add(d); time.Now().Before(end); asked++ {
					text := strings.Join(strings.Fields(all[asked%size].Content)[:8], " ")
					began := time.Now()
					if _, err := store.Search(b.Context(), souvenir.Query{Text: text}); err != nil {
						b.Fatal(err)
					}
					took = append(took, time.Since(began))
				}
				return took
			}
			searchFor(time.Second)
			var idle, after, first, stored []time.Duration
			for i := 0; b.Loop(); i = (i + 1) % rounds {
				idle = append(idle, searchFor(time.Second)...)
				began := time.Now()
				if _, err := store.AddMemories(b.Context(), all[size+i*many:][:many], nil); err != nil {
					b.Fatal(err)
				}
				stored = append(stored, time.Since(began))
				got := searchFor(time.Second)
				first, after = append(first, got[0]), append(after, got...)
			}
			reportTimes(b, "idle", idle)
			reportTimes(b, "after", after)
			reportTimes(b, "first", first)
			reportTimes(b, "stored", stored)
		})
	}
}
