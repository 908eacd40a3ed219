package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/postgres"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
)

func TestReferencesToMissingRowsAreCounted(t *testing.T) {
	address := pgtest.Address(t)
	pgtest.Altered(address)
	d, err := postgres.Open(t.Context(), address, db.Opening{Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	broken := func() (all []db.Broken) {
		t.Helper()
		err := db.Scratch(t.Context(), d, func(tx db.Tx) (err error) {
			all, err = d.Broken(tx)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if got := broken(); len(got) != 0 {
		t.Errorf("a new database: got %v, want no broken references", got)
	}
	err = d.Write(t.Context(), func(tx db.Tx) error {
		return tx.(*postgres.Tx).ExecScript(`ALTER TABLE memory_tag DROP CONSTRAINT memory_tag_memory_id_fkey;
			INSERT INTO memory_tag (memory_id, tag, position) VALUES (7, 'a', 0), (7, 'b', 1);
			ALTER TABLE memory_tag ADD CONSTRAINT tag_of_memory FOREIGN KEY (memory_id) REFERENCES memory (id)
				ON DELETE CASCADE NOT VALID`)
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []db.Broken{{Table: "memory_tag", Column: "memory_id", Parent: "memory", Key: "id", OnDelete: "CASCADE",
		Rows: 2}}
	if got := broken(); !slices.Equal(got, want) {
		t.Errorf("references: got %v, want %v", got, want)
	}
}

// Values in jsonb follow the collation of the database, and texts its encoding, so databases with others are refused.
func TestADatabaseOfAnotherEncodingOrCollationIsRefused(t *testing.T) {
	server := pgtest.Server(t)
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	for name, options := range map[string]string{
		"latin": `ENCODING 'LATIN1' LOCALE 'C'`, "ascii": `ENCODING 'SQL_ASCII' LOCALE 'C'`,
		"linguistic": `ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'en' LOCALE 'C'`,
	} {
		database := "souvenir_test_" + name
		if _, err := conn.Exec(ctx, "CREATE DATABASE "+database+" TEMPLATE template0 "+options); err != nil {
			t.Logf("%s cannot be tried here: %v", name, err)
			continue
		}
		address, err := url.Parse(server)
		if err != nil {
			t.Fatal(err)
		}
		address.Path = "/" + database
		d, err := postgres.Open(t.Context(), address.String(), db.Opening{Readers: 2})
		if err == nil {
			_ = d.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "LOCALE 'C'") {
			t.Errorf("%s: got %v, want an error that says how to create the database", name, err)
		}
		if _, err := conn.Exec(ctx, "DROP DATABASE "+database+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	}
}

// Reads and Writes go on while indexes are rebuilt, also while that waits for a long transaction.
func TestCallsGoOnWhileIndexesAreRebuilt(t *testing.T) {
	address := pgtest.Address(t)
	pgtest.Altered(address)
	d, program := openBeside(t, address, 300*time.Millisecond)
	for _, script := range []string{`CREATE INDEX left_ccnew1 ON memory_tag (position)`,
		`UPDATE pg_index SET indisvalid = false WHERE indexrelid IN ('memory_tag_tag'::regclass, 'left_ccnew1'::regclass)`,
		`BEGIN; UPDATE memory SET revision = revision; SELECT count(*) FROM memory_tag`} {
		if _, err := program.Exec(t.Context(), script); err != nil {
			t.Fatal(err)
		}
	}
	rebuilt := make(chan error, 1)
	go func() { rebuilt <- d.RebuildIndexes(t.Context()) }()
	calls := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for _, table := range []string{"activity", "audit", "collection", "memory", "memory_tag"} {
			err := d.Read(ctx, func(tx db.Tx) error {
				return tx.QueryRow(`SELECT count(*) FROM ` + table).Scan(new(int))
			})
			if err != nil {
				t.Errorf("a Read of %s meanwhile: got %v, want no error", table, err)
			}
		}
		if err := d.Write(ctx, func(tx db.Tx) error {
			_, err := addMemory(tx, rand.Text())
			return err
		}); err != nil {
			t.Errorf("a Write meanwhile: got %v, want no error", err)
		}
	}
	for began := time.Now(); time.Since(began) < time.Second; {
		calls()
	}
	if err := d.RebuildIndexes(t.Context()); !errors.Is(err, db.ErrBusy) {
		t.Errorf("a second one meanwhile: got %v, want ErrBusy", err)
	}
	select {
	case err := <-rebuilt:
		t.Errorf("it has ended beside a long transaction, with %v; want it to wait", err)
	default:
	}
	if _, err := program.Exec(t.Context(), `COMMIT`); err != nil {
		t.Fatal(err)
	}
	if err := <-rebuilt; err != nil {
		t.Errorf("got %v, want no error", err)
	}
	if got := pgtest.Query(t, address, `SELECT c.relname::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
		WHERE i.indrelid = 'memory_tag'::regclass AND NOT i.indisvalid OR c.relname = 'left_ccnew1'`); len(got) != 0 {
		t.Errorf("indexes that are not valid, or left over: got %v, want none", got)
	}
}

// Writes that wait for one another must not take the connections of Reads.
func TestWaitingWritesLeaveConnectionsToReads(t *testing.T) {
	d, err := postgres.Open(t.Context(), pgtest.Address(t), db.Opening{Readers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	const writers = 40
	begun, end, done := make(chan struct{}, writers), make(chan struct{}), make(chan error, writers)
	for range writers {
		go func() {
			done <- d.Write(t.Context(), func(db.Tx) error {
				begun <- struct{}{}
				<-end
				return nil
			})
		}()
	}
	for range 8 {
		<-begun
	}
	for range 20 { // until the others wait
		if err := d.Read(t.Context(), func(tx db.Tx) error { return tx.QueryRow(`SELECT 1`).Scan(new(int)) }); err != nil {
			t.Error(err)
		}
	}
	close(end)
	for range writers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestWhatTheServerKeepsIsNotPromised(t *testing.T) {
	d, err := postgres.Open(t.Context(), pgtest.Address(t), db.Opening{Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	u := d.Upkeep()
	_, snapshot := u.Copy(t.Context(), nil)
	for what, err := range map[string]error{"Flush": u.Flush(t.Context()), "Backup": u.Backup(t.Context(), "x", nil),
		"Snapshot": snapshot} {
		if !errors.Is(err, db.ErrUnsupported) {
			t.Errorf("%s: got %v, want %v", what, err, db.ErrUnsupported)
		}
	}
}
