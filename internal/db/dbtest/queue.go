package dbtest

import (
	"fmt"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
)

const numberedMemory = `INSERT INTO memory (id, uid, partition_id, content, event_type, metadata, revision, created_at,
	updated_at) VALUES (?, ?, ?, ?, ?, '{}', 1, 0, 0)`

// queuedRows checks that rows that an engine may send later, and many at once, have the effect of rows sent one by one.
func queuedRows(t *testing.T, d db.DB) {
	partition := place(t, d)
	const n = 7
	write(t, d, func(tx db.Tx) error {
		seen := map[int64]bool{}
		for i := range n {
			var kind any
			if i%2 == 0 {
				kind = "note"
			}
			row, err := db.InsertNumbered(tx, "memory", numberedMemory, fmt.Sprint("queued ", i), partition, "text", kind)
			if err != nil {
				return err
			}
			if row < 1 || seen[row] {
				t.Errorf("memory %d: got the number %d, want one that no other row has", i, row)
			}
			seen[row] = true
			for position, tag := range []string{"a", fmt.Sprint(i)} {
				if err := db.Queue(tx, `INSERT INTO memory_tag (memory_id, tag, position) VALUES (?, ?, ?)`, row, tag,
					position); err != nil {
					return err
				}
			}
			if err := queuePassage(tx, partition, int64(i), row, i%3 == 0); err != nil {
				return err
			}
		}
		var memories, passages int
		err := tx.QueryRow(`SELECT memories, passages FROM partition WHERE id = ?`, partition).Scan(&memories, &passages)
		equal(t, "counted within the Write", fmt.Sprint(memories, passages), fmt.Sprint(n, n))
		return err
	})
	read(t, d, func(tx db.Tx) error {
		for query, want := range map[string]int{
			`SELECT count(*) FROM memory WHERE partition_id = ? AND event_type = 'note'`:                     4,
			`SELECT count(*) FROM memory WHERE partition_id = ? AND event_type IS NULL`:                      3,
			`SELECT count(*) FROM memory_tag t JOIN memory m ON m.id = t.memory_id WHERE m.partition_id = ?`: 2 * n,
			`SELECT count(*) FROM passage WHERE id >> 32 = ? AND vector IS NULL AND blank = 1`:               3,
			`SELECT count(*) FROM passage WHERE id >> 32 = ? AND length(vector) = 4 AND blank = 0`:           4,
			`SELECT memories FROM partition WHERE id = ?`:                                                    n,
		} {
			var got int
			if err := tx.QueryRow(query, partition).Scan(&got); err != nil {
				return err
			}
			equal(t, query, got, want)
		}
		found, err := tx.Words().Count(db.Range{First: partition << 32, Last: partition<<32 | 1<<31}, []string{"second"})
		equal(t, "passages with their later words", found, 1)
		return err
	})
	err := d.Write(t.Context(), func(tx db.Tx) error {
		for _, uid := range []string{"fresh", "queued 0"} {
			if _, err := db.InsertNumbered(tx, "memory", numberedMemory, uid, partition, "text", nil); err != nil {
				return err
			}
		}
		return nil
	})
	is(t, "a queued row whose id exists", err, db.ErrUnique)
	read(t, d, func(tx db.Tx) error {
		left, err := db.Column[string](tx, `SELECT uid FROM memory WHERE uid = 'fresh'`)
		equal(t, "rows of the Write that failed", len(left), 0)
		return err
	})
}

// queuePassage adds a passage with words; the first one gets others afterwards.
func queuePassage(tx db.Tx, partition, number, memory int64, blank bool) error {
	var vector []byte
	if !blank {
		vector = make([]byte, 4)
	}
	id := partition<<32 | number
	if err := db.Queue(tx, `INSERT INTO passage (id, memory_id, start, length, blank, vector) VALUES (?, ?, ?, ?, ?, ?)`,
		id, memory, 0, 4, blank, vector); err != nil {
		return err
	}
	if number > 0 {
		return tx.Words().Put(id, "first", "", false)
	}
	if err := tx.Words().Put(id, "first", "", false); err != nil {
		return err
	}
	return tx.Words().Put(id, "second", "", true)
}

// queuedChildren checks that a row may refer to one that is queued before it, regardless of earlier ones.
func queuedChildren(t *testing.T, d db.DB) {
	partition := place(t, d)
	const turn = `INSERT INTO turn (memory_id, partition_id, conversation, at, speaker) VALUES (?, ?, ?, ?, ?)`
	write(t, d, func(tx db.Tx) error {
		old, err := db.InsertNumbered(tx, "memory", numberedMemory, "old", partition, "text", nil)
		if err != nil {
			return err
		}
		var there int
		if err := tx.QueryRow(`SELECT count(*) FROM memory`).Scan(&there); err != nil { // queued statements are sent
			return err
		}
		if err := db.Queue(tx, turn, old, partition, 1, 1, "ann"); err != nil {
			return err
		}
		fresh, err := db.InsertNumbered(tx, "memory", numberedMemory, "new", partition, "text", nil)
		if err != nil {
			return err
		}
		return db.Queue(tx, turn, fresh, partition, 1, 2, "ben")
	})
	read(t, d, func(tx db.Tx) error {
		times, err := db.Column[int64](tx, `SELECT at FROM turn ORDER BY at`)
		equal(t, "the times of turns", fmt.Sprint(times), "[1 2]")
		return err
	})
}
