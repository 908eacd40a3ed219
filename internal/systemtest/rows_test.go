package systemtest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
)

// files are the open stores' files, read and changed past the store.
var files sync.Map // *Store -> *file

type file struct {
	path string
	once sync.Once
	db   *sqlite.DB // for reading
	err  error
}

// know notes the path of a store until the test ends.
func know(tb testing.TB, s *Store, path string) {
	f := &file{path: path}
	files.Store(s, f)
	tb.Cleanup(func() {
		files.Delete(s)
		if f.db != nil {
			if err := f.db.Close(); err != nil {
				tb.Error("close:", err)
			}
		}
	})
}

func fileOf(tb testing.TB, s *Store) *file {
	tb.Helper()
	known, ok := files.Load(s)
	if !ok {
		tb.Fatal("openWords did not open this store, want it opened")
	}
	return known.(*file)
}

func (f *file) config() sqlite.Config {
	return sqlite.Config{Path: f.path, ApplicationID: 0x5375766e, Migrations: sqlite.Migrations()}
}

// read runs fn on a snapshot of a store's file.
func read(tb testing.TB, s *Store, fn func(db.Tx) error) {
	tb.Helper()
	f := fileOf(tb, s)
	f.once.Do(func() {
		config := f.config()
		config.ReadOnly = true
		f.db, f.err = sqlite.Open(context.Background(), config)
	})
	if f.err != nil {
		tb.Fatalf("got %v, want no error", f.err)
	}
	if err := f.db.Read(context.Background(), fn); err != nil {
		tb.Fatal(err)
	}
}

// mustExec changes a store's file.
func mustExec(tb testing.TB, s *Store, statement string, args ...any) {
	tb.Helper()
	config := fileOf(tb, s).config()
	config.Prepare = kernel.KeepHashes
	beside, err := sqlite.Open(context.Background(), config)
	if err != nil {
		tb.Fatal(err)
	}
	err = beside.Write(context.Background(), func(tx db.Tx) error {
		_, err := tx.Exec(statement, args...)
		return err
	})
	if err := errors.Join(err, beside.Close()); err != nil {
		tb.Fatal(err)
	}
}

func count(tb testing.TB, s *Store, query string) (n int64) {
	tb.Helper()
	read(tb, s, func(tx db.Tx) error { return tx.QueryRow(query).Scan(&n) })
	return n
}

// rowsOf reads everything that a store's file holds, as text: two equal answers mean that nothing was changed between
// them. The worker writes down in the background how far the clock has come.
func rowsOf(tb testing.TB, s *Store) string {
	tb.Helper()
	var rows []string
	read(tb, s, func(tx db.Tx) (err error) {
		var queries []string
		everyRow.Do(func() {
			queries, err = db.Column[string](tx, `
			SELECT 'SELECT ''' || t.name || ' '' || ' || group_concat('quote("' || c.name || '")',
			' || '','' || ') || ' FROM "' || t.name || '"'
			FROM sqlite_schema t, pragma_table_info(t.name) c
			WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' AND t.name NOT LIKE 'passage_text%' AND t.name <> 'setting'
			GROUP BY t.name`)
			queries = append(queries, `SELECT 'setting ' || key || ',' || value FROM setting `+
				`WHERE key NOT IN ('clock_seen', 'clock_ahead')`,
				`SELECT * FROM (SELECT 'passage_text ' || rowid FROM passage_text ORDER BY rowid)`)
			rowQuery = strings.Join(queries, " UNION ALL ")
		})
		if err != nil {
			return err
		}
		rows, err = db.Column[string](tx, rowQuery)
		return err
	})
	return strings.Join(rows, "\n")
}

// rowQuery is one query of all rows of all tables, of which a connection keeps the statement.
var (
	everyRow sync.Once
	rowQuery string
)
