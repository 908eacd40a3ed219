package souvenir

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/trash"
)

// MemoriesDeletion says which memories [Store.DeleteMemories] deletes.
type MemoriesDeletion struct {
	List // which; its order does not matter

	// All allows a List without any condition, which means every memory of this view. Without it that is ErrInvalid.
	All bool

	// DryRun only counts.
	DryRun bool

	// Progress receives the stage "delete", counted in memories. Nil disables it.
	Progress Progress
}

// MemoriesUpdate says which memories [Store.UpdateMemories] changes, and how.
type MemoriesUpdate struct {
	List // which; its order does not matter

	// All allows a List without any condition, which means every memory of this view. Without it that is ErrInvalid.
	All bool

	// Change is applied to each memory. Content, Embedding, the times and ExpectedRevision belong to one memory, and
	// are not allowed here.
	Change MemoryUpdate

	// DryRun only counts.
	DryRun bool

	// Progress receives the stage "update", counted in memories. Nil disables it.
	Progress Progress
}

// Bulk is the result of a deletion or an update of many memories.
type Bulk struct {
	Selected int `json:"selected"`  // matching memories that this view may change
	Changed  int `json:"changed"`   // deleted, or updated with a new revision; with DryRun 0
	ReadOnly int `json:"read_only"` // matching memories that are shared read-only; they are left unchanged
}

// updatedAtOnce is how many memories one transaction updates.
const updatedAtOnce = 200

// DeleteMemories deletes all memories that match, also if they are not valid now. Each goes to the trash as an entry
// of its own, as with [Store.DeleteMemory]. It deletes up to a thousand in one commit, so that other writers get their
// turn: after an error the counts say how many were deleted, and a second call deletes the rest. Memories that no
// longer match are skipped.
func (s *Store) DeleteMemories(ctx context.Context, d MemoriesDeletion) (Bulk, error) {
	if d.DryRun {
		return s.deleteMemories(ctx, nil, d)
	}
	return hooked(ctx, s, OperationDelete, "DeleteMemories", func(ctx context.Context, o *operation) (Bulk, error) {
		return s.deleteMemories(ctx, o, d)
	})
}

func (s *Store) deleteMemories(ctx context.Context, o *operation, d MemoriesDeletion) (_ Bulk, err error) {
	defer inGo[MemoriesDeletion](&err)
	ctx = db.Freeing(ctx)
	b := bulk{store: s, list: d.List, stage: "delete", progress: d.Progress}
	if err := b.begin(ctx, d.All, d.DryRun); err != nil {
		return b.done, err
	}
	if err := b.describe(ctx, o, ProjectRef{ID: d.ProjectID, Name: d.ProjectName}); err != nil {
		return b.done, err
	}
	if err := o.delete(ctx); err != nil {
		return b.done, err
	}
	err = s.inPortions(ctx, func(p trash.Portion) (bool, error) {
		return b.next(ctx, p.Rows, func(tx db.Tx, v viewer, found []storedMemory) (int, int, error) {
			t := s.newTrasher(tx, v, p)
			began, size := time.Now(), 0
			for i, m := range found {
				size += len(m.Content)
				if i > 0 && (int64(size) > p.Bytes || db.ShouldYield(tx, began)) {
					return i, i, nil
				}
				if err := t.Memory(m.trashed()); err != nil {
					return 0, 0, err
				}
			}
			return len(found), len(found), nil
		})
	})
	return b.done, err
}

// UpdateMemories applies one patch to the metadata of all memories that match: tags, state, the other known keys and
// those of the caller's own. Each changes as with [Store.UpdateMemory], a few hundred in one commit: after an error the
// counts say what was done. Memories that no longer match are skipped.
func (s *Store) UpdateMemories(ctx context.Context, u MemoriesUpdate) (Bulk, error) {
	if u.DryRun {
		return s.updateMemories(ctx, nil, u)
	}
	return hooked(ctx, s, OperationUpdate, "UpdateMemories", func(ctx context.Context, o *operation) (Bulk, error) {
		return s.updateMemories(ctx, o, u)
	})
}

