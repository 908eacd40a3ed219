package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/postgres"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
)

// Once a newer program has migrated its schema, an older program neither reads nor writes: newer tables may need values
// that it does not write, and hold data that it does not understand.
func TestAProgramStopsWhenANewerOneHasMigratedItsSchema(t *testing.T) {
	d, err := postgres.Open(t.Context(), pgtest.Address(t), db.Opening{Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	version := func(by int) {
		if err := d.Write(t.Context(), func(tx db.Tx) error {
			_, err := tx.Exec(`UPDATE schema_version SET version = version + ?`, by)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	version(1)
	runs := 0
	for name, call := range map[string]func(context.Context, func(db.Tx) error) error{"read": d.Read, "write": d.Write} {
		err := call(t.Context(), func(tx db.Tx) error {
			runs++
			var n int
			return tx.QueryRow(`SELECT count(*) FROM setting`).Scan(&n)
		})
		if !errors.Is(err, db.ErrNewer) {
			t.Errorf("%s: got %v, want %v", name, err, db.ErrNewer)
		}
	}
	if runs != 2 {
		t.Errorf("got %d runs, want 2: such an error is for good", runs)
	}
	err = d.Write(t.Context(), func(tx db.Tx) error {
		return db.Queue(tx, `INSERT INTO setting (key, value) VALUES ('x', '1')`)
	})
	if !errors.Is(err, db.ErrNewer) {
		t.Errorf("a statement that is sent with the commit: got %v, want %v", err, db.ErrNewer)
	}
}

// A migration waits for running writes, so that none of them ends in tables that it does not know.
func TestAMigrationWaitsForWrites(t *testing.T) {
	d, err := postgres.Open(t.Context(), pgtest.Address(t), db.Opening{Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	inside, release, wrote := make(chan bool), make(chan bool), make(chan error, 1)
	go func() {
		wrote <- d.Write(t.Context(), func(tx db.Tx) error {
			if _, err := tx.Exec(`INSERT INTO setting (key, value) VALUES ('x', '1')`); err != nil {
				return err
			}
			close(inside)
			<-release
			return nil
		})
	}()
	<-inside
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := d.WithoutWrites(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while a write runs: got %v, want %v", err, context.DeadlineExceeded)
	}
	close(release)
	if err := <-wrote; err != nil {
		t.Fatal(err)
	}
	if err := d.WithoutWrites(t.Context()); err != nil {
		t.Errorf("after the write: got %v, want no error", err)
	}
}
