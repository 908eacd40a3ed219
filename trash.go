package souvenir

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// The trash keeps deleted items for Options.KeepTrash. They leave the live tables, so no listing, search, count or
// traversal of links finds them. An entry is what one call deleted: a memory, a file, or a project or collection with
// all of its memories. trashmove.go fills the trash; trashrestore.go and this file empty it.

// TrashKind is the kind of an entry of the trash.
type TrashKind string

// The values of [TrashKind].
const (
	TrashMemory     TrashKind = "memory" // rules and to-do documents are memories, too
	TrashFile       TrashKind = "file"
	TrashProject    TrashKind = "project"
	TrashCollection TrashKind = "collection"
)

var trashKinds = []TrashKind{TrashMemory, TrashFile, TrashProject, TrashCollection}

// TrashEntry is a deleted item that can be restored.
type TrashEntry struct {
	ID            string    `json:"id"` // for a memory or a file: its original id, which a restore keeps
	Kind          TrashKind `json:"kind"`
	Title         string    `json:"title"`                     // the beginning of the memory, or the name
	Collection    string    `json:"collection_name,omitempty"` // the collection it was, or lay in
	ProjectID     string    `json:"project_id,omitempty"`      // the project it was, or lay in
	ProjectName   string    `json:"project_name,omitempty"`
	Owner         string    `json:"owner"`                     // user id of the owner of its original place
	Memories      int       `json:"memories"`                  // how many memories it holds
	Size          int64     `json:"size"`                      // bytes
	DeletedBy     string    `json:"deleted_by"`                // user id
	DeletedByName string    `json:"deleted_by_name,omitempty"` // of the account, if any
	Through       string    `json:"deleted_through,omitempty"` // Access.Through of the call that deleted it
	DeletedAt     time.Time `json:"deleted_at"`
	Until         time.Time `json:"restorable_until"` // erased after this time
	Own           bool      `json:"own"`              // the caller owns the place and may erase it
}

// TrashQuery asks for a page of the trash, the newest deletion first.
type TrashQuery struct {
	Kinds  []TrashKind // only entries of these kinds; empty means all
	Limit  int         // entries to return, 1 to 1,000; zero means 100
	Offset int         // entries to skip, 0 or more
}

// MaxTrashLimit is the most entries that [Store.TrashPage] returns at once.
const MaxTrashLimit = 1000

// TrashPage is a page of the trash.
type TrashPage struct {
	Entries []TrashEntry `json:"entries"` // never nil
	Total   int          `json:"total"`   // on all pages
	Offset  int          `json:"offset"`  // as in the query
	Limit   int          `json:"limit"`   // the limit applied
}

// HasMore reports whether there are entries after this page.
func (p TrashPage) HasMore() bool { return p.Offset+len(p.Entries) < p.Total }

// TrashPage returns deleted items that can still be restored: from the caller's own places, and memories and files from
// projects in which the caller may write. A view limited to projects sees items from these projects.
func (s *Store) TrashPage(ctx context.Context, q TrashQuery) (TrashPage, error) {
	q.Limit = cmp.Or(q.Limit, 100)
	switch {
	case q.Limit < 1 || q.Limit > MaxTrashLimit:
		return TrashPage{}, invalid("limit", "limit is %d; 1 to %d are allowed", q.Limit, MaxTrashLimit)
	case q.Offset < 0:
		return TrashPage{}, invalid("offset", "offset is %d; 0 or more is needed", q.Offset)
	}
	for _, kind := range q.Kinds {
		if !slices.Contains(trashKinds, kind) {
			return TrashPage{}, invalid("kinds", "kinds has %s; memory, file, project and collection are allowed",
				show(string(kind)))
		}
	}
	kinds, err := json.Marshal(q.Kinds)
	if err != nil {
		return TrashPage{}, wrap(err)
	}
	p := TrashPage{Offset: q.Offset, Limit: q.Limit}
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		condition, args := v.VisibleTrash()
		condition += ` AND t.restorable_until > ? AND (? = 0 OR t.kind IN ` + db.Texts + `)`
		args = append(args, s.now(), len(q.Kinds), string(kinds))
		if err := tx.QueryRow(`SELECT count(*) FROM trash t WHERE `+condition, args...).Scan(&p.Total); err != nil {
			return err
		}
		found, err := loadTrash(tx, v, condition+` ORDER BY t.id DESC LIMIT ? OFFSET ?`, append(args, q.Limit, q.Offset)...)
		p.Entries = make([]TrashEntry, len(found))
		for i, e := range found {
			p.Entries[i] = e.TrashEntry
		}
		return err
	})
	return p, err
}

