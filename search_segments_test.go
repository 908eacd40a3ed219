package souvenir

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fairqueue"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// mustPersist stores the index of all partitions that have memories.
func mustPersist(t *testing.T, s *Store) {
	t.Helper()
	s.worker.Stop() // so that the worker does not interfere
	s.index.SegmentAt = 1
	if err := s.index.Persist(t.Context(), true); err != nil {
		t.Fatalf("persist: got %v, want no error", err)
	}
}

// countOf runs a query that returns one number.
func countOf(t *testing.T, s *Store, query string, args ...any) (n int) {
	t.Helper()
	err := s.db.Read(t.Context(), func(tx db.Tx) error { return tx.QueryRow(query, args...).Scan(&n) })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// reopen opens a store's file again, so that its index is loaded anew.
func reopen(t *testing.T, s *Store, o Options) *Store {
	t.Helper()
	return openWords(t, s.db.Upkeep().Path, o)
}

func TestSegmentsAreLoadedAtOnce(t *testing.T) {
	s := openFerries(t, filepath.Join(t.TempDir(), "store.db"), nil)
	want, wantTotal := ferries(t, s)
	mustPersist(t, s)
	if n := countOf(t, s, `SELECT count(*) FROM segment`); n != 1 {
		t.Fatalf("got %d segments of 300 memories, want 1", n)
	}
	added, err := s.AddMemory(t.Context(), NewMemory{Content: "The departure of the ferry."})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteMemory(t.Context(), want[0], nil); err != nil {
		t.Fatal(err)
	}
	again := openFerries(t, s.db.Upkeep().Path, nil)
	again.index.AtOnce = 10 // a search does not read 300 texts itself
	got, total := ferries(t, again)
	if !inMemory(t, again) {
		t.Error("after the first search, searches run on disk; want the index loaded from its segments")
	}
	if slices.Contains(got, want[0]) || !slices.Contains(got, added.ID) || total != wantTotal {
		t.Errorf("got %d of %v, want %d with %s, which was added, and without %s, which was deleted", total, got, wantTotal,
			added.ID, want[0])
	}
}

// Each project has few memories, but all of them together are too many for a search to read.
func TestSegmentsOfManyProjectsAreLoadedAtOnce(t *testing.T) {
	longtest.Only(t)
	s := openWords(t, filepath.Join(t.TempDir(), "store.db"), Options{})
	for project := range 4 {
		for i := range 8 {
			mustAdd(t, s, NewMemory{Content: fmt.Sprintf("The ferry %d.", i), ProjectName: fmt.Sprint("project ", project)})
		}
	}
	mustPersist(t, s)
	mustAdd(t, s, NewMemory{Content: "The last ferry.", ProjectName: "project 1"})
	again := reopen(t, s, Options{})
	again.index.AtOnce = 10
	found, err := again.Search(t.Context(), Query{Text: "ferry", Limit: 50})
	if err != nil || found.Total != 33 {
		t.Fatalf("got %d and %v, want 33 and no error", found.Total, err)
	}
	if n, err := again.index.Counts(t.Context()); err != nil || n.WithSegments != 1 || n.InDatabase != 0 {
		t.Fatalf("got %+v and %v, want the search with segments, and none in the database", n, err)
	}
}

// randomChange makes one of the changes that affect searches.
func randomChange(t *testing.T, g *rand.Rand, s *Store) error {
	ids := make([]string, 0, 100)
	for m, err := range s.Memories(t.Context(), MemoryList{}) {
		if err != nil {
			return err
		}
		ids = append(ids, m.ID)
	}
	word := func() string { return []string{"garden", "ferry", "weir", "heron", "letter", "渡し船"}[g.IntN(6)] }
	newMemory := func() NewMemory {
		m := NewMemory{Content: fmt.Sprintf("A note on the %s and the %s, number %d.", word(), word(), g.IntN(1000))}
		if g.IntN(3) == 0 {
			m.ProjectName = fmt.Sprint("project ", g.IntN(2))
		}
		return m
	}
	way := g.IntN(9)
	if way < 2 || len(ids) == 0 {
		memories := make([]NewMemory, 1+g.IntN(12))
		for i := range memories {
			memories[i] = newMemory()
		}
		_, err := s.AddMemories(t.Context(), memories, nil)
		return err
	}
	id := ids[g.IntN(len(ids))]
	switch way {
	case 2:
		text := newMemory().Content
		_, err := s.UpdateMemory(t.Context(), id, MemoryUpdate{Content: &text})
		return err
	case 3:
		_, err := s.UpdateMemory(t.Context(), id, MemoryUpdate{Tags: &[]string{word()}})
		return err
	case 4:
		project := fmt.Sprint("project ", g.IntN(3))
		_, err := s.UpdateMemory(t.Context(), id, MemoryUpdate{ProjectName: &project})
		return err
	case 5:
		return s.DeleteMemory(t.Context(), id, nil)
	case 6:
		return s.DeleteMemory(t.Context(), id, &DeletionOptions{Erase: true})
	case 7:
		for e, err := range s.Trash().All(t.Context(), TrashList{}) {
			if err == nil {
				_, err = s.Trash().Restore(t.Context(), e.ID)
			}
			return err
		}
	case 8:
		_, err := s.Trash().Empty(t.Context())
		return err
	}
	return nil
}

// TestSegmentsAnswerAsTextsDo makes random changes, then compares a store whose index comes from segments and later
// changes with one whose index comes from texts.
func TestSegmentsAnswerAsTextsDo(t *testing.T) {
	longtest.Only(t)
	for seed := range longtest.Size(12, 3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			g := rand.New(rand.NewPCG(uint64(seed), 33))
			s := openWords(t, "", Options{})
			texts := reopen(t, s, Options{})
			texts.worker.Stop()
			texts.index.Kind = "none" // so that it reads texts
			loaded := s
			for range 40 {
				if err := randomChange(t, g, s); err != nil {
					t.Fatal(err)
				}
				switch g.IntN(8) {
				case 0, 1, 2:
					mustPersist(t, s)
				case 3:
					if err := s.index.EraseStale(t.Context()); err != nil {
						t.Fatal(err)
					}
				case 4:
					loaded = reopen(t, s, Options{})
				}
				for _, text := range []string{"a note on the heron", "ferry", "渡し船 letter"} {
					q := Query{Text: text, Limit: MaxLimit}
					a, err := loaded.Search(t.Context(), q)
					if err != nil {
						t.Fatal(err)
					}
					b, err := texts.Search(t.Context(), q)
					if err != nil {
						t.Fatal(err)
					}
					sameHits(t, a, b)
				}
			}
			if err := s.index.EraseStale(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := countOf(t, s, `SELECT count(*) FROM segment_stale`); n != 0 {
				t.Errorf("after stale segments were erased: got %d stale rows, want none", n)
			}
			checkConsistency(t, s)
		})
	}
}

