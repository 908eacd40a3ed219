package extract_test

import (
	"slices"
	"testing"
	"time"

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

// A change of the memory that the forgotten one superseded outlasts undoing that.
func TestForgettingAndTheOneBefore(t *testing.T) {
	later := time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)
	own := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, meanwhile := range map[string]func(store *souvenir.Store, kiel string) error{
		"deleted": func(s *souvenir.Store, kiel string) error { return s.DeleteMemory(t.Context(), kiel, nil) },
		"given another end": func(s *souvenir.Store, kiel string) error {
			from := own.AddDate(-1, 0, 0)
			_, err := s.UpdateMemory(t.Context(), kiel, souvenir.MemoryUpdate{ValidFrom: &from, ValidUntil: &own})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := open(t)
			kiel := remember(t, store, "Anna works in Kiel.")[0]
			var ids []string
			for _, n := range []souvenir.NewMemory{{Content: "Anna works in Bremen."},
				{Content: "Anna works in Paris.", ValidFrom: later}} {
				n.Supersedes, n.EventType = kiel, extract.EventFact
				m, err := store.AddMemory(t.Context(), n)
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, m.ID)
			}
			say(t, store, souvenir.ConversationPlace{}, "Forget where Anna works: Bremen.")
			r := learn(t, learner(t, store, extract.Options{Review: true,
				Extractor: propose(extract.Proposal{Action: extract.Forget, Target: ids[0]})}))
			by := extract.NewReviewer(store)
			d, err := by.Accept(t.Context(), r.Kept[0].ID, extract.Answer{})
			if err != nil {
				t.Fatal(err)
			}
			if got := facts(t, store, inDefault); slices.Contains(got, "Anna works in Kiel.") {
				t.Errorf("got %q, want without Kiel, although Paris begins later", got)
			}
			if err := meanwhile(store, kiel); err != nil {
				t.Fatal(err)
			}
			if err := by.Undo(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			if got := facts(t, store, inDefault); !slices.Contains(got, "Anna works in Bremen.") {
				t.Errorf("after undoing: got %q, want Bremen in it", got)
			}
			for _, id := range ids {
				if err := store.DeleteMemory(t.Context(), id, nil); err != nil {
					t.Fatal(err)
				}
			}
			if m, err := store.GetMemory(t.Context(), kiel); err == nil && !m.ValidUntil.Equal(own) {
				t.Errorf("got Kiel valid until %v, want %v, as it was given", m.ValidUntil, own)
			}
		})
	}
}
