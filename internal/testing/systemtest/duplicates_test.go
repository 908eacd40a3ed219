package systemtest

import (
	"fmt"
	"testing"

	"github.com/souvenir-ai/souvenir"
)

// TestNearDuplicatesInOtherWords adds memories that repeat others in different words, and some that only look like it.
func TestNearDuplicatesInOtherWords(t *testing.T) {
	for _, bytes := range []int64{0, -1} {
		t.Run(fmt.Sprint("index memory ", bytes), func(t *testing.T) {
			store, err := souvenir.Open(t.Context(), ":memory:", &souvenir.Options{IndexMemory: bytes})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			const there = "The deploy window of Falcon is Tuesday 14:00 UTC."
			if _, err := store.AddMemory(t.Context(), souvenir.NewMemory{Content: there}); err != nil {
				t.Fatal(err)
			}
			for content, want := range map[string]int{
				"Falcon deploys on Tuesdays at 14:00 UTC.": 1, "falcon deploys on tuesdays at 2 pm utc": 1,
				"Kestrel deploys on Tuesdays at 14:00 UTC.": 0,
				"Falcon deploys on Fridays at 14:00 UTC.":   0, "Falcon deploys on Tuesdays at 16:00 UTC.": 0,
				"Falcon never deploys on Tuesdays at 14:00 UTC.": 0,
			} {
				stored, err := store.AddMemory(t.Context(), souvenir.NewMemory{Content: content, Similar: 3})
				if err != nil {
					t.Fatal(err)
				}
				if len(stored.Similar) != want || want == 1 && stored.Similar[0].Content != there {
					t.Errorf("%q: hints %+v, want %d", content, stored.Similar, want)
				}
				if err := store.DeleteMemory(t.Context(), stored.ID, nil); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
