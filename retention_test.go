package souvenir

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/internal/trash"
)

// TestRulesRemoveInPortions lets another write happen between the portions of a removal: each transaction removes at
// most a thousand memories, and the write is answered before the next one.
func TestRulesRemoveInPortions(t *testing.T) {
	longtest.Only(t)
	n := longtest.Size(2_500, 1_200)
	now := time.Now()
	s := openWords(t, filepath.Join(t.TempDir(), "test.db"), Options{Now: func() time.Time { return now }})
	memories := make([]NewMemory, n)
	for i := range memories {
		memories[i] = NewMemory{Content: fmt.Sprint("note ", i), ProjectID: "p"}
	}
	if _, err := s.AddMemories(t.Context(), memories, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.UpdateProject(t.Context(), ProjectRef{ID: "p"},
		ProjectUpdate{Retention: &Retention{After: MinRetention}}); err != nil {
		t.Fatal(err)
	}
	between := &betweenWrites{DB: s.db, s: s}
	keeper := s.keeper()
	keeper.Store = between
	removed, err := keeper.Remove(t.Context(), now.Add(2*MinRetention).UnixMicro())
	if err != nil || removed != (trash.Retained{Trashed: n}) {
		t.Fatalf("got %+v, %v, want %d memories in the trash", removed, err, n)
	}
	if want := n/trash.FullRows + 1; len(between.left) != want {
		t.Fatalf("got %d transactions, want %d", len(between.left), want)
	}
	for i, left := range between.left {
		if want := max(0, n-(i+1)*trash.FullRows); left != want {
			t.Errorf("after transaction %d a writer found %d memories, want %d", i+1, left, want)
		}
	}
}

// betweenWrites is a database that lets another writer write after each of its transactions.
type betweenWrites struct {
	db.DB
	s    *Store
	left []int // memories in the project p, as the other writer sees them
}

func (b *betweenWrites) Write(ctx context.Context, fn func(tx db.Tx) error) error {
	if err := b.DB.Write(ctx, fn); err != nil {
		return err
	}
	if _, err := b.s.AddMemory(ctx, NewMemory{Content: "of another writer", Collection: DefaultCollection}); err != nil {
		return err
	}
	p, err := b.s.GetProject(ctx, ProjectRef{ID: "p"})
	b.left = append(b.left, p.MemoryCount)
	return err
}

// A purge that fails counts the committed deletions, and so does its entry in the audit log.
func TestAPurgeThatFailsCountsWhatIsGone(t *testing.T) {
	now := time.Now()
	o, err := (&Options{Embedder: wordEmbedder("words-1"), Now: func() time.Time { return now }}).withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	engine, err := openFile(t.Context(), filepath.Join(t.TempDir(), "purged.db"), o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newStore(t.Context(), limitedRoom{engine}, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range 3 {
		mustAdd(t, s, NewMemory{Content: fmt.Sprint("note ", i), ExpiresAt: now.Add(time.Hour)})
	}
	now = now.Add(2 * time.Hour)
	without := 0 // writes after which there is no memory
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ctx = context.WithValue(ctx, limitedRoom{}, func(tx db.Tx) error {
		n := 0
		if err := tx.QueryRow(`SELECT count(*) FROM memory`).Scan(&n); err != nil || n > 0 {
			return err
		}
		if without++; without == 3 {
			cancel() // the entry in the audit log comes all the same
		}
		return map[int]error{1: db.ErrFull, 3: db.ErrIO}[without]
	})
	p, err := s.Upkeep().Purge(ctx, nil)
	if err == nil || p != (PurgeReport{Memories: 3}) {
		t.Errorf("got %+v, %v, want an error, and 3 memories that are gone", p, err)
	}
	var entries []string
	for e, err := range s.Upkeep().AuditEntries(t.Context(), AuditQuery{Action: "purge"}) {
		entries = append(entries, fmt.Sprint(e.Details["memories"], e.Details["complete"], err))
	}
	if want := []string{"3 false <nil>"}; !slices.Equal(entries, want) {
		t.Errorf("the audit log has %q, want %q", entries, want)
	}
}

// limitedRoom is an engine whose Writes fail with the error of the function under this type in their context, if any.
type limitedRoom struct{ db.DB }

func (d limitedRoom) Write(ctx context.Context, fn func(db.Tx) error) error {
	check, is := ctx.Value(limitedRoom{}).(func(db.Tx) error)
	if !is {
		return d.DB.Write(ctx, fn)
	}
	undone := errors.New("undone") // which the engine below does not handle
	var failed error
	err := d.DB.Write(ctx, func(tx db.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		if failed = check(tx); failed != nil {
			return undone
		}
		return nil
	})
	if errors.Is(err, undone) {
		return failed
	}
	return err
}
