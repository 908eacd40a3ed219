package sqlite_test

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/db/dbtest"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

func TestSQLiteKeepsTheContract(t *testing.T) {
	open := func(t *testing.T, path string) db.DB {
		t.Helper()
		d, err := sqlite.Open(t.Context(),
			sqlite.Config{Path: path, ApplicationID: 0x534f5556, Migrations: sqlite.Migrations()})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	impatient := func(t *testing.T, path string) db.DB {
		t.Helper()
		d, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, ApplicationID: 0x534f5556,
			Migrations: sqlite.Migrations(), LockTimeout: 500 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	t.Run("file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "new.db")
		if err := open(t, path).Close(); err != nil {
			t.Fatal(err)
		}
		empty, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		dbtest.Run(t, dbtest.Engine{
			Open: func(t *testing.T) db.DB { // a copy, because making the schema is most of the work
				path := filepath.Join(t.TempDir(), "contract.db")
				if err := os.WriteFile(path, empty, 0o600); err != nil {
					t.Fatal(err)
				}
				return open(t, path)
			},
			Reopen: func(t *testing.T, closed db.DB) db.DB { return open(t, closed.Upkeep().Path) },
			Second: func(t *testing.T, d db.DB) db.DB { return open(t, d.Upkeep().Path) },
			ReadOnly: func(t *testing.T, d db.DB) db.DB {
				r, err := sqlite.Open(t.Context(), sqlite.Config{Path: d.Upkeep().Path, ApplicationID: 0x534f5556,
					Migrations: sqlite.Migrations(), ReadOnly: true})
				if err != nil {
					t.Fatal(err)
				}
				return r
			},
			Fill: func() func(t *testing.T, fill map[string]func(db.Tx) error) (db.DB, error) {
				path := filepath.Join(t.TempDir(), "filled.db")
				return func(t *testing.T, fill map[string]func(db.Tx) error) (db.DB, error) { return openFilled(t, path, fill) }
			}(),
			Killed: func(t *testing.T) (db.DB, io.Reader) {
				path := filepath.Join(t.TempDir(), "killed.db")
				if err := open(t, path).Close(); err != nil {
					t.Fatal(err)
				}
				printed := sqlite.KillContract(t, path)
				return open(t, path), strings.NewReader(printed)
			},
			Flood:     flood,
			Impatient: func(t *testing.T) db.DB { return impatient(t, filepath.Join(t.TempDir(), "impatient.db")) },
		})
	})
	t.Run("memory", func(t *testing.T) {
		longtest.Only(t)
		dbtest.Run(t, dbtest.Engine{Open: func(t *testing.T) db.DB { return open(t, ":memory:") }, Flood: flood,
			Impatient: func(t *testing.T) db.DB { return impatient(t, ":memory:") },
			Fill: func(t *testing.T, fill map[string]func(db.Tx) error) (db.DB, error) {
				return openFilled(t, ":memory:", fill)
			}})
	})
}

// stepwise hides the schema that new files start from, so that each migration runs.
type stepwise struct{ fs.FS }

func (s stepwise) Glob(pattern string) ([]string, error) {
	if strings.HasPrefix(pattern, "schema/") {
		return nil, nil
	}
	return fs.Glob(s.FS, pattern)
}

// openFilled opens a database whose migrations are completed in Go.
func openFilled(t *testing.T, path string, fill map[string]func(db.Tx) error) (db.DB, error) {
	t.Helper()
	d, err := sqlite.Open(t.Context(),
		sqlite.Config{Path: path, ApplicationID: 0x534f5556, Migrations: stepwise{sqlite.Migrations()}, Fill: fill})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// flood adds a thousand entries to the change log.
func flood(tx db.Tx, memory int64) error {
	_, err := tx.Exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
		INSERT INTO change (memory_id) SELECT ? FROM n`, memory)
	return err
}
