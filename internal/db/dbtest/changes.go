package dbtest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
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

func changesComplete(t *testing.T, e Engine, d db.DB) {
	partition := place(t, d)
	_, begin, _ := since(t, d, "", 1)
	var rows []int64
	write(t, d, func(tx db.Tx) error {
		rows = nil
		for i := range 10 {
			row, err := addMemory(tx, partition, fmt.Sprint(i), "{}")
			if err != nil {
				return err
			}
			rows = append(rows, row)
		}
		return nil
	})
	all, mark, complete := since(t, d, begin, 100)
	misses(t, "changes", all, complete, rows...)
	if mark == begin {
		t.Errorf("the mark is the same after changes: got %v, want one other than %v", mark, begin)
	}
	for _, row := range all {
		if !slices.Contains(rows, row) {
			t.Errorf("got the changed memory %d, want one that exists: %v", row, rows)
		}
	}
	// A mark may name other transactions on the server that were still running. When they end, it moves.
	_, same, complete := since(t, d, mark, 100)
	for i := 0; complete && same != mark && i < 1000; i++ {
		mark = same
		_, same, complete = since(t, d, mark, 100)
	}
	equal(t, "the mark where nothing changed", fmt.Sprint(same, complete), fmt.Sprint(mark, true))
	if _, _, complete = since(t, d, begin, 9); complete {
		t.Error("9 of 10 changes: got complete, want incomplete")
	}
	write(t, d, func(tx db.Tx) error {
		_, err := tx.Exec(`DELETE FROM memory WHERE id = ?`, rows[0])
		if err == nil {
			_, err = tx.Exec(`UPDATE memory SET updated_at = 1 WHERE id = ?`, rows[1])
		}
		return err
	})
	some, _, complete := since(t, d, mark, 100)
	misses(t, "a deletion and an update", some, complete, rows[:2]...)

	// Even if the log is long, changes beyond its reach must not be skipped silently.
	t.Run("beyond the reach of the log", func(t *testing.T) {
		if e.Flood == nil {
			t.Skip("the log has no end, as Engine.Flood is nil")
		}
		for range 70 {
			write(t, d, func(tx db.Tx) error { return e.Flood(tx, rows[2]) })
		}
		if late, _, complete := since(t, d, mark, 1<<20); complete {
			misses(t, "after many changes", late, complete, rows[0], rows[2])
		}
	})
}

// Half of the writers, and the reader, may have another handle.
func changesAmongWriters(t *testing.T, d, other db.DB) {
	partition := place(t, d)
	const writers, each = 8, 15
	var mu sync.Mutex
	stored := map[int64]bool{}
	var wg sync.WaitGroup
	for w := range writers {
		handle := []db.DB{d, other}[w%2]
		wg.Go(func() {
			for i := range each {
				var row int64
				err := handle.Write(t.Context(), func(tx db.Tx) (err error) {
					row, err = addMemory(tx, partition, fmt.Sprint(w, "/", i), "{}")
					return err
				})
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				stored[row] = true
				mu.Unlock()
			}
		})
	}
	over := make(chan struct{})
	go func() { wg.Wait(); close(over) }()
	seen := map[int64]bool{}
	var mark db.Mark
	follow := func() {
		memories, next, complete := since(t, other, mark, 1000)
		if !complete {
			t.Error("all changes of a short log: got incomplete, want complete")
		}
		mark = next
		for _, m := range memories {
			seen[m] = true
		}
	}
	for done := false; !done; {
		select {
		case <-over:
			done = true
		default:
		}
		follow()
	}
	for row := range stored {
		if !seen[row] {
			t.Errorf("memory %d was written, and no change says so", row)
		}
	}
}

func changesAdded(t *testing.T, d db.DB) {
	partition := place(t, d)
	var row int64
	write(t, d, func(tx db.Tx) (err error) {
		row, err = addMemory(tx, partition, "a", "{}")
		return err
	})
	_, mark, _ := since(t, d, "", 10)
	write(t, d, func(tx db.Tx) error { return db.AddChange(tx, row) })
	changed, next, complete := since(t, d, mark, 10)
	misses(t, "a change that was added", changed, complete, row)
	if next == mark {
		t.Errorf("the mark is the same after a change that was added: got %v, want one other than %v", next, mark)
	}
}
