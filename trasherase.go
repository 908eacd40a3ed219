package souvenir

import (
	"context"
	"errors"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// How things are erased: from the trash, or at once. The file overwrites what is deleted (secure_delete); besides that, the words
// of what was deleted stand in full text until its parts are merged, and earlier states of pages in the write-ahead log until that is
// copied and cut. scrub sees to both.

const (
	// settingErasure is not 0 while the file may have traces of what was deleted for good. It counts up with each such deletion.
	settingErasure = "erasure_due"

	scrubNow = 20_000 // passages of a store up to which an erasure waits for the traces to be gone, too
)

// EraseTrashed erases an entry of the trash for good. Only the owner of the place where it lay may: to others who see it, it is
// ErrForbidden. When it returns, nothing of it is left in the file; in a store of more than 20,000 passages, that is so after the next
// [Upkeep.Purge], or when background work has come to it, within minutes. Backups are not touched.
func (s *Store) EraseTrashed(ctx context.Context, id string) error {
	ctx = db.Freeing(ctx)
	err := s.write(ctx, func(tx db.Tx, sc scope) error {
		e, err := s.trashed(tx, sc, id)
		if err != nil {
			return err
		}
		if !e.Own {
			return newError(KindForbidden, "id", "what lay in a place of %s can be restored by who may write there, and erased by its owner only", show(e.Owner))
		}
		_, err = tx.Exec(`UPDATE trash SET restorable_until = 0 WHERE id = ?`, e.row)
		return err
	})
	if err != nil {
		return err
	}
	if _, err := s.eraseExpired(ctx, 0); err != nil {
		return wrap(err)
	}
	return wrap(s.scrubSoon(ctx))
}

// EmptyTrash erases all entries of the trash that are the caller's to erase, as EraseTrashed does, and returns how many.
func (s *Store) EmptyTrash(ctx context.Context) (int, error) {
	ctx = db.Freeing(ctx)
	var emptied, last int64
	began := s.now()
	err := inPortions(func(p portion) (done bool, err error) {
		var some int64
		err = s.write(ctx, func(tx db.Tx, sc scope) (err error) {
			if last == 0 { // what is deleted from now on stays
				if err := tx.QueryRow(`SELECT coalesce(max(id), 0) FROM trash`).Scan(&last); err != nil {
					return err
				}
			}
			condition, args := sc.visibleTrash()
			result, err := tx.Exec(`UPDATE trash SET restorable_until = 0 WHERE id IN (SELECT t.id FROM trash t WHERE `+condition+`
				AND t.owner_id = ? AND t.restorable_until > ? AND t.id <= ? LIMIT ?)`, append(args, sc.user, began, last, p.rows)...)
			some = result.RowsAffected
			return err
		})
		if err != nil {
			return false, err
		}
		emptied += some
		return some < int64(p.rows), nil
	})
	if err != nil || emptied == 0 {
		return int(emptied), err
	}
	if _, err := s.eraseExpired(ctx, 0); err != nil {
		return int(emptied), wrap(err)
	}
	return int(emptied), wrap(s.scrubSoon(ctx))
}

// EraseMemory deletes a memory for good, with its history: it does not go to the trash. Only the owner of the place where it lies
// may; to others who may write there it is ErrForbidden. What EraseTrashed says of the file holds here, too.
func (s *Store) EraseMemory(ctx context.Context, id string) error {
	ctx = db.Freeing(ctx)
	err := s.write(ctx, func(tx db.Tx, sc scope) error {
		m, err := s.memoryForWriting(tx, sc, id)
		if err != nil {
			return err
		}
		t := s.newTrasher(tx, sc, fullPortion())
		at, err := t.place(m.partition)
		if err != nil {
			return err
		}
		if at.owner != sc.user {
			return newError(KindForbidden, "id", "memory %s lies in a place of another user, who alone may erase it; DeleteMemory puts it into the trash", show(id))
		}
		return t.eraseMemories(m.row)
	})
	if err != nil {
		return err
	}
	return wrap(s.scrubSoon(ctx))
}

// EraseFile deletes a file for good: it does not go to the trash. Only the owner of the place where it lies may; to others
// who may write there it is ErrForbidden.
func (s *Store) EraseFile(ctx context.Context, id string) error {
	ctx = db.Freeing(ctx)
	err := s.removeStoredFile(ctx, id, func(tx db.Tx, sc scope, f storedFile) error {
		owner, err := ownerOfFilePlace(tx, f)
		if err == nil && owner != sc.user {
			err = newError(KindForbidden, "file_id", "file %s lies in a place of another user, who alone may erase it; DeleteFile puts it into the trash", show(id))
		}
		return err
	})
	if err != nil {
		return err
	}
	return wrap(s.scrubSoon(ctx))
}

// eraseExpired erases the entries whose time is over at a time, in short transactions, and returns how many. With 0 these are the ones that
// somebody has erased.
func (s *shared) eraseExpired(ctx context.Context, now int64) (erased int, err error) {
	for {
		var rows []int64
		err := s.db.Read(ctx, func(tx db.Tx) (err error) {
			rows, err = db.Column[int64](tx, `SELECT id FROM trash WHERE restorable_until <= ? ORDER BY restorable_until LIMIT 100`, now)
			return err
		})
		if err != nil || len(rows) == 0 {
			return erased, err
		}
		for _, row := range rows {
			if err := s.eraseEntry(ctx, row); err != nil {
				return erased, err
			}
			erased++
		}
	}
}

// eraseEntry erases an entry.
func (s *shared) eraseEntry(ctx context.Context, row int64) error {
	var files []int64
	err := inPortions(func(p portion) (done bool, err error) {
		err = s.db.Write(ctx, func(tx db.Tx) (err error) {
			files, done, err = eraseStep(tx, row, p)
			return err
		})
		return done, wrap(err)
	})
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := s.removeFile(ctx, file); err != nil {
			return err
		}
	}
	return nil
}

