package souvenir

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
	"github.com/souvenir-ai/souvenir/internal/retrieval/similarity"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// TestDuplicatesAreAllOrThoseOfTheNearest compares the near duplicates found by sketches with those among all memories
// or, if there may be too many, among the nearest, before and after the index is loaded from segments.
func TestDuplicatesAreAllOrThoseOfTheNearest(t *testing.T) {
	longtest.Only(t)
	path := filepath.Join(t.TempDir(), "likeness.db")
	s, err := Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		sentences := []string{"%s deploys on %s at %d:00 UTC", "the queue of %s is restarted each %s, %d times",
			"%s must not be called on %s before %d", "ticket of %s, for %s: pay %d euro", "%sは%sに%d回"}
		return fmt.Sprintf(sentences[random.IntN(5)], []string{"Falcon", "Kestrel", "the server", "Mara",
			"京都"}[random.IntN(5)],
			[]string{"Monday", "Tuesdays", "a holiday", "火曜"}[random.IntN(4)], 1+random.IntN(4))
	}
	for range 30 {
		var memories []NewMemory
		for range 30 {
			content := text()
			if random.IntN(5) == 0 {
				content = strings.Repeat(content+". ", 1+random.IntN(60)) // several passages
			}
			memories = append(memories, NewMemory{Content: content, Tags: []string{fmt.Sprint(random.IntN(3))}})
		}
		if _, err := s.AddMemories(t.Context(), memories, nil); err != nil {
			t.Fatal(err)
		}
	}
	found, none, more, nearest := 0, 0, 0, 0
	for round := range 2 {
		if round == 1 {
			if err := s.Upkeep().StoreIndex(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if s, err = Open(t.Context(), path, nil); err != nil {
				t.Fatal(err)
			}
			defer s.Close()
		}
		for range longtest.Size(80, 25) {
			content := text()
			switch random.IntN(4) {
			case 0:
				content = strings.ToUpper(content)
			case 1:
				content += " and " + text()
			case 2:
				content = "Note: " + content
			}
			got, all, near := duplicatesInAllWays(t, s, content)
			switch {
			case slices.Equal(got, all) && len(all) > len(near):
				more++
			case slices.Equal(got, all) && len(all) > 0:
				found++
			case slices.Equal(got, all):
				none++
			case slices.Equal(got, near):
				nearest++
			default:
				t.Fatalf("like %q: found %+v, want %+v or %+v", content, got, all, near)
			}
		}
	}
	if found < longtest.Size(30, 10) || none < longtest.Size(10, 2) || more == 0 || nearest == 0 ||
		4*nearest > found+none {
		t.Errorf("%d texts had near duplicates, %d more than are among the nearest, %d none, and %d too many to know all; "+
			"want some of each, and few of the last", found, more, none, nearest)
	}
}

// duplicatesInAllWays finds the near duplicates of a text in three ways: as a write does, among all texts, and among
// the texts with the nearest vectors.
func duplicatesInAllWays(t *testing.T, s *Store, content string) (got, all, near []index.Hit) {
	t.Helper()
	vectors, err := s.embedder.Embed(t.Context(), ForDocument, []string{content})
	if err != nil {
		t.Fatal(err)
	}
	err = s.read(t.Context(), func(tx db.Tx, v viewer) error {
		sel, err := s.selection(tx, v, Query{})
		if err != nil {
			return err
		}
		partitions, err := s.comparedBy(tx, preparedQuery{vector: vectors[0]}, sel)
		if err != nil {
			return err
		}
		given := similarity.Read(content)
		n := index.Near{Vector: vectors[0], Partitions: partitions, Limit: maxCompared}
		if got, err = s.comparison().Duplicates(tx, n, given); err != nil {
			return err
		}
		n.Least, n.Limit = similarity.Candidate, 10_000
		if all, err = s.comparison().Near(tx, n); err != nil {
			return err
		}
		near, err = s.comparison().DuplicatesAmong(tx, given, all[:min(maxCompared, len(all))])
		if err == nil {
			all, err = s.comparison().DuplicatesAmong(tx, given, all)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got, all, near
}
