package souvenir

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/recency"
	"github.com/souvenir-ai/souvenir/internal/valid"
	"github.com/souvenir-ai/souvenir/internal/validity"
)

// MemoryUpdate describes a change to a memory. Unset fields change nothing.
type MemoryUpdate struct {
	Content *string // the new content; nil keeps it

	// The known keys: nil keeps them, and a pointer to the empty value removes them. Another project moves the memory
	// there, which only its Owner may do: in another user's project it then belongs to that project.
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

	// EventTime is when what it tells of happened; the zero time removes it, nil keeps it. It is not part of a revision.
	EventTime *time.Time

	// ExpiresAt is when the memory ends; the zero time removes it, nil keeps it. See [NewMemory.ExpiresAt]. It is not part
	// of a revision.
	ExpiresAt *time.Time

	// ValidFrom and ValidUntil say when what the memory tells is true; the zero time removes them, nil keeps them. See
	// [NewMemory.ValidFrom]. They are not part of a revision.
	ValidFrom, ValidUntil *time.Time

	// ExpectedRevision makes the update fail with ErrConflict when the memory has another revision, because it changed
	// since it was read. Zero means any.
	ExpectedRevision int
}

// UpdateMemory changes a memory and keeps the previous state as a revision. New content is embedded in the same commit.
// An update that changes nothing makes no revision.
func (s *Store) UpdateMemory(ctx context.Context, id string, u MemoryUpdate) (Stored, error) {
	return hooked(ctx, s, OperationUpdate, "UpdateMemory", func(ctx context.Context, o *operation) (Stored, error) {
		o.names(id)
		return s.updateMemory(ctx, o, id, u)
	})
}

func (s *Store) updateMemory(ctx context.Context, o *operation, id string, u MemoryUpdate) (Stored, error) {
	patch, err := u.patch()
	if err == nil {
		patch, err = o.rewriteUpdate(ctx, &u, patch)
	}
	if err != nil {
		return Stored{}, err
	}
	if u.ExpectedRevision < 0 {
		return Stored{}, invalid("expected_revision", "expected_revision is %d; a revision is 1 or more, and 0 means any",
			u.ExpectedRevision)
	}
	var c *kernel.Draft
	switch {
	case u.Content != nil:
		if c, err = newContent(*u.Content, u.Embedding); err != nil {
			return Stored{}, err
		}
	case u.Embedding != nil:
		return Stored{}, invalid("embedding", "embedding is given without content; a vector belongs to its content")
	}
	times, err := u.times(s.now())
	if err != nil {
		return Stored{}, err
	}
	return s.change(ctx, id, u.ExpectedRevision, c, times,
		func(_ *memoryWriter, before kernel.Attributes) (kernel.Attributes, error) { return patch.apply(before) })
}

