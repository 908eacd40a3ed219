package souvenir

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/recency"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/turns"
	"github.com/souvenir-ai/souvenir/internal/writing"
)

// memoryWriter writes memories for a view within one transaction: it finds and creates their places, and keeps to
// the quotas.
type memoryWriter struct {
	*writing.Writer
	store *Store
	ready *retrieval.Ready // gets the memories that are added; nil: the index reads them
}

func (s *Store) newWriter(tx db.Tx, v viewer) (*memoryWriter, error) {
	rows, err := kernel.NewWriter(tx, v, s.profile, s.embedder.Model())
	return &memoryWriter{Writer: s.writing().New(rows), store: s}, err
}

// writing is what a write has to know of this view.
func (s *Store) writing() *writing.Store {
	return &writing.Store{User: s.access.User, Projects: s.access.Projects, Now: s.now, NewID: s.newID, Caller: s.caller,
		Quota: func(tx db.Tx) (writing.Quota, error) {
			o, err := s.limits(tx)
			if err != nil {
				return writing.Quota{}, err
			}
			return writing.Quota{Memories: o.Quota.Memories, Revisions: o.Quota.Revisions, Items: o.Quota.Items,
				Bytes: o.Quota.Bytes, Files: o.FileQuota}, nil
		}}
}

// addProjectWarnings adds notes about the project to a result. Only the first memory in it reports that it was created.
func (w *memoryWriter) addProjectWarnings(stored *Stored, id, name string) {
	warnings, created := w.Notes(id, name)
	stored.Warnings = slices.Concat(stored.Warnings, warnings)
	stored.ProjectCreated = stored.ProjectCreated || created
}

// present is where the memory is.
func (m storedMemory) present() writing.Present {
	return writing.Present{ID: m.ID, Collection: m.Collection, Owner: m.Owner, ProjectID: m.ProjectID,
		ProjectName: m.ProjectName, Partition: m.partition, Project: m.project, Owned: m.owner}
}

// add stores one memory.
func (w *memoryWriter) add(d *kernel.Draft) (Stored, error) {
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
			return Stored{}, err
		}
	}
	return w.insert(d)
}

// addIfAbsent stores a memory unless its place has one with the same content.
func (w *memoryWriter) addIfAbsent(d *kernel.Draft) (Stored, error) {
	at, err := w.Place(d.Collection, d.ProjectID, d.ProjectName)
	if err != nil {
		return Stored{}, err
	}
	row, err := kernel.SameContent(w.Tx, w.Viewer, at.Partition, d.Content)
	if err != nil {
		return Stored{}, err
	}
	if row == 0 {
		return w.addFirst(d)
	}
	found, err := w.store.loadRows(w.Tx, w.Viewer, []int64{row})
	if err == nil && len(found) == 0 {
		err = damaged(errNotStored, "the memory with this content")
	}
	if err != nil {
		return Stored{}, err
	}
	indexed, err := w.Indexed(row)
	return Stored{Memory: found[0].Memory, Indexed: indexed, Effect: EffectUnchanged}, err
}

// addFirst stores a memory whose place has none with the same content.
func (w *memoryWriter) addFirst(d *kernel.Draft) (Stored, error) {
	if d.Stored {
		return Stored{}, errNotStored
	}
	added, err := w.insert(d)
	added.Effect = EffectAdded
	return added, err
}

// errNotStored ends a write whose content must be embedded after all.
var errNotStored = errors.New("the content of this key has changed in the meantime")

// put stores a memory under its key, or updates the memory that has the key to this state.
func (w *memoryWriter) put(d *kernel.Draft) (Stored, error) {
	at, err := w.Place(d.Collection, d.ProjectID, d.ProjectName)
	if err != nil {
		return Stored{}, err
	}
	if err := kernel.FreeKey(w.Tx, w.Viewer, at.Partition, d.Key); err != nil {
		return Stored{}, err
	}
	row, err := kernel.KeyHolder(w.Tx, at.Partition, d.Key)
	if err != nil {
		return Stored{}, err
	}
	if row == 0 {
		return w.addFirst(d)
	}
	found, err := w.store.loadRows(w.Tx, w.Viewer, []int64{row})
	if err != nil {
		return Stored{}, err
	}
	if len(found) == 0 {
		return Stored{}, damaged(errNotStored, "the memory with the key %s", show(d.Key))
	}
	before := found[0]
	content, err := w.contentOver(before, d)
	if err != nil {
		return Stored{}, err
	}
	after := before
	after.Content, after.EventTime, after.times = d.Content, time.Time{}, d.Times
	if d.EventTime != nil {
		after.EventTime = kernel.ToTime(*d.EventTime)
	}
	a := d.Attributes
	a.ProjectID, a.ProjectName = before.ProjectID, before.ProjectName
	after.setAttributes(a)
	stored, err := w.update(before, after, content)
	stored.Effect = EffectUnchanged
	if stored.Revision != before.Revision {
		stored.Effect = EffectUpdated
	}
	w.addProjectWarnings(&stored, d.ProjectID, d.ProjectName)
	return stored, err
}

