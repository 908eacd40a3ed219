package systemtest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/db"
	enginepostgres "github.com/souvenir-ai/souvenir/internal/postgres"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/internal/storefile"
	"github.com/souvenir-ai/souvenir/postgres"
)

// database is the database of a test's store.
type database interface {
	// name is the name of the engine.
	name() string
	// copied makes a copy for a test. No store may have the original open.
	copied(tb testing.TB) database
	// open opens the store.
	open(options Options) (*Store, error)
	// where is the path or address, for another process.
	where() string
	// engine opens the database without the store.
	engine(readOnly bool) (db.DB, error)
	// tables is a query whose rows are queries, each for the rows of one table as text, except the table setting.
	tables() string
}

// onEachEngine runs a test with each engine. The test gets an empty database, to make copies of. PostgreSQL needs a
// server (see pgtest).
func onEachEngine(t *testing.T, test func(t *testing.T, empty database)) {
	t.Run("file", func(t *testing.T) { test(t, emptyInFile(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, schema{pgtest.Empty(t)}) })
	t.Run("walled", func(t *testing.T) {
		if testing.Short() {
			t.Skip("with -short, the tests of the second wall alone run behind it")
		}
		test(t, behindWall(t, schema{pgtest.Empty(t)}))
	})
}

// file is a database in a file.
type file struct{ path string }

func emptyInFile(tb testing.TB) database {
	tb.Helper()
	empty, err := emptyStore()
	if err != nil {
		tb.Fatal(err)
	}
	f := file{filepath.Join(tb.TempDir(), "empty.db")}
	writeFile(tb, f.path, empty)
	return f
}

func (f file) name() string { return "file" }

func (f file) where() string { return f.path }

func (f file) copied(tb testing.TB) database {
	tb.Helper()
	c := file{filepath.Join(tb.TempDir(), "store.db")}
	writeFile(tb, c.path, readFile(tb, f.path))
	return c
}

func (f file) open(options Options) (*Store, error) {
	return Open(context.Background(), f.path, &options)
}

func (f file) engine(readOnly bool) (db.DB, error) {
	config := storefile.Config(f.path, time.Now)
	config.ReadOnly = readOnly
	return sqlite.Open(context.Background(), config)
}

func (f file) tables() string {
	return `SELECT 'SELECT ''' || t.name || ' '' || ' || group_concat('quote("' || c.name || '")', ' || '','' || ')
			|| ' FROM "' || t.name || '"'
		FROM sqlite_schema t, pragma_table_info(t.name) c
		WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' AND t.name NOT LIKE 'passage_text%' AND t.name <> 'setting'
		GROUP BY t.name
		UNION ALL SELECT 'SELECT ''passage_text '' || rowid FROM passage_text'`
}

// schema is a database in a schema of PostgreSQL.
type schema struct{ address string }

func (s schema) name() string { return "postgres" }

func (s schema) where() string { return s.address }

func (s schema) copied(tb testing.TB) database {
	tb.Helper()
	return schema{pgtest.Copy(tb, s.address)}
}

func (s schema) open(options Options) (*Store, error) {
	return postgres.Open(context.Background(), s.address, &options)
}

func (s schema) engine(readOnly bool) (db.DB, error) {
	return enginepostgres.Open(context.Background(), s.address, db.Opening{ReadOnly: readOnly, Readers: 1})
}

func (s schema) tables() string {
	return `SELECT format('SELECT %L || t::text FROM %I t', tablename || ' ', tablename) FROM pg_tables
		WHERE schemaname = current_schema() AND tablename <> 'setting'`
}

// walled is a database in a schema with the second wall (postgres/wall.sql), used by a role to which the wall applies.
type walled struct {
	schema
	runtime string // the address with that role
}

// behindWall creates the wall in a schema.
func behindWall(tb testing.TB, s schema) walled {
	tb.Helper()
	wall, err := os.ReadFile(filepath.Join("..", "..", "..", "postgres", "wall.sql"))
	if err != nil {
		tb.Fatal(err)
	}
	return walled{s, pgtest.Walled(tb, s.address, string(wall))}
}

func (w walled) name() string { return "walled" }

func (w walled) where() string { return w.runtime }

func (w walled) copied(tb testing.TB) database {
	tb.Helper()
	return behindWall(tb, schema{pgtest.Copy(tb, w.address)})
}

func (w walled) open(options Options) (*Store, error) {
	return postgres.Open(context.Background(), w.runtime, &options)
}