func (s *Store) updateMemories(ctx context.Context, o *operation, u MemoriesUpdate) (_ Bulk, err error) {
	defer inGo[MemoriesUpdate](&err, inChange()...)
	defer inShown[MemoriesUpdate](&err, ".Change", u.Change, u.Change.ShownMetadata)
	b := bulk{store: s, list: u.List, stage: "update", progress: u.Progress}
	patch, err := u.Change.patchOfMany()
	if err != nil {
		return b.done, err
	}
	if err := b.begin(ctx, u.All, u.DryRun); err != nil {
		inGo[MemoriesUpdate](&err)
		return b.done, err
	}
	if o != nil {
		if err := b.describe(ctx, o, ProjectRef{ID: u.ProjectID, Name: u.ProjectName}); err != nil {
			return b.done, err
		}
		if _, err := o.rewriteUpdate(ctx, &u.Change, patch); err != nil {
			return b.done, err
		}
		if patch, err = u.Change.patchOfMany(); err != nil {
			return b.done, err
		}
	}
	for done := false; !done; {
		done, err = b.next(ctx, updatedAtOnce, func(tx db.Tx, v viewer, found []storedMemory) (int, int, error) {
			w, err := s.newWriter(tx, v)
			if err != nil {
				return 0, 0, err
			}
			began, changed := time.Now(), 0
			for i, m := range found {
				if i > 0 && db.ShouldYield(tx, began) {
					return i, changed, w.flush()
				}
				after := m
				a, err := patch.apply(m.attributes())
				if err == nil {
					err = a.Check()
				}
				if err != nil {
					return 0, 0, err
				}
				after.setAttributes(a)
				stored, err := w.update(m, after, nil)
				if err != nil {
					return 0, 0, err
				}
				if stored.Revision != m.Revision {
					changed++
				}
			}
			return len(found), changed, w.flush()
		})
		if err != nil {
			return b.done, err
		}
	}
	return b.done, nil
}

// inChange are the names of fields that both Change and List have.
func inChange() (pairs []string) {
	for argument, field := range fault.NamesOf(reflect.TypeFor[MemoryUpdate](), kernel.KnownKeys) {
		pairs = append(pairs, argument, ".Change."+field.Field)
	}
	return pairs
}

// patchOfMany returns the patch of a change to many memories.
func (u *MemoryUpdate) patchOfMany() (attributesPatch, error) {
	if u.Content != nil || u.Embedding != nil || u.EventTime != nil || u.ExpiresAt != nil || u.ValidFrom != nil ||
		u.ValidUntil != nil ||
		u.ExpectedRevision != 0 {
		return attributesPatch{}, invalid("Change",
			"{} has Content, Embedding, a time or ExpectedRevision, which belong to one memory; "+
				"UpdateMemory takes them")
	}
	patch, err := u.patch()
	if err == nil && patch.isEmpty() {
		err = invalid("Change", "{} is empty; give what to change")
	}
	return patch, err
}

// bulk goes through the memories that match a list when it begins.
type bulk struct {
	store    *Store
	list     List
	stage    string
	progress Progress
	rows     []int64
	total    int
	done     Bulk
}

