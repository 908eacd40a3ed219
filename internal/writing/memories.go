package writing

import (
	"cmp"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/recency"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/turns"
)

// Result is a memory as a write left it.
type Result struct {
	kernel.Memory
	Indexed        bool // its passages have vectors
	ProjectCreated bool
	Effect         Effect // of a write by key, or with IfAbsent
	Warnings       []string
}

// Effect is the effect of a write by key, or with IfAbsent; empty for other writes.
type Effect string

// The values of [Effect].
const (
	Added     Effect = "added"
	Updated   Effect = "updated"
	Unchanged Effect = "unchanged"
)

// ErrNotStored ends a write whose content must be embedded after all.
var ErrNotStored = errors.New("the content of this key has changed in the meantime")

// Add stores one memory.
func (w *Writer) Add(d *kernel.Draft) (Result, error) {
	if d.RuleType != "" {
		return w.addRule(d)
	}
	if d.IfAbsent {
		return w.addIfAbsent(d)
	}
	if d.Key != "" {
		at, err := w.Place(d.Collection, d.ProjectID, d.ProjectName)
		if err == nil {
			err = w.checkKeyFree(at, d.Key)
		}
		if err != nil {
			return Result{}, err
		}
	}
	return w.Insert(d)
}

// addIfAbsent stores a memory unless its place has one with the same content.
func (w *Writer) addIfAbsent(d *kernel.Draft) (Result, error) {
	at, err := w.Place(d.Collection, d.ProjectID, d.ProjectName)
	if err != nil {
		return Result{}, err
	}
	row, err := kernel.SameContent(w.Tx, w.Viewer, at.Partition, d.Content)
	if err != nil {
		return Result{}, err
	}
	if row == 0 {
		return w.addFirst(d)
	}
	found, err := w.memory(row, "the memory with this content")
	if err != nil {
		return Result{}, err
	}
	indexed, err := w.Indexed(row)
	return Result{Memory: found, Indexed: indexed, Effect: Unchanged}, err
}

// memory reads a memory that was found; what says which one.
func (w *Writer) memory(row int64, what string) (kernel.Memory, error) {
	found, err := kernel.LoadRows(w.Tx, w.Viewer, kernel.WholeContent, []int64{row})
	if err == nil && len(found) == 0 {
		err = fault.Damaged(ErrNotStored, "%s", what)
	}
	if err != nil {
		return kernel.Memory{}, err
	}
	return found[0], nil
}

// addFirst stores a memory whose place has none with the same content.
func (w *Writer) addFirst(d *kernel.Draft) (Result, error) {
	if d.Stored {
		return Result{}, ErrNotStored
	}
	added, err := w.Insert(d)
	added.Effect = Added
	return added, err
}

// Put stores a memory under its key, or updates the memory that has the key to this state.
func (w *Writer) Put(d *kernel.Draft) (Result, error) {
	at, err := w.Place(d.Collection, d.ProjectID, d.ProjectName)
	if err != nil {
		return Result{}, err
	}
	row, err := w.KeyHolder(at, d.Key)
	if err != nil {
		return Result{}, err
	}
	if row == 0 {
		return w.addFirst(d)
	}
	before, err := w.memory(row, "the memory with the key "+fault.Show(d.Key))
	if err != nil {
		return Result{}, err
	}
	content, err := w.contentOver(before, d)
	if err != nil {
		return Result{}, err
	}
	after := before
	after.Content, after.EventTime, after.Times, after.Attributes = d.Content, d.EventTime, d.Times, d.Attributes
	after.ProjectID, after.ProjectName = before.ProjectID, before.ProjectName
	stored, err := w.Update(before, after, content)
	stored.Effect = Unchanged
	if stored.Revision != before.Revision {
		stored.Effect = Updated
	}
	w.note(&stored, d.ProjectID, d.ProjectName)
	return stored, err
}

