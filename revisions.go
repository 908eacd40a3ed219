package souvenir

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/valid"
	"github.com/souvenir-ai/souvenir/internal/writing"
)

// Revision is a current or past state of a memory.
type Revision struct {
	Number    int            `json:"revision"`
	Content   string         `json:"content"`
	Metadata  map[string]any `json:"metadata"`   // as returned: the known keys and the memory's own
	CreatedAt time.Time      `json:"created_at"` // when the memory came into this state
	Current   bool           `json:"current"`    // it is in this state now
}

// Revisions returns the history of a memory, the current state first.
func (s *Store) Revisions(ctx context.Context, id string) (_ []Revision, err error) {
	defer setGoNames[struct{}](&err, "id", "id")
	var all []Revision
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		m, err := kernel.LoadMemory(tx, v, id)
		if err != nil {
			return err
		}
		former, err := formerRevisions(tx, v, m.Row, m.ID, m.Revision, time.Time{}, m.Revision)
		all = append([]Revision{currentRevision(memoryOf(m))}, former...)
		return err
	})
	return all, err
}

// currentRevision returns the current state of a memory.
func currentRevision(m Memory) Revision {
	return Revision{Number: m.Revision, Content: m.Content, Metadata: m.ShownMetadata(), CreatedAt: m.UpdatedAt,
		Current: true}
}

// MaxRevisionLimit is the most revisions that [Insights.RevisionPage] returns at once.
const MaxRevisionLimit = 100

// RevisionQuery asks for a part of a memory's history.
type RevisionQuery struct {
	Before int // only revisions with lower numbers, as for the next page; zero: from the current one on
	Limit  int // revisions to return, 1 to 100; zero means 25
}

func (q *RevisionQuery) check() error {
	q.Limit = cmp.Or(q.Limit, 25)
	switch {
	case q.Before < 0:
		return invalid("before", "{} is %d; expected the number of a revision, or 0 for none", q.Before)
	case q.Limit < 1 || q.Limit > MaxRevisionLimit:
		return invalid("limit", "{} is %d; expected 1 to %d", q.Limit, MaxRevisionLimit)
	}
	return nil
}

// RevisionPage is a part of a memory's history.
type RevisionPage struct {
	Revisions []Revision `json:"revisions"` // the newest first; never nil
	Oldest    int        `json:"oldest"`    // the number of the oldest revision that is kept, and visible through the view
}

// RevisionPage returns a part of the history of a memory. Unlike [Store.Revisions], it reads no more than it returns.
func (h *Insights) RevisionPage(ctx context.Context, id string, q RevisionQuery) (_ RevisionPage, err error) {
	defer setGoNames[RevisionQuery](&err, "id", "id")
	if err := q.check(); err != nil {
		return RevisionPage{}, err
	}
	var page RevisionPage
	err = h.s.read(ctx, func(tx db.Tx, v viewer) error {
		m, err := kernel.LoadMemory(tx, v, id)
		if err != nil {
			return err
		}
		page = RevisionPage{Revisions: []Revision{}, Oldest: m.Revision}
		visible, args := v.Visible()
		oldest, err := db.Column[int](tx, `SELECT r.revision`+pastVersions+visible+` ORDER BY r.revision LIMIT 1`,
			append([]any{m.Row}, args...)...)
		if err != nil {
			return err
		}
		page.Oldest = append(oldest, m.Revision)[0]
		if q.Before == 0 || q.Before > m.Revision {
			page.Revisions = append(page.Revisions, currentRevision(memoryOf(m)))
			q.Before, q.Limit = m.Revision, q.Limit-1
		}
		former, err := formerRevisions(tx, v, m.Row, m.ID, q.Before, time.Time{}, q.Limit)
		page.Revisions = append(page.Revisions, former...)
		return err
	})
	return page, err
}

