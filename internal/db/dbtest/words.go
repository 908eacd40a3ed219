package dbtest

import (
	"errors"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// wordsOfMissing checks words of passages whose rows come after them, are deleted after them, or do not exist.
func wordsOfMissing(t *testing.T, d db.DB) {
	partition := place(t, d)
	first := partition << 32
	var memory int64
	insert := func(tx db.Tx, passage int64) error {
		_, err := tx.Exec(`INSERT INTO passage (id, memory_id, start, length, blank) VALUES (?, ?, 0, 1, 0)`, passage, memory)
		return err
	}
	remove := func(tx db.Tx, passage int64) error {
		_, err := tx.Exec(`DELETE FROM passage WHERE id = ?`, passage)
		return err
	}
	with := func(what, term string, least, most int) {
		t.Helper()
		read(t, d, func(tx db.Tx) error {
			n, err := tx.Words().Count(db.Range{First: first, Last: first + 9}, []string{term})
			if n < least || n > most {
				t.Errorf("%s: got %d passages with %q, want %d to %d", what, n, term, least, most)
			}
			return err
		})
	}
	write(t, d, func(tx db.Tx) (err error) {
		memory, err = addMemory(tx, partition, "m", "{}")
		return errors.Join(err, tx.Words().Put(first, "later", "", false), insert(tx, first))
	})
	with("a row that comes later", "later", 1, 1)
	write(t, d, func(tx db.Tx) error {
		return errors.Join(insert(tx, first+1), tx.Words().Put(first+1, "gone", "", false), remove(tx, first+1))
	})
	with("a row that is deleted later", "gone", 0, 0)
	write(t, d, func(tx db.Tx) error {
		return errors.Join(tx.Words().Put(first, "gone", "", true), remove(tx, first))
	})
	with("a row that is deleted after its words are replaced", "gone", 0, 0)
	with("a row that is deleted after its words are replaced", "later", 0, 0)

	write(t, d, func(tx db.Tx) error {
		return errors.Join(tx.Words().Put(first+2, "stray", "", false), tx.Words().Put(first+3, "stray", "", false))
	})
	with("rows that do not exist", "stray", 0, 2)
	write(t, d, func(tx db.Tx) error { return tx.Words().Drop(first + 2) })
	with("after a drop", "stray", 0, 1)
	write(t, d, func(tx db.Tx) error {
		return errors.Join(insert(tx, first+3), tx.Words().Put(first+3, "found", "", true))
	})
	with("after the row came, with other words", "stray", 0, 0)
	with("after the row came, with other words", "found", 1, 1)
}