// KeyHolder returns the row of the memory of a place that has a key, 0 for none. One that has expired loses its key.
func (w *Writer) KeyHolder(at *kernel.Place, key string) (int64, error) {
	if err := kernel.FreeKey(w.Tx, w.Viewer, at.Partition, key); err != nil {
		return 0, err
	}
	return kernel.KeyHolder(w.Tx, at.Partition, key)
}

// checkKeyFree refuses a key that a memory of the place already has.
func (w *Writer) checkKeyFree(at *kernel.Place, key string) error {
	holder, err := w.KeyHolder(at, key)
	if err != nil || holder == 0 {
		return err
	}
	found, err := kernel.LoadRows(w.Tx, w.Viewer, kernel.NoContent, []int64{holder})
	if err != nil || len(found) == 0 {
		return err
	}
	return fault.New(fault.KindConflict, "key",
		"{} %s is already the key of memory %s there; PutMemory changes that one", fault.Show(key), fault.Show(found[0].ID))
}

// Insert creates a memory and its dependent rows.
func (w *Writer) Insert(d *kernel.Draft) (Result, error) {
	place, err := w.Place(d.Collection, d.ProjectID, d.ProjectName)
	if err != nil {
		return Result{}, err
	}
	if err := w.checkIdentity(d.EventType, place); err != nil {
		return Result{}, err
	}
	now := w.view.Now()
	created := now
	if d.Created != nil {
		created = *d.Created
	}
	m := kernel.Memory{Attributes: d.Attributes, Partition: place.Partition, OwnerRow: place.Owner,
		ProjectRow: place.Project, ID: w.view.NewID(), Key: d.Key, Content: d.Content, Collection: d.Collection,
		Owner: place.OwnerID, SharedBy: place.SharedBy, Revision: 1, Created: created, Updated: max(now, created),
		EventTime: d.EventTime, Times: d.Times}
	m.ProjectID, m.ProjectName, m.Own = place.ProjectID, place.ProjectName, kernel.OrEmpty(d.Own)
	if m.Times.Supersedes, err = w.superseded(d.Times.Supersedes, "", place); err != nil {
		return Result{}, err
	}
	metadata, err := json.Marshal(m.Own)
	if err != nil {
		return Result{}, err
	}
	m.Row, err = w.InsertMemory(place, kernel.MemoryRow{ID: m.ID, Content: m.Content, EventType: m.EventType,
		State: m.State, Importance: m.Importance, Classification: m.Classification, RuleType: m.RuleType, Key: m.Key,
		EventTime: m.EventTime, Times: m.Times, Metadata: string(metadata), Revision: 1, Created: m.Created,
		Updated: m.Updated})
	if err != nil {
		return Result{}, err
	}
	w.Grow(place.Partition)
	if err := w.AddTags(m.Row, place.Owner, m.Tags); err != nil {
		return Result{}, err
	}
	if err := w.AddLinks(m.Row, m.Related); err != nil {
		return Result{}, err
	}
	said, err := kernel.AddTurn(w.Tx, m.Row, place.Partition, turn(m, place.Project))
	if err != nil {
		return Result{}, err
	}
	indexed, warnings, err := w.AddPassages(m.Row, place, d.Passages, d.Vector, m.Tags)
	if w.Index != nil {
		w.Index.Add(m, said, slices.Clone(d.Passages))
	}
	stored := Result{Memory: m, Indexed: indexed, Warnings: warnings}
	w.note(&stored, d.ProjectID, d.ProjectName)
	return stored, err
}

// note adds notes about the project to a result.
func (w *Writer) note(stored *Result, id, name string) {
	warnings, created := w.Notes(id, name)
	stored.Warnings = slices.Concat(stored.Warnings, warnings)
	stored.ProjectCreated = stored.ProjectCreated || created
}

