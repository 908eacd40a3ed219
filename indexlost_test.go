package souvenir

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/index"
)

// observed is a transaction that says which queries run in it.
type observed struct {
	db.Tx
	query func(text string)
}

func (tx observed) Each(fn func(db.Rows) error, query string, args ...any) error {
	tx.query(query)
	return tx.Tx.Each(fn, query, args...)
}

func (tx observed) Query(query string, args ...any) (db.Rows, error) {
	tx.query(query)
	return tx.Tx.Query(query, args...)
}

// useIndex runs a search of everything that finds nothing, with a function that is called before each query.
func useIndex(t *testing.T, s *Store, query func(text string)) error {
	return s.read(t.Context(), func(tx db.Tx, _ viewer) error {
		_, err := s.index.Use(observed{tx, query}, everywhere(t, tx), func(*index.Index) error { return nil })
		return err
	})
}

// TestTheChangeLogIsLostWhileAPartitionIsRead has the log end after what the index knows while a search is reading the
// memories of a partition: what the search has read is too old, and what changes later is found.
func TestTheChangeLogIsLostWhileAPartitionIsRead(t *testing.T) {
	s := openFerries(t, filepath.Join(t.TempDir(), "store.db"), nil)
	reads, goOn, done := make(chan struct{}), make(chan struct{}), make(chan error, 2)
	go func() {
		done <- useIndex(t, s, func(query string) {
			if strings.Contains(query, "FROM passage WHERE memory_id") {
				close(reads)
				<-goOn
			}
		})
	}()
	<-reads
	var ids []string
	for m, err := range s.Memories(t.Context(), List{}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, m.ID)
	}
	rename := func(i int, word string) {
		t.Helper()
		if _, err := s.UpdateMemory(t.Context(), ids[i], MemoryUpdate{Content: &word}); err != nil {
			t.Fatal(err)
		}
	}
	rename(0, "the first one")
	if err := s.db.DB.Write(t.Context(), func(tx db.Tx) error {
		_, err := tx.Exec(`UPDATE change SET seq = seq + 1000000`) // as if 65,536 changes had come since
		return err
	}); err != nil {
		t.Fatal(err)
	}
	go func() {
		done <- useIndex(t, s, func(query string) {
			if strings.Contains(query, "FROM memory WHERE partition_id") { // it lists the partition again
				close(goOn)
			}
		})
	}()
	for range 2 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	for i, word := range []string{"heron", "weir", "lantern", "trumpet"} {
		rename(i, "the "+word)
		results, err := s.Search(t.Context(), Query{Text: word, Limit: 1})
		if err != nil || len(results.Hits) == 0 || results.Hits[0].ID != ids[i] {
			t.Fatalf("a search for %q: got %+v, %v; want what was just stored, memory %s", word, results.Hits, err, ids[i])
		}
	}
	if !inMemory(t, s) {
		t.Error("the index is not held any more, want it caught up")
	}
}
