package dbtest

import (
	"errors"
	"fmt"
	"math"
	"slices"
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

// manyPassages checks words, vectors and changes of more memories than fit into one batch.
func manyPassages(t *testing.T, d db.DB) {
	const many = 1500
	partition := place(t, d)
	in := db.Range{First: partition << 32, Last: partition<<32 + many}
	var profile int64
	write(t, d, func(tx db.Tx) (err error) {
		profile, err = db.Insert(tx,
			`INSERT INTO profile (key, model, dimensions, created_at) VALUES ('a', 'a', 2, 0) RETURNING id`)
		return err
	})
	_, begin, _ := since(t, d, "", 10)
	write(t, d, func(tx db.Tx) error {
		for i := range int64(many) {
			memory, err := db.InsertNumbered(tx, "memory", `INSERT INTO memory (id, uid, partition_id, content, metadata,
				revision, created_at, updated_at) VALUES (?, ?, ?, 'content', '{}', 1, 0, 0)`, fmt.Sprint("m", i), partition)
			if err == nil {
				err = db.Queue(tx, `INSERT INTO passage (id, memory_id, start, length, blank, profile_id, vector)
					VALUES (?, ?, 0, 1, 0, ?, ?)`, in.First+i+1, memory, profile, floats(1, 0))
			}
			if err == nil {
				err = tx.Words().Put(in.First+i+1, "tea", "", false)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	distinct := func(rows []int64) string {
		slices.Sort(rows)
		return fmt.Sprint(len(rows), len(slices.Compact(slices.Clone(rows))))
	}
	look := func(tx db.Tx) error {
		passages, err := tx.Words().Count(in, []string{"tea"})
		memories, err2 := tx.Words().CountMemories(in, []string{"tea"}, 2*many)
		best, err3 := tx.Words().Best(in, []string{"tea"}, 2*many)
		var compared []int64
		err4 := tx.Vectors().Compare(in, floats(1, 0), []int64{profile}, func(c db.Compared) error {
			compared = append(compared, c.Passage)
			return nil
		})
		changed, _, complete, err5 := tx.Changes().Since(begin, 2*many)
		equal(t, "passages and memories with a term", fmt.Sprint(passages, memories), fmt.Sprint(many, many))
		all := fmt.Sprint(many, many)
		equal(t, "the best, and different ones of them", distinct(best), all)
		equal(t, "with vectors, and different ones of them", distinct(compared), all)
		equal(t, "changes, and different ones of them", distinct(changed), all)
		equal(t, "the changes are complete", complete, true)
		return errors.Join(err, err2, err3, err4, err5)
	}
	read(t, d, look)
	maintains(t, d, func(string) { read(t, d, look) })
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
