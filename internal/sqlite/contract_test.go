package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/db/dbtest"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
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
	t.Run("file", func(t *testing.T) {
		dbtest.Run(t, dbtest.Engine{
			Open:   func(t *testing.T) db.DB { return open(t, filepath.Join(t.TempDir(), "contract.db")) },
			Reopen: func(t *testing.T, closed db.DB) db.DB { return open(t, closed.Upkeep().Path()) },
		})
	})
	t.Run("memory", func(t *testing.T) {
		dbtest.Run(t, dbtest.Engine{Open: func(t *testing.T) db.DB { return open(t, ":memory:") }})
	})
}