// Update writes a memory's new state over the previous one. content holds the passages of new content; nil if the
// content does not change.
func (w *Writer) Update(before, after kernel.Memory, content *kernel.Draft) (Result, error) {
	id, name := after.ProjectID, after.ProjectName
	at, err := w.move(before, id, name)
	if err != nil {
		return Result{}, err
	}
	after.ProjectID, after.ProjectName = at.ProjectID, at.ProjectName
	if err := w.checkState(before, &after, at); err != nil {
		return Result{}, err
	}
	if content != nil && after.Content == before.Content && content.Vector == nil {
		content = nil
	}
	moved := at.Partition != before.Partition
	if content == nil && !moved && unchanged(before, after) {
		indexed, err := w.Indexed(before.Row)
		return Result{Memory: before, Indexed: indexed}, err
	}
	if moved && after.Key != "" {
		if err := w.checkKeyFree(at, after.Key); err != nil {
			return Result{}, err
		}
	}
	if err := w.keepRevision(before); err != nil {
		return Result{}, err
	}
	w.Grow(at.Partition)
	if w.Index != nil {
		w.Index.Forget(before.Row)
	}
	now, metadata, err := w.updateRow(before, after, at)
	if err != nil {
		return Result{}, err
	}
	if before.RuleType != after.RuleType || after.RuleType != "" && moved {
		if err := kernel.KeepRule(w.Tx, before.Row); err != nil {
			return Result{}, err
		}
	}
	if err := kernel.KeepTurn(w.Tx, before.Row, turn(before, before.ProjectRow), turn(after, at.Project)); err != nil {
		return Result{}, err
	}
	retagged, err := w.updateParts(before, after, at)
	if err != nil {
		return Result{}, err
	}
	var result Result
	if moved || retagged || content != nil {
		result.Indexed, result.Warnings, err = w.rewritePassages(before, after, at, content)
	} else {
		result.Indexed, err = w.Indexed(before.Row)
	}
	if err != nil {
		return Result{}, err
	}
	w.note(&result, id, name)
	if moved || w.Viewer.Superseded || after.RuleType != "" || !after.Times.Equal(before.Times) ||
		!slices.Equal(after.Related, before.Related) {
		result.Memory, err = kernel.LoadMemory(w.Tx, w.Viewer, before.ID)
		return result, err
	}
	result.Memory, err = asStored(after, now, metadata)
	return result, err
}

// unchanged reports whether an update in place, without new content, leaves everything as it is.
func unchanged(before, after kernel.Memory) bool {
	sameTime := before.EventTime == after.EventTime ||
		before.EventTime != nil && after.EventTime != nil && *before.EventTime == *after.EventTime
	return sameTime && after.Times.Equal(before.Times) && reflect.DeepEqual(after.Shown(), before.Shown())
}

// updateParts writes the tags, the links and the owner of the files of a memory, where they change. It reports whether
// it has written tags.
func (w *Writer) updateParts(before, after kernel.Memory, at *kernel.Place) (retagged bool, err error) {
	moved := at.Partition != before.Partition
	retagged = !slices.Equal(after.Tags, before.Tags) || moved && sealedrows.Seals(w.Tx) // perhaps with another owner
	if retagged {
		err = w.ReplaceTags(before.Row, at.Owner, after.Tags)
	}
	if err == nil && !slices.Equal(after.Related, before.Related) {
		err = w.ReplaceLinks(before.Row, after.Related)
	}
	if err == nil && at.Owner != before.OwnerRow {
		err = w.view.GiveFilesOf(w.Tx, w.Viewer, at.Owner, before.Row)
	}
	return retagged, err
}

// asStored returns the memory as it is read after an update: now is the time of the update in microseconds, and
// metadata is the metadata as JSON. Place, links and times are the previous ones.
func asStored(m kernel.Memory, now int64, metadata string) (stored kernel.Memory, err error) {
	m.Revision++
	m.Updated = now
	if len(m.Tags) == 0 {
		m.Tags = nil
	}
	m.Own, err = jsonobject.Decode([]byte(metadata))
	return m, err
}

