package trash

import (
	"context"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// SettingErasure is the setting that is not 0 while the file may contain traces of erased data. Each erasure increments
// it.
const SettingErasure = "erasure_due"

// EraseExpired erases the entries that have expired at a time, in short transactions, and returns their number. With
// time 0 it erases the entries that users have marked for erasure.
func EraseExpired(ctx context.Context, store db.DB, now int64) (erased int, err error) {
	for {
		var rows []int64
		err := store.Read(ctx, func(tx db.Tx) (err error) {
			rows, err = db.Column[int64](tx,
				`SELECT id FROM trash WHERE restorable_until <= ? ORDER BY restorable_until LIMIT 100`, now)
			return err
		})
		if err != nil || len(rows) == 0 {
			return erased, err
		}
		for _, row := range rows {
			if err := eraseEntry(ctx, store, row); err != nil {
				return erased, err
			}
			erased++
		}
	}
}

// EraseMemoriesExpired erases expired memories, in portions, and returns their number. Their files stay, as when a
// memory is deleted.
func EraseMemoriesExpired(ctx context.Context, store db.DB, now int64) (erased int, err error) {
	const due = `SELECT id FROM memory WHERE expires_at <= ? ORDER BY expires_at LIMIT ?`
	any := false
	if err := store.Read(ctx, func(tx db.Tx) error {
		rows, err := db.Column[int64](tx, due, now, 1)
		any = len(rows) > 0
		return err
	}); err != nil || !any {
		return 0, err
	}
	err = InPortions(func(p Portion) (done bool, err error) {
		gone := 0
		err = store.Write(db.Freeing(ctx), func(tx db.Tx) error {
			rows, err := db.Column[int64](tx, due, now, p.Rows)
			if err != nil {
				return err
			}
			gone, done = len(rows), len(rows) < p.Rows
			return (&Mover{Tx: tx}).EraseMemories(rows...)
		})
		if err == nil {
			erased += gone
		}
		return done, err
	})
	return erased, err
}

// eraseEntry erases an entry.
func eraseEntry(ctx context.Context, store db.DB, row int64) error {
	var files []int64
	err := InPortions(func(p Portion) (done bool, err error) {
		err = store.Write(ctx, func(tx db.Tx) (err error) {
			files, done, err = eraseStep(tx, row, p)
			return err
		})
		return done, err
	})
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := kernel.RemoveFile(ctx, store, file); err != nil {
			return err
		}
	}
	return nil
}

// eraseStep erases one portion of an entry, and reports whether that was all. The files that it returns are being
// deleted and must still be removed.
func eraseStep(tx db.Tx, row int64, p Portion) (files []int64, done bool, err error) {
	var items []int64
	found, left := 0, p.Bytes
	err = tx.Each(func(r db.Rows) error {
		var id, size int64
		err := r.Scan(&id, &size)
		if found++; left > 0 { // at least one, however large
			items = append(items, id)
		}
		left -= size
		return err
	}, `SELECT id, octet_length(data) FROM trash_item WHERE entry_id = ? LIMIT ?`, row, p.Rows)
	if err != nil {
		return nil, false, err
	}
	more := found == p.Rows || len(items) < found
	list := db.List(items)
	for _, statement := range []string{
		`DELETE FROM trash_link WHERE source IN (SELECT uid FROM trash_item WHERE id IN ` + db.Integers1 +
			` AND kind = 'memory')`,
		`DELETE FROM trash_link WHERE target IN (SELECT uid FROM trash_item WHERE id IN ` + db.Integers1 +
			` AND kind = 'memory')`,
		`DELETE FROM trash_item WHERE id IN ` + db.Integers1,
	} {
		if _, err := tx.Exec(statement, list); err != nil {
			return nil, false, err
		}
	}
	if err := NoteErasure(tx); err != nil || more {
		return nil, false, err
	}
	if files, err = db.Column[int64](tx, `SELECT id FROM file WHERE uid = ? AND state = 'trashed'`,
		fileID(row)); err != nil {
		return nil, false, err
	}
	for _, statement := range []string{
		`UPDATE file SET state = 'leaving', filename = '', description = '' WHERE id IN ` + db.Integers2 + ` AND ?1 <> 0`,
		`DELETE FROM trash_link WHERE source = (SELECT item FROM trash WHERE id = ?1 AND kind = 'file') AND ?2 <> ''`,
		`DELETE FROM trash WHERE id = ?1 AND ?2 <> ''`,
	} {
		if _, err := tx.Exec(statement, row, db.List(files)); err != nil {
			return nil, false, err
		}
	}
	return files, true, nil
}

// EraseTrashOf erases one portion of a user's trash, and reports whether that was all. purgeFiles removes the files.
func (t *Mover) EraseTrashOf(user int64, p Portion) (done bool, err error) {
	entries, err := db.Column[int64](t.Tx, `SELECT id FROM trash WHERE owner_id = ? LIMIT ?`, user, p.Rows)
	if err != nil {
		return false, err
	}
	for _, row := range entries {
		if _, done, err := eraseStep(t.Tx, row, p); err != nil || !done {
			return false, err
		}
	}
	return len(entries) < p.Rows, nil
}

// NoteErasure records an erasure.
func NoteErasure(tx db.Tx) error {
	_, err := tx.Exec(`INSERT INTO setting (key, value) VALUES (?, 1) ON CONFLICT (key) DO UPDATE `+
		`SET value = setting.value + 1`, SettingErasure)
	return err
}

// RemoveFile begins the permanent deletion of a stored file: it is invisible from now on, and [kernel.RemoveFile]
// removes the chunks that are left.
func RemoveFile(tx db.Tx, row int64, id string) error {
	if err := NoteErasure(tx); err != nil {
		return err
	}
	if _, err := tx.Exec(`DELETE FROM trash_link WHERE kind = 'file' AND source = ?`, id); err != nil {
		return err
	}
	if _, err := tx.Exec(`UPDATE file SET state = 'leaving', memory_id = NULL, project_id = NULL WHERE id = ?`,
		row); err != nil {
		return err
	}
	_, err := kernel.RemoveChunks(tx, row)
	return err
}

// ErasePast erases up to a number of the oldest past versions of a memory, from its time in other places, too.
func ErasePast(tx db.Tx, memory int64, most int) (erased int64, err error) {
	err = db.Beyond(tx, func() error {
		gone, err := tx.Exec(`DELETE FROM memory_revision WHERE id IN (SELECT id FROM memory_revision
			WHERE memory_id = ? ORDER BY revision LIMIT ?)`, memory, most)
		erased = gone.RowsAffected
		return err
	})
	return erased, err
}
