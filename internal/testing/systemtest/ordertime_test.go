package systemtest

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/seed"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// TestOrderByTimeHasAllRelevant compares the memories that a search in an order of time finds with those of the same
// search by relevance that are at least half as relevant as the best.
func TestOrderByTimeHasAllRelevant(t *testing.T) {
	longtest.Only(t)
	ctx := t.Context()
	store, err := souvenir.Open(ctx, filepath.Join(t.TempDir(), "s.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	all := seed.Sentences(5, 600)
	for i := range 1500 {
		content := fmt.Sprintf("the ferry to the island leaves at %d", i)
		if i%3 == 0 {
			content = fmt.Sprintf("the bakery opens for ferry number %d", i)
		}
		all = append(all, souvenir.NewMemory{Content: content})
	}
	if _, err := store.AddMemories(ctx, all, nil); err != nil {
		t.Fatal(err)
	}
	most := 0
	for _, text := range []string{"ferry", "ferry island", "bakery", "when does the ferry to the island leave",
		all[3].Content, "leaves at 77"} {
		var want []string
		best := 0.0
		for hit, err := range store.SearchAll(ctx, souvenir.Query{Text: text}) {
			if err != nil {
				t.Fatal(err)
			}
			if best = max(best, hit.Score); float32(hit.Score) >= float32(best)/2 {
				want = append(want, hit.ID)
			}
		}
		var got []string
		for offset := 0; ; offset += souvenir.MaxLimit {
			r, err := store.Search(ctx, souvenir.Query{Text: text, Sort: souvenir.SortCreatedAsc, Offset: offset,
				Limit: souvenir.MaxLimit})
			if err != nil {
				t.Fatal(err)
			}
			for _, hit := range r.Hits {
				got = append(got, hit.ID)
			}
			if r.Total != len(want) {
				t.Errorf("%q: a total of %d, want %d", text, r.Total, len(want))
			}
			if len(r.Hits) < souvenir.MaxLimit {
				break
			}
		}
		most = max(most, len(want))
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q: %d memories in the order of time, want the %d relevant ones", text, len(got), len(want))
		}
	}
	if most < 1200 {
		t.Errorf("at most %d are relevant to a text; this test wants more than a search asks for at first", most)
	}
}