// RestoreRevision restores the content and metadata of an earlier revision of a memory. It is an update like any other:
// it makes a new revision, and keeps the previous state. It moves the memory back into the project of the revision, or
// into one of the caller's with its id, which is created if need be; a warning says so if the memory stays where it is,
// because only another user has a project with that id now. Links to memories that no longer exist are left out. A
// vector of the caller's own is not part of a revision.
func (s *Store) RestoreRevision(ctx context.Context, id string, number int) (StoredMemory, error) {
	return hooked(ctx, s, OperationUpdate, "RestoreRevision",
		func(ctx context.Context, o *operation) (_ StoredMemory, err error) {
			defer setGoNames[struct{}](&err, "id", "id", "revision", "number")
			o.names(id)
			return s.restoreRevision(ctx, o, id, number)
		})
}

func (s *Store) restoreRevision(ctx context.Context, o *operation, id string, number int) (StoredMemory, error) {
	var current kernel.Memory
	var former []Revision
	err := s.read(ctx, func(tx db.Tx, v viewer) (err error) {
		if current, err = kernel.LoadForWriting(tx, v, id); err != nil {
			return err
		}
		former, err = formerRevisions(tx, v, current.Row, current.ID, min(number, current.Revision)+1, time.Time{}, 1)
		return err
	})
	if err != nil {
		return StoredMemory{}, err
	}
	if len(former) == 0 || former[0].Number != number {
		return StoredMemory{}, newError(KindNotFound, "revision",
			"{} %d of memory %s does not exist; it has revision %d now and keeps those before it",
			number, show(id), current.Revision)
	}
	metadata, err := jsonobject.Canonical("metadata", former[0].Metadata)
	if err != nil {
		return StoredMemory{}, err
	}
	a, err := kernel.AttributesOf(metadata)
	if err != nil {
		return StoredMemory{}, err
	}
	restored := former[0].Content
	if o != nil {
		if restored, a, err = o.restoration(ctx, restored, a); err != nil {
			return StoredMemory{}, err
		}
	}
	content := &kernel.Draft{Content: restored}
	if restored == current.Content {
		content = nil
	}
	var warning string
	stored, err := s.change(ctx, id, current.Revision, content, nil,
		func(w *writing.Writer, _ kernel.Attributes) (in kernel.Attributes, err error) {
			in, warning, err = w.InProjectOf(number, current, a)
			return in, err
		})
	if err == nil && warning != "" {
		stored.Warnings = append(stored.Warnings, warning)
	}
	return stored, err
}

// restoration lets the hooks rewrite the state to restore.
func (o *operation) restoration(ctx context.Context, content string, a kernel.Attributes) (string, kernel.Attributes,
	error) {
	all := map[string]any{}
	for _, key := range kernel.KnownKeys {
		all[key] = nil
	}
	u := MemoryUpdate{Content: &content, Metadata: a.Own}
	u.setKnown(a, all)
	if err := o.update(ctx, &u); err != nil {
		return "", a, err
	}
	if u.Content != nil {
		if err := valid.NewContent(*u.Content); err != nil && *u.Content != content {
			return "", a, err
		}
		content = *u.Content
	}
	p, err := u.patch()
	if err != nil {
		return "", a, err
	}
	after, err := kernel.Attributes{}.Patch(p.shown)
	return content, after.PatchOwn(p.own), err
}

// pastVersions selects the past versions of a memory; a condition on their partition and collection must follow.
const pastVersions = ` FROM memory_revision r JOIN partition p ON p.id = r.partition_id

	JOIN collection c ON c.id = p.collection_id WHERE r.memory_id = ? AND `