// begin finds the memories; for a dry run it leaves none to process.
func (b *bulk) begin(ctx context.Context, all, dryRun bool) error {
	l := b.list
	if !all && len(l.Collections) == 0 && l.ProjectID == "" && l.ProjectName == "" && len(l.Tags) == 0 &&
		len(l.Filter) == 0 {
		return invalid("filter", "{}, {tags}, {collections} and project are empty, which means every memory; "+
			"give a condition, or set All")
	}
	if err := b.store.checkWritable(); err != nil {
		return err
	}
	if !l.AsOf.IsZero() {
		return invalid("AsOf", "{} is %s; what was cannot be changed or deleted, leave it out", l.AsOf.Format(time.RFC3339))
	}
	l.whenever = true
	b.list = l
	found, err := b.store.listRows(ctx, l)
	if err != nil {
		return err
	}
	for batch := range slices.Chunk(found, 1000) {
		err := b.store.read(ctx, func(tx db.Tx, v viewer) error {
			condition, args := v.Writable()
			writable, err := db.Column[int64](tx, `SELECT m.id FROM memory m JOIN partition p ON p.id = m.partition_id
				JOIN collection c ON c.id = p.collection_id WHERE m.id IN `+db.Integers+` AND `+condition+` ORDER BY m.id`,
				append([]any{db.List(batch)}, args...)...)
			b.rows = append(b.rows, writable...)
			return err
		})
		if err != nil {
			return err
		}
	}
	slices.Sort(b.rows) // as fitting returns them: a part that ends early says how far it came
	b.total = len(b.rows)
	b.done = Bulk{Selected: b.total, ReadOnly: len(found) - b.total}
	if dryRun {
		b.rows = nil
	}
	return nil
}

// describe notes the memories in an operation with hooks.
func (b *bulk) describe(ctx context.Context, o *operation, project ProjectRef) error {
	if o == nil {
		return nil
	}
	o.in(project)
	ids := make([]string, 0, len(b.rows))
	for batch := range slices.Chunk(b.rows, 1000) {
		err := b.store.read(ctx, func(tx db.Tx, _ viewer) error {
			some, err := db.Column[string](tx, `SELECT uid FROM memory WHERE id IN `+db.Integers, db.List(batch))
			ids = append(ids, some...)
			return err
		})
		if err != nil {
			return err
		}
	}
	o.names(ids...)
	return nil
}

// next processes one batch in a commit, and reports whether it was the last. fn gets the memories that still match, and
// returns how many of them it processed, from the first on, and how many it changed.
func (b *bulk) next(ctx context.Context, most int,
	fn func(tx db.Tx, v viewer, found []storedMemory) (did, changed int, err error)) (bool, error) {
	if len(b.rows) == 0 {
		return true, nil
	}
	some := b.rows[:min(most, len(b.rows))]
	through, changed := 0, 0
	err := b.store.write(db.Yielding(ctx), func(tx db.Tx, v viewer) error {
		found, err := b.fitting(tx, v, some)
		if err != nil {
			return err
		}
		did := 0
		if did, changed, err = fn(tx, v, found); err != nil {
			return err
		}
		through = len(some)
		if did < len(found) {
			through = slices.Index(some, found[did].row)
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	b.rows = b.rows[through:]
	b.done.Changed += changed
	if b.progress != nil {
		b.progress(b.stage, b.total-len(b.rows), b.total)
	}
	return len(b.rows) == 0, nil
}

// fitting returns the memories that still match and may be changed, in their order.
func (b *bulk) fitting(tx db.Tx, v viewer, some []int64) ([]storedMemory, error) {
	l := b.list
	sel, err := b.store.selection(tx, v, Query{Collections: l.Collections, ProjectID: l.ProjectID,
		ProjectName: l.ProjectName, Tags: l.Tags, Filter: l.Filter, Sort: cmp.Or(l.Sort, SortCreatedAsc), whenever: true})
	if err != nil {
		return nil, err
	}
	condition, args := sel.Where()
	fits, err := db.Column[int64](tx, `SELECT m.id FROM memory m JOIN partition p ON p.id = m.partition_id
		JOIN collection c ON c.id = p.collection_id WHERE m.id IN `+db.Integers+` AND `+condition+` ORDER BY m.id`,
		append([]any{db.List(some)}, args...)...)
	if err != nil {
		return nil, err
	}
	found, err := b.store.loadRows(tx, v, fits)
	return slices.DeleteFunc(found, func(m storedMemory) bool { return !m.writable }), err
}