// turn returns the values that decide whether a memory is a turn of a conversation. project is a row, 0 for none.
func turn(m kernel.Memory, project int64) turns.Memory {
	return turns.Memory{Content: m.Content, EventType: m.EventType, Metadata: m.Own, InProject: project != 0,
		EventTime: m.EventTime, Created: m.Created}
}

// checkState checks the state that an update gives a memory, and completes its times.
func (w *Writer) checkState(before kernel.Memory, after *kernel.Memory, at *kernel.Place) error {
	if err := w.CheckRule(before, *after, at); err != nil {
		return err
	}
	if err := w.checkIdentity(after.EventType, at); err != nil {
		return err
	}
	return w.checkTimes(before, after, at)
}

// checkIdentity refuses an identity in another user's project: otherwise any user who may write to a project could
// decide, everywhere, who its owner's agents are.
func (w *Writer) checkIdentity(eventType string, at *kernel.Place) error {
	if at.Owner == w.Viewer.User || !strings.EqualFold(eventType, kernel.EventIdentity) {
		return nil
	}
	return fault.New(fault.KindForbidden, "event_type",
		"{} is %s in project %s, which belongs to %s; only its owner stores or changes an identity there. Store "+
			"yours outside of the project",
		fault.Show(eventType), fault.Show(cmp.Or(at.ProjectName, at.ProjectID)),
		kernel.UserName(w.Tx, w.Viewer, at.OwnerID))
}

// updateRow writes the new state of a memory into its row, and returns the time and the metadata in it. Tags, links and
// passages have rows of their own.
func (w *Writer) updateRow(before, after kernel.Memory, at *kernel.Place) (now int64, metadata string, err error) {
	encoded, err := json.Marshal(kernel.OrEmpty(after.Own))
	if err != nil {
		return 0, "", err
	}
	if now, err = recency.OfChange(w.Tx, w.view.Now(), kernel.ToTime(before.Updated)); err != nil {
		return 0, "", err
	}
	row := kernel.MemoryRow{Content: after.Content, EventType: after.EventType, State: after.State,
		Importance: after.Importance, Classification: after.Classification, RuleType: after.RuleType,
		EventTime: after.EventTime, Times: after.Times, Metadata: string(encoded), Updated: now}
	if at.Partition != before.Partition {
		row.Key = before.Key
	}
	return now, row.Metadata, w.UpdateMemory(before.Row, at, row)
}

// rewritePassages rewrites the passages for new content, another place, or other tags, and returns warnings. content is
// nil if the content stays; then the vectors stay, too.
func (w *Writer) rewritePassages(before, after kernel.Memory, at *kernel.Place,
	content *kernel.Draft) (indexed bool, warnings []string, err error) {
	var passages []kernel.Passage
	var own []float32
	if content != nil {
		passages, own = content.Passages, content.Vector
	} else {
		if passages, err = w.StoredPassages(before.Row, before.ID, before.Content); err != nil {
			return false, nil, err
		}
		switch {
		case len(passages) == 0:
		case at.OwnProfile != 0:
			own = passages[0].Vector
		case passages[0].Profile != w.Target && w.Target == w.view.Profile:
			passages = kernel.Split(after.Content, w.view.MaxInput) // split for another model
		}
	}
	return w.RewritePassages(before.Row, at, passages, own, after.Tags)
}

// contentOver returns the draft to write over a memory; nil if its content and vector are the same.
func (w *Writer) contentOver(before kernel.Memory, d *kernel.Draft) (*kernel.Draft, error) {
	switch {
	case d.Content != before.Content && d.Stored:
		return nil, ErrNotStored
	case d.Content != before.Content:
		return d, nil
	case d.Vector == nil:
		return nil, nil
	}
	present, err := w.StoredPassages(before.Row, before.ID, before.Content)
	if err != nil || len(present) == 1 && slices.Equal(present[0].Vector, d.Vector) {
		return nil, err
	}
	return d, nil
}
