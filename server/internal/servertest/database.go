package servertest

import (
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
	"github.com/souvenir-ai/souvenir/postgres"
)

// Database holds the store of a test: a file, or a schema of PostgreSQL if the environment has [pgtest.Variable].
type Database struct {
	path    string
	address string // "": in a file
}

// Open opens the store; several may be open at the same time. It is closed at the end of the test, if not before.
func (d Database) Open(t testing.TB, options *souvenir.Options) *souvenir.Store {
	t.Helper()
	store, err := d.open(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

func (d Database) open(options *souvenir.Options) (*souvenir.Store, error) {
	if d.address != "" {
		return postgres.Open(background, d.address, options)
	}
	return souvenir.Open(background, d.path, options)
}

// Counted returns the same PostgreSQL database, and a function that returns the number of round trips to it so far.
func (d Database) Counted(t testing.TB) (counted Database, trips func() int64) {
	t.Helper()
	proxy := pgtest.NewProxy(t, d.address)
	return Database{address: proxy.Address}, proxy.Trips.Load
}

// File returns the path of the file; "" if the database is not a file.
func (d Database) File() string { return d.path }

// Engine returns the name of the engine.
func (d Database) Engine() string {
	if d.path != "" {
		return "SQLite"
	}
	return "PostgreSQL"
}

// Name is the name of the database on pages: the name of the file, or the engine.
func (d Database) Name() string {
	if d.path != "" {
		return filepath.Base(d.path)
	}
	return d.Engine()
}

// onPostgres reports whether the stores of tests are in PostgreSQL.
func onPostgres() bool { return os.Getenv(pgtest.Variable) != "" }

// NeedsDatabase skips a test about a database server if stores are files.
func NeedsDatabase(t testing.TB) {
	t.Helper()
	pgtest.Server(t)
}

// NeedsFile skips a test about files if stores are in PostgreSQL.
func NeedsFile(t testing.TB) {
	t.Helper()
	if onPostgres() {
		t.Skipf("about files: it runs without %s", pgtest.Variable)
	}
}

// sampled runs only one test in four, chosen by name, in the short form: on PostgreSQL all of them take long.
func sampled(t testing.TB) {
	t.Helper()
	top, _, _ := strings.Cut(t.Name(), "/")
	if testing.Short() && crc32.ChecksumIEEE([]byte(top))%4 != 0 {
		t.Skip("with -short, a quarter of the tests runs on PostgreSQL, and this is none of them")
	}
}

// Empty returns a database of the test in which nothing is stored.
func Empty(t testing.TB) Database {
	t.Helper()
	if onPostgres() {
		sampled(t)
		return Database{address: pgtest.Empty(t)}
	}
	return Database{path: filepath.Join(t.TempDir(), "world.db")}
}

// Copy returns a database of the test with the data of the plan.
func (p Plan) Copy(t testing.TB) Database {
	t.Helper()
	if p.template.address != "" {
		sampled(t)
		return Database{address: pgtest.Copy(t, p.template.address)}
	}
	path := filepath.Join(t.TempDir(), "world.db")
	if err := os.WriteFile(path, p.file, 0o600); err != nil {
		t.Fatal(err)
	}
	return Database{path: path}
}

// Template fills a store once; each World gets a copy.
func Template(t testing.TB) Plan {
	t.Helper()
	fill := inFile
	if onPostgres() {
		fill = inPostgres
	}
	p, err := fill()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var inFile = sync.OnceValues(func() (p Plan, err error) {
	dir, err := os.MkdirTemp("", "souvenir-world")
	if err != nil {
		return p, err
	}
	defer os.RemoveAll(dir)
	p, err = newPlan(Database{path: filepath.Join(dir, "template.db")})
	if err != nil {
		return p, err
	}
	p.file, err = os.ReadFile(p.template.path)
	return p, err
})

var inPostgres = sync.OnceValues(func() (p Plan, err error) {
	_, err = pgtest.Keep(func(address string) error {
		p, err = newPlan(Database{address: address})
		return err
	})
	return p, err
})
