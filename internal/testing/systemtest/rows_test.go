package systemtest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/db"
)

// besides are the databases of open stores, for access without the store.
var besides sync.Map // *Store -> *beside

type beside struct {
	database

	once   sync.Once
	reader db.DB
	err    error
}

// know records the database of a store until the test ends.
func know(tb testing.TB, s *Store, d database) {
	b := &beside{database: d}
	besides.Store(s, b)
	tb.Cleanup(func() {
		besides.Delete(s)
		if b.reader != nil {
			if err := b.reader.Close(); err != nil {
				tb.Error("close:", err)
			}
		}
	})
}

func besideOf(tb testing.TB, s *Store) *beside {
	tb.Helper()
	known, ok := besides.Load(s)
	if !ok {
		tb.Fatal("openWords did not open this store, want it opened")
	}
	return known.(*beside)
}

// read runs fn on a snapshot of a store's database.
func read(tb testing.TB, s *Store, fn func(db.Tx) error) {
	tb.Helper()
	b := besideOf(tb, s)
	b.once.Do(func() { b.reader, b.err = b.engine(true) })
	if b.err != nil {
		tb.Fatalf("got %v, want no error", b.err)
	}
	if err := b.reader.Read(context.Background(), fn); err != nil {
		tb.Fatal(err)
	}
}

// mustExec changes a store's database.
func mustExec(tb testing.TB, s *Store, statement string, args ...any) {
	tb.Helper()
	writer, err := besideOf(tb, s).engine(false)
	if err != nil {
		tb.Fatal(err)
	}
	err = writer.Write(context.Background(), func(tx db.Tx) error {
		_, err := tx.Exec(statement, args...)
		return err
	})
	if err := errors.Join(err, writer.Close()); err != nil {
		tb.Fatal(err)
	}
}

func count(tb testing.TB, s *Store, query string) (n int64) {
	tb.Helper()
	read(tb, s, func(tx db.Tx) error { return tx.QueryRow(query).Scan(&n) })
	return n
}

// rowsOf returns everything in a store's database as text. Two equal results mean that nothing changed in between. It
// ignores the time, which the worker records in the background.
func rowsOf(tb testing.TB, s *Store) string {
	tb.Helper()
	d := besideOf(tb, s).database
	var rows []string
	read(tb, s, func(tx db.Tx) error {
		query, known := rowQueries.Load(d.name())
		if !known {
			queries, err := db.Column[string](tx, d.tables())
			if err != nil {
				return err
			}
			queries = append(queries, `SELECT 'setting ' || key || ',' || value FROM setting
				WHERE key NOT IN ('clock_seen', 'clock_ahead')`)
			query = strings.Join(queries, " UNION ALL ")
			rowQueries.Store(d.name(), query)
		}
		var err error
		rows, err = db.Column[string](tx, query.(string))
		return err
	})
	slices.Sort(rows)
	return strings.Join(rows, "\n")
}

// rowQueries has one query of all rows of all tables for each engine. A connection can cache it as one statement.
var rowQueries sync.Map // name of an engine -> text
