package souvenir

import (
	"cmp"
	"context"
	"maps"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/valid"
	"github.com/souvenir-ai/souvenir/internal/validity"
)

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
func (s *Store) UpdateMemory(ctx context.Context, id string, u MemoryUpdate) (Stored, error) {
	return hooked(ctx, s, OperationUpdate, "UpdateMemory", func(ctx context.Context, o *operation) (_ Stored, err error) {
		defer inGo[MemoryUpdate](&err, "id", "id")
		o.names(id)
		return s.updateMemory(ctx, o, id, u)
	})
}

func (s *Store) updateMemory(ctx context.Context, o *operation, id string, u MemoryUpdate) (_ Stored, err error) {
	defer inShown[MemoryUpdate](&err, "", u, u.ShownMetadata)
	patch, err := u.patch()
	if err == nil {
		patch, err = o.rewriteUpdate(ctx, &u, patch)
	}
	if err != nil {
		return Stored{}, err
	}
	if u.ExpectedRevision < 0 {
		return Stored{}, invalid("expected_revision", "{} is %d; a revision is 1 or more, and 0 means any",
			u.ExpectedRevision)
	}
	var c *kernel.Draft
	switch {
	case u.Content != nil:
		if c, err = newContent(*u.Content, u.Embedding); err != nil {
			return Stored{}, err
		}
	case u.Embedding != nil:
		return Stored{}, invalid("embedding", "{} is given without content; a vector belongs to its content")
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
	return func(m *storedMemory) {
		if u.EventTime != nil {
			m.EventTime = kernel.InMicros(*u.EventTime)
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

// newContent checks new content and its vector, if any.
func newContent(content string, vector []float32) (*kernel.Draft, error) {
	if err := valid.NewContent(content); err != nil {
		return nil, err
	}
	d := kernel.Draft{Content: content}
	var err error
	if vector != nil {
		if d.Vector, err = kernel.UnitVector(vector, len(vector)); err != nil {
			return nil, invalid("embedding", "{}: %v", err)
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
		"{} is %d, but memory %s has revision %d; read it again and apply the change to that",
		revision, show(m.ID), m.Revision)
}

func (m *Memory) setAttributes(a kernel.Attributes) {
	m.EventType, m.State, m.ProjectID, m.ProjectName = a.EventType, a.State, a.ProjectID, a.ProjectName
	m.Importance, m.Classification, m.RuleType = Importance(a.Importance), Classification(a.Classification),
		RuleType(a.RuleType)
	m.Tags, m.Related, m.Metadata = a.Tags, a.Related, a.Own
}
