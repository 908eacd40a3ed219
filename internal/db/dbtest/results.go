package dbtest

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// rowReader reads the rows of a query.
type rowReader struct {
	name string
	each func(tx db.Tx, fn func(db.Rows) error, query string, args ...any) error
}

var rowReaders = []rowReader{
	{"Query", db.Stream},
	{"Each", func(tx db.Tx, fn func(db.Rows) error, query string, args ...any) error {
		return tx.Each(fn, query, args...)
	}},
}

// counting are the numbers from 1 to a parameter.
const counting = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT `

// longResults checks that a result of thousands of rows is whole and in order, however it is read: with other
// statements and other results between its rows, and while another call writes such rows.
func longResults(t *testing.T, e Engine, d db.DB) {
	const rows = 5000
	const query = `SELECT key, value FROM setting WHERE key LIKE 'test %' AND value > ? ORDER BY value`
	write(t, d, func(tx db.Tx) error {
		_, err := tx.Exec(`INSERT INTO setting (key, value) `+counting+`'test ' || i, i FROM n`, rows)
		return err
	})
	wait := func() {}
	look := func(tx db.Tx) error {
		for i, reader := range rowReaders {
			read, wrong := int64(0), 0
			err := reader.each(tx, func(row db.Rows) error {
				var name string
				var value int64
				err := row.Scan(&name, &value)
				if read++; value != read || name != key(read) {
					wrong++
				}
				switch {
				case err != nil || read%999 != 1:
				case read == 1 && i == 0 && !tx.Writable():
					wait = e.beside(t, d, func(tx db.Tx) error {
						_, err := tx.Exec(`DELETE FROM setting WHERE key LIKE 'test %' AND value > 100 AND value <= 2000`)
						_, err2 := tx.Exec(`UPDATE setting SET value = value + 10000 WHERE key LIKE 'test %' AND value > 4000`)
						return errors.Join(err, err2, set(tx, key("new"), 3000))
					})
				default:
					var other int64
					other, err = get(tx, key(read))
					equal(t, "a row that is read between others", other, read)
				}
				return err
			}, query, -i)
			equal(t, "a long result by "+reader.name+": rows, and those that are wrong", fmt.Sprint(read, wrong),
				fmt.Sprint(rows, 0))
			if err != nil {
				return err
			}
		}
		one, err := tx.Query(query, -2)
		if err != nil {
			return err
		}
		defer one.Close()
		read, wrong := int64(0), 0
		err = db.Stream(tx, func(other db.Rows) error { // both are read in turn
			var name string
			var value, second int64
			read++
			if !one.Next() || errors.Join(one.Scan(&name, &value), other.Scan(&name, &second)) != nil || value != read ||
				second != rows+1-read {
				wrong++
			}
			return nil
		}, query+` DESC`, -3)
		equal(t, "two long results at once: rows, those that are wrong, and a further one",
			fmt.Sprint(read, wrong, one.Next()), fmt.Sprint(rows, 0, false))
		return errors.Join(err, one.Err())
	}
	write(t, d, look)
	read(t, d, look)
	wait()
}

// failingRows checks results that end in their middle: because the function for a row returns an error, which leaves
// the transaction as it is, or because a row cannot be computed.
func failingRows(t *testing.T, d db.DB) {
	const rows = `SELECT key, value FROM setting WHERE key LIKE 'test %' AND length(key) = 6 ORDER BY key`
	const failing = `SELECT key, abs(value) FROM setting WHERE key LIKE 'test %' AND length(key) = 6 ORDER BY key`
	write(t, d, func(tx db.Tx) error {
		return errors.Join(set(tx, key("a"), 1), set(tx, key("b"), 2), set(tx, key("c"), math.MinInt64), set(tx, key("d"), 4))
	})
	stop := errors.New("stop")
	want := 4
	for _, reader := range rowReaders {
		third := func(tx db.Tx) {
			ran := 0
			is(t, reader.name+" whose function fails", reader.each(tx, func(db.Rows) error {
				if ran++; ran == 3 {
					return stop
				}
				return nil
			}, rows), stop)
			equal(t, "rows for the function of "+reader.name+" until it fails", ran, 3)
			is(t, reader.name+" of a value that does not fit", reader.each(tx, func(row db.Rows) error {
				var small int32
				return row.Scan(new(string), &small)
			}, rows), db.ErrMisfit)
		}
		fails := func(tx db.Tx) error {
			ran := 0
			err := reader.each(tx, func(row db.Rows) error {
				var value int64
				err := row.Scan(new(string), &value)
				if ran++; value != int64(ran) {
					t.Errorf("%s of a query whose third row fails: got the value %d, want %d", reader.name, value, ran)
				}
				return err
			}, failing)
			is(t, reader.name+" of a query whose third row fails", err, errAny)
			if ran > 2 {
				t.Errorf("%s of a query whose third row fails: got %d rows, want at most 2", reader.name, ran)
			}
			return err
		}
		for _, part := range []bool{false, true} {
			write(t, d, func(tx db.Tx) error {
				third(tx)
				err := set(tx, key(reader.name, part, " after its function"), 1)
				if part {
					is(t, "a part with a row that fails", tx.Savepoint(func() error {
						return errors.Join(set(tx, key("undone"), 1), fails(tx))
					}), errAny)
				}
				return errors.Join(err, set(tx, key(reader.name, part, " goes on"), 1))
			})
			want += 2
		}
		var next error
		err := d.Write(t.Context(), func(tx db.Tx) error {
			err := set(tx, key(reader.name, " before"), 1)
			_ = fails(tx)
			next = set(tx, key(reader.name, " after"), 1)
			return err
		})
		if next == nil {
			is(t, "a Write that goes on after a row that failed", err, nil)
			want += 2
		} else {
			is(t, "a Write that has lost its transaction by a row that failed", err, errAny)
		}
		is(t, "a Read with a row that fails", d.Read(t.Context(), fails), errAny)
		read(t, d, func(tx db.Tx) error {
			third(tx)
			n, err := count(tx)
			equal(t, "rows after "+reader.name, n, want)
			return err
		})
	}
}

// scansWithoutRow checks that only the current row can be scanned: not before the first Next, nor after the last one or
// Close. Results are empty, short, and longer than a portion of a cursor.
func scansWithoutRow(t *testing.T, d db.DB) {
	look := func(tx db.Tx) error {
		for _, length := range []int{0, 1, 450} {
			for _, early := range []bool{false, true} {
				what := fmt.Sprintf("of %d rows, closed early: %t", length, early)
				rows, err := tx.Query(counting+`i FROM n WHERE i <= ?`, length, length)
				if err != nil {
					return err
				}
				var n int
				is(t, "Scan before Next "+what, rows.Scan(&n), errAny)
				read := 0
				for rows.Next() {
					read++
					is(t, "Scan "+what, errors.Join(rows.Scan(&n), rows.Scan(&n)), nil)
					equal(t, "the row "+what, n, read)
					if early {
						break
					}
				}
				if early {
					is(t, "Close "+what, rows.Close(), nil)
				}
				is(t, "Scan after the end "+what, rows.Scan(&n), errAny)
				equal(t, "Next after the end "+what, rows.Next(), false)
				is(t, "Scan after another Next "+what, rows.Scan(&n), errAny)
				is(t, "Err and Close "+what, errors.Join(rows.Err(), rows.Close()), nil)
				equal(t, "rows "+what, read, map[bool]int{false: length, true: min(length, 1)}[early])
			}
		}
		return nil
	}
	read(t, d, look)
	write(t, d, look)
}

func rowsScanned(t *testing.T, d db.DB) {
	place(t, d)
	write(t, d, func(tx db.Tx) error {
		_, err := tx.Exec(`INSERT INTO file_chunk (id, sha256, data) VALUES (1, ?, ?)`, []byte{}, []byte{0, 1, 255})
		return err
	})
	read(t, d, func(tx db.Tx) error {
		var id int64
		var small int
		var name *string
		var uid sql.NullString
		var kind struct{ role string }
		var newer bool
		err := tx.QueryRow(`SELECT id, created_at, name, uid, role, created_at >= 0 FROM users`).Scan(&id, &small, &name,
			&uid, &kind.role, &newer)
		equal(t, "a row", fmt.Sprintf("%v %v %v %v %v %v", id > 0, small, name == nil, uid.String, kind.role, newer),
			"true 0 true ann user true")
		var empty, data []byte
		err = errors.Join(err, tx.QueryRow(`SELECT sha256, data FROM file_chunk`).Scan(&empty, &data))
		equal(t, "bytes", fmt.Sprint(empty != nil, data), "true [0 1 255]")
		rows, queryErr := tx.Query(`SELECT id FROM users WHERE id IN `+db.Integers, db.List([]int64{id}))
		if queryErr != nil {
			return queryErr
		}
		var again int64
		equal(t, "Next", rows.Next(), true)
		err = errors.Join(err, rows.Scan(&again),
			tx.QueryRow(`SELECT count(*) FROM users`).Scan(&small)) // while rows are open
		equal(t, "Next at the end", rows.Next(), false)
		equal(t, "again", again, id)
		stop := errors.New("stop")
		is(t, "Each", tx.Each(func(db.Rows) error { return stop }, `SELECT id FROM users`), stop)
		return errors.Join(err, rows.Err(), rows.Close(), rows.Close())
	})
	write(t, d, func(tx db.Tx) error {
		r, err := tx.Exec(`UPDATE users SET created_at = 2`)
		equal(t, "rows affected", r.RowsAffected, 1)
		row, insertErr := db.Insert(tx,
			`INSERT INTO users (uid, created_at) VALUES ('ann', 0) ON CONFLICT (namespace, uid) DO NOTHING RETURNING id`)
		equal(t, "the row of nothing inserted", row, 0)
		return errors.Join(err, insertErr)
	})
}
