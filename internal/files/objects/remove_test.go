package objects_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fairqueue"
	"github.com/souvenir-ai/souvenir/internal/files/objects"
	"github.com/souvenir-ai/souvenir/internal/files/objects/objectstest"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
)

// rerun is a database that runs the function of each Write twice: first on a state without any objects, which is
// undone.
type rerun struct{ db.DB }

func (d rerun) Write(ctx context.Context, fn func(db.Tx) error) error {
	undone := errors.New("undone")
	err := d.DB.Write(ctx, func(tx db.Tx) error {
		if _, err := tx.Exec(`DELETE FROM file_object`); err != nil {
			return err
		}
		return errors.Join(fn(tx), undone)
	})
	if !errors.Is(err, undone) {
		return err
	}
	return d.DB.Write(ctx, fn)
}

// Objects that the first run of a Write did not find are removed by the next.
func TestObjectsAreRemovedAfterARerun(t *testing.T) {
	o, storage := withDueObject(t, func(file db.DB) db.DB { return rerun{file} })
	removed, err := o.Remove(t.Context(), 10)
	if err != nil || removed != 1 || slices.Contains(storage.Keys(), "a") {
		t.Errorf("got %d removed, %v and the objects %v, want the one that was due removed", removed, err, storage.Keys())
	}
}

// withDueObject returns the objects of a new database, in which one is to be removed.
func withDueObject(t *testing.T, around func(db.DB) db.DB) (*objects.Objects, *objectstest.Memory) {
	t.Helper()
	file, err := sqlite.Open(t.Context(),
		sqlite.Config{Path: ":memory:", ApplicationID: 0x534f5556, Migrations: sqlite.Migrations()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	storage := &objectstest.Memory{}
	o := &objects.Objects{Storage: storage, DB: around(file), Log: slog.New(slog.DiscardHandler),
		Now: func() int64 { return time.Now().UnixMicro() }}
	if err := storage.Put(t.Context(), "a", []byte("content")); err != nil {
		t.Fatal(err)
	}
	if err := file.Write(t.Context(), func(tx db.Tx) error {
		_, err := tx.Exec(`INSERT INTO file_object (key, state, size, due_at) VALUES ('a', 'leaving', 7, 1)`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return o, storage
}

func TestCallsThatRemoveObjectsDoNotWaitForEachOthersPlaces(t *testing.T) {
	o, _ := withDueObject(t, func(file db.DB) db.DB { return file })
	queue := fairqueue.New(fairqueue.Limits{Running: 1, RunningPerUser: 1, Begun: 9, BegunPerUser: 9, Waiting: 9,
		WaitingPerUser: 9, Patience: time.Minute})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var calls sync.WaitGroup
	for range 3 {
		calls.Go(func() {
			ticket := queue.Ticket()
			if err := ticket.Enter(ctx, "anna"); err != nil {
				t.Errorf("got %v, want a place", err)
			}
			defer ticket.Leave()
			if _, err := o.Remove(fairqueue.With(ctx, ticket), 10); err != nil {
				t.Errorf("got %v, want the objects removed", err)
			}
		})
	}
	calls.Wait()
}