// checkKeyFree refuses a key that a memory of the place already has.
func (w *memoryWriter) checkKeyFree(at *kernel.Place, key string) error {
	if err := kernel.FreeKey(w.Tx, w.Viewer, at.Partition, key); err != nil {
		return err
	}
	holder, err := kernel.KeyHolder(w.Tx, at.Partition, key)
	if err != nil || holder == 0 {
		return err
	}
	found, err := w.store.loadRows(w.Tx, w.Viewer, []int64{holder})
	if err != nil || len(found) == 0 {
		return err
	}
	return newError(KindConflict, "key", "{} %s is already the key of memory %s there; PutMemory changes that one",
		show(key), show(found[0].ID))
}

// insert creates a memory and its dependent rows.
func (w *memoryWriter) insert(d *kernel.Draft) (Stored, error) {
	place, err := w.Place(d.Collection, d.ProjectID, d.ProjectName)
	if err != nil {
		return Stored{}, err
	}
	if err := w.checkIdentityMemory(storedMemory{Memory: Memory{EventType: d.EventType}}, place); err != nil {
		return Stored{}, err
	}
	now := w.store.now()
	created := now
	if d.Created != nil {
		created = *d.Created
	}
	m := Memory{
		ID: w.store.newID(), Key: d.Key, Collection: d.Collection, Owner: place.OwnerID, Content: d.Content,
		EventType: d.EventType, State: d.State, ProjectID: place.ProjectID, ProjectName: place.ProjectName,
		Importance: Importance(d.Importance), Classification: Classification(d.Classification),
		RuleType: RuleType(d.RuleType),
		Tags:     d.Tags, Related: d.Related, Metadata: kernel.OrEmpty(d.Own),
		Revision: 1, CreatedAt: kernel.ToTime(created), UpdatedAt: kernel.ToTime(max(now, created)), SharedBy: place.SharedBy,
	}
	if d.EventTime != nil {
		m.EventTime = kernel.ToTime(*d.EventTime)
	}
	if d.Times.Supersedes, err = w.superseded(d.Times.Supersedes, "", place); err != nil {
		return Stored{}, err
	}
	timed := storedMemory{Memory: m, times: d.Times}
	timed.setTimes()
	m = timed.Memory
	metadata, err := json.Marshal(m.Metadata)
	if err != nil {
		return Stored{}, err
	}
	row, err := w.InsertMemory(place, kernel.MemoryRow{ID: m.ID, Content: m.Content, EventType: m.EventType,
		State: m.State, Importance: d.Importance, Classification: d.Classification, RuleType: d.RuleType, Key: m.Key,
		EventTime: d.EventTime, Times: d.Times, Metadata: string(metadata), Revision: 1, Created: created,
		Updated: max(now, created)})
	if err != nil {
		return Stored{}, err
	}
	w.Grow(place.Partition)
	if err := w.AddTags(row, place.Owner, m.Tags); err != nil {
		return Stored{}, err
	}
	if err := w.AddLinks(row, m.Related); err != nil {
		return Stored{}, err
	}
	turn := turns.Memory{Content: m.Content, EventType: m.EventType, Metadata: m.Metadata, InProject: place.Project != 0,
		EventTime: d.EventTime, Created: created}
	said, err := kernel.AddTurn(w.Tx, row, place.Partition, turn)
	if err != nil {
		return Stored{}, err
	}
	indexed, warnings, err := w.AddPassages(row, place, d.Passages, d.Vector, m.Tags)
	w.ready.Add(retrieval.Source{Row: row, ID: m.ID, Partition: place.Partition, Content: m.Content,
		Tags: strings.Join(m.Tags, "\n"), Turn: said, Passages: slices.Clone(d.Passages)})
	stored := Stored{Memory: m, Indexed: indexed, Warnings: warnings}
	w.addProjectWarnings(&stored, d.ProjectID, d.ProjectName)
	return stored, err
}

