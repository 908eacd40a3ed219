package dbtest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// references checks references from tags and passages to memories, which may be checked only at the commit: one to a
// memory that is missing then makes the Write fail, and nothing of it remains; one to a memory that comes later in the
// Write either fails at once or holds.
func references(t *testing.T, d db.DB) {
	partition := place(t, d)
	const missing = 4711
	for what, c := range map[string]struct {
		statement string
		id        int64
	}{
		"a tag":     {`INSERT INTO memory_tag (memory_id, position, tag) VALUES (?, ?, 'a')`, 1},
		"a passage": {`INSERT INTO passage (memory_id, id, start, length, blank) VALUES (?, ?, 0, 1, 0)`, partition << 32},
	} {
		queue := func(tx db.Tx) error { return db.Queue(tx, c.statement, missing, c.id) }
		for how, run := range map[string]func(tx db.Tx) error{
			"that is queued":           queue,
			"in a part":                func(tx db.Tx) error { return tx.Savepoint(func() error { return queue(tx) }) },
			"before another statement": func(tx db.Tx) error { return errors.Join(queue(tx), touch(tx, 1)) },
			"by Exec": func(tx db.Tx) error {
				_, err := tx.Exec(c.statement, missing, c.id)
				return err
			},
		} {
			is(t, what+" of a missing memory, "+how, d.Write(t.Context(), func(tx db.Tx) error {
				if err := set(tx, key("a"), 1); err != nil {
					return err
				}
				_, err := addMemory(tx, partition, "beside", "{}")
				return errors.Join(err, run(tx))
			}), db.ErrForeignKey)
			read(t, d, func(tx db.Tx) error {
				var rows int
				err := tx.QueryRow(`SELECT (SELECT count(*) FROM setting WHERE key LIKE 'test %') + (SELECT count(*) FROM memory) +
					(SELECT count(*) FROM memory_tag) + (SELECT count(*) FROM passage)`).Scan(&rows)
				equal(t, "rows after "+what+" of a missing memory, "+how, rows, 0)
				return err
			})
		}
		var early error
		err := d.Write(t.Context(), func(tx db.Tx) error {
			if _, early = tx.Exec(c.statement, missing, c.id); early != nil {
				return early
			}
			_, err := tx.Exec(`INSERT INTO memory (id, uid, partition_id, content, metadata, revision, created_at, updated_at)
				VALUES (?, 'late', ?, 'content', '{}', 1, 0, 0)`, missing, partition)
			return err
		})
		memories := 0
		if early == nil {
			is(t, what+" before its memory", err, nil)
			memories = 1
		} else {
			is(t, what+" before its memory", err, db.ErrForeignKey)
		}
		read(t, d, func(tx db.Tx) error {
			var there, belongs int
			err := tx.QueryRow(`SELECT count(*), (SELECT count(*) FROM memory_tag) + (SELECT count(*) FROM passage)
				FROM memory`).Scan(&there, &belongs)
			equal(t, "memories and what belongs to them, after "+what+" before its memory", fmt.Sprint(there, belongs),
				fmt.Sprint(memories, memories))
			return err
		})
		write(t, d, func(tx db.Tx) error {
			_, err := tx.Exec(`DELETE FROM memory`)
			return err
		})
	}
}
