package dbtest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// rowsAffected checks that a statement counts the rows that it wrote itself: not rows that it left alone, nor those
// that triggers and cascades wrote.
func rowsAffected(t *testing.T, d db.DB) {
	partition := place(t, d)
	var rows []int64
	write(t, d, func(tx db.Tx) error {
		rows = nil
		for i := range 3 {
			row, err := addMemory(tx, partition, fmt.Sprint(i), `{"k": 1}`)
			if err != nil {
				return err
			}
			rows = append(rows, row)
			_, err = tx.Exec(`INSERT INTO memory_tag (memory_id, tag, position) VALUES (?1, 'a', 0), (?1, 'b', 1)`, row)
			if err != nil {
				return err
			}
			if _, err := tx.Exec(`INSERT INTO passage (id, memory_id, start, length, blank) VALUES (?, ?, 0, 1, 0)`,
				partition<<32+int64(i), row); err != nil {
				return err
			}
		}
		return errors.Join(set(tx, key("a"), 1), set(tx, key("b"), 1))
	})
	const insert = `INSERT INTO setting (key, value) VALUES (?, 2) `
	const update = insert + `ON CONFLICT (key) DO UPDATE SET value = excluded.value `
	for _, c := range []struct {
		what, query string
		args        []any
		want        int64
	}{
		{"an update that is not made", update + `WHERE false`, []any{key("a")}, 0},
		{"an update whose condition does not hold", update + `WHERE setting.value > excluded.value`, []any{key("a")}, 0},
		{"an update whose condition holds", update + `WHERE setting.value < excluded.value`, []any{key("a")}, 1},
		{"an update that needs no condition, of no row", update + `WHERE false`, []any{key("c")}, 1},
		{"a row that is there", insert + `ON CONFLICT (key) DO NOTHING`, []any{key("a")}, 0},
		{"a row that is there, by any constraint", insert + `ON CONFLICT DO NOTHING`, []any{key("a")}, 0},
		{"several rows, some of them there", `INSERT INTO setting (key, value) VALUES (?, 2), (?, 2), (?, 2)
			ON CONFLICT DO NOTHING`, []any{key("a"), key("d"), key("e")}, 2},
		{"the same values again", `UPDATE setting SET value = value WHERE key = ?`, []any{key("b")}, 1},
		{"an update of no row", `UPDATE setting SET value = 3 WHERE key = ?`, []any{key("none")}, 0},
		{"an update with triggers", `UPDATE memory SET metadata = '{"k": 2}' WHERE id IN (?, ?)`,
			[]any{rows[0], rows[1]}, 2},
		{"a deletion of no row", `DELETE FROM setting WHERE key = ?`, []any{key("none")}, 0},
		{"a deletion of some", `DELETE FROM setting WHERE key IN (?, ?)`, []any{key("d"), key("e")}, 2},
		{"a deletion with tags and a passage", `DELETE FROM memory WHERE id = ?`, []any{rows[0]}, 1},
		{"a query", `SELECT key FROM setting WHERE key LIKE ?`, []any{key("") + "%"}, 0},
		{"a query with WITH", `WITH a AS (SELECT key FROM setting) SELECT key FROM a`, nil, 0},
		{"a deletion with all that belongs to it", `DELETE FROM collection`, nil, 1},
	} {
		var got db.Result
		write(t, d, func(tx db.Tx) (err error) {
			got, err = tx.Exec(c.query, c.args...)
			return err
		})
		equal(t, c.what+": rows affected", got.RowsAffected, c.want)
	}
	read(t, d, func(tx db.Tx) error {
		got, err := tx.Exec(`SELECT key FROM setting`)
		equal(t, "a query in a Read: rows affected", got.RowsAffected, 0)
		return err
	})
	read(t, d, func(tx db.Tx) error {
		a, err := get(tx, key("a"))
		c, err2 := get(tx, key("c"))
		equal(t, "the values of a and c", fmt.Sprint(a, c), "2 2")
		return errors.Join(err, err2)
	})
}

