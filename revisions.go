package souvenir

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/naming"
	"github.com/souvenir-ai/souvenir/internal/valid"
	"github.com/souvenir-ai/souvenir/internal/validity"
)

// Revision is a state that a memory is or was in.
type Revision struct {
	Number    int            `json:"revision"`
	Content   string         `json:"content"`
	Metadata  map[string]any `json:"metadata"`   // as returned: the known keys and the memory's own
	CreatedAt time.Time      `json:"created_at"` // when the memory came into this state
	Current   bool           `json:"current"`    // it is in this state now
}

// Revisions returns the history of a memory, the current state first.
func (s *Store) Revisions(ctx context.Context, id string) (_ []Revision, err error) {
	defer inGo[struct{}](&err, "id", "id")
	var all []Revision
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		m, err := s.memory(tx, v, id)
		if err != nil {
			return err
		}
		former, err := formerRevisions(tx, v, m, 0)
		current := Revision{Number: m.Revision, Content: m.Content, Metadata: m.ShownMetadata(), CreatedAt: m.UpdatedAt,
			Current: true}
		all = append([]Revision{current}, former...)
		return err
	})
	return all, err
}

// RestoreRevision restores the content and metadata of an earlier revision of a memory. It is an update like any other:
// it makes a new revision, and keeps the previous state. Links to memories that no longer exist are left out. A vector
// of the caller's own is not part of a revision.
func (s *Store) RestoreRevision(ctx context.Context, id string, number int) (Stored, error) {
	return hooked(ctx, s, OperationUpdate, "RestoreRevision",
		func(ctx context.Context, o *operation) (_ Stored, err error) {
			defer inGo[struct{}](&err, "id", "id", "revision", "number")
			o.names(id)
			return s.restoreRevision(ctx, o, id, number)
		})
}

func (s *Store) restoreRevision(ctx context.Context, o *operation, id string, number int) (Stored, error) {
	var current storedMemory
	var former []Revision
	err := s.read(ctx, func(tx db.Tx, v viewer) (err error) {
		if current, err = s.memoryForWriting(tx, v, id); err != nil {
			return err
		}
		former, err = formerRevisions(tx, v, current, number)
		return err
	})
	if err != nil {
		return Stored{}, err
	}
	if number < 1 || len(former) == 0 {
		return Stored{}, newError(KindNotFound, "revision",
			"{} %d of memory %s does not exist; it has revision %d now and keeps those before it",
			number, show(id), current.Revision)
	}
	metadata, err := jsonobject.Canonical("metadata", former[0].Metadata)
	if err != nil {
		return Stored{}, err
	}
	a, err := kernel.AttributesOf(metadata)
	if err != nil {
		return Stored{}, err
	}
	restored := former[0].Content
	if o != nil {
		if restored, a, err = o.restoration(ctx, restored, a); err != nil {
			return Stored{}, err
		}
	}
	content := &kernel.Draft{Content: restored}
	if restored == current.Content {
		content = nil
	}
	return s.change(ctx, id, current.Revision, content, nil,
		func(w *memoryWriter, before kernel.Attributes) (kernel.Attributes, error) {
			return w.renamed(a, before)
		})
}

// renamed sets the current name of the project in the attributes of a past version.
func (w *memoryWriter) renamed(a, now kernel.Attributes) (kernel.Attributes, error) {
	switch a.ProjectID {
	case "":
	case now.ProjectID:
		a.ProjectName = now.ProjectName
	default:
		p, err := naming.Find(w.Tx, w.Viewer, a.ProjectID, "")
		if err != nil {
			return a, err
		}
		if p != nil {
			a.ProjectName = p.Name
		}
	}
	return a, nil
}

// keepRevision records the state of a memory before a change. It keeps all links, including links that this caller
// cannot see.
func (w *memoryWriter) keepRevision(m storedMemory) error {
	a := m.attributes()
	var err error
	if a.Related, err = db.Column[string](w.Tx, `SELECT r.uid FROM memory_link l JOIN memory r ON r.id = l.related_id
		WHERE l.memory_id = ? ORDER BY l.position`, m.row); err != nil {
		return err
	}
	encoded, err := json.Marshal(a.Shown())
	if err != nil {
		return err
	}
	content, attributes, err := kernel.SealRevision(w.Tx, m.owner, m.Content, string(encoded))
	if err != nil {
		return err
	}
	_, err = w.Tx.Exec(`INSERT INTO memory_revision (memory_id, revision, partition_id, content, attributes, `+
		`created_at) VALUES (?, ?, ?, ?, ?, ?)`,
		m.row, m.Revision, m.partition, content, attributes, m.UpdatedAt.UnixMicro())
	return err
}

// formerRevisions reads the past versions, newest first; only one of them if number is not 0. A version from before the
// memory moved into a project is for callers who can see its earlier place, and only links to memories that the caller
// can see now are included.
func formerRevisions(tx db.Tx, v viewer, m storedMemory, number int) ([]Revision, error) {
	visible, args := v.Visible()
	var all []Revision
	err := tx.Each(func(row db.Rows) error {
		var r Revision
		var attributes string
		var created int64
		if err := row.Scan(&r.Number, &r.Content, &attributes, &created); err != nil {
			return err
		}
		r.CreatedAt = kernel.ToTime(created)
		var err error
		if r.Metadata, err = jsonobject.Decode([]byte(attributes)); err != nil {
			return damaged(err, "the attributes of revision %d of memory %s", r.Number, m.ID)
		}
		all = append(all, r)
		return nil
	}, `SELECT r.revision, r.content, r.attributes, r.created_at
		FROM memory_revision r JOIN partition p ON p.id = r.partition_id JOIN collection c ON c.id = p.collection_id
		WHERE r.memory_id = ? AND (? = 0 OR r.revision = ?) AND `+visible+` ORDER BY r.revision DESC`,
		append([]any{m.row, number, number}, args...)...)
	if err != nil {
		return nil, err
	}
	for i, r := range all {
		if err := onlyVisibleLinks(tx, v, r.Metadata); err != nil {
			return nil, err
		}
		a, err := kernel.AttributesOf(r.Metadata)
		if err != nil {
			return nil, damaged(err, "revision %d of memory %s", r.Number, m.ID)
		}
		all[i].Metadata = a.Shown() // with the types of the current state
	}
	return all, nil
}

