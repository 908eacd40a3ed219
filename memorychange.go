package souvenir

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/lifespan"
	"github.com/souvenir-ai/souvenir/internal/trash"
	"github.com/souvenir-ai/souvenir/internal/valid"
	"github.com/souvenir-ai/souvenir/internal/writing"
)

// Changes of memories: one updated, and many updated or deleted at once. Deletions of one are in memory.go.

// MemoryUpdate describes a change to a memory. Unset fields change nothing.
type MemoryUpdate struct {
	Content *string // the new content; nil keeps it

	// The known keys: nil keeps them, and a pointer to the empty value removes them. Setting another project moves the
	// memory there, which only its Owner may do; in another user's project it then belongs to that project.
	EventType, State       *string
	ProjectID, ProjectName *string
	Importance             *Importance
	Classification         *Classification
	RuleType               *RuleType
	Tags, Related          *[]string // replace the present ones

	// Metadata is a JSON merge patch (RFC 7396) of the caller's own metadata: keys replace, null removes, objects merge.
	// As in [NewMemory], no key has a meaning to the store.
	Metadata map[string]any

	// ShownMetadata is a merge patch of the metadata in the form of the interface; see [NewMemory.ShownMetadata]. A known
	// key is patched like any other. It is applied before Metadata and the fields above.
	ShownMetadata map[string]any

	// Embedding is the new content's vector, in a collection with OwnVectors.
	Embedding []float32

	// EventTime is when the event took place; the zero time removes it, nil keeps it. It is not part of a revision.
	EventTime *time.Time

	// ExpiresAt is when the memory expires; the zero time removes it, nil keeps it. See [NewMemory.ExpiresAt]. It is
	// not part of a revision.
	ExpiresAt *time.Time

	// ValidFrom and ValidUntil say when the memory is true; the zero time removes them, nil keeps them. See
	// [NewMemory.ValidFrom]. They are not part of a revision.
	ValidFrom, ValidUntil *time.Time

	// ExpectedRevision makes the update fail with ErrConflict when the memory has another revision, because it changed
	// since it was read. Zero means any.
	ExpectedRevision int
}

// UpdateMemory changes a memory and keeps the previous state as a revision. New content is embedded in the same commit.
// An update that changes nothing makes no revision.
func (s *Store) UpdateMemory(ctx context.Context, id string, u MemoryUpdate) (StoredMemory, error) {
	return hooked(ctx, s, OperationUpdate, "UpdateMemory",
		func(ctx context.Context, o *operation) (_ StoredMemory, err error) {
			defer setGoNames[MemoryUpdate](&err, "id", "id")
			o.names(id)
			return s.updateMemory(ctx, o, id, u)
		})
}

func (s *Store) updateMemory(ctx context.Context, o *operation, id string, u MemoryUpdate) (_ StoredMemory, err error) {
	defer setShownNames[MemoryUpdate](&err, "", u, u.ShownMetadata)
	patch, err := u.patch()
	if err == nil {
		patch, err = o.rewriteUpdate(ctx, &u, patch)
	}
	if err != nil {
		return StoredMemory{}, err
	}
	if err := checkExpected(u.ExpectedRevision); err != nil {
		return StoredMemory{}, err
	}
	var c *kernel.Draft
	switch {
	case u.Content != nil:
		if c, err = newContent(*u.Content, u.Embedding); err != nil {
			return StoredMemory{}, err
		}
	case u.Embedding != nil:
		return StoredMemory{}, invalid("embedding", "{} is given without content; a vector belongs to its content")
	}
	times, err := u.times(s.now())
	if err != nil {
		return StoredMemory{}, err
	}
	return s.change(ctx, id, u.ExpectedRevision, c, times,
		func(_ *writing.Writer, before kernel.Attributes) (kernel.Attributes, error) {
			return patch.apply(before)
		})
}