// times checks the times of an update, and returns what sets them.
func (u *MemoryUpdate) times(now int64) (func(*storedMemory), error) {
	var t validity.Times
	for _, at := range []struct {
		given *time.Time
		into  **int64
	}{{u.ExpiresAt, &t.Expires}, {u.ValidFrom, &t.From}, {u.ValidUntil, &t.Until}} {
		if at.given != nil {
			*at.into = microsOf(*at.given)
		}
	}
	err := t.Check()
	if err == nil {
		err = t.CheckExpiry(now)
	}
	if err == nil && u.EventTime != nil && !u.EventTime.IsZero() {
		err = valid.Time("event_time", u.EventTime.UnixMicro())
	}
	return func(m *storedMemory) {
		if u.EventTime != nil {
			m.EventTime = inMicros(*u.EventTime)
		}
		if u.ExpiresAt != nil {
			m.times.Expires = t.Expires
		}
		if u.ValidFrom != nil {
			m.times.From = t.From
		}
		if u.ValidUntil != nil {
			m.times.Until = t.Until
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

// patch returns what the update changes besides the content.
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
	for key, value := range map[string]*string{
		"event_type": u.EventType, "state": u.State, "project_id": u.ProjectID, "project_name": u.ProjectName,
		"importance": (*string)(u.Importance), "classification": (*string)(u.Classification),
		"rule_type": (*string)(u.RuleType),
	} {
		if value != nil {
			set(key, *value)
		}
	}
	for key, list := range map[string]*[]string{"tags": u.Tags, "related_memory_ids": u.Related} {
		if list != nil {
			set(key, *list)
		}
	}
	if p.shown, err = jsonobject.Canonical("metadata", known); err == nil {
		p.own, err = jsonobject.Canonical("metadata", u.Metadata)
	}
	return p, err
}

// newContent checks new content and its vector, if any.
func newContent(content string, vector []float32) (*kernel.Draft, error) {
	if err := valid.NewContent(content); err != nil {
		return nil, err
	}
	d := kernel.Draft{Content: content}
	var err error
	if vector != nil {
		if d.Vector, err = kernel.UnitVector(vector, len(vector)); err != nil {
			return nil, invalid("embedding", "embedding: %v", err)
		}
	}
	return &d, nil
}

// change is the common part of updates and restorations: it embeds content (nil: unchanged), and then, in one
// transaction, writes it and the attributes that patch returns for the present ones.
func (s *Store) change(ctx context.Context, id string, expected int, content *kernel.Draft, times func(*storedMemory),
	patch func(*memoryWriter, kernel.Attributes) (kernel.Attributes, error)) (Stored, error) {
	if err := s.checkWritable(); err != nil {
		return Stored{}, err
	}
	var warnings []string
	if content != nil {
		var err error
		if content, warnings, err = s.embedChange(ctx, id, expected, content); err != nil {
			return Stored{}, wrap(err)
		}
	}
	var changed Stored
	err := s.write(ctx, func(tx db.Tx, v viewer) error {
		before, err := s.memoryForWriting(tx, v, id)
		if err != nil {
			return err
		}
		if err := before.expect(expected); err != nil {
			return err
		}
		w, err := s.newWriter(tx, v)
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
		a, err := patch(w, before.attributes())
		if err == nil {
			err = a.Check()
		}
		if err != nil {
			return err
		}
		after.setAttributes(a)
		if changed, err = w.update(before, after, content); err != nil {
			return err
		}
		if !changed.Indexed {
			changed.Warnings = append(changed.Warnings, warnings...)
		}
		return w.flush()
	})
	if err == nil && !changed.Indexed {
		s.wake(ctx)
	}
	return changed, err
}

// embedChange embeds new content, unless the change cannot be made or the collection embeds no texts.
func (s *Store) embedChange(ctx context.Context, id string, expected int, content *kernel.Draft) (*kernel.Draft,
	[]string, error) {
	drafts := []kernel.Draft{*content}
	err := s.read(ctx, func(tx db.Tx, v viewer) error {
		m, err := s.memoryForWriting(tx, v, id)
		if err == nil {
			err = m.expect(expected)
		}
		if err != nil {
			return err
		}
		drafts[0].WordsOnly = m.ownVectors && content.Vector == nil
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	warnings, err := s.embedDrafts(ctx, drafts, func(string, int, int) {})
	return &drafts[0], warnings, err
}

// expect compares the revision with the one the caller expects, 0 for any.
func (m storedMemory) expect(revision int) error {
	if revision == 0 || revision == m.Revision {
		return nil
	}
	return newError(KindConflict, "expected_revision",
		"expected_revision is %d, but memory %s has revision %d; read it again and apply the change to that",
		revision, show(m.ID), m.Revision)
}

func (m *Memory) setAttributes(a kernel.Attributes) {
	m.EventType, m.State, m.ProjectID, m.ProjectName = a.EventType, a.State, a.ProjectID, a.ProjectName
	m.Importance, m.Classification, m.RuleType = Importance(a.Importance), Classification(a.Classification),
		RuleType(a.RuleType)
	m.Tags, m.Related, m.Metadata = a.Tags, a.Related, a.Own
}

// update writes a memory's new state over the previous one. content holds the passages of new content; nil if the
// content does not change.
func (w *memoryWriter) update(before, after storedMemory, content *kernel.Draft) (Stored, error) {
	at, err := w.placeOf(before, after)
	if err != nil {
		return Stored{}, err
	}
	given := ProjectRef{ID: after.ProjectID, Name: after.ProjectName}
	after.ProjectID, after.ProjectName = at.ProjectID, at.ProjectName
	if err := w.checkRule(before, after, at); err != nil {
		return Stored{}, err
	}
	if err := w.checkIdentityMemory(after, at); err != nil {
		return Stored{}, err
	}
	if err := w.checkTimes(before, &after, at); err != nil {
		return Stored{}, err
	}
	recontent := content != nil && (after.Content != before.Content || content.Vector != nil)
	if !recontent && at.Partition == before.partition &&
		reflect.DeepEqual(after.ShownMetadata(), before.ShownMetadata()) &&
		after.EventTime.Equal(before.EventTime) && after.times.Equal(before.times) {
		indexed, err := w.indexed(before.row)
		return Stored{Memory: before.Memory, Indexed: indexed}, err
	}
	if at.Partition != before.partition {
		if err := w.checkKeyFree(at, after.Key); err != nil {
			return Stored{}, err
		}
	}
	if err := w.keepRevision(before); err != nil {
		return Stored{}, err
	}
	w.grow(at.Partition)
	metadata, err := json.Marshal(kernel.OrEmpty(after.Metadata))
	if err != nil {
		return Stored{}, err
	}
	now, err := recency.OfChange(w.Tx, w.store.now(), before.UpdatedAt)
	if err != nil {
		return Stored{}, err
	}
	if _, err := w.Tx.Exec(`UPDATE memory SET partition_id = ?, content = ?, event_type = ?, state = ?, importance = ?,
		classification = ?,
			rule_type = ?, event_time = ?, expires_at = ?, valid_from = ?, valid_until = ?, supersedes = ?,
			metadata = ?, revision = revision + 1, updated_at = ? WHERE id = ?`,
		at.Partition, after.Content, db.OrNull(after.EventType), db.OrNull(after.State), db.OrNull(string(after.Importance)),
		db.OrNull(string(after.Classification)),
		db.OrNull(string(after.RuleType)), microsOf(after.EventTime), after.times.Expires, after.times.From,
		after.times.Until, db.OrNull(after.times.Supersedes), string(metadata), now, before.row); err != nil {
		return Stored{}, err
	}
	if before.RuleType != after.RuleType || after.RuleType != "" && at.Partition != before.partition {
		if err := kernel.KeepRule(w.Tx, before.row); err != nil {
			return Stored{}, err
		}
	}
	if err := kernel.KeepTurns(w.Tx, before.row); err != nil {
		return Stored{}, err
	}
	retagged := !slices.Equal(after.Tags, before.Tags)
	if retagged {
		if err := w.ReplaceTags(before.row, after.Tags); err != nil {
			return Stored{}, err
		}
	}
	if !slices.Equal(after.Related, before.Related) {
		if err := w.ReplaceLinks(before.row, after.Related); err != nil {
			return Stored{}, err
		}
	}
	if at.Owner != before.owner {
		if err := w.store.moveFiles(w.Tx, w.Viewer, before.row, at.Owner); err != nil {
			return Stored{}, err
		}
	}
	var result Stored
	if at.Partition != before.partition || recontent || retagged {
		if _, result.Warnings, err = w.rewritePassages(before, after, at, recontent, content); err != nil {
			return Stored{}, err
		}
	}
	if result.Indexed, err = w.indexed(before.row); err != nil {
		return Stored{}, err
	}
	w.addProjectWarnings(&result, given.ID, given.Name)
	stored, err := w.store.memory(w.Tx, w.Viewer, before.ID)
	result.Memory = stored.Memory
	return result, err
}

// checkTimes checks the times of an update, and what the memory now supersedes.
func (w *memoryWriter) checkTimes(before storedMemory, after *storedMemory, at *kernel.Place) error {
	err := kernel.CheckRuleTimes(string(after.RuleType), after.times)
	if err == nil {
		err = after.times.Check()
	}
	if err == nil && after.times.Supersedes != before.times.Supersedes {
		after.times.Supersedes, err = w.superseded(after.times.Supersedes, before.ID, at)
	}
	return err
}

// indexed reports whether a memory is found by meaning: every passage with words has a vector of the model that the
// store uses or is changing to.
func (w *memoryWriter) indexed(memory int64) (bool, error) {
	var indexed bool
	err := w.Tx.QueryRow(`SELECT NOT EXISTS (SELECT 1 FROM passage WHERE memory_id = ? AND blank = 0 AND (vector IS NULL
		OR profile_id <> ? AND profile_id NOT IN (SELECT id FROM profile WHERE model = ?)))`, memory, w.Target,
		OwnVectors).Scan(&indexed)
	return indexed, err
}

// placeOf returns where the memory goes: its present place, or in another project the collection of the same name of
// that project's owner.
func (w *memoryWriter) placeOf(before, after storedMemory) (*kernel.Place, error) {
	// The project's id or name as read from the memory is not a move: another project may have the same one.
	sameID := after.ProjectID == before.ProjectID || after.ProjectID == "" && after.ProjectName != ""
	sameName := foldname.Key(after.ProjectName) == foldname.Key(before.ProjectName) || after.ProjectName == "" &&
		after.ProjectID != ""
	if sameID && sameName {
		return w.PlaceByRow(before.partition)
	}
	if before.owner != w.Viewer.User {
		return nil, newError(KindForbidden, "project_id",
			"memory %s belongs to project %s of %s; only its owner can move it to another project",
			show(before.ID), show(cmp.Or(before.ProjectName, before.ProjectID)), ownerName(w.Tx, before.Owner))
	}
	project, err := w.project(after.ProjectID, after.ProjectName)
	switch {
	case err != nil:
		return nil, err
	case project == before.project:
		return w.PlaceByRow(before.partition)
	}
	return w.placeIn(before.Collection, project)
}

// rewritePassages rewrites the passages for new content, another place, or other tags. If the content stays, so do the
// vectors.
func (w *memoryWriter) rewritePassages(before, after storedMemory, at *kernel.Place, recontent bool,
	content *kernel.Draft) (bool,
	[]string, error) {
	var passages []kernel.Passage
	var own []float32
	if recontent {
		passages, own = content.Passages, content.Vector
	} else {
		var err error
		if passages, err = w.StoredPassages(before.row, before.ID, before.Content); err != nil {
			return false, nil, err
		}
		switch {
		case len(passages) == 0:
		case at.OwnProfile != 0:
			own = passages[0].Vector
		case passages[0].Profile != w.Target && w.Target == w.store.profile:
			passages = kernel.Split(after.Content, maxInput(w.store.embedder)) // split for another model
		}
	}
	if _, err := w.Tx.Exec(`DELETE FROM passage WHERE memory_id = ?`, before.row); err != nil {
		return false, nil, err
	}
	return w.AddPassages(before.row, at, passages, own, after.Tags)
}

// microsOf returns a time as it is stored, nil for the zero time.
func microsOf(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	micros := t.UnixMicro()
	return &micros
}

// inMicros returns a time as precise as it is stored.
func inMicros(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return kernel.ToTime(t.UnixMicro())
}

// contentOver returns what of a draft's content and vector is to be written over a memory; nil: they are the same.
func (w *memoryWriter) contentOver(before storedMemory, d *kernel.Draft) (*kernel.Draft, error) {
	switch {
	case d.Content != before.Content && d.Stored:
		return nil, errNotStored
	case d.Content != before.Content:
		return d, nil
	case d.Vector == nil:
		return nil, nil
	}
	present, err := w.StoredPassages(before.row, before.ID, before.Content)
	if err != nil || len(present) == 1 && slices.Equal(present[0].Vector, d.Vector) {
		return nil, err
	}
	return d, nil
}