// GetTrashed returns an entry of the trash. An entry that does not exist, or that this view may not see, is
// ErrNotFound.
func (s *Store) GetTrashed(ctx context.Context, id string) (TrashEntry, error) {
	var e trashEntry
	err := s.read(ctx, func(tx db.Tx, v viewer) (err error) {
		e, err = s.trashed(tx, v, id)
		return err
	})
	return e.TrashEntry, err
}

// trashEntry is an entry with its rows.
type trashEntry struct {
	TrashEntry
	row, owner          int64
	collection, project int64 // 0 for none, or if it no longer exists
	item, data          string
}

// trashed returns a visible entry that can still be restored.
func (s *Store) trashed(tx db.Tx, v viewer, id string) (trashEntry, error) {
	condition, args := v.VisibleTrash()
	found, err := loadTrash(tx, v, condition+` AND t.restorable_until > ? AND t.uid = ?`, append(args, s.now(), id)...)
	if err != nil {
		return trashEntry{}, err
	}
	if len(found) == 0 {
		return trashEntry{}, newError(KindNotFound, "id", "id %s is not in the trash, or you have no access to it", show(id))
	}
	return found[0], nil
}

// loadTrash reads the entries t for which a condition holds (and what follows WHERE: an order, a limit).
func loadTrash(tx db.Tx, v viewer, condition string, args ...any) ([]trashEntry, error) {
	var found []trashEntry
	err := tx.Each(func(row db.Rows) error {
		var e trashEntry
		var deleted, until int64
		err := row.Scan(&e.row, &e.ID, &e.Kind, &e.item, &e.Title, &e.owner, &e.Owner, &e.collection, &e.project,
			&e.Collection, &e.ProjectID, &e.ProjectName,
			&e.data, &e.Memories, &e.Size, &e.DeletedBy, &e.DeletedByName, &e.Through, &deleted, &until, &e.Own)
		e.DeletedAt, e.Until = kernel.ToTime(deleted), kernel.ToTime(until)
		found = append(found, e)
		return err
	}, `SELECT t.id, t.uid, t.kind, t.item, t.title, t.owner_id, o.uid, coalesce(t.collection_id, 0),
		coalesce(t.project_id, 0), t.collection, t.project,
			coalesce((SELECT name FROM project WHERE id = t.project_id), t.project_name), t.data, t.memories, t.size, d.uid,
			coalesce(d.name, ''),
			t.deleted_through, t.deleted_at, t.restorable_until, t.owner_id = ?
		FROM trash t JOIN users o ON o.id = t.owner_id JOIN users d ON d.id = t.deleted_by WHERE `+condition,
		slices.Concat([]any{v.User}, args)...)
	return found, err
}

// Erasure, from the trash or at once. SQLite overwrites deleted content in the file (secure_delete). But the words of
// deleted content stay in the full-text index until its segments are merged, and earlier states of pages stay in the
// write-ahead log until that is checkpointed and truncated. scrub does both.

const (
	// settingErasure is not 0 while the file may contain traces of erased data. Each erasure increments it.
	settingErasure = "erasure_due"

	scrubNow = 20_000 // most passages in a store for which an erasure also waits until the traces are gone
)

