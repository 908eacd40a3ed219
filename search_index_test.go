package souvenir

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// openFerries opens a store of 300 memories. Every tenth is about a ferry.
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

// ferries returns the ids that a search finds, in order, and how many it finds in all.
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

// everywhere returns all partitions with memories.
func everywhere(t *testing.T, tx db.Tx) []int64 {
	t.Helper()
	all, err := db.Column[int64](tx, `SELECT id FROM partition WHERE memories > 0 ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// inMemory reports whether searches of everything now use the index in memory.
func inMemory(t *testing.T, s *Store) (used bool) {
	t.Helper()
	err := s.read(t.Context(), func(tx db.Tx, _ viewer) (err error) {
		plan, err := s.index.Use(tx, everywhere(t, tx), func(*index.Index) error { return nil })
		used = plan != ""
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return used
}

// indexState returns where searches of everything run.
func indexState(t *testing.T, s *Store) (state retrieval.State) {
	t.Helper()
	err := s.read(t.Context(), func(tx db.Tx, _ viewer) (err error) {
		state, err = s.index.State(tx, everywhere(t, tx))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return state
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
			t.Fatalf("after %v: got an index that is not loaded, want it loaded", time.Minute)
		}
	}
	got, total = ferries(t, s)
	mustFindAlike(t, "loaded", got, total, want, wantTotal)

	added, err := s.AddMemory(t.Context(), NewMemory{Content: "The departure of the ferry."})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := ferries(t, s); got[0] != added.ID {
		t.Errorf("a memory added after the load is not found first: %v, want %v", got, added.ID)
	}
}

func TestIndexIsLoadedAheadOfTheFirstSearch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	want, wantTotal := ferries(t, openFerries(t, path, nil))
	s := openFerries(t, path, nil)
	s.index.AtOnce = 10 // a search itself loads nothing
	if got := indexState(t, s); got != retrieval.Loading {
		t.Errorf("at first searches run in %q, want %q", got, retrieval.Loading)
	}
	for range 2 { // the second time there is nothing to do
		if err := s.Upkeep().LoadIndex(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.index.Wait()
		if got := indexState(t, s); got != retrieval.InMemory {
			t.Fatalf("loaded ahead, searches run in %q, want %q", got, retrieval.InMemory)
		}
	}
	got, total := ferries(t, s)
	mustFindAlike(t, "loaded ahead", got, total, want, wantTotal)

	s = openFerries(t, path, &Options{IndexMemory: -1})
	if err := s.Upkeep().LoadIndex(t.Context()); err != nil || indexState(t, s) != retrieval.InDatabase {
		t.Errorf("without memory for an index searches run in %q, %v; want %q", indexState(t, s), err, retrieval.InDatabase)
	}
}

func TestTheIndexLoadsAfterTheFirstSearch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	openFerries(t, path, nil)
	s := openFerries(t, path, nil)
	s.index.AtOnce = 10
	for range 2 {
		used := inMemory(t, s)
		s.index.Wait()
		if used || inMemory(t, s) {
			t.Fatal("within a search the index is loaded, want that only after it")
		}
	}
	ferries(t, s)
	s.index.Wait()
	if !inMemory(t, s) {
		t.Error("after the search, nothing was loaded, want the index")
	}
}

func TestAnIndexPastItsMemoryIsNotHeld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	want, wantTotal := ferries(t, openFerries(t, path, nil))
	for _, atOnce := range []int{retrieval.AtOnce, 10} {
		s := openFerries(t, path, &Options{IndexMemory: 100_000})
		s.index.AtOnce = atOnce
		for range 3 {
			got, total := ferries(t, s)
			mustFindAlike(t, "on disk", got, total, want, wantTotal)
			s.index.Wait()
			if held := s.index.Bytes(); held > 100_000 {
				t.Errorf("%d bytes are held, want at most 100,000 (at once: %d)", held, atOnce)
			}
		}
		if got := indexState(t, s); got != retrieval.InDatabase {
			t.Errorf("300 memories are searched in %q with 100,000 bytes, want %q (at once: %d)", got, retrieval.InDatabase,
				atOnce)
		}
	}
}

func TestIndexThatFellBehindTheChangeLogCatchesUp(t *testing.T) {
	longtest.Only(t)
	s := openFerries(t, filepath.Join(t.TempDir(), "store.db"), nil)
	want, _ := ferries(t, s)
	gone := want[0]
	err := s.db.DB.Write(t.Context(), func(tx db.Tx) error {
		// As after 65,536 more changes: the log no longer goes back to what the index knows.
		_, err := tx.Exec(`DELETE FROM memory WHERE uid = ?`, gone)
		if err == nil {
			_, err = tx.Exec(`UPDATE change SET seq = seq + 1000000`)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddMemory(t.Context(), NewMemory{Content: "The departure of the ferry."}); err != nil {
		t.Fatal(err)
	}
	fresh := openFerries(t, s.db.Upkeep().Path, &Options{IndexMemory: -1})
	want, wantTotal := ferries(t, fresh)
	got, total := ferries(t, s)
	mustFindAlike(t, "caught up", got, total, want, wantTotal)
	if !inMemory(t, s) {
		t.Error("the index was dropped, want it caught up")
	}
}

// openPlaces opens a store with projects of 100 memories each.
func openPlaces(t *testing.T, projects int, options *Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "store.db"), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for c := range projects {
		if _, err := s.AddProject(t.Context(), NewProject{Name: fmt.Sprint("place", c)}); err != nil {
			t.Fatal(err)
		}
		memories := make([]NewMemory, 100)
		for i := range memories {
			memories[i] = NewMemory{ProjectName: fmt.Sprint("place", c), Content: fmt.Sprintf("Note %d of place %d.", i, c)}
		}
		if _, err := s.AddMemories(t.Context(), memories, nil); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// searchPlace searches one of the projects, and returns the hits.
func searchPlace(t *testing.T, s *Store, place int, text string) []string {
	t.Helper()
	results, err := s.Search(t.Context(), Query{Text: text, ProjectName: fmt.Sprint("place", place)})
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]string, len(results.Hits))
	for i, h := range results.Hits {
		ids[i] = h.ID
	}
	return ids
}

func TestTheLeastRecentlySearchedMakesRoom(t *testing.T) {
	longtest.Only(t)
	const places, limit = 8, 700_000 // enough for some of them
	s := openPlaces(t, places, &Options{IndexMemory: limit})
	onDisk, err := Open(t.Context(), s.db.Upkeep().Path, &Options{IndexMemory: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { onDisk.Close() })
	partitions := map[int]int64{}
	held := func(place int) bool { return slices.Contains(s.index.Held(), partitions[place]) }
	for place := range places {
		before := s.index.Held()
		want := searchPlace(t, onDisk, place, "note 7 of a place")
		if got := searchPlace(t, s, place, "note 7 of a place"); !slices.Equal(got, want) {
			t.Errorf("place %d: found %v, want %v", place, got, want)
		}
		for _, id := range s.index.Held() {
			if !slices.Contains(before, id) {
				partitions[place] = id
			}
		}
		searchPlace(t, s, 0, "note 8") // so that it stays in use
		if bytes := s.index.Bytes(); bytes > limit {
			t.Errorf("%d bytes are held, want at most %d", bytes, limit)
		}
		if !held(place) || !held(0) {
			t.Errorf("after searches of places 0 and %d: got %v of %v partitions in memory, want both places among "+
				"them", place, s.index.Held(), partitions)
		}
	}
	if held(1) || !held(places-1) {
		t.Errorf("place 1 is held: %t, want false; place %d: %t, want true", held(1), places-1, held(places-1))
	}
	for range 3 { // together they exceed the limit, and each search notices without loading any
		before := s.index.Held()
		results, err := s.Search(t.Context(), Query{Text: "note 7 of place 3", Limit: 1})
		s.index.Wait()
		if err != nil || len(results.Hits) != 1 || !strings.Contains(results.Hits[0].Content, "Note 7 of place 3") {
			t.Errorf("a search of all finds %+v, %v; want note 7 of place 3", results.Hits, err)
		}
		if after := s.index.Held(); !slices.Equal(before, after) {
			t.Errorf("a search of all holds %v, want %v as before", after, before)
		}
	}
}

func TestABulkInsertThrowsNoIndexAway(t *testing.T) {
	longtest.Only(t)
	s := openPlaces(t, 2, nil)
	s.index.AtOnce = 50
	for place := range 2 {
		searchPlace(t, s, place, "note")
	}
	s.index.Wait()
	held := s.index.Held()
	if len(held) != 2 {
		t.Fatalf("%d partitions are held, want 2", len(held))
	}
	memories := make([]NewMemory, 1000)
	for i := range memories {
		memories[i] = NewMemory{ProjectName: "place0", Content: fmt.Sprintf("Later note %d.", i)}
	}
	if _, err := s.AddMemories(t.Context(), memories, nil); err != nil {
		t.Fatal(err)
	}
	added, err := s.AddMemory(t.Context(), NewMemory{ProjectName: "place0", Content: "A heron on the weir."})
	if err != nil {
		t.Fatal(err)
	}
	if got := searchPlace(t, s, 0, "heron on the weir"); got[0] != added.ID {
		t.Errorf("the first hit is %v, want what was added last, %v", got[0], added.ID)
	}
	if got := s.index.Held(); !slices.Equal(got, held) {
		t.Errorf("held is %v, want %v", got, held)
	}
	s.index.Wait()
	for wait := time.Now(); !inMemory(t, s); time.Sleep(time.Millisecond) {
		if time.Since(wait) > time.Minute {
			t.Fatalf("after %v: got an index that has not caught up, want it current", time.Minute)
		}
	}
	if got := searchPlace(t, s, 0, "heron on the weir"); got[0] != added.ID {
		t.Errorf("caught up, the first hit is %v, want %v", got[0], added.ID)
	}
}

// TestSearchesBesideWritersMissNothing searches several projects while writers add, move and delete memories. The index
// is too small for all of them.
func TestSearchesBesideWritersMissNothing(t *testing.T) {
	longtest.Only(t)
	const places = 4
	s := openPlaces(t, places, &Options{IndexMemory: 600_000})
	s.index.AtOnce = 40
	var group sync.WaitGroup
	for w := range 3 {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 1))
			for i := range 40 {
				place := random.IntN(places)
				word := fmt.Sprintf("heron%dx%d", w, i)
				added, err := s.AddMemory(t.Context(), NewMemory{ProjectName: fmt.Sprint("place", place), Content: "A " + word})
				if err != nil {
					t.Error(err)
					return
				}
				found := func(place int) bool { return slices.Contains(searchPlace(t, s, place, word), added.ID) }
				if !found(place) {
					t.Errorf("%s is not found where it was added, want it found", word)
				}
				to := (place + 1) % places
				name := fmt.Sprint("place", to)
				if _, err := s.UpdateMemory(t.Context(), added.ID, MemoryUpdate{ProjectName: &name}); err != nil {
					t.Error(err)
					return
				}
				if found(place) || !found(to) {
					t.Errorf("%s is found where it was: %t, want false; where it is: %t, want true", word, found(place), found(to))
				}
				if i%2 == 0 {
					if err := s.DeleteMemory(t.Context(), added.ID, nil); err != nil {
						t.Error(err)
						return
					}
					if found(to) {
						t.Errorf("%s is found after it was deleted, want it gone", word)
					}
				}
			}
		})
	}
	group.Wait()
	s.index.Wait()
	if bytes := s.index.Bytes(); bytes > 600_000 {
		t.Errorf("%d bytes are held, want at most 600,000", bytes)
	}
}

// observed is a transaction that reports the queries in it.
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

// useIndex runs a search of everything that finds nothing, and calls a function before each query.
func useIndex(t *testing.T, s *Store, query func(text string)) error {
	return s.read(t.Context(), func(tx db.Tx, _ viewer) error {
		_, err := s.index.Use(observed{tx, query}, everywhere(t, tx), func(*index.Index) error { return nil })
		return err
	})
}

// TestTheChangeLogIsLostWhileAPartitionIsRead drops the change log that the index needs while a search reads the
// memories of a partition. What the search has read is then too old, and later changes are found.
func TestTheChangeLogIsLostWhileAPartitionIsRead(t *testing.T) {
	longtest.Only(t)
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
	for m, err := range s.Memories(t.Context(), MemoryList{}) {
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
		_, err := tx.Exec(`UPDATE change SET seq = seq + 1000000`) // as after 65,536 more changes
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
		t.Error("the index was dropped, want it caught up")
	}
}

// TestAnOlderSnapshotIsSearchedInTheIndex searches in a snapshot while a search in a newer one has noted a change that
// it has not read yet. The change concerns only the newer one.
func TestAnOlderSnapshotIsSearchedInTheIndex(t *testing.T) {
	s := openFerries(t, filepath.Join(t.TempDir(), "store.db"), nil)
	if err := useIndex(t, s, func(string) {}); err != nil {
		t.Fatal(err)
	}
	err := s.read(t.Context(), func(tx db.Tx, _ viewer) error {
		search := func() retrieval.Plan {
			plan, err := s.index.Use(tx, everywhere(t, tx), func(*index.Index) error { return nil })
			if err != nil {
				t.Fatal(err)
			}
			return plan
		}
		if plan := search(); plan == "" {
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
		if plan := search(); plan == "" {
			t.Error("a search runs in the database while another one reads what is newer, want it to run in the index")
		}
		close(goOn)
		if err := <-done; err != nil {
			return err
		}
		if plan := search(); plan == "" {
			t.Error("the last search runs in the database, want it to run in the index")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
