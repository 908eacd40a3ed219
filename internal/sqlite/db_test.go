package sqlite

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	base "github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

func TestCloseWaitsForRunningWorkAndRefusesNewWork(t *testing.T) {
	bothKinds(t, func(t *testing.T, db *DB) {
		begun, release := make(chan struct{}), make(chan struct{})
		running := make(chan error, 2)
		go func() {
			running <- db.Write(t.Context(), func(tx base.Tx) error { close(begun); <-release; return insert("a")(tx) })
		}()
		<-begun
		go func() { running <- db.Write(t.Context(), insert("queued")) }()
		queued(t, db, 1)

		closed := make(chan error, 2)
		for range cap(closed) {
			go func() { closed <- db.Close() }()
		}
		<-db.closing
		mustBe(t, db.Write(t.Context(), insert("x")), base.ErrClosed)
		mustBe(t, db.Read(t.Context(), func(base.Tx) error { return nil }), base.ErrClosed)
		select {
		case err := <-closed:
			t.Errorf("Close did not wait: %v", err)
		default:
		}
		close(release)
		must(t, <-running)
		must(t, <-running)
		must(t, <-closed)
		must(t, <-closed)
		must(t, db.Close())
	})
}

func TestCloseUnderLoadLosesNoAnsweredWrite(t *testing.T) {
	longtest.Only(t)
	path := newFile(t)
	db := openTest(t, testConfig(path))
	var answered sync.Map
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				name := fmt.Sprintf("%d/%d", g, i)
				err := db.Write(t.Context(), insert(name))
				if errors.Is(err, base.ErrClosed) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				answered.Store(name, true)
			}
		})
		wg.Go(func() {
			for {
				err := db.Read(t.Context(), func(tx base.Tx) error {
					var n int
					return tx.QueryRow("SELECT count(*) FROM item").Scan(&n)
				})
				if errors.Is(err, base.ErrClosed) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	eventually(t, "some writes", func() bool { _, ok := answered.Load("3/20"); return ok })
	must(t, db.Close())
	wg.Wait()
	for _, name := range names(t, openTest(t, testConfig(path))) {
		answered.Delete(name)
	}
	answered.Range(func(name, _ any) bool { t.Errorf("%v was answered, but is lost", name); return true })
}

func TestEveryConnectionHasTheSettingsAndExtensions(t *testing.T) {
	check := func(tx base.Tx, pragma, want string) {
		t.Helper()
		var got string
		var raw any
		must(t, tx.QueryRow("SELECT * FROM pragma_"+pragma).Scan(&raw))
		if got = fmt.Sprint(raw); got != want {
			t.Errorf("%s is %s, want %s", pragma, got, want)
		}
	}
	common := func(tx base.Tx) {
		check(tx, "foreign_keys", "1")
		check(tx, "synchronous", "2")
		check(tx, "temp_store", "2")
		check(tx, "trusted_schema", "0")
		check(tx, "cell_size_check", "1")
		var distance, length float64
		must(t, tx.QueryRow("SELECT vec_distance_cosine(vec_f32('[1, 0]'), vec_f32('[0, 1]')), vec_length(?)",
			make([]byte, 12)).Scan(&distance, &length))
		if distance != 1 || length != 3 {
			t.Errorf("distance %v, length %v, want distance 1 and length 3", distance, length)
		}
	}
	c := testConfig(newFile(t))
	c.Readers = 2
	db := openTest(t, c)
	must(t, db.Read(t.Context(), func(tx base.Tx) error {
		common(tx)
		return db.Read(t.Context(), func(tx base.Tx) error { // the second reader
			common(tx)
			check(tx, "journal_mode", "wal")
			return nil
		})
	}))
	write := func(tx base.Tx) error {
		common(tx)
		must(t, tx.(*Tx).ExecScript("INSERT INTO note (rowid, body) VALUES (1, 'hello world'); DELETE FROM note "+
			"WHERE rowid = 1; INSERT INTO note (rowid, body) VALUES (2, 'hello again')"))
		var id int
		must(t, tx.QueryRow("SELECT rowid FROM note WHERE note MATCH 'hello'").Scan(&id))
		if id != 2 {
			t.Errorf("full-text search finds %d, want 2", id)
		}
		return nil
	}
	must(t, db.Write(t.Context(), write))
	must(t, openTest(t, testConfig(":memory:")).Write(t.Context(), write))
}

func TestErrorsAreClassified(t *testing.T) {
	bothKinds(t, func(t *testing.T, db *DB) {
		must(t, db.Write(t.Context(), insert("a")))
		for name, test := range map[string]struct {
			query string
			args  []any
			is    error
			code  int
		}{
			"unique":      {"INSERT INTO item (name) VALUES ('a')", nil, base.ErrUnique, codeConstraintUnique},
			"primary key": {"INSERT INTO item (id) SELECT id FROM item", nil, base.ErrUnique, codeConstraintPrimaryKey},
			"not null":    {"INSERT INTO child (item_id) VALUES (NULL)", nil, base.ErrConstraint, codeConstraint | 5<<8},
			"type": {"INSERT INTO item (id, name, data) VALUES (9, 'x', 'text')", nil, base.ErrConstraint,
				codeConstraint | 12<<8},
			"too big":   {"SELECT zeroblob(3000000000)", nil, base.ErrTooBig, codeTooBig},
			"syntax":    {"SELEC 1", nil, nil, 1},
			"full-text": {"SELECT rowid FROM note WHERE note MATCH ?", []any{`"`}, nil, 1},
		} {
			err := db.Write(t.Context(), func(tx base.Tx) error {
				rows, err := tx.Query(test.query, test.args...)
				if err != nil {
					return err
				}
				for rows.Next() {
				}
				return rows.Err()
			})
			e := new(Error)
			if !errors.As(err, &e) || e.Code != test.code {
				t.Errorf("%s: %v, want code %d", name, err, test.code)
			}
			if test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("%s: got %v, want %v", name, err, test.is)
			}
			if errors.Is(err, base.ErrUnique) != errors.Is(test.is, base.ErrUnique) {
				t.Errorf("%s: got %v, want base.ErrUnique only for uniqueness", name, err)
			}
		}
		mustBe(t, db.Read(t.Context(), func(tx base.Tx) error {
			var n int
			return tx.QueryRow("SELECT id FROM item WHERE id = 4711").Scan(&n)
		}), base.ErrNoRows)
	})
}

func TestSeveralStatementsInOneExecAreRefused(t *testing.T) {
	bothKinds(t, func(t *testing.T, db *DB) {
		err := db.Write(t.Context(), func(tx base.Tx) error {
			if _, err := tx.Exec("INSERT INTO item (name) VALUES ('a');"); err != nil {
				t.Errorf("one statement with a semicolon: %v", err)
			}
			_, err := tx.Exec("INSERT INTO item (name) VALUES ('b'); INSERT INTO item (name) VALUES ('c')")
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "ExecScript") {
			t.Errorf(`error is %v, want an error and "ExecScript" in the error`, err)
		}
	})
}

func TestDriverNamesItsVersions(t *testing.T) {
	if d := Driver(); !strings.Contains(d, driverModule) || !strings.Contains(d, "SQLite 3.") ||
		!strings.Contains(d, "sqlite-vec v") {
		t.Errorf(`Driver is %q, want %q in it, "SQLite 3." in it and "sqlite-vec v" in it`, d, driverModule)
	}
}
