package dbtest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// walled checks that an engine with a second wall shows and changes only the rows of the caller, from the next
// statement on until the end of the transaction, also after a part that is undone.
func walled(t *testing.T, e Engine) {
	if e.Walled == nil {
		t.Skip("this engine has no second wall, as Engine.Walled is nil")
	}
	d := e.Walled(t)
	defer d.Close()
	partitions, users := twoOwners(t, d)
	ann, ben := &db.Caller{User: users["ann"]}, &db.Caller{User: users["ben"]}
	sees := func(tx db.Tx, what, want string) {
		t.Helper()
		const query = `SELECT uid FROM memory ORDER BY uid`
		all, err := db.Column[string](tx, query)
		equal(t, what+": memories", strings.Join(all, " "), want)
		var streamed []string
		err2 := db.Stream(tx, func(row db.Rows) error {
			streamed = append(streamed, "")
			return row.Scan(&streamed[len(streamed)-1])
		}, query)
		equal(t, what+": memories by Query", strings.Join(streamed, " "), want)
		words := 0
		for _, partition := range partitions {
			n, err := tx.Words().Count(db.Range{First: partition << 32, Last: partition<<32 | 9}, []string{"tea"})
			words, err2 = words+n, errors.Join(err2, err)
		}
		equal(t, what+": passages with a word", words, len(strings.Fields(want)))
		is(t, what, errors.Join(err, err2), nil)
	}
	look := func(tx db.Tx) error {
		sees(tx, "without a caller", "ann's ben's")
		for range 2 {
			db.ActFor(tx, ann)
			sees(tx, "ann", "ann's")
			db.ActFor(tx, ben)
			sees(tx, "ben", "ben's")
		}
		db.ActFor(tx, &db.Caller{User: users["ben"], Limited: true})
		sees(tx, "ben, in no project", "")
		db.ActFor(tx, ann)
		is(t, "Beyond", db.Beyond(tx, func() error {
			sees(tx, "beyond", "ann's ben's")
			return errPart
		}), errPart)
		sees(tx, "ann, after Beyond", "ann's")
		is(t, "As", db.As(tx, ben, func() error {
			sees(tx, "as ben", "ben's")
			db.ActFor(tx, nil)
			return errPart
		}), errPart)
		sees(tx, "ann, after As", "ann's")
		is(t, "a part that is undone", tx.Savepoint(func() error {
			db.ActFor(tx, ben)
			sees(tx, "ben, in a part", "ben's")
			return errPart
		}), errPart)
		sees(tx, "ben, after the part", "ben's")
		db.ActFor(tx, nil)
		sees(tx, "without a caller again", "ann's ben's")
		db.ActFor(tx, ann) // it ends with the transaction
		return nil
	}
	read(t, d, look)
	write(t, d, look)
	read(t, d, func(tx db.Tx) error {
		sees(tx, "the next transaction", "ann's ben's")
		return nil
	})
	wallHolds(t, d, ann, ben, partitions)
}

// wallHolds checks what a caller may change.
func wallHolds(t *testing.T, d db.DB, ann, ben *db.Caller, partitions map[string]int64) {
	const queued = `INSERT INTO memory (id, uid, partition_id, content, metadata, revision, created_at, updated_at)
		VALUES (?, ?, ?, 'content', '{}', 1, 0, 0)`
	write(t, d, func(tx db.Tx) error {
		db.ActFor(tx, ann)
		changed, err := tx.Exec(`UPDATE memory SET updated_at = 7`)
		gone, err2 := tx.Exec(`DELETE FROM memory WHERE uid = ?`, "ben's")
		equal(t, "rows that ann changes and deletes", fmt.Sprint(changed.RowsAffected, gone.RowsAffected), "1 0")
		is(t, "a memory of ann in a place of ben", tx.Savepoint(func() error {
			_, err := addMemory(tx, partitions["ben"], "stray", "{}")
			return err
		}), errAny)
		_, err3 := db.InsertNumbered(tx, "memory", queued, "ann's later", partitions["ann"])
		db.ActFor(tx, ben)
		all, err4 := db.Column[string](tx, `SELECT uid FROM memory`)
		equal(t, "what ben sees, after a row of ann that was queued", strings.Join(all, " "), "ben's")
		return errors.Join(err, err2, err3, err4)
	})
	is(t, "a queued memory of ann in a place of ben", d.Write(t.Context(), func(tx db.Tx) error {
		db.ActFor(tx, ann)
		_, err := db.InsertNumbered(tx, "memory", queued, "stray", partitions["ben"])
		db.ActFor(tx, nil)
		return err
	}), errAny)
	read(t, d, func(tx db.Tx) error {
		all, err := db.Column[string](tx, `SELECT uid || updated_at FROM memory ORDER BY uid`)
		equal(t, "memories, and when they were changed", strings.Join(all, ", "), "ann's7, ann's later0, ben's0")
		return err
	})
}

func userOf(tx db.Tx, uid string) (row int64, err error) {
	err = tx.QueryRow(`SELECT id FROM users WHERE uid = ?`, uid).Scan(&row)
	return row, err
}

// twoOwners makes two users with a partition, a memory and a passage each.
func twoOwners(t *testing.T, d db.DB) (partitions, users map[string]int64) {
	t.Helper()
	partitions, users = map[string]int64{"ann": place(t, d)}, map[string]int64{}
	write(t, d, func(tx db.Tx) error {
		partition, err := addPartition(tx, "ben's")
		if err != nil {
			return err
		}
		partitions["ben"] = partition
		if users["ann"], err = userOf(tx, "ann"); err != nil {
			return err
		}
		users["ben"], err = db.Insert(tx, `INSERT INTO users (uid, created_at) VALUES ('ben', 0) RETURNING id`)
		if err != nil {
			return err
		}
		_, err = tx.Exec(`UPDATE collection SET owner_id = ? WHERE id = (SELECT collection_id FROM partition WHERE id = ?)`,
			users["ben"], partition)
		for name, partition := range partitions {
			memory, err2 := addMemory(tx, partition, name+"'s", "{}")
			_, err3 := tx.Exec(`INSERT INTO passage (id, memory_id, start, length, blank) VALUES (?, ?, 0, 1, 0)`,
				partition<<32, memory)
			err = errors.Join(err, err2, err3, tx.Words().Put(partition<<32, "tea", "", false))
		}
		return err
	})
	return partitions, users
}