// An engine may run each write twice.
func TestWritesOfSegmentsRunAgain(t *testing.T) {
	longtest.Only(t)
	s := openRerunning(t, filepath.Join(t.TempDir(), "store.db"))
	g := rand.New(rand.NewPCG(5, 36))
	for range 40 {
		if err := randomChange(t, g, s); err != nil {
			t.Fatal(err)
		}
		if g.IntN(3) == 0 {
			mustPersist(t, s)
		}
		if g.IntN(3) == 0 {
			before := countOf(t, s, `SELECT count(*) FROM segmented`)
			if err := s.index.EraseStale(t.Context()); err != nil {
				t.Fatal(err)
			}
			if after := countOf(t, s, `SELECT count(*) FROM segmented`); after != before {
				t.Errorf("after stale segments were erased: got segments of %d partitions, want %d as before", after, before)
			}
		}
	}
	if n := countOf(t, s, `SELECT count(*) FROM segment`); n == 0 {
		t.Error("got no segments, want some")
	}
	checkConsistency(t, s)
}

// meanwhile is an engine that calls a function once, before the second write after it is set: the first write of
// Persist takes the lease.
type meanwhile struct {
	db.DB
	happens *func(db.Tx) error
	writes  *int
}

func (m meanwhile) Write(ctx context.Context, fn func(db.Tx) error) error {
	if happens := *m.happens; happens != nil {
		*m.writes++
	}
	if happens := *m.happens; happens != nil && *m.writes == 2 {
		*m.happens = nil
		if err := m.DB.Write(ctx, happens); err != nil {
			return err
		}
	}
	return m.DB.Write(ctx, fn)
}

