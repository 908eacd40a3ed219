package extract_test

import (
	"slices"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/extract"
)

func TestForgettingMakesNothingOutdatedValidAgain(t *testing.T) {
	for name, review := range map[string]bool{"learned": false, "reviewed": true} {
		t.Run(name, func(t *testing.T) {
			store := open(t)
			kiel := remember(t, store, "Anna works in Kiel.")[0]
			bremen, err := store.AddMemory(t.Context(), souvenir.NewMemory{Content: "Anna works in Bremen.",
				Supersedes: kiel, EventType: extract.EventFact})
			if err != nil {
				t.Fatal(err)
			}
			say(t, store, souvenir.ConversationPlace{}, "Forget where Anna works: Bremen.")
			r := learn(t, learner(t, store, extract.Options{Review: review,
				Extractor: propose(extract.Proposal{Action: extract.Forget, Target: bremen.ID})}))
			var d extract.Decision
			by := extract.NewReviewer(store)
			if review {
				if d, err = by.Accept(t.Context(), r.Kept[0].ID, extract.Answer{}); err != nil {
					t.Fatal(err)
				}
			}
			if got := facts(t, store, inDefault); slices.Contains(got, "Anna works in Kiel.") ||
				slices.Contains(got, "Anna works in Bremen.") {
				t.Errorf("got %q, want neither the forgotten memory nor the one that it superseded", got)
			}
			old, err := store.GetMemory(t.Context(), kiel)
			if err != nil || !old.ValidUntil.Equal(bremen.CreatedAt) {
				t.Errorf("got %v and the error %v, want the old one valid until %v", old.ValidUntil, err, bremen.CreatedAt)
			}
			if !review {
				return
			}
			if err := by.Undo(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			if err := store.DeleteMemory(t.Context(), bremen.ID, nil); err != nil {
				t.Fatal(err)
			}
			if got := facts(t, store, inDefault); !slices.Contains(got, "Anna works in Kiel.") {
				t.Errorf("got %q, want the old one without an end, as before", got)
			}
		})
	}
}
