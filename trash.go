package souvenir

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// The trash keeps what was deleted, for Options.KeepTrash. What lies there has left the tables that answer callers: it is in no
// listing, search, count or walk along links. An entry is what was deleted by one call: a memory, a file, or a project or collection
// with all of its memories. trashmove.go fills it, trashrestore.go and trasherase.go empty it.

// TrashKind says what an entry of the trash was.
type TrashKind string

// The values of [TrashKind].
const (
	TrashMemory     TrashKind = "memory" // rules and to-do documents are memories, too
	TrashFile       TrashKind = "file"
	TrashProject    TrashKind = "project"
	TrashCollection TrashKind = "collection"
)

var trashKinds = []TrashKind{TrashMemory, TrashFile, TrashProject, TrashCollection}

// TrashEntry is something that was deleted and can be restored.
type TrashEntry struct {
	ID            string    `json:"id"` // of a memory or a file: the id that it had and will have again
	Kind          TrashKind `json:"kind"`
	Title         string    `json:"title"`                     // the beginning of the memory, or the name
	Collection    string    `json:"collection_name,omitempty"` // the collection it was, or lay in
	ProjectID     string    `json:"project_id,omitempty"`      // the project it was, or lay in
	ProjectName   string    `json:"project_name,omitempty"`
	Owner         string    `json:"owner"`                     // user id of the owner of the place where it lay
	Memories      int       `json:"memories"`                  // how many memories it holds
	Size          int64     `json:"size"`                      // bytes
	DeletedBy     string    `json:"deleted_by"`                // user id
	DeletedByName string    `json:"deleted_by_name,omitempty"` // of the account, if there is one
	Through       string    `json:"deleted_through,omitempty"` // Access.Through of who deleted it
	DeletedAt     time.Time `json:"deleted_at"`
	Until         time.Time `json:"restorable_until"` // from then on it is erased
	Own           bool      `json:"own"`              // the caller owns the place, and so may erase it
}

// TrashQuery asks for a page of the trash, the newest deletion first.
type TrashQuery struct {
	Kinds  []TrashKind // only entries of these kinds; empty means all
	Limit  int         // entries to return, 1 to 1,000; zero means 100
	Offset int         // entries to leave out before the first, 0 or more
}

// MaxTrashLimit is the most entries that [Store.ListTrash] returns at once.
const MaxTrashLimit = 1000

// TrashPage is a page of the trash.
type TrashPage struct {
	Entries []TrashEntry `json:"entries"` // never nil
	Total   int          `json:"total"`   // on all pages
	Offset  int          `json:"offset"`  // as in the query
	Limit   int          `json:"limit"`   // as it was applied
}

// HasMore reports whether there are entries behind this page.
func (p TrashPage) HasMore() bool { return p.Offset+len(p.Entries) < p.Total }

// ListTrash returns what was deleted and can still be restored: in places of the caller's own, and memories and files from projects in
// which the caller may write. A view limited to projects sees what lay in these.
func (s *Store) ListTrash(ctx context.Context, q TrashQuery) (TrashPage, error) {
	q.Limit = cmp.Or(q.Limit, 100)
	switch {
	case q.Limit < 1 || q.Limit > MaxTrashLimit:
		return TrashPage{}, invalid("limit", "limit is %d; 1 to %d are allowed", q.Limit, MaxTrashLimit)
	case q.Offset < 0:
		return TrashPage{}, invalid("offset", "offset is %d; 0 or more is needed", q.Offset)
	}
	for _, kind := range q.Kinds {
		if !slices.Contains(trashKinds, kind) {
			return TrashPage{}, invalid("kinds", "kinds has %s; memory, file, project and collection are allowed", show(string(kind)))
		}
	}
	kinds, err := json.Marshal(q.Kinds)
	if err != nil {
		return TrashPage{}, wrap(err)
	}
	p := TrashPage{Offset: q.Offset, Limit: q.Limit}
	err = s.read(ctx, func(tx db.Tx, sc scope) error {
		condition, args := sc.visibleTrash()
		condition += ` AND t.restorable_until > ? AND (? = 0 OR t.kind IN ` + db.Texts + `)`
		args = append(args, s.now(), len(q.Kinds), string(kinds))
		if err := tx.QueryRow(`SELECT count(*) FROM trash t WHERE `+condition, args...).Scan(&p.Total); err != nil {
			return err
		}
		found, err := loadTrash(tx, sc, condition+` ORDER BY t.id DESC LIMIT ? OFFSET ?`, append(args, q.Limit, q.Offset)...)
		p.Entries = make([]TrashEntry, len(found))
		for i, e := range found {
			p.Entries[i] = e.TrashEntry
		}
		return err
	})
	return p, err
}

