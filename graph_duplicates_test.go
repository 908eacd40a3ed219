package souvenir

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// pairsOf describes the near duplicates that a view sees.
func pairsOf(ctx context.Context, t *testing.T, s *Store) []string {
	t.Helper()
	g, err := s.Insights().Graph(ctx, GraphQuery{Duplicates: 0.8})
	if err != nil {
		t.Fatal(err)
	}
	pairs := []string{}
	for _, e := range g.Edges {
		from, to := g.Nodes[e.From].Label, g.Nodes[e.To].Label
		pairs = append(pairs, fmt.Sprintf("%s = %s, %.4f", min(from, to), max(from, to), e.Score))
	}
	slices.Sort(pairs)
	return pairs
}

// Cached comparisons of memories must equal a new computation after each kind of change, also by another handle or
// undone.
func TestNearDuplicatesFollowEachChange(t *testing.T) {
	longtest.Only(t)
	path := filepath.Join(t.TempDir(), "pairscores.db")
	s, other := openWords(t, path, Options{}), openWords(t, path, Options{})
	before := ""
	check := func(when string, view func(*Store) *Store) {
		t.Helper()
		fresh := openWords(t, path, Options{})
		want := pairsOf(t.Context(), t, view(fresh))
		for range 2 {
			if got := pairsOf(t.Context(), t, view(s)); !slices.Equal(got, want) {
				t.Errorf("%s: got %q, want %q", when, got, want)
			}
		}
		if now := fmt.Sprint(want); now == before {
			t.Errorf("%s: nothing has changed: %s, want a change", when, now)
		} else {
			before = now
		}
		if err := fresh.Close(); err != nil {
			t.Fatal(err)
		}
	}
	mine := func(s *Store) *Store { return s }
	text := func(n int) string { return fmt.Sprintf("The nightly backup of the ledger runs at %d:00 on Falcon", n) }
	first := mustAdd(t, s, NewMemory{Content: text(4)})
	mustAdd(t, s, NewMemory{Content: text(4) + "."})
	mustAdd(t, s, NewMemory{Content: text(5)})
	check("at first", mine)
	third := mustAdd(t, other, NewMemory{Content: text(5) + "!"})
	check("after another handle's addition", mine)
	if _, err := other.UpdateMemory(t.Context(), first.ID, MemoryUpdate{Content: new(text(5) + "?")}); err != nil {
		t.Fatal(err)
	}
	check("after an update", mine)
	undone := errors.New("undone")
	err := s.Transaction(t.Context(), func(ctx context.Context) error {
		_, err := s.UpdateMemory(ctx, third.ID, MemoryUpdate{Content: new("Something else")})
		if got := pairsOf(ctx, t, s); fmt.Sprint(got) == before {
			t.Errorf("in a transaction: got %q, want what it has written", got)
		}
		return errors.Join(err, undone)
	})
	if !errors.Is(err, undone) {
		t.Fatalf("got %v, want %v", err, undone)
	}
	if got := pairsOf(t.Context(), t, s); fmt.Sprint(got) != before {
		t.Errorf("after it was undone: got %q, want %s", got, before)
	}
	if err := s.DeleteMemory(t.Context(), third.ID, nil); err != nil {
		t.Fatal(err)
	}
	check("after a deletion", mine)
	check("of another user", func(s *Store) *Store { return s.As(Access{User: "bob"}) })
}

// Only changed memories are compared again.
func TestPairScoresAreKeptUntilAChange(t *testing.T) {
	s := openWords(t, "", Options{})
	var ids []string
	for i := range 4 {
		ids = append(ids, mustAdd(t, s, NewMemory{Content: fmt.Sprint("memory ", i)}).ID)
	}
	pairs := []retrieval.Pair{{1, 2}, {1, 3}, {2, 3}, {3, 4}}
	check := func(when string, want ...retrieval.Pair) {
		t.Helper()
		var asked []retrieval.Pair
		err := s.db.Read(t.Context(), func(tx db.Tx) error {
			got, err := s.pairScores.Of(tx, "key", pairs, func(some []retrieval.Pair) (all []float64, err error) {
				asked = append(asked, some...)
				for _, pair := range some {
					all = append(all, float64(10*pair[0]+pair[1]))
				}
				return all, nil
			})
			if !slices.Equal(got, []float64{12, 13, 23, 34}) {
				t.Errorf("%s: got %v, want 12 13 23 34", when, got)
			}
			return err
		})
		if err != nil || !slices.Equal(asked, want) {
			t.Errorf("%s: compared %v and got %v, want %v and no error", when, asked, err, want)
		}
	}
	check("at first", pairs...)
	check("again")
	if _, err := s.UpdateMemory(t.Context(), ids[1], MemoryUpdate{Content: new("another")}); err != nil {
		t.Fatal(err)
	}
	check("after an update", retrieval.Pair{1, 2}, retrieval.Pair{2, 3})
	check("after that")
}