// rowNumbers checks that a row that is inserted later has a higher number, by any statement and any handle, also once
// the newest was deleted, and that a partition's number fits into 31 bits, since numbers of passages begin with it.
func rowNumbers(t *testing.T, e Engine, d db.DB) {
	partition := place(t, d)
	handles := []db.DB{d, d}
	if e.Second != nil {
		handles[1] = e.Second(t, d)
		defer handles[1].Close()
	}
	var last int64
	for i := range 12 {
		var rows []int64
		write(t, handles[i/2%2], func(tx db.Tx) (err error) {
			rows = nil
			for n := 0; n < 1+i/4 && err == nil; n++ {
				var row int64
				uid := fmt.Sprint("numbered ", i, " ", n)
				if i%3 == 0 {
					row, err = addMemory(tx, partition, uid, "{}")
				} else {
					row, err = db.InsertNumbered(tx, "memory", numberedMemory, uid, partition, "text", nil)
				}
				rows = append(rows, row)
			}
			return err
		})
		for n, row := range rows {
			if row <= last {
				t.Errorf("memory %d of transaction %d: got number %d after %d, want a higher one", n, i, row, last)
			}
			last = row
		}
		if i%2 == 1 {
			write(t, d, func(tx db.Tx) error {
				_, err := tx.Exec(`DELETE FROM memory WHERE id = ?`, last)
				return err
			})
		}
	}
	err := d.Write(t.Context(), func(tx db.Tx) error {
		_, err := tx.Exec(`INSERT INTO partition (id, collection_id) SELECT ?, max(id) FROM collection`, int64(1)<<31)
		return err
	})
	if !errors.Is(err, db.ErrConstraint) {
		t.Errorf("a partition whose number has 32 bits: got %v, want %v", err, db.ErrConstraint)
	}
}

// clock returns the time by the clock of the database.
func clock(tx db.Tx) (time.Time, error) {
	var now int64
	err := tx.QueryRow(`SELECT ` + db.Clock).Scan(&now)
	return time.UnixMicro(now), err
}

// clockMovesOn checks that the clock counts microseconds since 1970, and moves on within a transaction.
func clockMovesOn(t *testing.T, d db.DB) {
	const pause, coarse = 50 * time.Millisecond, 5 * time.Millisecond
	look := func(tx db.Tx) error {
		began := time.Now()
		first, err := clock(tx)
		time.Sleep(pause)
		second, err2 := clock(tx)
		took := time.Since(began)
		if off := first.Sub(began).Abs(); off > 24*time.Hour {
			t.Errorf("the clock says %v, want microseconds since 1970, about %v", first, began)
		}
		if moved := second.Sub(first); moved < pause-coarse || moved > took+coarse {
			t.Errorf("the clock of a transaction moved by %v, want %v to %v", moved, pause, took)
		}
		return errors.Join(err, err2)
	}
	read(t, d, look)
	write(t, d, look)
}

// handlesShareClock checks that two handles have the same clock, since each takes over leases of the other by it.
func handlesShareClock(t *testing.T, e Engine) {
	one, other := twoHandles(t, e)
	var times [3]time.Time
	for i, d := range []db.DB{one, other, one} {
		read(t, d, func(tx db.Tx) (err error) {
			times[i], err = clock(tx)
			return err
		})
	}
	if times[1].Before(times[0].Add(-time.Second)) || times[1].After(times[2].Add(time.Second)) {
		t.Errorf("the other handle's clock says %v, want between %v and %v", times[1], times[0], times[2])
	}
}