// GetTrashed returns an entry of the trash. One that does not exist, or that this view may not see, is ErrNotFound.
func (s *Store) GetTrashed(ctx context.Context, id string) (TrashEntry, error) {
	var e trashEntry
	err := s.read(ctx, func(tx db.Tx, sc scope) (err error) {
		e, err = s.trashed(tx, sc, id)
		return err
	})
	return e.TrashEntry, err
}

// trashEntry is an entry with its rows.
type trashEntry struct {
	TrashEntry
	row, owner          int64
	collection, project int64 // 0 for none, or one that does not exist
	item, data          string
}

// visibleTrash is the condition for seeing and restoring an entry t: the owner of the place, and for single memories and files
// whoever may write in the project; within the projects of a limited view. Projects and collections are their owners' alone.
func (sc scope) visibleTrash() (condition string, args []any) {
	single := `t.kind IN ('memory', 'file')`
	condition = `(t.owner_id = ? OR t.project_id IN (` + writableBy + `) AND ` + single + `)`
	args = []any{sc.user, sc.user, sc.user}
	if !sc.limited {
		return condition, args
	}
	return condition + ` AND ` + single + ` AND t.project_id IN ` + db.Integers, append(args, db.List(sc.projects))
}

// trashed returns a visible entry that can still be restored.
func (s *Store) trashed(tx db.Tx, sc scope, id string) (trashEntry, error) {
	condition, args := sc.visibleTrash()
	found, err := loadTrash(tx, sc, condition+` AND t.restorable_until > ? AND t.uid = ?`, append(args, s.now(), id)...)
	if err != nil {
		return trashEntry{}, err
	}
	if len(found) == 0 {
		return trashEntry{}, newError(KindNotFound, "id", "id %s is not in the trash, or you have no access to it", show(id))
	}
	return found[0], nil
}

// loadTrash reads the entries t for which a condition holds (and what follows WHERE: an order, a limit).
func loadTrash(tx db.Tx, sc scope, condition string, args ...any) ([]trashEntry, error) {
	var found []trashEntry
	err := tx.Each(func(row db.Rows) error {
		var e trashEntry
		var deleted, until int64
		err := row.Scan(&e.row, &e.ID, &e.Kind, &e.item, &e.Title, &e.owner, &e.Owner, &e.collection, &e.project, &e.Collection, &e.ProjectID, &e.ProjectName,
			&e.data, &e.Memories, &e.Size, &e.DeletedBy, &e.DeletedByName, &e.Through, &deleted, &until, &e.Own)
		e.DeletedAt, e.Until = toTime(deleted), toTime(until)
		found = append(found, e)
		return err
	}, `SELECT t.id, t.uid, t.kind, t.item, t.title, t.owner_id, o.uid, coalesce(t.collection_id, 0), coalesce(t.project_id, 0), t.collection, t.project,
			coalesce((SELECT name FROM project WHERE id = t.project_id), t.project_name), t.data, t.memories, t.size, d.uid, coalesce(d.name, ''),
			t.deleted_through, t.deleted_at, t.restorable_until, t.owner_id = ?
		FROM trash t JOIN users o ON o.id = t.owner_id JOIN users d ON d.id = t.deleted_by WHERE `+condition, slices.Concat([]any{sc.user}, args)...)
	return found, err
}