func TestSegmentsOfOtherProcessesAreLeft(t *testing.T) {
	longtest.Only(t)
	for name, statement := range map[string]string{
		"of a newer program": `INSERT INTO segmented (partition_id, profile_id, kind, upto, memories)
			SELECT id, 77, 'newer', 5, 0 FROM partition`,
		"being deleted": `INSERT INTO segmented (partition_id, profile_id, kind, upto, memories)
			SELECT id, 77, '', 5, 0 FROM partition`,
		"of a partition that is deleted": `DELETE FROM collection`,
	} {
		t.Run(name, func(t *testing.T) {
			var happens func(db.Tx) error
			s := openThrough(t, filepath.Join(t.TempDir(), "store.db"), func(engine db.DB) db.DB {
				return meanwhile{engine, &happens, new(int)}
			})
			for i := range 30 {
				mustAdd(t, s, NewMemory{Content: fmt.Sprintf("Note %d about a heron.", i)})
			}
			s.worker.Stop() // its writes would count
			s.index.SegmentAt = 3
			happens = func(tx db.Tx) error {
				_, err := tx.Exec(statement)
				return err
			}
			if err := s.index.Persist(t.Context(), true); err != nil && !errors.Is(err, db.ErrBusy) {
				t.Fatal(err)
			}
			if happens != nil {
				t.Fatal("got no write, want one")
			}
			wrong := countOf(t, s, `SELECT count(*) FROM segmented s WHERE s.kind <> 'newer' AND s.profile_id = 77
				OR s.kind = 'newer' AND EXISTS (SELECT 1 FROM segment g WHERE g.partition_id = s.partition_id)
				OR NOT EXISTS (SELECT 1 FROM partition p WHERE p.id = s.partition_id)`)
			if wrong != 0 {
				t.Errorf("got %d partitions with segments that are not theirs, want none", wrong)
			}
		})
	}
}

