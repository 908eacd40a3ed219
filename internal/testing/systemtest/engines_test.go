package systemtest

import (
	"context"
	"net/url"
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
	"github.com/souvenir-ai/souvenir/internal/testing/storetest"
	"github.com/souvenir-ai/souvenir/postgres"
)

// database is the database of a test's store.
type database interface {
	// name is the name of the engine.
	name() string
	// copied makes a copy for a test. No store may have the original open.
	copied(tb testing.TB) database
	// another is another database of the engine, with nothing in it.
	another(tb testing.TB) database
	// open opens the store.
	open(options Options) (*Store, error)
	// openWith opens the store with a context.
	openWith(ctx context.Context, options Options) (*Store, error)
	// where is the path or address, for another process.
	where() string
	// engine opens the database without the store.
	engine(readOnly bool) (db.DB, error)
	// keysBeside is where the store has its user keys if they have no other place, and keysApart is another place. A test
	// is skipped where the engine has none.
	keysBeside(tb testing.TB) string
	keysApart(tb testing.TB) string
	// openKeys opens user keys without the store.
	openKeys(ctx context.Context, place string) (db.Keys, error)
	// tables is a query whose rows are queries, each for the rows of one table as text, except the table setting; the
	// rows of columns are all columns, as table.column.
	tables() string
	columns() string
}

// engine is a way to have databases. Tests that need a server which is not there are skipped.
type engine struct {
	name   string
	server func(tb testing.TB) string                          // skips a test if there is none; nil: files
	empty  func(tb testing.TB) database                        // to make copies of
	suite  func(*testing.T, func(*testing.T, *Options) *Store) // runs the conformance suite on a server
	walled bool                                                // only in the long form, and without keys
}

// engines are all of them. Nothing else in this package lists them, but for the tests of files and of the wall.
var engines = []engine{
	{name: "file", empty: emptyInFile},
	{name: "postgres", server: pgtest.Server, empty: emptyInSchema, suite: runServer},
	{name: "walled", server: pgtest.Server, empty: emptyBehindWall, suite: storetest.Run, walled: true},
}

// onEachEngine runs a test with each engine. The test gets an empty database, to make copies of.
func onEachEngine(t *testing.T, test func(t *testing.T, empty database)) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			if e.walled && testing.Short() {
				t.Skip("with -short, the tests of the second wall alone run behind it")
			}
			test(t, e.empty(t))
		})
	}
}

// databaseAt is the database of [database.where].
func databaseAt(where string) database {
	if filepath.IsAbs(where) {
		return file{where}
	}
	return schema{where}
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

func (f file) another(tb testing.TB) database { tb.Helper(); return emptyInFile(tb) }

func (f file) open(options Options) (*Store, error) { return f.openWith(context.Background(), options) }

func (f file) openWith(ctx context.Context, options Options) (*Store, error) {
	return Open(ctx, f.path, &options)
}

func (f file) keysBeside(testing.TB) string { return UserKeysFile(f.path) }

func (f file) keysApart(tb testing.TB) string {
	tb.Helper()
	return filepath.Join(tb.TempDir(), "store.keys")
}

func (f file) openKeys(ctx context.Context, place string) (db.Keys, error) {
	return sqlite.OpenKeys(ctx, place, false, nil)
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

func (f file) columns() string {
	return `SELECT m.name || '.' || c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table'`
}

// schema is a database in a schema of PostgreSQL.
type schema struct{ address string }

func emptyInSchema(tb testing.TB) database { tb.Helper(); return schema{pgtest.Empty(tb)} }

func (s schema) name() string { return "postgres" }

func (s schema) where() string { return s.address }

func (s schema) copied(tb testing.TB) database {
	tb.Helper()
	return schema{pgtest.Copy(tb, s.address)}
}

func (s schema) another(tb testing.TB) database {
	tb.Helper()
	return schema{pgtest.Empty(tb)}.copied(tb)
}

func (s schema) open(options Options) (*Store, error) {
	return s.openWith(context.Background(), options)
}

func (s schema) openWith(ctx context.Context, options Options) (*Store, error) {
	return postgres.Open(ctx, s.address, &options)
}

const keysOnCitus = "user keys are in a schema on the coordinator"

func (s schema) keysBeside(tb testing.TB) string {
	tb.Helper()
	pgtest.NotOnCitus(tb, keysOnCitus)
	address, err := url.Parse(s.address)
	if err != nil {
		tb.Fatal(err)
	}
	keys := pgtest.SchemaOf(s.address) + "_keys"
	tb.Cleanup(func() { pgtest.Query(tb, pgtest.Server(tb), `DROP SCHEMA IF EXISTS "`+keys+`" CASCADE`) })
	query := address.Query()
	query.Set("search_path", keys)
	address.RawQuery = query.Encode()
	return address.String()
}

func (s schema) keysApart(tb testing.TB) string {
	tb.Helper()
	pgtest.NotOnCitus(tb, keysOnCitus)
	return pgtest.Address(tb)
}

func (s schema) openKeys(ctx context.Context, place string) (db.Keys, error) {
	return enginepostgres.OpenKeys(ctx, place, db.Opening{Readers: 2})
}

func (s schema) engine(readOnly bool) (db.DB, error) {
	return enginepostgres.Open(context.Background(), s.address, db.Opening{ReadOnly: readOnly, Readers: 1})
}

func (s schema) tables() string {
	return `SELECT format('SELECT %L || t::text FROM %I t', tablename || ' ', tablename) FROM pg_tables
		WHERE schemaname = current_schema() AND tablename <> 'setting'`
}

func (s schema) columns() string {
	return `SELECT table_name || '.' || column_name FROM information_schema.columns WHERE table_schema = current_schema()`
}

// walled is a database in a schema with the second wall (postgres/wall.sql), used by a role to which the wall applies.
type walled struct {
	schema
	runtime string // the address with that role
}

func emptyBehindWall(tb testing.TB) database {
	tb.Helper()
	return behindWall(tb, schema{pgtest.Empty(tb)})
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
	return w.openWith(context.Background(), options)
}

func (w walled) openWith(ctx context.Context, options Options) (*Store, error) {
	return postgres.Open(ctx, w.runtime, &options)
}
