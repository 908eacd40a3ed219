package dbtest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// since reads the changes after a mark.
func since(t *testing.T, d db.DB, mark db.Mark, limit int) (memories []int64, next db.Mark, complete bool) {
	t.Helper()
	read(t, d, func(tx db.Tx) (err error) {
		memories, next, complete, err = tx.Changes().Since(mark, limit)
		return err
	})
	slices.Sort(memories)
	return memories, next, complete
}

// misses reports memories that are missing in changes. The changes may include others, which changed earlier.
func misses(t *testing.T, what string, got []int64, complete bool, want ...int64) {
	t.Helper()
	for _, row := range want {
		if !complete || !slices.Contains(got, row) {
			t.Errorf("%s: the changes are %v, complete: %t; want memory %d among them", what, got, complete, row)
		}
	}
	if distinct := slices.Compact(slices.Clone(got)); len(distinct) < len(got) {
		t.Errorf("%s: a memory is named twice: %v, got %v, want at least %v", what, got, len(distinct), len(got))
	}
}

// addMemories adds some memories to a partition.
func addMemories(t *testing.T, d db.DB, partition int64, number int) []int64 {
	t.Helper()
	rows := make([]int64, number)
	write(t, d, func(tx db.Tx) (err error) {
		for i := range rows {
			if rows[i], err = addMemory(tx, partition, fmt.Sprint(i), "{}"); err != nil {
				return err
			}
		}
		return nil
	})
	return rows
}

// touch changes a memory.
func touch(tx db.Tx, memory int64) error {
	_, err := tx.Exec(`UPDATE memory SET updated_at = updated_at + 1 WHERE id = ?`, memory)
	return err
}

// changesLogged checks what counts as a change of a memory, besides adding, updating and deleting it: a move, and a
// vector of one of its passages. A new passage does not count; see [changesAdded].
func changesLogged(t *testing.T, d db.DB) {
	partition := place(t, d)
	rows := addMemories(t, d, partition, 3)
	var other int64
	write(t, d, func(tx db.Tx) (err error) {
		other, err = addPartition(tx, "other")
		return err
	})
	keepsMark(t, d, "new passages", func(try int) {
		write(t, d, func(tx db.Tx) error {
			for i, row := range rows {
				if _, err := tx.Exec(`INSERT INTO passage (id, memory_id, start, length, blank) VALUES (?, ?, 0, 1, 0)`,
					partition<<32+int64(try*len(rows)+i), row); err != nil {
					return err
				}
			}
			return nil
		})
	})
	for i, c := range []struct {
		what, query string
		arg         any
	}{
		{"a vector", `UPDATE passage SET vector = ? WHERE memory_id = ?`, floats(1, 0)},
		{"the same vector again", `UPDATE passage SET vector = ? WHERE memory_id = ?`, floats(1, 0)},
		{"a vector removed", `UPDATE passage SET vector = ? WHERE memory_id = ?`, nil},
		{"a move", `UPDATE memory SET partition_id = ? WHERE id = ?`, other},
	} {
		_, before, _ := since(t, d, "", 10)
		write(t, d, func(tx db.Tx) error {
			_, err := tx.Exec(c.query, c.arg, rows[i%len(rows)])
			return err
		})
		changed, after, complete := since(t, d, before, 10)
		misses(t, c.what, changed, complete, rows[i%len(rows)])
		if after == before {
			t.Errorf("%s: the mark is still %q, want another", c.what, after)
		}
	}
}

// changesWithParts checks that a part that is undone hides no change: neither one before it, nor one after it, nor a
// later one of the memory whose change was undone.
func changesWithParts(t *testing.T, d db.DB) {
	partition := place(t, d)
	rows := addMemories(t, d, partition, 4)
	_, mark, _ := since(t, d, "", 10)
	write(t, d, func(tx db.Tx) error {
		err := touch(tx, rows[0])
		is(t, "a part that is undone", tx.Savepoint(func() error {
			return errors.Join(touch(tx, rows[1]), touch(tx, rows[3]), errPart)
		}), errPart)
		return errors.Join(err, touch(tx, rows[2]))
	})
	changed, between, complete := since(t, d, mark, 10)
	misses(t, "changes around a part that was undone", changed, complete, rows[0], rows[2])
	keepsMark(t, d, "a Write that was undone", func(int) {
		is(t, "a Write that is undone", d.Write(t.Context(), func(tx db.Tx) error {
			return errors.Join(touch(tx, rows[1]), touch(tx, rows[3]), errPart)
		}), errPart)
	})
	write(t, d, func(tx db.Tx) error { return touch(tx, rows[1]) })
	changed, _, complete = since(t, d, between, 10)
	misses(t, "a change of a memory whose change was undone", changed, complete, rows[1])
}

// changesWithin checks a Write that reads changes, its own and others: it sees both, and what it changes after its mark
// is found from that mark once it is committed.
func changesWithin(t *testing.T, d db.DB) {
	partition := place(t, d)
	rows := addMemories(t, d, partition, 3)
	_, begin, _ := since(t, d, "", 10)
	write(t, d, func(tx db.Tx) error { return touch(tx, rows[0]) })
	var marked, next db.Mark
	write(t, d, func(tx db.Tx) error {
		err := touch(tx, rows[1])
		mark, err2 := tx.Changes().Mark()
		changed, after, complete, err3 := tx.Changes().Since(begin, 10)
		slices.Sort(changed)
		misses(t, "changes of others and its own, within a Write", changed, complete, rows[0], rows[1])
		marked, next = mark, after
		return errors.Join(err, err2, err3, touch(tx, rows[2]))
	})
	for what, mark := range map[string]db.Mark{"Mark": marked, "Since": next} {
		changed, _, complete := since(t, d, mark, 10)
		misses(t, "what a Write changed after the mark of its "+what, changed, complete, rows[2])
	}
	keepsMark(t, d, "nothing", func(int) {})
}

// keepsMark checks that act changes no memory. It tries again where a mark notes transactions that other databases of
// the server ran meanwhile.
func keepsMark(t *testing.T, d db.DB, what string, act func(try int)) {
	t.Helper()
	var got string
	for try := range 20 {
		_, mark, _ := since(t, d, "", 10)
		act(try)
		_, same, complete := since(t, d, mark, 10)
		if complete && same == mark {
			return
		}
		got = fmt.Sprintf("%q (complete: %t), want the mark before, %q", same, complete, mark)
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("the mark after %s: got %s, 20 times", what, got)
}
