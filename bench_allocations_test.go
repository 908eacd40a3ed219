package souvenir_test

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// Unlike time, the number of allocations is the same on every machine. Each bound is 10% above the measurement with the
// driver that allocates more. Lower it after an improvement; raise it only for a good reason.
func TestSearchAndAddKeepToTheirAllocations(t *testing.T) {
	longtest.Only(t)
	if testing.Short() {
		t.Skip("the race detector, which runs with -short, allocates too")
	}
	store := openFile(filepath.Join(t.TempDir(), "allocations.db"), nil)
	defer store.Close()
	if _, err := store.AddMemories(t.Context(), sentences(1000), nil); err != nil {
		t.Fatal(err)
	}
	texts, i := sentences(500), 0
	for _, c := range []struct {
		name  string
		bound float64
		runs  int
		call  func() error
	}{
		{"Search", 790, 20, func() error {
			_, err := store.Search(t.Context(), souvenir.Query{Text: texts[7].Content})
			return err
		}},
		{"Search with a filter", 910, 20, func() error {
			_, err := store.Search(t.Context(), souvenir.Query{Text: texts[7].Content, Tags: []string{"tag7"}})
			return err
		}},
		{"AddMemory", 430, 20, func() error {
			m := souvenir.NewMemory{Content: fmt.Sprint("note ", i, " about the same subject"), EventType: "decision",
				Tags: []string{"one"}}
			i++
			_, err := store.AddMemory(t.Context(), m)
			return err
		}},
		{"AddMemory, with near duplicates", 910, 20, func() error {
			m := souvenir.NewMemory{Content: fmt.Sprint("note ", i, " about the same subject"), Similar: 3}
			i++
			_, err := store.AddMemory(t.Context(), m)
			return err
		}},
		{"AddMemories of 100", 21400, longtest.Size(20, 3), func() error {
			_, err := store.AddMemories(t.Context(), texts[:100], nil)
			return err
		}},
	} {
		var err error
		got := math.Inf(1)
		for tries := 0; tries < 3 && got > c.bound; tries++ { // background work allocates, too
			got = min(got, testing.AllocsPerRun(c.runs, func() {
				if e := c.call(); e != nil {
					err = e
				}
			}))
		}
		if err != nil {
			t.Errorf("%s: got error %v, want none", c.name, err)
		}
		if got > c.bound {
			t.Errorf("%s allocates %.0f times, want at most %.0f", c.name, got, c.bound)
		}
	}
}
