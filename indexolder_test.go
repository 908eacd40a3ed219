package souvenir

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/index"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
)

// TestAnOlderSnapshotIsSearchedInTheIndex has a search go on in a snapshot while another one, in a newer one, has noted
// what a write changed and not read it yet: that concerns the newer one alone.
func TestAnOlderSnapshotIsSearchedInTheIndex(t *testing.T) {
	s := openFerries(t, filepath.Join(t.TempDir(), "store.db"), nil)
	if err := useIndex(t, s, func(string) {}); err != nil {
		t.Fatal(err)
	}
	err := s.read(t.Context(), func(tx db.Tx, _ viewer) error {
		search := func() retrieval.Way {
			way, err := s.index.Use(tx, everywhere(t, tx), func(*index.Index) error { return nil })
			if err != nil {
				t.Fatal(err)
			}
			return way
		}
		if way := search(); way == "" {
			t.Error("the first search runs in the database, want it to run in the index")
		}
		if _, err := s.AddMemory(t.Context(), NewMemory{Content: "a lantern"}); err != nil {
			return err
		}
		reads, goOn, done := make(chan struct{}), make(chan struct{}), make(chan error)
		go func() {
			done <- useIndex(t, s, func(query string) {
				if strings.Contains(query, "FROM passage WHERE memory_id") {
					close(reads)
					<-goOn
				}
			})
		}()
		<-reads
		if way := search(); way == "" {
			t.Error("a search runs in the database while another one reads what is newer, want it to run in the index")
		}
		close(goOn)
		if err := <-done; err != nil {
			return err
		}
		if way := search(); way == "" {
			t.Error("the last search runs in the database, want it to run in the index")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
