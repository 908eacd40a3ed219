package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	base "github.com/souvenir-ai/souvenir/internal/db"
)

// testID is the application id of the tests' files.
const testID = 0x534f5556

var testMigrations = fstest.MapFS{
	"0001_first.sql": {Data: []byte(`
		CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT UNIQUE, data BLOB) STRICT;
		CREATE TABLE child (id INTEGER PRIMARY KEY,
			item_id INTEGER NOT NULL REFERENCES item (id) DEFERRABLE INITIALLY DEFERRED) STRICT;`)},
	"0002_text.sql": {Data: []byte(
		`CREATE VIRTUAL TABLE note USING fts5 (body, content='', contentless_delete=1);`)},
}

func testConfig(path string) Config {
	return Config{Path: path, ApplicationID: testID, Migrations: testMigrations}
}

func openTest(tb testing.TB, c Config) *DB {
	tb.Helper()
	db, err := Open(tb.Context(), c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Error(err)
		}
	})
	return db
}

// newFile returns the path of a file that does not exist yet.
func newFile(tb testing.TB) string { return filepath.Join(tb.TempDir(), "test.db") }

// bothKinds runs a test on a file and in memory.
func bothKinds(t *testing.T, f func(t *testing.T, db *DB)) {
	t.Run("file", func(t *testing.T) { f(t, openTest(t, testConfig(newFile(t)))) })
	t.Run("memory", func(t *testing.T) { f(t, openTest(t, testConfig(":memory:"))) })
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func mustBe(tb testing.TB, err, want error) {
	tb.Helper()
	if !errors.Is(err, want) {
		tb.Fatalf("error is %v, want %v", err, want)
	}
}

func insert(name string) func(base.Tx) error {
	return func(tx base.Tx) error {
		_, err := tx.Exec("INSERT INTO item (name) VALUES (?)", name)
		return err
	}
}

// names returns the stored items, in the order of their ids.
func names(tb testing.TB, db *DB) []string {
	tb.Helper()
	var all []string
	must(tb, db.Read(tb.Context(), func(tx base.Tx) (err error) {
		all, err = base.Column[string](tx, "SELECT coalesce(name, '') FROM item ORDER BY id")
		return err
	}))
	return all
}

// eventually waits for a condition that other goroutines or processes bring about.
func eventually(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(30 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("not within 30 s: %s, want it before the deadline", what)
		}
	}
}

// queued waits until the given number of calls wait for their turn to write.
func queued(tb testing.TB, db *DB, n int) {
	tb.Helper()
	eventually(tb, fmt.Sprintf("%d queued writes", n), func() bool {
		db.writer.mu.Lock()
		defer db.writer.mu.Unlock()
		return len(db.writer.queue) == n
	})
}

func fileBytes(tb testing.TB, path string) string {
	tb.Helper()
	b, err := os.ReadFile(path)
	must(tb, err)
	return string(b)
}
