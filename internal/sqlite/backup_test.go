package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	base "github.com/souvenir-ai/souvenir/internal/db"
)

// blob adds bytes, so that a copy has several steps.
func blob(tb testing.TB, db *DB, size int) {
	tb.Helper()
	must(tb, db.Write(tb.Context(), func(tx base.Tx) error {
		_, err := tx.Exec("INSERT INTO item (data) VALUES (zeroblob(?))", size)
		return err
	}))
}

func inFolder(tb testing.TB, path string) (all []string) {
	tb.Helper()
	entries, err := os.ReadDir(path)
	must(tb, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestBackupIsOneSnapshotInOneFile(t *testing.T) {
	bothKinds(t, func(t *testing.T, db *DB) {
		must(t, db.Write(t.Context(), insert("a")))
		blob(t, db, 3<<20)
		path := filepath.Join(t.TempDir(), "copy.db")
		var steps []int
		must(t, db.Backup(t.Context(), path, func(done, total int) {
			steps = append(steps, done)
			if len(steps) == 2 && !db.memory { // commits during the copy, which are not in it
				must(t, db.Write(t.Context(), insert("b")))
				blob(t, db, 1<<20)
			}
			if done > total {
				t.Errorf("got %d, want at most %d", done, total)
			}
		}))
		if len(steps) < 3 || len(steps) > 5 || !slices.IsSorted(steps) {
			t.Errorf("got steps %v, want 3 to 5 in rising order", steps)
		}
		if got := inFolder(t, filepath.Dir(path)); len(got) != 1 {
			t.Errorf("%v lie there, want a length of 1", got)
		}
		copied := openTest(t, testConfig(path))
		if got := names(t, copied); !slices.Equal(got, []string{"a", ""}) {
			t.Errorf("the copy has %q, want %v", got, []string{"a", ""})
		}
		must(t, copied.Write(t.Context(), insert("c")))
		must(t, copied.Read(t.Context(), func(tx base.Tx) error {
			var check string
			err := tx.QueryRow("PRAGMA integrity_check").Scan(&check)
			if check != "ok" {
				t.Errorf(`got %v, want "ok"`, check)
			}
			return err
		}))
	})
}

func TestBackupOfAReadOnlyFile(t *testing.T) {
	path := newFile(t)
	db := openTest(t, testConfig(path))
	must(t, db.Write(t.Context(), insert("a")))
	c := testConfig(path)
	c.ReadOnly = true
	readOnly := openTest(t, c)
	to := newFile(t)
	must(t, readOnly.Backup(t.Context(), to, nil))
	if got := names(t, openTest(t, testConfig(to))); !slices.Equal(got, []string{"a"}) {
		t.Errorf("the copy has %q, want %v", got, []string{"a"})
	}
}

func TestBackupRefusesExistingNames(t *testing.T) {
	db := openTest(t, testConfig(newFile(t)))
	blob(t, db, 3<<20)
	path := newFile(t)
	must(t, os.WriteFile(path, []byte("x"), 0o600))
	mustBe(t, db.Backup(t.Context(), path, nil), fs.ErrExist)
	must(t, os.Remove(path))
	mustBe(t, db.Backup(t.Context(), path, func(done, total int) { // another user is faster
		must(t, os.WriteFile(path, []byte("x"), 0o600))
	}), fs.ErrExist)
	if got := inFolder(t, filepath.Dir(path)); len(got) != 1 || fileBytes(t, path) != "x" {
		t.Errorf("%v lie there, want the old file alone", got)
	}
	mustBe(t, publish(path, path), fs.ErrExist)
	if err := db.Backup(t.Context(), filepath.Join(path, "below"), nil); err == nil {
		t.Error("a backup below a file is one, want an error")
	}
	mustBe(t, db.Backup(t.Context(), filepath.Join(t.TempDir(), "none", "x"), nil), fs.ErrNotExist)
	if err := db.Backup(t.Context(), "", nil); err == nil {
		t.Error("a backup without a path is one, want an error")
	}
}

func TestCancelledBackupLeavesNothing(t *testing.T) {
	bothKinds(t, func(t *testing.T, db *DB) {
		blob(t, db, 3<<20)
		path := newFile(t)
		for _, last := range []int{0, 1, 2} {
			ctx, cancel := context.WithCancel(t.Context())
			n := 0
			if last == 0 {
				cancel()
			}
			mustBe(t, db.Backup(ctx, path, func(int, int) {
				if n++; n == last {
					cancel()
				}
			}), context.Canceled)
		}
		if got := inFolder(t, filepath.Dir(path)); len(got) != 0 {
			t.Errorf("%v lie there, want none", got)
		}
		must(t, db.Write(t.Context(), insert("after it")))
	})
}

func TestACopyIsDeletedWhenItIsClosed(t *testing.T) {
	bothKinds(t, func(t *testing.T, db *DB) {
		must(t, db.Write(t.Context(), insert("a")))
		temporary := t.TempDir()
		t.Setenv("TMPDIR", temporary)
		f, err := db.Copy(t.Context(), nil)
		must(t, err)
		content, err := io.ReadAll(f)
		must(t, err)
		must(t, f.Close())
		if _, err := os.Stat(f.(*CopiedFile).Name()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is there: %v, want fs.ErrNotExist", f.(*CopiedFile).Name(), err)
		}
		path := newFile(t)
		must(t, os.WriteFile(path, content, 0o600))
		if got := names(t, openTest(t, testConfig(path))); !slices.Equal(got, []string{"a"}) {
			t.Errorf("the copy has %q, want %v", got, []string{"a"})
		}
		if got := inFolder(t, temporary); len(got) != 0 {
			t.Errorf("%v lie there, want none", got)
		}
	})
}

func TestScratchMayMakeTemporaryTablesAndChangesNothing(t *testing.T) {
	bothKinds(t, func(t *testing.T, db *DB) {
		must(t, db.Write(t.Context(), insert("a")))
		for range 2 {
			must(t, db.Scratch(t.Context(), func(tx base.Tx) error {
				if _, err := tx.Exec("CREATE TEMP TABLE mine (name TEXT)"); err != nil {
					return err
				}
				if _, err := tx.Exec("INSERT INTO mine SELECT name FROM item"); err != nil {
					return err
				}
				var n int
				err := tx.QueryRow("SELECT count(*) FROM temp.mine").Scan(&n)
				if n != 1 {
					t.Errorf("%d rows, want 1", n)
				}
				_, _ = tx.Exec("DELETE FROM item") // if it succeeds, it is undone
				return err
			}))
		}
		if n := len(names(t, db)); n != 1 {
			t.Errorf("%d items are left, want 1", n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		mustBe(t, db.Scratch(ctx, func(tx base.Tx) error {
			cancel()
			_, err := tx.Exec("SELECT 1")
			return err
		}), context.Canceled)
		must(t, db.Close())
		mustBe(t, db.Scratch(t.Context(), func(base.Tx) error { return nil }), base.ErrClosed)
		mustBe(t, db.Compact(t.Context()), base.ErrClosed)
	})
}

func TestCompactWritesTheFileAnew(t *testing.T) {
	bothKinds(t, func(t *testing.T, db *DB) {
		blob(t, db, 8<<20)
		must(t, db.Write(t.Context(), func(tx base.Tx) error { _, err := tx.Exec("DELETE FROM item"); return err }))
		must(t, db.Write(t.Context(), insert("left")))
		done := make(chan error, 20)
		for i := range cap(done) { // concurrent writers and readers
			go func() {
				if i%2 == 0 {
					done <- db.Write(context.Background(), insert(fmt.Sprint(i)))
					return
				}
				done <- db.Read(context.Background(),
					func(tx base.Tx) error { _, err := base.Column[string](tx, "SELECT name FROM item"); return err })
			}()
		}
		must(t, db.Compact(t.Context()))
		for range cap(done) {
			must(t, <-done)
		}
		var pages int
		must(t, db.Read(t.Context(), func(tx base.Tx) error { return tx.QueryRow("PRAGMA page_count").Scan(&pages) }))
		if pages > 30 || len(names(t, db)) != 11 {
			t.Errorf("%d pages, items %v, want at most 30 pages and 11 items", pages, names(t, db))
		}
		var store int
		must(t, db.Write(t.Context(), func(tx base.Tx) error { return tx.QueryRow("PRAGMA temp_store").Scan(&store) }))
		if store != 2 {
			t.Errorf("temporary tables are kept in %d afterwards, want 2", store)
		}
		must(t, db.Write(t.Context(), insert("after"))) // the last commit may have emptied the log
		if db.memory != (db.LogSize() == 0) {
			t.Errorf("the log has %d bytes, want some in a file, and none otherwise", db.LogSize())
		}
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		mustBe(t, db.Compact(cancelled), context.Canceled)
	})
}

func TestReadOnlyOpeningLeavesNoTrace(t *testing.T) {
	path := newFile(t)
	db, err := Open(t.Context(), testConfig(path))
	must(t, err)
	must(t, db.Write(t.Context(), insert("a")))
	must(t, db.Close())
	before := fileBytes(t, path)
	c := testConfig(path)
	c.ReadOnly = true
	for range 2 {
		db, err := Open(t.Context(), c)
		must(t, err)
		if len(names(t, db)) != 1 {
			t.Errorf("got %v, want one name", names(t, db))
		}
		must(t, db.Close())
		if got := inFolder(t, filepath.Dir(path)); len(got) != 1 || fileBytes(t, path) != before {
			t.Errorf("%v lie there, or the file was changed; want it alone, unchanged", got)
		}
	}

	// A writer keeps the side files.
	readOnly, err := Open(t.Context(), c)
	must(t, err)
	writer := openTest(t, testConfig(path))
	must(t, writer.Write(t.Context(), insert("b")))
	must(t, readOnly.Close())
	must(t, writer.Write(t.Context(), insert("c")))
	if len(names(t, writer)) != 3 || walSize(path+"-wal") == 0 {
		t.Errorf("the writer: got %v and a log of %d bytes, want 3 rows and a log", names(t, writer), walSize(path+"-wal"))
	}
}

func TestAnyVersionOpensOlderFilesForReading(t *testing.T) {
	path := newFile(t)
	older := testConfig(path)
	older.Migrations = fstest.MapFS{"0001_first.sql": testMigrations["0001_first.sql"]}
	db, err := Open(t.Context(), older)
	must(t, err)
	must(t, db.Write(t.Context(), insert("a")))
	must(t, db.Close())
	c := testConfig(path)
	c.ReadOnly = true
	_, err = Open(t.Context(), c)
	mustBe(t, err, base.ErrOlder)
	c.AnyVersion = true
	db = openTest(t, c)
	if len(names(t, db)) != 1 {
		t.Errorf("got %v, want one name", names(t, db))
	}
	empty := newFile(t)
	must(t, os.WriteFile(empty, nil, 0o600))
	c.Path = empty
	_, err = Open(t.Context(), c)
	mustBe(t, err, base.ErrOlder)
}
