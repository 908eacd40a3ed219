package index

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/retrieval/similarity"
)

// TestLikeFindsWhatNearDoes compares with the near memories that their sketches do not rule out.
func TestLikeFindsWhatNearDoes(t *testing.T) {
	for name, coarse := range coarses() {
		t.Run(name, func(t *testing.T) {
			g := newGenerator(3)
			words := func() string {
				var list []string
				for range 3 + g.IntN(5) {
					list = append(list, []string{"ferry", "Falcon", "tickets", "queue", "17", "Tuesday", "cheap", "never"}[g.IntN(8)])
				}
				return strings.Join(list, " ")
			}
			ix := New()
			ix.coarse, ix.coded = coarse, 1
			for row := range int64(400) {
				m := Memory{Row: row, ID: fmt.Sprint(row), Partition: int64(g.IntN(3))}
				for range 1 + g.IntN(3) {
					g.passage++
					m.Entries = append(m.Entries, Entry{Passage: g.passage, Vector: g.unit(4)})
				}
				if g.IntN(5) > 0 {
					m.Sketch = similarity.SketchOf(similarity.Read(words()))
				}
				ix.Put(m)
			}
			for range 100 {
				ix.Delete(int64(g.IntN(400)))
			}
			ix.verify(t)
			found := 0
			for range 100 {
				text := similarity.Read(words())
				least := []float32{0.5, 0.9, -2}[g.IntN(3)]
				near := Near{Vector: g.unit(4), Partitions: []int64{2, 0, 2, 7}, Least: least, Limit: 2000}
				like := Like{Near: near, Probe: similarity.NewProbe(text, similarity.Duplicate), AnyCosine: g.IntN(3) == 0}
				all, err := ix.Near(t.Context(), near)
				if err != nil {
					t.Fatal(err)
				}
				want := slices.DeleteFunc(all, func(h Hit) bool {
					m := ix.memories.get(h.Row)
					cosine := 1.0
					if !like.AnyCosine {
						cosine = float64(h.Cosine)
					}
					return !like.Probe.May(&m.partition.sketches[m.first], cosine)
				})
				got, known, err := ix.Like(t.Context(), like)
				slices.SortFunc(got, func(a, b Hit) int { return CompareHits(&a, &b) })
				if err != nil || !known || !slices.Equal(got, want) {
					t.Fatalf("got %v, known: %v, %v; want %v", got, known, err, want)
				}
				found += len(want)
				if like.Limit = len(want) - 1; len(want) > 1 {
					if got, known, err := ix.Like(t.Context(), like); known || err != nil {
						t.Errorf("more than %d: got %v, %v, want it not to be known", like.Limit, got, err)
					}
				}
			}
			if found == 0 {
				t.Error("nothing was found in all, want something")
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			like := Like{Near: Near{Vector: g.unit(4), Partitions: []int64{0}, Limit: 1},
				Probe: similarity.NewProbe(similarity.Read("x"), 0.8)}
			if _, known, err := ix.Like(ctx, like); known || !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: known: %v, %v; want context.Canceled", known, err)
			}
		})
	}
}