// formerRevisions reads up to limit past versions with numbers below before, newest first; unless at is zero, only
// versions from that time and earlier. A version from before the memory moved into a project is only for callers who
// can see its earlier place. Only links to memories that the caller can see now are included.
func formerRevisions(tx db.Tx, v viewer, row int64, id string, before int, at time.Time, limit int) ([]Revision,
	error) {
	visible, args := v.Visible()
	args = append(append([]any{row}, args...), before)
	condition := visible + ` AND r.revision < ?`
	if !at.IsZero() { // the first revision is the state since the memory was created
		condition += ` AND (r.created_at <= ? OR r.revision = 1)`
		args = append(args, at.UnixMicro())
	}
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
			return damaged(err, "the attributes of revision %d of memory %s", r.Number, id)
		}
		all = append(all, r)
		return nil
	}, `SELECT r.revision, r.content, r.attributes, r.created_at`+pastVersions+condition+
		` ORDER BY r.revision DESC LIMIT ?`, append(args, limit)...)
	if err != nil {
		return nil, err
	}
	metadata := make([]map[string]any, len(all))
	for i, r := range all {
		metadata[i] = r.Metadata
	}
	if err := onlyVisibleLinks(tx, v, metadata); err != nil {
		return nil, err
	}
	for i, r := range all {
		a, err := kernel.AttributesOf(r.Metadata)
		if err != nil {
			return nil, damaged(err, "revision %d of memory %s", r.Number, id)
		}
		all[i].Metadata = a.Shown() // with the types of the current state
	}
	return all, nil
}

// asOf returns a memory in its state at a time; false: that state is not kept, or not visible.
func asOf(tx db.Tx, v viewer, m Memory, row int64, at time.Time) (Memory, bool, error) {
	if at.IsZero() || m.Revision == 1 || !m.UpdatedAt.After(at) {
		return m, true, nil
	}
	former, err := formerRevisions(tx, v, row, m.ID, m.Revision, at, 1)
	if err != nil || len(former) == 0 {
		return m, false, err
	}
	r := former[0]
	metadata, err := jsonobject.Canonical("metadata", r.Metadata)
	if err != nil {
		return m, false, err
	}
	a, err := kernel.AttributesOf(metadata)
	setAttributes(&m, a)
	m.Content, m.Revision, m.UpdatedAt = r.Content, r.Number, r.CreatedAt
	return m, true, err
}

// memoriesAsOf returns memories in their state at a time, without memories whose state is not kept.
func memoriesAsOf(tx db.Tx, v viewer, found []kernel.Memory, at time.Time) ([]Memory, error) {
	then := make([]Memory, 0, len(found))
	for _, m := range found {
		was, kept, err := asOf(tx, v, memoryOf(m), m.Row, at)
		if err != nil {
			return nil, err
		}
		if kept {
			then = append(then, was)
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
		was, kept, err := asOf(tx, v, h.Memory, rows[0], at)
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

// onlyVisibleLinks removes links to memories that the caller cannot see.
func onlyVisibleLinks(tx db.Tx, v viewer, all []map[string]any) error {
	links, known := make([][]string, len(all)), map[string]bool{}
	for i, metadata := range all {
		value, linked := metadata["related_memory_ids"]
		if !linked {
			continue
		}
		var err error
		if links[i], err = jsonobject.Strings("related_memory_ids", value); err != nil {
			return damaged(err, "the links of a revision")
		}
		for _, id := range links[i] {
			known[id] = false
		}
	}
	if len(known) == 0 {
		return nil
	}
	encoded, err := json.Marshal(slices.Collect(maps.Keys(known)))
	if err != nil {
		return err
	}
	condition, args := v.Visible()
	seen, err := db.Column[string](tx, `SELECT m.uid `+kernel.FromMemory+` WHERE m.uid IN `+db.Texts+` AND `+condition,
		append([]any{string(encoded)}, args...)...)
	for _, id := range seen {
		known[id] = true
	}
	for i, metadata := range all {
		delete(metadata, "related_memory_ids")
		if ids := slices.DeleteFunc(links[i], func(id string) bool { return !known[id] }); len(ids) > 0 {
			metadata["related_memory_ids"] = anys(ids)
		}
	}
	return err
}