func TestDamagedSegmentsAreMadeAgain(t *testing.T) {
	longtest.Only(t)
	for _, damage := range []string{`UPDATE segment SET data = substr(data, 1, length(data) / 2)`,
		`UPDATE segment SET data = x'00'`, `UPDATE segmented SET kind = ''`} {
		s := openFerries(t, filepath.Join(t.TempDir(), "store.db"), nil)
		want, wantTotal := ferries(t, s)
		mustPersist(t, s)
		err := s.db.Write(t.Context(), func(tx db.Tx) error {
			_, err := tx.Exec(damage)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		again := openFerries(t, s.db.Upkeep().Path, nil)
		got, total := ferries(t, again)
		mustFindAlike(t, damage, got, total, want, wantTotal)
		mustPersist(t, again)
		last := openFerries(t, s.db.Upkeep().Path, nil)
		last.index.AtOnce = 10
		got, total = ferries(t, last)
		mustFindAlike(t, damage+", made again", got, total, want, wantTotal)
		if state := indexState(t, last); state != retrieval.InMemory {
			t.Errorf("%s: searches run in %q after the segments were made again, want %q", damage, state, retrieval.InMemory)
		}
	}
}

// TestSegmentsBesideChanges changes memories, stores the index and loads it at the same time.
func TestSegmentsBesideChanges(t *testing.T) {
	longtest.Only(t)
	s := openWords(t, "", Options{})
	texts := reopen(t, s, Options{})
	texts.worker.Stop()
	texts.index.Kind = "none"
	var writers, others sync.WaitGroup
	done := make(chan struct{})
	for w := range 3 {
		writers.Go(func() {
			g := rand.New(rand.NewPCG(uint64(w), 34))
			for range longtest.Size(80, 25) {
				if err := randomChange(t, g, s); err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrConflict) {
					t.Error(err)
				}
			}
		})
	}
	for range 2 {
		others.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				again, err := Open(t.Context(), s.db.Upkeep().Path, &Options{Embedder: wordEmbedder("words-1")})
				if err != nil {
					t.Error(err)
					return
				}
				again.worker.Stop()
				again.index.SegmentAt = 1
				if _, err := again.Search(t.Context(), Query{Text: "heron", Limit: 5}); err != nil {
					t.Error(err)
				}
				if err := again.index.Persist(t.Context(), true); err != nil && !errors.Is(err, db.ErrBusy) {
					t.Error(err)
				}
				if err := again.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	close(done)
	others.Wait()
	loaded := reopen(t, s, Options{})
	for _, text := range []string{"a note on the heron", "ferry", "letter"} {
		q := Query{Text: text, Limit: MaxLimit}
		a, errA := loaded.Search(t.Context(), q)
		b, errB := texts.Search(t.Context(), q)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		sameHits(t, a, b)
	}
	if n := countOf(t, s, `SELECT count(*) FROM segment`); n == 0 {
		t.Error("got no segments, want some: nothing was tested")
	}
}

func TestCheckFindsWrongSegments(t *testing.T) {
	longtest.Only(t)
	for name, damage := range map[string]string{
		"changed": `UPDATE segment SET data = CAST(substr(data, 1, length(data) - 9) || x'0102030405060708' AS BLOB)`,
		"lost":    `DELETE FROM segment`,
		"twice": `INSERT INTO segment (partition_id, memories, first_row, last_row, data)
			SELECT partition_id, memories, first_row, last_row, data FROM segment`,
		"not there":      `INSERT INTO segmented (partition_id, profile_id, kind, upto, memories) VALUES (999, 1, '', 1, 0)`,
		"stale row lost": `DELETE FROM segment_stale`,
		"too far":        `UPDATE segmented SET upto = upto + 1`,
	} {
		t.Run(name, func(t *testing.T) {
			s := openFerries(t, filepath.Join(t.TempDir(), "store.db"), nil)
			mustPersist(t, s)
			ids, _ := ferries(t, s)
			if err := s.DeleteMemory(t.Context(), ids[0], nil); err != nil {
				t.Fatal(err)
			}
			mustAdd(t, s, NewMemory{Content: "The ferry leaves later."})
			checkConsistency(t, s)
			err := s.db.Write(t.Context(), func(tx db.Tx) error {
				_, err := tx.Exec(damage)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			report, err := s.Upkeep().Check(t.Context(), nil)
			if err != nil || len(report.Findings) != 1 || report.Findings[0].Table != "segment" {
				t.Fatalf("got %+v, %v; want one finding about segments", report.Findings, err)
			}
			report, err = s.Upkeep().Check(t.Context(), &CheckOptions{Repair: true})
			if err != nil || !report.OK {
				t.Errorf("after a repair: got %+v, %v; want nothing wrong", report, err)
			}
		})
	}
}

func TestCallsThatRemoveTracesDoNotWaitForEachOthersPlaces(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "store.db"), Options{})
	for i := range 3 {
		mustAdd(t, s, NewMemory{Content: fmt.Sprintf("The ferry %d.", i)})
	}
	mustPersist(t, s)
	mustAdd(t, s, NewMemory{Content: "The last ferry."})
	queue := fairqueue.New(fairqueue.Limits{Running: 1, RunningPerUser: 1, Begun: 9, BegunPerUser: 9, Waiting: 9,
		WaitingPerUser: 9, Patience: time.Minute})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var calls sync.WaitGroup
	for range 3 {
		calls.Go(func() {
			ticket := queue.Ticket()
			if err := ticket.Enter(ctx, "anna"); err != nil {
				t.Errorf("got %v, want a place", err)
			}
			defer ticket.Leave()
			if err := s.index.Persist(fairqueue.With(ctx, ticket), true); err != nil {
				t.Errorf("got %v, want the segments written", err)
			}
		})
	}
	calls.Wait()
}