// times checks the times of an update, and returns a function that sets them.
func (u *MemoryUpdate) times(now int64) (func(*kernel.Memory), error) {
	var t lifespan.Times
	for _, at := range []struct {
		given *time.Time
		into  **int64
	}{{u.ExpiresAt, &t.Expires}, {u.ValidFrom, &t.From}, {u.ValidUntil, &t.Until}} {
		if at.given != nil {
			*at.into = kernel.MicrosOf(*at.given)
		}
	}
	err := t.Check()
	if err == nil {
		err = t.CheckExpiry(now)
	}
	if err == nil && u.EventTime != nil && !u.EventTime.IsZero() {
		err = valid.Time("event_time", u.EventTime.UnixMicro())
	}
	return func(m *kernel.Memory) {
		if u.EventTime != nil {
			m.EventTime = kernel.MicrosOf(*u.EventTime)
		}
		if u.ExpiresAt != nil {
			m.Times.Expires = t.Expires
		}
		if u.ValidFrom != nil {
			m.Times.From = t.From
		}
		if u.ValidUntil != nil {
			m.Times.Until = t.Until
		}
	}, err
}

// attributesPatch is a change to attributes: to the shown metadata, which includes the known keys, and to the own keys.
type attributesPatch struct{ shown, own map[string]any }

func (p attributesPatch) apply(a kernel.Attributes) (kernel.Attributes, error) {
	a, err := a.Patch(p.shown)
	return a.PatchOwn(p.own), err
}

func (p attributesPatch) isEmpty() bool { return len(p.shown) == 0 && len(p.own) == 0 }

// patch returns all changes of the update except the content.
func (u *MemoryUpdate) patch() (p attributesPatch, err error) {
	known := maps.Clone(u.ShownMetadata)
	set := func(key string, value any) {
		if known == nil {
			known = map[string]any{}
		}
		known[key] = value
	}
	if u.ProjectID != nil || u.ProjectName != nil {
		delete(known, "project_id")
		delete(known, "project_name")
	}
	for _, f := range []struct {
		key   string
		value *string
	}{
		{"event_type", u.EventType}, {"state", u.State}, {"project_id", u.ProjectID}, {"project_name", u.ProjectName},
		{"importance", (*string)(u.Importance)}, {"classification", (*string)(u.Classification)},
		{"rule_type", (*string)(u.RuleType)},
	} {
		if f.value != nil {
			err = cmp.Or(err, valid.Text(f.key, *f.value))
			set(f.key, *f.value)
		}
	}
	for _, f := range []struct {
		key  string
		list *[]string
	}{{"tags", u.Tags}, {"related_memory_ids", u.Related}} {
		if f.list != nil {
			for _, text := range *f.list {
				err = cmp.Or(err, valid.Text(f.key, text))
			}
			set(f.key, *f.list)
		}
	}
	if err != nil {
		return p, err
	}
	if p.shown, err = jsonobject.Canonical("metadata", known); err == nil {
		p.own, err = jsonobject.Canonical("metadata", u.Metadata)
	}
	return p, err
}

// change is the common part of updates and restorations: it embeds content (nil: unchanged), and then, in one
// transaction, writes it and the attributes that patch returns for the present ones.
func (s *Store) change(ctx context.Context, id string, expected int, content *kernel.Draft, times func(*kernel.Memory),
	patch func(*writing.Writer, kernel.Attributes) (kernel.Attributes, error)) (StoredMemory, error) {
	if err := s.checkWritable(); err != nil {
		return StoredMemory{}, err
	}
	var warnings []string
	if content != nil {
		var err error
		if content, warnings, err = s.embedChange(ctx, id, expected, content); err != nil {
			return StoredMemory{}, wrap(err)
		}
	}
	var changed StoredMemory
	var moved bool
	err := s.write(ctx, func(tx db.Tx, v viewer) error {
		before, err := kernel.LoadForWriting(tx, v, id)
		if err != nil {
			return err
		}
		if err := before.Expect(expected); err != nil {
			return err
		}
		w, err := s.writing().NewWriter(tx, v)
		if err != nil {
			return err
		}
		after := before
		if content != nil {
			after.Content = content.Content
		}
		if times != nil {
			times(&after)
		}
		a, err := patch(w, before.Attributes)
		if err == nil {
			err = a.Check()
		}
		if err != nil {
			return err
		}
		after.Attributes = a
		stored, err := w.Update(before, after, content)
		if err != nil {
			return err
		}
		changed, moved = storedOf(stored), stored.Partition != before.Partition
		if !changed.Indexed {
			changed.Warnings = append(changed.Warnings, warnings...)
		}
		return w.Flush()
	})
	if err == nil && !changed.Indexed {
		s.wake(ctx)
	}
	if err == nil && moved {
		s.wakeTexts(ctx)
	}
	return changed, err
}