// EraseTrashed permanently erases an entry of the trash. Only the owner of its original place may erase it: for others
// who see it, it is ErrForbidden. When it returns, nothing of the entry is left in the file; in a store of more than
// 20,000 passages, traces remain until the next [Upkeep.Purge], or until background work removes them, within minutes.
// Backups are not touched.
func (s *Store) EraseTrashed(ctx context.Context, id string) error {
	ctx = db.Freeing(ctx)
	err := s.write(ctx, func(tx db.Tx, v viewer) error {
		e, err := s.trashed(tx, v, id)
		if err != nil {
			return err
		}
		if !e.Own {
			return newError(KindForbidden, "id",
				"this belongs to %s: users with write access can restore it, and only its owner can erase it", show(e.Owner))
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

// EmptyTrash erases all entries of the trash that the caller may erase, as EraseTrashed does, and returns their number.
func (s *Store) EmptyTrash(ctx context.Context) (int, error) {
	ctx = db.Freeing(ctx)
	var emptied, last int64
	began := s.now()
	err := inPortions(func(p portion) (done bool, err error) {
		var some int64
		err = s.write(ctx, func(tx db.Tx, v viewer) (err error) {
			if last == 0 { // entries deleted from now on stay
				if err := tx.QueryRow(`SELECT coalesce(max(id), 0) FROM trash`).Scan(&last); err != nil {
					return err
				}
			}
			condition, args := v.VisibleTrash()
			result, err := tx.Exec(`UPDATE trash SET restorable_until = 0 WHERE id IN (SELECT t.id FROM trash t WHERE `+
				condition+`
				AND t.owner_id = ? AND t.restorable_until > ? AND t.id <= ? LIMIT ?)`,
				append(args, v.User, began, last, p.rows)...)
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

// EraseMemory permanently deletes a memory with its history: it does not go to the trash. Only the owner of its place
// may erase it; for others who may write there it is ErrForbidden. Traces in the file are removed as for EraseTrashed.
func (s *Store) EraseMemory(ctx context.Context, id string) error {
	ctx = db.Freeing(ctx)
	err := s.write(ctx, func(tx db.Tx, v viewer) error {
		m, err := s.memoryForWriting(tx, v, id)
		if err != nil {
			return err
		}
		t := s.newTrasher(tx, v, fullPortion())
		at, err := t.place(m.partition)
		if err != nil {
			return err
		}
		if at.OwnerRow != v.User {
			return newError(KindForbidden, "id",
				"memory %s belongs to another user, who alone can erase it; DeleteMemory moves it to the trash", show(id))
		}
		return t.eraseMemories(m.row)
	})
	if err != nil {
		return err
	}
	return wrap(s.scrubSoon(ctx))
}

// EraseFile permanently deletes a file: it does not go to the trash. Only the owner of its place may erase it; for
// others who may write there it is ErrForbidden.
func (s *Store) EraseFile(ctx context.Context, id string) error {
	ctx = db.Freeing(ctx)
	err := s.removeStoredFile(ctx, id, func(tx db.Tx, v viewer, f storedFile) error {
		owner, err := ownerOfFilePlace(tx, f)
		if err == nil && owner != v.User {
			err = newError(KindForbidden, "file_id",
				"file %s belongs to another user, who alone can erase it; DeleteFile moves it to the trash", show(id))
		}
		return err
	})
	if err != nil {
		return err
	}
	return wrap(s.scrubSoon(ctx))
}

// eraseExpired erases the entries that have expired at a time, in short transactions, and returns their number. With
// time 0 it erases the entries that users have marked for erasure.
func (s *shared) eraseExpired(ctx context.Context, now int64) (erased int, err error) {
	for {
		var rows []int64
		err := s.db.Read(ctx, func(tx db.Tx) (err error) {
			rows, err = db.Column[int64](tx,
				`SELECT id FROM trash WHERE restorable_until <= ? ORDER BY restorable_until LIMIT 100`, now)
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
		if err := kernel.RemoveFile(ctx, s.db, file); err != nil {
			return err
		}
	}
	return nil
}

// eraseStep erases one portion of an entry, and reports whether that was all. The files that it returns are being
// deleted and must still be removed.
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
	if err := noteErasure(tx); err != nil || more {
		return nil, false, err
	}
	if files, err = db.Column[int64](tx, `SELECT id FROM file WHERE uid = ? AND state = 'trashed'`,
		trashedFileID(row)); err != nil {
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

// eraseTrashOf erases one portion of a user's trash, and reports whether that was all. purgeFiles removes the files.
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

// scrubSoon removes the traces of erased data: now if the store is small, else in the background.
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
	s.erased.Store(true)
	s.worker.Wake()
	return nil
}

// scrub removes the traces of erased data from the file, in short transactions. While readers hold the log, it stays
// due.
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
		_, err := tx.Exec(`UPDATE setting SET value = 0 WHERE key = ? AND value = ?`, settingErasure,
			due) // unless more was erased meanwhile
		return err
	})
}

// noteErasure records an erasure.
func noteErasure(tx db.Tx) error {
	_, err := tx.Exec(`INSERT INTO setting (key, value) VALUES (?, 1) ON CONFLICT (key) DO UPDATE `+
		`SET value = setting.value + 1`, settingErasure)
	return err
}