// failedStatement checks that a statement which fails keeps none of its rows, and that a query for one row gets the
// first of several.
func failedStatement(t *testing.T, d db.DB) {
	write(t, d, func(tx db.Tx) error { return set(tx, key("c"), 1) })
	for _, part := range []bool{false, true} {
		write(t, d, func(tx db.Tx) error {
			several := func() error {
				_, err := tx.Exec(`INSERT INTO setting (key, value) VALUES (?, 1), (?, 1), (?, 1)`, key("a"), key("b"), key("c"))
				is(t, "several rows, of which the last is there already", err, db.ErrUnique)
				_, err = tx.Exec(`UPDATE setting SET value = CASE key WHEN ? THEN NULL ELSE 7 END WHERE key IN (?, ?)`, key("c"),
					key("0"), key("c"))
				is(t, "an update of several rows, of which the last fails", err, db.ErrConstraint)
				return nil
			}
			err := set(tx, key("0"), 1)
			if part {
				return errors.Join(err, tx.Savepoint(several))
			}
			return errors.Join(err, several())
		})
		read(t, d, func(tx db.Tx) error {
			kept, err := db.Column[string](tx, `SELECT key FROM setting WHERE key LIKE 'test %' AND value = 1 ORDER BY key`)
			equal(t, "rows", fmt.Sprint(kept), "[test 0 test c]")
			var first string
			err2 := tx.QueryRow(`SELECT key FROM setting WHERE key LIKE 'test %' ORDER BY key DESC`).Scan(&first)
			equal(t, "the first of several rows", first, key("c"))
			return errors.Join(err, err2)
		})
	}
}

func parameters(t *testing.T, d db.DB) {
	place(t, d)
	type named string
	read(t, d, func(tx db.Tx) error {
		for what, c := range map[string]struct {
			query string
			args  []any
			want  string
		}{
			"in order":        {`SELECT CAST(? AS TEXT) || ?`, []any{"a", "b"}, "ab"},
			"numbered":        {`SELECT CAST(?2 AS TEXT) || ?1 || ?2`, []any{"a", "b"}, "bab"},
			"a type of texts": {`SELECT CAST(? AS TEXT)`, []any{named("x")}, "x"},
			"null":            {`SELECT coalesce(CAST(? AS TEXT), 'none')`, []any{nil}, "none"},
			"a nil pointer":   {`SELECT coalesce(CAST(? AS TEXT), 'none')`, []any{(*string)(nil)}, "none"},
			"a number":        {`SELECT uid FROM users WHERE created_at = ?`, []any{0}, "ann"},
			"a large number":  {`SELECT uid FROM users WHERE created_at < ?`, []any{int64(1) << 62}, "ann"},
			"a boolean":       {`SELECT uid FROM users WHERE (created_at = 0) = ?`, []any{true}, "ann"},
			"a quote":         {`SELECT CAST(? AS TEXT)`, []any{`'; DROP TABLE users; --`}, `'; DROP TABLE users; --`},
		} {
			got, err := db.Column[string](tx, c.query, c.args...)
			if err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			equal(t, what, strings.Join(got, " "), c.want)
		}
		return nil
	})
	for what, args := range map[string][]any{"none": nil, "one of two": {"a"}} {
		err := d.Read(t.Context(), func(tx db.Tx) error {
			_, err := db.Column[string](tx, `SELECT uid FROM users WHERE uid = ? OR uid = ?`, args...)
			return err
		})
		if err == nil {
			t.Errorf("%s of the arguments: no error, want an error", what)
		}
	}
}

// sameStatements checks that a statement repeated in a Read with other arguments does not get the earlier answer.
func sameStatements(t *testing.T, d db.DB) {
	read(t, d, func(tx db.Tx) error {
		for range 2 {
			for _, arg := range []any{int64(1), int64(1 << 40), int64(1<<40 + 1), int64(-1 << 60), 1.5, -2.25, "1", "a b", "'"} {
				var got any
				if err := tx.QueryRow(`SELECT ?`, arg).Scan(&got); err != nil {
					return err
				}
				equal(t, "the argument of a statement", got, arg)
			}
			for _, args := range [][]any{{"a", "b"}, {"a\" \"b", ""}, {"", "a b"}, {"a b", ""}} {
				var a, b string
				if err := tx.QueryRow(`SELECT ?, ?`, args...).Scan(&a, &b); err != nil {
					return err
				}
				equal(t, "two arguments", fmt.Sprintf("%q", []any{a, b}), fmt.Sprintf("%q", args))
			}
		}
		return nil
	})
}