// MemoriesUpdate says which memories [Store.UpdateMemories] changes, and how.
type MemoriesUpdate struct {
	MemoryList // which; its order does not matter

	// All allows a MemoryList without any condition, which means every memory of this view. Without All, such a list
	// is ErrInvalid.
	All bool

	// Change is applied to each memory. Content, Embedding, the times and ExpectedRevision belong to one memory, and
	// are not allowed here.
	Change MemoryUpdate

	// DryRun only counts.
	DryRun bool

	// Progress receives the stage "update", counted in memories. Nil disables it.
	Progress Progress
}

// UpdateMemories applies one patch to the metadata of all memories that match: tags, state, the other known keys and
// the caller's own. Each memory changes as with [Store.UpdateMemory], a few hundred in one commit: after an error the
// counts say how many have changed. Memories that no longer match are skipped.
func (s *Store) UpdateMemories(ctx context.Context, u MemoriesUpdate) (BulkReport, error) {
	if u.DryRun {
		return s.updateMemories(ctx, nil, u)
	}
	return hooked(ctx, s, OperationUpdate, "UpdateMemories", func(ctx context.Context, o *operation) (BulkReport, error) {
		return s.updateMemories(ctx, o, u)
	})
}

func (s *Store) updateMemories(ctx context.Context, o *operation, u MemoriesUpdate) (_ BulkReport, err error) {
	defer setGoNames[MemoriesUpdate](&err, inChange()...)
	defer setShownNames[MemoriesUpdate](&err, ".Change", u.Change, u.Change.ShownMetadata)
	b := bulk{store: s, list: u.MemoryList, stage: "update", progress: u.Progress}
	patch, err := u.Change.patchOfMany()
	if err != nil {
		return b.done, err
	}
	if err := b.begin(ctx, u.All, u.DryRun); err != nil {
		setGoNames[MemoriesUpdate](&err)
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
	moved := false
	defer func() {
		if moved {
			s.wakeTexts(ctx)
		}
	}()
	for done := false; !done; {
		done, err = b.next(ctx, updatedAtOnce, func(tx db.Tx, v viewer, found []kernel.Memory) (int, int, error) {
			w, err := s.writing().NewWriter(tx, v)
			if err != nil {
				return 0, 0, err
			}
			began, changed := time.Now(), 0
			for i, m := range found {
				if i > 0 && db.ShouldYield(tx, began) {
					return i, changed, w.Flush()
				}
				after := m
				a, err := patch.apply(m.Attributes)
				if err == nil {
					err = a.Check()
				}
				if err != nil {
					return 0, 0, err
				}
				after.Attributes = a
				stored, err := w.Update(m, after, nil)
				if err != nil {
					return 0, 0, err
				}
				if stored.Revision != m.Revision {
					changed++
				}
				moved = moved || stored.Partition != m.Partition
			}
			return len(found), changed, w.Flush()
		})
		if err != nil {
			return b.done, err
		}
	}
	return b.done, nil
}

// updatedAtOnce is how many memories one transaction updates.
const updatedAtOnce = 200

// inChange returns the names of fields that both Change and MemoryList have.
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

// BulkReport is the result of a deletion or an update of many memories.
type BulkReport struct {
	Selected int `json:"selected"`  // matching memories that this view may change
	Changed  int `json:"changed"`   // deleted, or updated with a new revision; with DryRun 0
	ReadOnly int `json:"read_only"` // matching memories that are shared read-only; they are left unchanged
}

// bulk goes through the memories that match a list when it begins.
type bulk struct {
	store    *Store
	list     MemoryList
	stage    string
	progress Progress
	rows     []int64
	total    int
	done     BulkReport
}

// begin finds the memories; for a dry run it leaves none to process.
func (b *bulk) begin(ctx context.Context, all, dryRun bool) error {
	l := b.list
	if !all && len(l.Collections) == 0 && l.ProjectID == "" && l.ProjectName == "" && len(l.Tags) == 0 &&
		len(l.Keys) == 0 && len(l.Filter) == 0 {
		return invalid("filter", "{}, {tags}, {keys}, {collections} and project are empty, which means every memory; "+
			"give a condition, or set All")
	}
	if err := b.store.checkWritable(); err != nil {
		return err
	}
	if !l.AsOf.IsZero() {
		return invalid("AsOf", "{} is %s; the past cannot be changed or deleted; omit it", l.AsOf.Format(time.RFC3339))
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
	b.done = BulkReport{Selected: b.total, ReadOnly: len(found) - b.total}
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
	fn func(tx db.Tx, v viewer, found []kernel.Memory) (did, changed int, err error)) (bool, error) {
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
			through = slices.Index(some, found[did].Row)
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
func (b *bulk) fitting(tx db.Tx, v viewer, some []int64) ([]kernel.Memory, error) {
	q := b.list.query()
	q.whenever, q.named = true, true
	sel, err := b.store.selection(tx, v, q)
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
	found, err := kernel.LoadRows(tx, v, kernel.WholeContent, fits)
	return slices.DeleteFunc(found, func(m kernel.Memory) bool { return !m.Writable }), err
}

// MemoriesDeletion says which memories [Store.DeleteMemories] deletes.
type MemoriesDeletion struct {
	MemoryList // which; its order does not matter

	// All allows a MemoryList without any condition, which means every memory of this view. Without All, such a list
	// is ErrInvalid.
	All bool

	// DryRun only counts.
	DryRun bool

	// Progress receives the stage "delete", counted in memories. Nil disables it.
	Progress Progress
}

// DeleteMemories deletes all memories that match, even if they are not valid now. Each goes to the trash as an entry of
// its own, as with [Store.DeleteMemory]. It deletes up to a thousand in one commit, so that other writers get their
// turn: after an error the counts say how many were deleted, and a second call deletes the rest. Memories that no
// longer match are skipped.
func (s *Store) DeleteMemories(ctx context.Context, d MemoriesDeletion) (BulkReport, error) {
	if d.DryRun {
		return s.deleteMemories(ctx, nil, d)
	}
	return hooked(ctx, s, OperationDelete, "DeleteMemories", func(ctx context.Context, o *operation) (BulkReport, error) {
		return s.deleteMemories(ctx, o, d)
	})
}

func (s *Store) deleteMemories(ctx context.Context, o *operation, d MemoriesDeletion) (_ BulkReport, err error) {
	defer setGoNames[MemoriesDeletion](&err)
	ctx = db.Freeing(ctx)
	b := bulk{store: s, list: d.MemoryList, stage: "delete", progress: d.Progress}
	if err := b.begin(ctx, d.All, d.DryRun); err != nil {
		return b.done, err
	}
	if err := b.describe(ctx, o, ProjectRef{ID: d.ProjectID, Name: d.ProjectName}); err != nil {
		return b.done, err
	}
	if err := o.delete(ctx, nil); err != nil {
		return b.done, err
	}
	err = s.inPortions(ctx, func(p trash.Portion) (bool, error) {
		return b.next(ctx, p.Rows, func(tx db.Tx, v viewer, found []kernel.Memory) (int, int, error) {
			t := s.newTrasher(tx, v, p)
			began, size := time.Now(), 0
			for i, m := range found {
				size += len(m.Content)
				if i > 0 && (int64(size) > p.Bytes || db.ShouldYield(tx, began)) {
					return i, i, nil
				}
				if err := t.Memory(trashed(m)); err != nil {
					return 0, 0, err
				}
			}
			return len(found), len(found), nil
		})
	})
	return b.done, err
}