// eraseStep erases as much of an entry as one transaction should, and reports whether that was all. The files that it returns are
// leaving, and still to be removed.
func eraseStep(tx db.Tx, row int64, p portion) (files []int64, done bool, err error) {
	var items []int64
	found, left := 0, p.bytes
	err = tx.Each(func(r db.Rows) error {
		var id, size int64
		err := r.Scan(&id, &size)
		if found++; left > 0 { // at least one, however large
			items = append(items, id)
		}
		left -= size
		return err
	}, `SELECT id, octet_length(data) FROM trash_item WHERE entry_id = ? LIMIT ?`, row, p.rows)
	if err != nil {
		return nil, false, err
	}
	more := found == p.rows || len(items) < found
	list := jsonList(items)
	for _, statement := range []string{
		`DELETE FROM trash_link WHERE source IN (SELECT uid FROM trash_item WHERE id IN ` + db.Integers1 + ` AND kind = 'memory')`,
		`DELETE FROM trash_link WHERE target IN (SELECT uid FROM trash_item WHERE id IN ` + db.Integers1 + ` AND kind = 'memory')`,
		`DELETE FROM trash_item WHERE id IN ` + db.Integers1,
	} {
		if _, err := tx.Exec(statement, list); err != nil {
			return nil, false, err
		}
	}
	if err := noteErasure(tx); err != nil || more {
		return nil, false, err
	}
	if files, err = db.Column[int64](tx, `SELECT id FROM file WHERE uid = ? AND state = 'trashed'`, trashedFileID(row)); err != nil {
		return nil, false, err
	}
	for _, statement := range []string{
		`UPDATE file SET state = 'leaving', filename = '', description = '' WHERE id IN ` + db.Integers2 + ` AND ?1 <> 0`,
		`DELETE FROM trash_link WHERE source = (SELECT item FROM trash WHERE id = ?1 AND kind = 'file') AND ?2 <> ''`,
		`DELETE FROM trash WHERE id = ?1 AND ?2 <> ''`,
	} {
		if _, err := tx.Exec(statement, row, jsonList(files)); err != nil {
			return nil, false, err
		}
	}
	return files, true, nil
}

// eraseTrashOf erases as much of a user's trash as one transaction should, and reports whether that was all. Files are left to purgeFiles.
func (t *trasher) eraseTrashOf(user int64, p portion) (done bool, err error) {
	entries, err := db.Column[int64](t.tx, `SELECT id FROM trash WHERE owner_id = ? LIMIT ?`, user, p.rows)
	if err != nil {
		return false, err
	}
	for _, row := range entries {
		if _, done, err := eraseStep(t.tx, row, p); err != nil || !done {
			return false, err
		}
	}
	return len(entries) < p.rows, nil
}

// scrubSoon removes the traces of what was erased: now if the store is small, else in the background.
func (s *shared) scrubSoon(ctx context.Context) error {
	var passages int
	err := s.db.Read(ctx, func(tx db.Tx) error {
		return tx.QueryRow(`SELECT coalesce(sum(passages), 0) FROM partition`).Scan(&passages)
	})
	if err != nil {
		return err
	}
	if passages <= scrubNow {
		return s.scrub(ctx)
	}
	s.worker.erased.Store(true)
	s.worker.wake()
	return nil
}

// scrub removes what is left in the file of what was deleted for good. It works in short transactions. Where readers hold the
// log, it stays due.
func (s *shared) scrub(ctx context.Context) error {
	var due int64
	err := s.db.Read(ctx, func(tx db.Tx) (err error) {
		due, err = kernel.Setting(tx, settingErasure)
		return err
	})
	if err != nil || due == 0 {
		return err
	}
	for first, more := true, true; more; first = false {
		err := s.db.Write(ctx, func(tx db.Tx) (err error) {
			more, err = tx.Words().Tidy(first)
			return err
		})
		if err != nil {
			return err
		}
	}
	if err := s.db.Upkeep().Flush(ctx); errors.Is(err, db.ErrLogInUse) {
		s.log.Info("the write-ahead log is in use and may hold traces of what was erased; trying again later")
		return nil
	} else if err != nil {
		return err
	}
	return s.db.Write(ctx, func(tx db.Tx) error {
		_, err := tx.Exec(`UPDATE setting SET value = 0 WHERE key = ? AND value = ?`, settingErasure, due) // unless more was erased meanwhile
		return err
	})
}

// noteErasure notes that something is deleted for good.
func noteErasure(tx db.Tx) error {
	_, err := tx.Exec(`INSERT INTO setting (key, value) VALUES (?, 1) ON CONFLICT (key) DO UPDATE SET value = setting.value + 1`, settingErasure)
	return err
}
