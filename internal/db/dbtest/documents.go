package dbtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// textsOfFiles checks the triggers that remove the text of a file when it is out of date or out of place, and let the
// file wait for its next reading (migration 0036).
func textsOfFiles(t *testing.T, d db.DB) {
	here := place(t, d)
	var ann, ben, texts, there int64
	write(t, d, func(tx db.Tx) (err error) {
		insert := func(query string, args ...any) (id int64) {
			if err == nil {
				id, err = db.Insert(tx, query, args...)
			}
			return id
		}
		collection := func(owner int64, name string) int64 {
			return insert(`INSERT INTO collection (owner_id, name, description, created_at, updated_at)
				VALUES (?, ?, '', 0, 0) RETURNING id`, owner, name)
		}
		partition := func(collection int64) int64 {
			return insert(`INSERT INTO partition (collection_id) VALUES (?) RETURNING id`, collection)
		}
		if err := tx.QueryRow(`SELECT id FROM users WHERE uid = 'ann'`).Scan(&ann); err != nil {
			return err
		}
		ben = insert(`INSERT INTO users (uid, created_at) VALUES ('ben', 0) RETURNING id`)
		texts, there = partition(collection(ann, "texts")), partition(collection(ben, "default"))
		return err
	})
	for i, c := range []struct {
		what, change string // FILE, TEXT and MEMORY are ids
		want         string
	}{
		{"a file stays where it is", `UPDATE file SET project_id = NULL, filename = 'b' WHERE id = FILE`, "indexed, 1 text"},
		{"a file goes to a memory of the same place", `UPDATE file SET memory_id = MEMORY WHERE id = FILE`,
			"indexed, 1 text"},
		{"a file goes to another owner", fmt.Sprint(`UPDATE file SET owner_id = `, ben, ` WHERE id = FILE`),
			"waiting, 0 texts"},
		{"a file goes into the trash", `UPDATE file SET state = 'trashed' WHERE id = FILE`, "waiting, 0 texts"},
		{"a file is deleted", `DELETE FROM file WHERE id = FILE`, "no file, 0 texts"},
		{"a text is deleted", `DELETE FROM memory WHERE id = TEXT`, "waiting, 0 texts"},
		{"a file has other content", `UPDATE file SET sha256 = ? WHERE id = FILE`, "waiting, 0 texts"},
		{"the memory of a file goes to another owner", fmt.Sprint(`UPDATE file SET memory_id = MEMORY WHERE id = FILE;
			UPDATE memory SET partition_id = `, there, ` WHERE id = MEMORY`), "waiting, 0 texts"},
	} {
		var file, text, memory int64
		write(t, d, func(tx db.Tx) (err error) {
			if memory, err = addMemory(tx, here, fmt.Sprint("m", i), "{}"); err != nil {
				return err
			}
			if text, err = addMemory(tx, texts, fmt.Sprint("t", i), "{}"); err != nil {
				return err
			}
			file, err = db.Insert(tx, `INSERT INTO file (uid, owner_id, filename, mime_type, size, sha256, description, category,
				created_at, updated_at, state, text_id, text_state)
				VALUES (?, ?, 'a', '', 0, ?, '', '', 0, 0, 'stored', ?, 'indexed') RETURNING id`,
				fmt.Sprint("f", i), ann, []byte{1}, text)
			return err
		})
		ids := strings.NewReplacer("FILE", fmt.Sprint(file), "TEXT", fmt.Sprint(text), "MEMORY", fmt.Sprint(memory))
		write(t, d, func(tx db.Tx) error {
			for change := range strings.SplitSeq(ids.Replace(c.change), ";") {
				var args []any
				if strings.Contains(change, "?") {
					args = append(args, []byte{2})
				}
				if _, err := tx.Exec(change, args...); err != nil {
					return err
				}
			}
			return nil
		})
		equal(t, c.what, stateOfText(t, d, file, text), c.want)
	}
}

// stateOfText describes a file and its text: "indexed, 1 text".
func stateOfText(t *testing.T, d db.DB, file, text int64) (state string) {
	t.Helper()
	read(t, d, func(tx db.Tx) error {
		states, err := db.Column[string](tx, `SELECT text_state FROM file WHERE id = ?
			AND (text_state = 'indexed') = (text_id IS NOT NULL)`, file)
		if err != nil {
			return err
		}
		left, err := db.Column[int64](tx, `SELECT id FROM memory WHERE id = ?`, text)
		state = strings.Join(append(states, ""), ", ")
		if len(states) == 0 {
			state = "no file, "
		}
		if state += fmt.Sprint(len(left), " text"); len(left) != 1 {
			state += "s"
		}
		return err
	})
	return state
}
