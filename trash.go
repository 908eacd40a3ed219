package souvenir

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/trash"
	"github.com/souvenir-ai/souvenir/internal/writing"
)

// The trash keeps deleted items for Options.KeepTrash. They leave the live tables, so no listing, search, count or
// traversal of links finds them. An entry holds everything that one call deleted: a memory, a file, or a project or
// collection with all of its memories. Package trash moves them there and back.

// Trash holds the deleted items that can still be restored. Get it with [Store.Trash].
//
// It has the items from the caller's own places, and memories and files from projects in which the caller may write. A
// view limited to projects sees items from these projects.
type Trash struct {
	s *Store
}

// Trash returns the deleted items that this store or view can restore.
func (s *Store) Trash() *Trash { return &Trash{s} }

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
	Collection    string    `json:"collection_name,omitempty"` // the collection itself, or where it was
	ProjectID     string    `json:"project_id,omitempty"`      // the project itself, or where it was
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

// TrashList says which entries [Trash.All] returns. The zero value means all.
type TrashList struct {
	Kinds []TrashKind // only entries of these kinds; empty means all
}

// All iterates over the entries, the newest deletion first. It holds no lock and no transaction while the
// caller works, so the loop may restore and erase entries; entries that are gone when their turn comes are skipped, and
// items deleted after it began are not returned. The sequence ends after the first error.
func (h *Trash) All(ctx context.Context, l TrashList) iter.Seq2[TrashEntry, error] {
	s := h.s
	const page = 256
	return func(yield func(TrashEntry, error) bool) {
		for before, more := int64(math.MaxInt64), true; more; {
			var found []trashEntry
			err := checkTrashKinds(l.Kinds)
			if err == nil {
				err = s.read(ctx, func(tx db.Tx, v viewer) (err error) {
					condition, args := s.restorable(v, l.Kinds)
					found, err = loadTrash(tx, v, condition+` AND t.id < ? ORDER BY t.id DESC LIMIT ?`,
						append(args, before, page)...)
					return err
				})
			}
			if err != nil {
				setGoNames[TrashList](&err)
				yield(TrashEntry{}, err)
				return
			}
			for _, e := range found {
				if !yield(e.TrashEntry, nil) {
					return
				}
				before = e.row
			}
			more = len(found) == page
		}
	}
}

func checkTrashKinds(kinds []TrashKind) error {
	for _, kind := range kinds {
		if !slices.Contains(trashKinds, kind) {
			return invalid("kinds", "{} has %s; expected memory, file, project or collection", show(string(kind)))
		}
	}
	return nil
}

// restorable returns the condition for the entries t of some kinds, or of all, that the viewer can restore now.
func (s *Store) restorable(v viewer, kinds []TrashKind) (condition string, args []any) {
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = string(kind)
	}
	condition, args = v.VisibleTrash()
	return condition + ` AND t.restorable_until > ? AND (? = 0 OR t.kind IN ` + db.Texts + `)`,
		append(args, s.now(), len(names), db.List(names))
}

// MaxTrashLimit is the most entries that [Trash.Page] returns at once.
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