// update writes a memory's new state over the previous one. content holds the passages of new content; nil if the
// content does not change.
func (w *memoryWriter) update(before, after storedMemory, content *kernel.Draft) (Stored, error) {
	at, err := w.Move(before.present(), after.ProjectID, after.ProjectName)
	if err != nil {
		return Stored{}, err
	}
	given := ProjectRef{ID: after.ProjectID, Name: after.ProjectName}
	after.ProjectID, after.ProjectName = at.ProjectID, at.ProjectName
	if err := w.checkState(before, &after, at); err != nil {
		return Stored{}, err
	}
	if content != nil && after.Content == before.Content && content.Vector == nil {
		content = nil
	}
	moved := at.Partition != before.partition
	if content == nil && !moved && reflect.DeepEqual(after.ShownMetadata(), before.ShownMetadata()) &&
		after.EventTime.Equal(before.EventTime) && after.times.Equal(before.times) {
		indexed, err := w.Indexed(before.row)
		return Stored{Memory: before.Memory, Indexed: indexed}, err
	}
	if moved {
		if err := w.checkKeyFree(at, after.Key); err != nil {
			return Stored{}, err
		}
	}
	if err := w.keepRevision(before); err != nil {
		return Stored{}, err
	}
	w.Grow(at.Partition)
	w.ready.Forget(before.row)
	now, metadata, err := w.updateRow(before, after, at)
	if err != nil {
		return Stored{}, err
	}
	if before.RuleType != after.RuleType || after.RuleType != "" && moved {
		if err := kernel.KeepRule(w.Tx, before.row); err != nil {
			return Stored{}, err
		}
	}
	if err := kernel.KeepTurn(w.Tx, before.row, before.turn(before.project), after.turn(at.Project)); err != nil {
		return Stored{}, err
	}
	retagged := !slices.Equal(after.Tags, before.Tags) || moved && sealedrows.Seals(w.Tx) // perhaps with another owner
	if retagged {
		if err := w.ReplaceTags(before.row, at.Owner, after.Tags); err != nil {
			return Stored{}, err
		}
	}
	if !slices.Equal(after.Related, before.Related) {
		if err := w.ReplaceLinks(before.row, after.Related); err != nil {
			return Stored{}, err
		}
	}
	if at.Owner != before.owner {
		if err := w.store.giveFiles(w.Tx, w.Viewer, at.Owner, `memory_id = ?`, before.row); err != nil {
			return Stored{}, err
		}
	}
	var result Stored
	if moved || retagged || content != nil {
		result.Indexed, result.Warnings, err = w.rewritePassages(before, after, at, content)
	} else {
		result.Indexed, err = w.Indexed(before.row)
	}
	if err != nil {
		return Stored{}, err
	}
	w.addProjectWarnings(&result, given.ID, given.Name)
	if moved || w.Viewer.Superseded || after.RuleType != "" || !after.times.Equal(before.times) ||
		!slices.Equal(after.Related, before.Related) {
		stored, err := w.store.memory(w.Tx, w.Viewer, before.ID)
		result.Memory = stored.Memory
		return result, err
	}
	result.Memory, err = after.asStored(now, metadata)
	return result, err
}

// asStored returns the memory as it is read after an update: now is the time of the update in microseconds, and
// metadata is the metadata as JSON. Place, links and times are the previous ones.
func (m storedMemory) asStored(now int64, metadata string) (Memory, error) {
	stored := m.Memory
	stored.Revision++
	stored.UpdatedAt = kernel.ToTime(now)
	if len(stored.Tags) == 0 {
		stored.Tags = nil
	}
	var err error
	stored.Metadata, err = jsonobject.Decode([]byte(metadata))
	return stored, err
}

// turn returns the values that decide whether a memory is a turn of a conversation. project is a row, 0 for none.
func (m Memory) turn(project int64) turns.Memory {
	return turns.Memory{Content: m.Content, EventType: m.EventType, Metadata: m.Metadata, InProject: project != 0,
		EventTime: kernel.MicrosOf(m.EventTime), Created: m.CreatedAt.UnixMicro()}
}

// checkState checks the state that an update gives a memory, and completes its times.
func (w *memoryWriter) checkState(before storedMemory, after *storedMemory, at *kernel.Place) error {
	if err := w.checkRule(before, *after, at); err != nil {
		return err
	}
	if err := w.checkIdentityMemory(*after, at); err != nil {
		return err
	}
	return w.checkTimes(before, after, at)
}

// updateRow writes the new state of a memory into its row, and returns the time and the metadata in it. Tags, links and
// passages have rows of their own.
func (w *memoryWriter) updateRow(before, after storedMemory, at *kernel.Place) (now int64, metadata string, err error) {
	encoded, err := json.Marshal(kernel.OrEmpty(after.Metadata))
	if err != nil {
		return 0, "", err
	}
	if now, err = recency.OfChange(w.Tx, w.store.now(), before.UpdatedAt); err != nil {
		return 0, "", err
	}
	row := kernel.MemoryRow{Content: after.Content, EventType: after.EventType, State: after.State,
		Importance: string(after.Importance), Classification: string(after.Classification),
		RuleType: string(after.RuleType), EventTime: kernel.MicrosOf(after.EventTime), Times: after.times,
		Metadata: string(encoded), Updated: now}
	if at.Partition != before.partition {
		row.Key = before.Key
	}
	return now, row.Metadata, w.UpdateMemory(before.row, at, row)
}

// checkTimes checks the times of an update, and the memory that it now supersedes.
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

// rewritePassages rewrites the passages for new content, another place, or other tags, and returns warnings. content is
// nil if the content stays; then the vectors stay, too.
func (w *memoryWriter) rewritePassages(before, after storedMemory, at *kernel.Place,
	content *kernel.Draft) (indexed bool, warnings []string, err error) {
	var passages []kernel.Passage
	var own []float32
	if content != nil {
		passages, own = content.Passages, content.Vector
	} else {
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
	return w.RewritePassages(before.row, at, passages, own, after.Tags)
}

// contentOver returns the draft to write over a memory; nil if its content and vector are the same.
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
