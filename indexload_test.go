package souvenir

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
)

// openFerries opens a store of 300 memories, of which every tenth is about a ferry.
func openFerries(t *testing.T, path string, options *Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), path, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if e, err := s.Upkeep().EmbeddingStatus(t.Context()); err != nil || e.Passages > 0 {
		return s
	}
	memories := make([]NewMemory, 300)
	for i := range memories {
		memories[i].Content = fmt.Sprintf("Note %d is about the garden.", i)
		if i%10 == 0 {
			memories[i].Content = fmt.Sprintf("Note %d says when the ferry leaves.", i)
		}
	}
	if _, err := s.AddMemories(t.Context(), memories, nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// ferries are the ids of what a search finds, in order, and how many it finds in all.
func ferries(t *testing.T, s *Store) ([]string, int) {
	t.Helper()
	results, err := s.Search(t.Context(), Query{Text: "departure of the ferry", Limit: 40})
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]string, len(results.Hits))
	for i, h := range results.Hits {
		ids[i] = h.ID
	}
	return ids, results.Total
}

// inMemory reports whether searches use the index in memory now.
func inMemory(t *testing.T, s *Store) (used bool) {
	t.Helper()
	err := s.read(t.Context(), func(tx db.Tx, _ viewer) error {
		ix, err := s.index.Current(tx)
		used = ix != nil
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return used
}

func mustFindAlike(t *testing.T, what string, got []string, total int, want []string, wantTotal int) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) || total != wantTotal {
		t.Errorf("%s: found %d: %v; want %d: %v", what, total, got, wantTotal, want)
	}
}

func TestLargeIndexIsLoadedInTheBackgroundWhileSearchesGoToDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	want, wantTotal := ferries(t, openFerries(t, path, nil))

	s := openFerries(t, path, nil)
	s.index.AtOnce = 10
	got, total := ferries(t, s)
	mustFindAlike(t, "while it loads", got, total, want, wantTotal)
	for wait := time.Now(); !inMemory(t, s); time.Sleep(time.Millisecond) {
		if time.Since(wait) > time.Minute {
			t.Fatal("the index is not loaded after a minute")
		}
	}
	got, total = ferries(t, s)
	mustFindAlike(t, "loaded", got, total, want, wantTotal)

	added, err := s.AddMemory(t.Context(), NewMemory{Content: "The departure of the ferry."})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := ferries(t, s); got[0] != added.ID {
		t.Errorf("what was added after the load is not found first: %v, want %v", got, added.ID)
	}
}

func TestIndexIsLoadedAheadOfTheFirstSearch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	want, wantTotal := ferries(t, openFerries(t, path, nil))
	for _, atOnce := range []int{retrieval.AtOnce, 10} {
		s := openFerries(t, path, nil)
		s.index.AtOnce = atOnce
		for range 2 { // the second time there is nothing to do
			if err := s.Upkeep().LoadIndex(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.index.Wait()
			if s.index.Held() == nil {
				t.Fatalf("no index is there (at once: %d)", atOnce)
			}
		}
		loaded := s.index.Held()
		got, total := ferries(t, s)
		mustFindAlike(t, "loaded ahead", got, total, want, wantTotal)
		if s.index.Held() != loaded {
			t.Error("it was loaded again")
		}
	}
	s := openFerries(t, path, &Options{IndexMemory: -1})
	if err := s.Upkeep().LoadIndex(t.Context()); err != nil || s.index.Held() != nil {
		t.Errorf("without memory for an index: %v, %v", s.index.Held(), err)
	}
}

func TestALoadBeginsOnlyAfterTheSearchThatWantsIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	openFerries(t, path, nil)
	s := openFerries(t, path, nil)
	s.index.AtOnce = 10
	for range 2 {
		used := inMemory(t, s)
		if due, loading := s.index.Pending(); used || loading || !due {
			t.Fatalf("within a search, loading is %t and due is %t", loading, due)
		}
	}
	ferries(t, s)
	s.index.Wait()
	if due, _ := s.index.Pending(); due || !inMemory(t, s) {
		t.Error("after the search, nothing was loaded")
	}
}

func TestIndexPastItsMemoryIsGivenUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	want, wantTotal := ferries(t, openFerries(t, path, nil))
	for _, atOnce := range []int{retrieval.AtOnce, 10} {
		s := openFerries(t, path, &Options{IndexMemory: 100_000})
		s.index.AtOnce = atOnce
		for range 3 {
			got, total := ferries(t, s)
			mustFindAlike(t, "on disk", got, total, want, wantTotal)
		}
		s.index.Wait()
		if inMemory(t, s) {
			t.Errorf("300 memories are held in 100,000 bytes (at once: %d)", atOnce)
		}
	}
}

func TestIndexThatFellBehindTheChangeLogIsLoadedAgain(t *testing.T) {
	s := openFerries(t, filepath.Join(t.TempDir(), "store.db"), nil)
	want, wantTotal := ferries(t, s)
	err := s.db.Write(t.Context(), func(tx db.Tx) error {
		// As if 65,536 changes had come since: the log no longer reaches back to what the index knows.
		_, err := tx.Exec(`UPDATE change SET seq = seq + 1000000`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	before := s.index.Held()
	got, total := ferries(t, s)
	mustFindAlike(t, "loaded again", got, total, want, wantTotal)
	if s.index.Held() == before {
		t.Error("the index was not loaded again")
	}
}
