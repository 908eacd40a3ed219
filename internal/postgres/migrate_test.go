package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/postgres"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
)

// alter is a migration that needs a table for itself.
const alter = `ALTER TABLE memory ADD COLUMN next bigint`

// longRead opens a store and begins a Read of memories, which ends at the call of end.
func longRead(t *testing.T, address string) (end func()) {
	t.Helper()
	d, err := postgres.Open(t.Context(), address, db.Opening{Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	reads, over, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- d.Read(t.Context(), func(tx db.Tx) error {
			err := tx.QueryRow(`SELECT count(*) FROM memory`).Scan(new(int))
			close(reads)
			<-over
			return err
		})
	}()
	<-reads
	return func() {
		close(over)
		if err := <-ended; err != nil {
			t.Errorf("the long Read: got %v, want no error", err)
		}
		_ = d.Close()
	}
}

// openBeside opens a store that waits so long for a lock, and a connection of another program to its database.
func openBeside(t *testing.T, address string, wait time.Duration) (*postgres.DB, *pgx.Conn) {
	t.Helper()
	d, err := postgres.Open(t.Context(), fmt.Sprint(address, "&lock_timeout=", wait.Milliseconds()),
		db.Opening{Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	program, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Close(context.Background()) })
	return d, program
}

// A migration waits for a long Read, such as an export, and other calls go on meanwhile.
func TestCallsGoOnWhileAMigrationWaits(t *testing.T) {
	address := pgtest.Address(t)
	pgtest.Altered(address)
	newer, err := postgres.Open(t.Context(), address, db.Opening{Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer newer.Close()
	newer.SetUpgrading(200*time.Millisecond, 50*time.Millisecond, time.Minute)
	end := longRead(t, address)
	older, err := postgres.Open(t.Context(), address, db.Opening{Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer older.Close()
	migrated := make(chan error, 1)
	go func() { migrated <- newer.Migrate(t.Context(), alter) }()
	for began := time.Now(); time.Since(began) < 2*time.Second; {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		err := older.Write(ctx, func(tx db.Tx) error {
			if _, err := addMemory(tx, time.Since(began).String()); err != nil {
				return err
			}
			return tx.QueryRow(`SELECT count(*) FROM memory`).Scan(new(int))
		})
		if err != nil {
			t.Errorf("a Write while a migration waits: got %v, want no error", err)
		}
		err = older.Read(ctx, func(tx db.Tx) error { return tx.QueryRow(`SELECT count(*) FROM memory`).Scan(new(int)) })
		if err != nil {
			t.Errorf("a Read while a migration waits: got %v, want no error", err)
		}
		cancel()
	}
	select {
	case err := <-migrated:
		t.Errorf("the migration has ended beside the Read, with %v; want it to wait", err)
	default:
	}
	end()
	if err := <-migrated; err != nil {
		t.Errorf("the migration: got %v, want no error", err)
	}
	err = older.Read(t.Context(), func(tx db.Tx) error { return tx.QueryRow(`SELECT 1`).Scan(new(int)) })
	if !errors.Is(err, db.ErrNewer) {
		t.Errorf("a Read of the older program: got %v, want %v", err, db.ErrNewer)
	}
}

// A migration that gets no lock gives up, and says who holds it.
func TestAMigrationWaitsALimitedTime(t *testing.T) {
	address := pgtest.Address(t)
	pgtest.Altered(address)
	var said bytes.Buffer
	d, err := postgres.Open(t.Context(), address, db.Opening{Readers: 2,
		Logger: slog.New(slog.NewTextHandler(&said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	d.SetUpgrading(100*time.Millisecond, 10*time.Millisecond, 300*time.Millisecond)
	end := longRead(t, address+"&application_name=exporting")
	err = d.Migrate(t.Context(), alter)
	for _, word := range []string{"exporting (process ", "idle in transaction, for 00:00:0"} {
		if !errors.Is(err, db.ErrBusy) || !strings.Contains(err.Error(), word) {
			t.Errorf("got %v, want %v and %q", err, db.ErrBusy, word)
		}
		if got := said.String(); !strings.Contains(got, word) || strings.Contains(got, "SELECT") {
			t.Errorf("the log: got %q, want %q, and no statement", got, word)
		}
	}
	end()
	if err := d.Migrate(t.Context(), alter); err != nil {
		t.Errorf("after the Read: got %v, want no error", err)
	}
}

// A Read waits a limited time for a table that another program has for itself.
func TestAReadWaitsALimitedTimeForATable(t *testing.T) {
	d, program := openBeside(t, pgtest.Address(t), 100*time.Millisecond)
	if _, err := program.Exec(t.Context(), `BEGIN; LOCK TABLE memory`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	read := func(tx db.Tx) error { return tx.QueryRow(`SELECT count(*) FROM memory`).Scan(new(int)) }
	if err := d.Read(ctx, read); !errors.Is(err, db.ErrBusy) {
		t.Errorf("while the table is locked: got %v, want %v", err, db.ErrBusy)
	}
	if _, err := program.Exec(t.Context(), `ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	if err := d.Read(ctx, read); err != nil {
		t.Errorf("afterwards: got %v, want no error", err)
	}
}

// Stores in one database do not wait for each other, but for older programs, which lock the database.
func TestOneMigrationAtATimeInEachSchema(t *testing.T) {
	first, second := pgtest.Address(t), pgtest.Address(t)
	for _, c := range []struct {
		name, held, on string
		waits          bool
	}{
		{"another schema", postgres.OneAtATime, first, false},
		{"the same schema", postgres.OneAtATime, second, true},
		{"an older program", `SELECT pg_advisory_xact_lock(1400206958)`, first, true},
	} {
		holder, err := pgx.Connect(t.Context(), c.on)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := holder.Exec(t.Context(), `BEGIN; `+c.held); err != nil {
			t.Fatal(err)
		}
		waiter, err := pgx.Connect(t.Context(), second)
		if err != nil {
			t.Fatal(err)
		}
		_, err = waiter.Exec(t.Context(), `BEGIN; SET LOCAL lock_timeout = 100; `+postgres.OneAtATime)
		if waited := err != nil; waited != c.waits {
			t.Errorf("%s: waits: got %t (%v), want %t", c.name, waited, err, c.waits)
		}
		_ = waiter.Close(context.Background())
		_ = holder.Close(context.Background())
	}
}
