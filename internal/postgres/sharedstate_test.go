package postgres_test

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/postgres"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
	"github.com/souvenir-ai/souvenir/internal/sharedstate"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
)

// onEachEngine runs a test with each engine, with two handles on one database.
func onEachEngine(t *testing.T, test func(t *testing.T, one, other db.DB)) {
	t.Helper()
	both := func(t *testing.T, open func() (db.DB, error)) {
		t.Helper()
		var handles []db.DB
		for range 2 {
			d, err := open()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.Close() })
			handles = append(handles, d)
		}
		test(t, handles[0], handles[1])
	}
	t.Run("file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "shared.db")
		both(t, func() (db.DB, error) {
			return sqlite.Open(t.Context(), sqlite.Config{Path: path, ApplicationID: 1, Migrations: sqlite.Migrations()})
		})
	})
	t.Run("postgres", func(t *testing.T) {
		address := pgtest.Address(t)
		both(t, func() (db.DB, error) { return postgres.Open(t.Context(), address, db.Opening{Readers: 2}) })
	})
}

func TestALeaseHasOneOwnerUntilItIsGivenBackOrExpires(t *testing.T) {
	onEachEngine(t, func(t *testing.T, one, other db.DB) {
		const short = 100 * time.Millisecond
		a, b := sharedstate.NewLease(one, "work", time.Hour), sharedstate.NewLease(other, "work", short)
		take := func(name string, l *sharedstate.Lease, want bool) {
			t.Helper()
			if got, err := l.Take(t.Context()); err != nil || got != want {
				t.Errorf("%s takes the lease: got %v, %v, want %v", name, got, err, want)
			}
		}
		take("a", a, true)
		take("a again", a, true)
		take("b while a has it", b, false)
		if err := b.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		take("b after giving back what it does not have", b, false)
		take("b another one", sharedstate.NewLease(other, "other work", time.Hour), true)
		if err := a.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		take("b after a", b, true)
		time.Sleep(2 * short)
		take("a after b's has expired", a, true)
	})
}

func TestWorkUnderALeaseKeepsItHoweverLongItTakes(t *testing.T) {
	onEachEngine(t, func(t *testing.T, one, other db.DB) {
		const life = 2 * time.Second
		a, b := sharedstate.NewLease(one, "work", life), sharedstate.NewLease(other, "work", life)
		ran, err := a.While(t.Context(), func() error {
			time.Sleep(life + life/2)
			if ran, err := b.While(t.Context(), func() error { return nil }); ran || err != nil {
				t.Errorf("b's work while a works: ran %v, %v, want false", ran, err)
			}
			return context.Canceled
		})
		if !ran || err != context.Canceled { //nolint:errorlint // this very error
			t.Errorf("a's work: got %v, %v, want true and its own error", ran, err)
		}
		var runs atomic.Int32
		ran, err = b.While(t.Context(), func() error { runs.Add(1); return nil })
		if !ran || err != nil || runs.Load() != 1 {
			t.Errorf("b's work after a's: got %v, %v, %d runs, want true and 1", ran, err, runs.Load())
		}
	})
}
