package dbtest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// segmented is a database in which the search index holds memories of two partitions. In "one" it holds those up to
// "edge", in "two" those up to "above", and of "none" it holds nothing. The memories a, b and above are in "one". Those
// of "gap" and "edge" are deleted: their numbers are free.
type segmented struct {
	db.DB
	partitions, memories map[string]int64
}

// errPart ends a part of a transaction that is to be undone.
var errPart = errors.New("undone")

func newSegmented(t *testing.T, d db.DB) segmented {
	t.Helper()
	one := place(t, d)
	s := segmented{DB: d, partitions: map[string]int64{"one": one}, memories: map[string]int64{}}
	write(t, d, func(tx db.Tx) error {
		for _, name := range []string{"two", "none"} {
			partition, err := addPartition(tx, name)
			if err != nil {
				return err
			}
			s.partitions[name] = partition
		}
		for i, name := range []string{"gap", "a", "b", "edge", "above"} {
			row, err := addMemory(tx, one, name, "{}")
			if err != nil {
				return err
			}
			s.memories[name] = row
			if _, err := tx.Exec(`INSERT INTO passage (id, memory_id, start, length, blank) VALUES (?, ?, 0, 1, 0)`,
				one<<32+int64(i), row); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(`DELETE FROM memory WHERE uid IN ('gap', 'edge')`); err != nil {
			return err
		}
		return errors.Join(s.begin(tx, "one", "edge"), s.begin(tx, "two", "above"))
	})
	return s
}

// addPartition adds a partition of another collection of the user of [place].
func addPartition(tx db.Tx, collection string) (int64, error) {
	row, err := db.Insert(tx, `INSERT INTO collection (owner_id, name, description, created_at, updated_at)
		SELECT id, ?, '', 0, 0 FROM users WHERE uid = 'ann' RETURNING id`, collection)
	if err != nil {
		return 0, err
	}
	return db.Insert(tx, `INSERT INTO partition (collection_id) VALUES (?) RETURNING id`, row)
}

// begin stores a segment of a partition's memories up to one of them.
func (s segmented) begin(tx db.Tx, partition, upto string) error {
	_, err := tx.Exec(`INSERT INTO segmented (partition_id, profile_id, kind, upto, memories) VALUES (?, 1, 'k', ?, 1)`,
		s.partitions[partition], s.memories[upto])
	if err == nil {
		_, err = tx.Exec(`INSERT INTO segment (partition_id, memories, first_row, last_row, data) VALUES (?, 1, 1, ?, ?)`,
			s.partitions[partition], s.memories[upto], []byte{1})
	}
	return err
}

// name returns the name of a row.
func name(rows map[string]int64, row int64) string {
	for name, other := range rows {
		if other == row {
			return name
		}
	}
	return fmt.Sprint(row)
}

// stale returns the memories for which segments no longer count, with their partitions.
func (s segmented) stale(tx db.Tx) (string, error) {
	var all []string
	err := tx.Each(func(r db.Rows) error {
		var partition, memory int64
		err := r.Scan(&partition, &memory)
		all = append(all, name(s.partitions, partition)+" "+name(s.memories, memory))
		return err
	}, `SELECT partition_id, memory_id FROM segment_stale ORDER BY partition_id, memory_id`)
	return strings.Join(all, ", "), err
}

// expect reads the stale passages in a transaction of its own.
func (s segmented) expect(t *testing.T, what, want string) {
	t.Helper()
	read(t, s.DB, func(tx db.Tx) error {
		got, err := s.stale(tx)
		equal(t, what, got, want)
		return err
	})
}

// exec returns a change that is one statement. Arguments that are texts name rows.
func (s segmented) exec(query string, args ...string) func(db.Tx) error {
	return func(tx db.Tx) error {
		rows := make([]any, len(args))
		for i, arg := range args {
			row, is := s.memories[arg]
			if !is {
				row = s.partitions[arg]
			}
			rows[i] = row
		}
		_, err := tx.Exec(query, rows...)
		return err
	}
}

// change is a change of memories, and the stale passages after it.
type change struct {
	what string
	run  func(db.Tx) error
	want string
}

// insertRow begins a statement that inserts a memory with a number of its own.
const insertRow = `INSERT INTO memory (id, partition_id, uid, content, metadata, revision, created_at, updated_at) `

// once lists changes that cannot be made twice.
func (s segmented) once() []change {
	const insert = insertRow + `VALUES (?, ?, 'new', '', '{}', 1, 0, 0)`
	return []change{
		{"a new memory below the end of a segment", s.exec(insert, "gap", "one"), "one gap"},
		{"a new memory at the end of a segment", s.exec(insert, "edge", "one"), "one edge"},
		{"a new memory above", func(tx db.Tx) error {
			_, err := addMemory(tx, s.partitions["one"], "new", "{}")
			return err
		}, ""},
		{"a new memory where nothing is segmented", s.exec(insert, "gap", "none"), ""},
		{"several new memories in one statement", s.exec(insertRow+`SELECT id - 1, partition_id, 'new ' || uid, '', '{}', 1,
			0, 0 FROM memory WHERE id IN (?, ?)`, "a", "above"), "one gap, one edge"},
		{"no new memories", s.exec(insertRow + `SELECT id - 1, partition_id, uid, '', '{}', 1, 0, 0 FROM memory
			WHERE false`), ""},
		{"a deletion", s.exec(`DELETE FROM memory WHERE id = ?`, "a"), "one a"},
		{"a deletion above", s.exec(`DELETE FROM memory WHERE id = ?`, "above"), ""},
		{"a deletion of all", s.exec(`DELETE FROM memory`), "one a, one b"},
	}
}

// again lists changes that can be made twice, with the same outcome.
func (s segmented) again() []change {
	const move = `UPDATE memory SET partition_id = ? WHERE id = ?`
	embed := func(memory string) func(db.Tx) error {
		return func(tx db.Tx) error {
			_, err := tx.Exec(`UPDATE passage SET vector = ? WHERE memory_id = ?`, floats(1, 0), s.memories[memory])
			return err
		}
	}
	add := func(memory int64) func(db.Tx) error {
		return func(tx db.Tx) error { return db.AddChange(tx, memory) }
	}
	back := func(tx db.Tx) error {
		return errors.Join(s.exec(move, "two", "a")(tx), s.exec(move, "one", "a")(tx))
	}
	return []change{
		{"an update", s.exec(`UPDATE memory SET updated_at = 1 WHERE id = ?`, "a"), "one a"},
		{"an update above", s.exec(`UPDATE memory SET updated_at = 1 WHERE id = ?`, "above"), ""},
		{"an update of all", s.exec(`UPDATE memory SET updated_at = 1`), "one a, one b"},
		{"an update of none", s.exec(`UPDATE memory SET updated_at = 1 WHERE false`), ""},
		{"a move", s.exec(move, "two", "a"), "one a, two a"},
		{"a move of one above, in its former partition only", s.exec(move, "two", "above"), "two above"},
		{"a move of all", s.exec(`UPDATE memory SET partition_id = ?`, "two"), "one a, one b, two a, two b, two above"},
		{"a move to where nothing is segmented", s.exec(move, "none", "a"), "one a"},
		{"a move there and back", back, "one a, two a"},
		{"a vector", embed("a"), "one a"},
		{"a vector above", embed("above"), ""},
		{"vectors of all", func(tx db.Tx) error {
			_, err := tx.Exec(`UPDATE passage SET vector = ?`, floats(1, 0))
			return err
		}, "one a, one b"},
		{"passages that were rebuilt", add(s.memories["a"]), "one a"},
		{"passages above that were rebuilt", add(s.memories["above"]), ""},
		{"passages of a missing memory", add(s.memories["gap"]), ""},
	}
}

// segmentsGoStale checks that each change of a memory is noted for the segments that hold it, once, and not if it was
// undone.
func segmentsGoStale(t *testing.T, d db.DB) {
	s := newSegmented(t, d)
	s.expect(t, "stale at first", "")
	check := func(c change, times int) {
		t.Helper()
		run := func(tx db.Tx) error {
			for range times {
				if err := c.run(tx); err != nil {
					return fmt.Errorf("%s: %w", c.what, err)
				}
			}
			got, err := s.stale(tx)
			equal(t, c.what, got, c.want)
			return errors.Join(err, errPart)
		}
		is(t, c.what, d.Write(t.Context(), run), errPart)
		s.expect(t, c.what+", in a Write that was undone", "")
		write(t, d, func(tx db.Tx) error {
			is(t, c.what, tx.Savepoint(func() error { return run(tx) }), errPart)
			return nil
		})
		s.expect(t, c.what+", in a part that was undone", "")
	}
	for _, c := range s.once() {
		check(c, 1)
	}
	for _, c := range s.again() {
		check(c, 1)
		check(c, 2)
	}
	for range 2 {
		for _, c := range s.again() { // each in a Write of its own
			write(t, d, c.run)
		}
	}
	s.expect(t, "after all of them", "one a, one b, two a, two b, two above")
}

// segmentsGoWithTheirPartition checks that a deleted partition leaves nothing of its segments.
func segmentsGoWithTheirPartition(t *testing.T, d db.DB) {
	s := newSegmented(t, d)
	write(t, d, s.exec(`UPDATE memory SET partition_id = ? WHERE id = ?`, "two", "a"))
	rows := func(what, want string) {
		t.Helper()
		read(t, d, func(tx db.Tx) error {
			var segmented, segments, stale, memories int
			err := tx.QueryRow(`SELECT (SELECT count(*) FROM segmented), (SELECT count(*) FROM segment),
				(SELECT count(*) FROM segment_stale), (SELECT count(*) FROM memory)`).
				Scan(&segmented, &segments, &stale, &memories)
			equal(t, what+": rows of segmented, segment, segment_stale, memory",
				fmt.Sprint(segmented, segments, stale, memories), want)
			return err
		})
	}
	rows("at first", "2 2 2 3")
	is(t, "a partition that is deleted in a Write with an error", d.Write(t.Context(), func(tx db.Tx) error {
		return errors.Join(s.exec(`DELETE FROM partition WHERE id = ?`, "one")(tx), errPart)
	}), errPart)
	rows("after a deletion that was undone", "2 2 2 3")
	write(t, d, s.exec(`DELETE FROM partition WHERE id = ?`, "one"))
	rows("after a partition is gone", "1 1 1 1")
	write(t, d, s.exec(`DELETE FROM collection WHERE id = (SELECT collection_id FROM partition WHERE id = ?)`, "two"))
	rows("after a collection is gone", "0 0 0 0")
}