// Page returns a page of the entries, the newest deletion first.
func (h *Trash) Page(ctx context.Context, q TrashQuery) (_ TrashPage, err error) {
	defer setGoNames[TrashQuery](&err)
	s := h.s
	q.Limit = cmp.Or(q.Limit, 100)
	if err := checkPage(q.Limit, MaxTrashLimit, q.Offset); err != nil {
		return TrashPage{}, err
	}
	if err := checkTrashKinds(q.Kinds); err != nil {
		return TrashPage{}, err
	}
	p := TrashPage{Offset: q.Offset, Limit: q.Limit}
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		condition, args := s.restorable(v, q.Kinds)
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

// Get returns an entry of the trash. An entry that does not exist, or that this view may not see, is
// ErrNotFound.
func (h *Trash) Get(ctx context.Context, id string) (_ TrashEntry, err error) {
	defer setGoNames[struct{}](&err, "id", "id")
	s := h.s
	var e trashEntry
	err = s.read(ctx, func(tx db.Tx, v viewer) (err error) {
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
		return trashEntry{}, newError(KindNotFound, "id", "{} %s is not in the trash, or you have no access to it", show(id))
	}
	return found[0], nil
}

// loadTrash reads the entries t that satisfy a condition, which may end with an order and a limit.
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

// Restore restores an entry of the trash: a memory with its id, times, revision, history and vectors, and with
// its links and files as far as they still exist and are free; a file; a project with its members and memories; a
// collection. It returns the entry.
//
// While a project was in the trash its members could not leave it. So a view that restores it more than an hour after
// its deletion invites them again; the operator's store adds them. Users who have blocked its owner are left out.
//
// The caller must be allowed to write to the original place. Exceeding a quota of memories or past versions is
// ErrTooLarge. A memory whose id, or whose place as a rule, is taken is ErrConflict, as is a collection whose name or a
// project whose id is taken. An item from a project or collection that is itself in the trash is ErrNotFound, and the
// error says what to restore first. A project or collection is restored in batches, so that other writers get their
// turn. A part that cannot be restored does not hold up the rest: it stays in the trash, and the error says why, as
// ErrConflict or as that of a damaged part. After an error, call again to continue.
func (h *Trash) Restore(ctx context.Context, id string) (_ TrashEntry, err error) {
	defer setGoNames[struct{}](&err, "id", "id")
	s := h.s
	var restored *TrashEntry // once a part of it is back
	var refused error
	after, indexed := int64(0), true
	for done := false; !done; {
		var r *trash.Restorer
		var e trashEntry
		var gone error
		err := s.write(ctx, func(tx db.Tx, v viewer) (err error) {
			if e, gone = s.trashed(tx, v, id); gone != nil {
				return gone
			}
			if e.Kind == TrashProject || e.Kind == TrashCollection {
				if err := s.outside(ctx, "Trash.Restore of a "+string(e.Kind)); err != nil {
					return err
				}
			}
			w, err := s.writing().NewWriter(tx, v)
			if err != nil {
				return err
			}
			r = s.restorer(w, e, after)
			if done, err = r.Restore(); err != nil {
				return err
			}
			return w.Flush()
		})
		switch {
		case err != nil && restored != nil && errors.Is(gone, ErrNotFound): // another caller has restored the rest
			return *restored, nil
		case err != nil:
			return TrashEntry{}, err
		}
		if restored == nil {
			restored = &e.TrashEntry
		}
		after, indexed, refused = r.After, indexed && r.Indexed, cmp.Or(refused, r.Refused)
	}
	if !indexed {
		s.wake(ctx)
	}
	s.wakeTexts(ctx)
	if refused != nil {
		// Not ErrNotFound: the entry was there, and the rest of it is back.
		if e := new(Error); errors.As(refused, &e) && e.Kind == KindNotFound {
			there := *e
			there.Kind, refused = KindConflict, &there
		}
		return TrashEntry{}, refused
	}
	return *restored, nil
}

// restorer returns a restorer for an entry, which continues after the part with this number.
func (s *Store) restorer(w *writing.Writer, e trashEntry, after int64) *trash.Restorer {
	w.Restoring = true
	return &trash.Restorer{Writer: w, Entry: e.rows(), After: after, Indexed: true, Now: s.now(), NewID: s.newID,
		Profile: s.profile, MaxInput: maxInput(s.embedder),
		AddMember: func(project int64, m trash.Member) error {
			return s.restoreMember(w.Tx, w.Viewer, e, project, m)
		},
	}
}

// rows returns the entry in terms of rows.
func (e trashEntry) rows() *trash.Entry {
	return &trash.Entry{Row: e.row, ID: e.ID, Kind: trash.Kind(e.Kind), Item: e.item, Title: e.Title, Owner: e.owner,
		CollectionRow: e.collection, ProjectRow: e.project, Collection: e.Collection, ProjectID: e.ProjectID,
		ProjectName: e.ProjectName, Size: e.Size, Data: e.data}
}

// newTrasher returns a mover that deletes one portion: into the trash, or permanently if the trash is off.
func (s *Store) newTrasher(tx db.Tx, v viewer, p trash.Portion) *trash.Mover {
	now, keep := s.now(), s.keepTrash(tx)
	t := trash.Mover{Tx: tx, Viewer: v, Forever: keep < 0, Now: now, Until: now + keep.Microseconds(),
		Through: s.access.Through, NewID: s.newID}
	return t.Bounded(p)
}

// keepTrash returns how long the trash keeps entries; a negative value means that it is off.
func (s *shared) keepTrash(tx db.Tx) time.Duration {
	if o, err := s.limits(tx); err == nil { // else the deletion fails, too
		return o.KeepTrash
	}
	return s.options.KeepTrash
}

// trashed returns the memory as the trash takes it.
func trashed(m kernel.Memory) trash.Memory {
	return trash.Memory{Row: m.Row, Partition: m.Partition, ID: m.ID, Content: m.Content}
}

// DeletionOptions change how [Store.DeleteMemory], [Store.DeleteFile], [Store.DeleteCollection], [Store.DeleteProject],
// [Conversation.Clear] and [Accounts.DeleteUser] work. Nil means the zero value.
type DeletionOptions struct {
	// WithMemories deletes the contents, too: the memories, even if another user stored them, and with a user their
	// collections, projects and files. Without it, deleting one that is not empty fails with ErrConflict. Deletions of
	// one memory or file ignore it.
	WithMemories bool

	// Erase erases instead of moving to the trash. A user is always erased.
	Erase bool

	// Receipt is filled in when DeleteUser has deleted everything; nil means no receipt. It counts what existed at the
	// beginning. Other deletions ignore it.
	Receipt *Receipt
}

func (o *DeletionOptions) orDefault() DeletionOptions {
	if o == nil {
		return DeletionOptions{}
	}
	return *o
}

// Erasure, from the trash or at once. A file overwrites deleted content. But its words may stay in the full-text index
// until that is tidied (db.Tidy), and earlier states of pages stay in the log until that is flushed (db.File). scrub
// does both.

// scrubNow is the most passages of a store in which an erasure also waits until the traces are gone.
const scrubNow = 20_000

// Erase permanently erases an entry of the trash. Only the owner of its original place may erase it: for others
// who see it, it is ErrForbidden. When it returns, nothing of the entry is left in the file; in a store of more than
// 20,000 passages, traces remain until the next [Upkeep.Purge], or until background work removes them, within minutes.
// Backups are not touched.
func (h *Trash) Erase(ctx context.Context, id string) (err error) {
	defer setGoNames[struct{}](&err, "id", "id")
	s := h.s
	ctx = db.Freeing(ctx)
	err = s.write(ctx, func(tx db.Tx, v viewer) error {
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
	if _, err := trash.EraseExpired(ctx, s.db, 0); err != nil {
		return wrap(err)
	}
	return wrap(s.scrubSoon(ctx))
}

// Empty erases all entries of the trash that the caller may erase, as Erase does, and returns their number.
func (h *Trash) Empty(ctx context.Context) (int, error) {
	s := h.s
	if err := s.outside(ctx, "Trash.Empty"); err != nil {
		return 0, err
	}
	ctx = db.Freeing(ctx)
	var emptied, last int64
	began := s.now()
	err := trash.InPortions(func(p trash.Portion) (done bool, err error) {
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
				append(args, v.User, began, last, p.Rows)...)
			some = result.RowsAffected
			return err
		})
		if err != nil {
			return false, err
		}
		emptied += some
		return some < int64(p.Rows), nil
	})
	if err != nil || emptied == 0 {
		return int(emptied), err
	}
	if _, err := trash.EraseExpired(ctx, s.db, 0); err != nil {
		return int(emptied), wrap(err)
	}
	return int(emptied), wrap(s.scrubSoon(ctx))
}

// inPortions calls fn like [trash.InPortions], for memories. Within a transaction the portions are small: an engine may
// keep the changes of a portion, to undo it alone, and go through them after each statement.
func (s *Store) inPortions(ctx context.Context, fn func(p trash.Portion) (done bool, err error)) error {
	const within = 32 // memories
	return trash.InPortions(func(p trash.Portion) (bool, error) {
		if s.db.InTransaction(ctx) {
			p.Rows = min(p.Rows, within)
		}
		return fn(p)
	})
}

// deleteInPortions deletes something too large for one transaction, one portion in each. remove deletes a portion, and
// reports whether it was the last. forGood removes the traces as well.
func (s *Store) deleteInPortions(ctx context.Context, forGood bool,
	remove func(tx db.Tx, v viewer, p trash.Portion) (done bool, err error)) error {
	err := trash.InPortions(func(p trash.Portion) (done bool, err error) {
		err = s.write(ctx, func(tx db.Tx, v viewer) (err error) {
			done, err = remove(tx, v, p)
			return err
		})
		return done, err
	})
	if err != nil || !forGood {
		return err
	}
	s.worker.Wake() // removes the contents of files
	return wrap(s.scrubSoon(ctx))
}

// scrubSoon removes the traces of erased data: now if the store is small, else in the background, as after a
// transaction of several calls.
func (s *shared) scrubSoon(ctx context.Context) error {
	if s.db.InTransaction(ctx) {
		s.db.AtEnd(ctx, func(undone error) {
			if undone == nil {
				s.erased.Store(true)
				s.worker.Wake()
			}
		})
		return nil
	}
	if s.removeObjects(ctx, objectsNow) != nil { // the worker tries again
		s.worker.Wake()
	}
	var passages int
	err := s.db.Read(ctx, func(tx db.Tx) error {
		return tx.QueryRow(`SELECT coalesce(sum(passages), 0) FROM partition`).Scan(&passages)
	})
	if err == nil && passages <= scrubNow {
		if err = s.scrub(ctx); err == nil {
			return nil
		}
	}
	switch {
	case err == nil:
	case errors.Is(err, db.ErrFull), errors.Is(err, db.ErrBusy), errors.Is(err, db.ErrIO):
		// The rows are gone; removing their traces needs to write, and waits until that is possible.
		s.log.Warn("traces of erased data stay in the file until the store can write: the disk is full or failing, or "+
			"others are writing", "error", err)
	default:
		return err
	}
	s.erased.Store(true)
	s.worker.Wake()
	return nil
}

// scrub removes the traces of erased data as far as the engine can, in short transactions. While readers hold the
// log, it stays due.
func (s *shared) scrub(ctx context.Context) error {
	var due int64
	err := s.db.Read(ctx, func(tx db.Tx) (err error) {
		due, err = kernel.Setting(tx, trash.SettingErasure)
		return err
	})
	if err != nil || due == 0 {
		return err
	}
	for first, more := true, true; more; first = false {
		err := s.db.Write(ctx, func(tx db.Tx) (err error) {
			more, err = db.Tidy(tx, first)
			return err
		})
		if err != nil {
			return err
		}
	}
	if err := s.index.EraseStale(ctx); err != nil {
		return err
	}
	switch err := s.db.Upkeep().Flush(ctx); {
	case errors.Is(err, db.ErrLogInUse):
		s.log.Info("the write-ahead log is in use and may hold traces of erased data; trying again later")
		return nil
	case errors.Is(err, db.ErrUnsupported): // the rest is the operator's: docs/security.md
		s.log.Debug("bytes of erased data stay in the database until its operator removes them", "reason", err)
	case err != nil:
		return err
	}
	return s.db.Write(ctx, func(tx db.Tx) error {
		_, err := tx.Exec(`UPDATE setting SET value = 0 WHERE key = ? AND value = ?`, trash.SettingErasure,
			due) // unless more was erased meanwhile
		return err
	})
}