// asOf returns a memory in its state at a time; false: that state is not kept, or not visible.
func (m Memory) asOf(tx db.Tx, v viewer, row int64, at time.Time) (Memory, bool, error) {
	if at.IsZero() || m.Revision == 1 || !m.UpdatedAt.After(at) {
		return m, true, nil
	}
	former, err := formerRevisions(tx, v, storedMemory{Memory: m, row: row}, 0)
	if err != nil {
		return m, false, err
	}
	for _, r := range former {
		if r.CreatedAt.After(at) && r.Number > 1 { // the first revision is the state since the memory was created
			continue
		}
		metadata, err := jsonobject.Canonical("metadata", r.Metadata)
		if err != nil {
			return m, false, err
		}
		a, err := kernel.AttributesOf(metadata)
		m.setAttributes(a)
		m.Content, m.Revision, m.UpdatedAt = r.Content, r.Number, r.CreatedAt
		return m, true, err
	}
	return m, false, nil
}

// memoriesAsOf returns memories in their state at a time, without memories whose state is not kept.
func memoriesAsOf(tx db.Tx, v viewer, found []storedMemory, at time.Time) ([]storedMemory, error) {
	if at.IsZero() {
		return found, nil
	}
	then := found[:0]
	for _, m := range found {
		was, kept, err := m.Memory.asOf(tx, v, m.row, at)
		if err != nil {
			return nil, err
		}
		if m.Memory = was; kept {
			then = append(then, m)
		}
	}
	return then, nil
}

// hitsAsOf returns the hits of a search as they were at a time. A hit whose text differed then is shown whole.
func hitsAsOf(tx db.Tx, v viewer, hits []Hit, at time.Time) ([]Hit, error) {
	if at.IsZero() {
		return hits, nil
	}
	var then []Hit
	for _, h := range hits {
		rows, err := db.Column[int64](tx, `SELECT id FROM memory WHERE uid = ?`, h.ID)
		if err != nil || len(rows) == 0 {
			return nil, err
		}
		was, kept, err := h.asOf(tx, v, rows[0], at)
		if err != nil {
			return nil, err
		}
		if was.Content != h.Content {
			h.Start, h.End = 0, len(was.Content)
		}
		if h.Memory = was; kept {
			then = append(then, h)
		}
	}
	return then, nil
}

func onlyVisibleLinks(tx db.Tx, v viewer, metadata map[string]any) error {
	value, linked := metadata["related_memory_ids"]
	if !linked {
		return nil
	}
	ids, err := jsonobject.Strings("related_memory_ids", value)
	if err != nil {
		return damaged(err, "the links of a revision")
	}
	encoded, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	condition, args := v.Visible()
	seen, err := db.Column[string](tx, `SELECT m.uid `+kernel.FromMemory+` WHERE m.uid IN `+db.Texts+` AND `+condition,
		append([]any{string(encoded)}, args...)...)
	if err != nil {
		return err
	}
	delete(metadata, "related_memory_ids")
	if ids = slices.DeleteFunc(ids, func(id string) bool { return !slices.Contains(seen, id) }); len(ids) > 0 {
		metadata["related_memory_ids"] = anys(ids)
	}
	return nil
}

// superseded checks that the caller may supersede a memory with one in a place, and returns the stored id of the
// superseded memory. The new one's id is empty if it is not stored yet.
func (w *memoryWriter) superseded(id, by string, at *kernel.Place) (string, error) {
	if id == "" {
		return "", nil
	}
	old, err := w.store.memoryForWriting(w.Tx, w.Viewer, id)
	var known *Error
	switch {
	case errors.As(err, &known):
		return "", newError(known.Kind, "supersedes", "{}: %s", known.Message)
	case err != nil:
		return "", err
	case old.partition != at.Partition:
		return "", invalid("supersedes", "{} is memory %s of collection %s; a memory replaces one of its own "+
			"collection and project, so store it there", show(old.ID), show(old.Collection))
	case old.RuleType != "":
		return "", invalid("supersedes", "{} is memory %s, which is a rule; SetRule replaces it", show(old.ID))
	}
	if by == "" { // nothing supersedes a memory that is new
		return old.ID, nil
	}
	circle, err := db.Column[int64](w.Tx, `WITH RECURSIVE chain (uid) AS (SELECT ?1 UNION SELECT m.supersedes FROM chain c
		JOIN memory m ON m.uid = c.uid WHERE m.supersedes IS NOT NULL) SELECT 1 FROM chain WHERE uid = ?2`, old.ID, by)
	if err == nil && len(circle) > 0 {
		err = invalid("supersedes", "{} is memory %s, which is this memory, or replaces it", show(old.ID))
	}
	return old.ID, err
}

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
