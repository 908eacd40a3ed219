package souvenir

import (
	"context"
	"encoding/json"

	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/internal/text"
)

// DeletedMemory is a memory that [Store.TakeMemory] has deleted, with everything by which [Store.RestoreMemory] brings it back: its
// history, links, files and vectors. It is in memory only, and for the store that it comes from.
type DeletedMemory struct {
	Memory // as it was

	held *heldMemory // not shown: there may be more in it than the caller can see
}

// heldMemory is what has gone with a deleted memory.
type heldMemory struct {
	from               *shared
	partition          int64 // row
	passages           []passage
	revisions          []deletedRevision
	outgoing, incoming []deletedLink
	files              []int64 // rows of those that were linked to it
	bytes              int64
}

// deletedRevision is a row of memory_revision.
type deletedRevision struct {
	number, partition, created int64
	content, attributes        string
}

// deletedLink is a row of memory_link: the id of the memory at its other end, which may be deleted and come back, too; and its place
// among the links of the one where it begins.
type deletedLink struct {
	id       string
	position int64
}

// Bytes is how much memory it takes, about.
func (d *DeletedMemory) Bytes() int64 { return d.held.bytes }

// TakeMemory deletes a memory like DeleteMemory, and returns what RestoreMemory needs to take that back. Whoever lets go of it
// has deleted the memory for good.
func (s *Store) TakeMemory(ctx context.Context, id string) (*DeletedMemory, error) {
	var taken *DeletedMemory
	err := s.write(ctx, func(tx *sqlite.Tx, sc scope) error {
		found, err := s.memoryForWriting(tx, sc, id)
		if err != nil {
			return err
		}
		w, err := s.newWriter(tx, sc)
		if err != nil {
			return err
		}
		if taken, err = w.remember(found); err != nil {
			return err
		}
		_, err = tx.Exec(`DELETE FROM memory WHERE id = ?`, found.row)
		return err
	})
	if err != nil {
		return nil, err
	}
	return taken, nil
}

// remember reads all that is deleted with a memory.
func (w *memoryWriter) remember(m storedMemory) (*DeletedMemory, error) {
	d := &heldMemory{from: w.store.shared, partition: m.partition}
	var err error
	if d.passages, err = w.storedPassages(m); err != nil {
		return nil, err
	}
	d.bytes = int64(len(m.Content)) + 1024
	for i := range d.passages {
		d.passages[i].indexed = "" // made again of the content
		d.bytes += 4*int64(len(d.passages[i].vector)) + 64
	}
	err = w.tx.Each(func(row *sqlite.Rows) error {
		var r deletedRevision
		err := row.Scan(&r.number, &r.partition, &r.content, &r.attributes, &r.created)
		d.revisions = append(d.revisions, r)
		d.bytes += int64(len(r.content)+len(r.attributes)) + 64
		return err
	}, `SELECT revision, partition_id, content, attributes, created_at FROM memory_revision WHERE memory_id = ? ORDER BY revision`, m.row)
	if err != nil {
		return nil, err
	}
	link := func(links *[]deletedLink) func(row *sqlite.Rows) error {
		return func(row *sqlite.Rows) error {
			var l deletedLink
			err := row.Scan(&l.id, &l.position)
			*links = append(*links, l)
			d.bytes += 64
			return err
		}
	}
	if err := w.tx.Each(link(&d.outgoing), `SELECT r.uid, l.position FROM memory_link l JOIN memory r ON r.id = l.related_id WHERE l.memory_id = ?`, m.row); err != nil {
		return nil, err
	}
	if err := w.tx.Each(link(&d.incoming), `SELECT r.uid, l.position FROM memory_link l JOIN memory r ON r.id = l.memory_id WHERE l.related_id = ?`, m.row); err != nil {
		return nil, err
	}
	d.files, err = sqlite.Column[int64](w.tx, `SELECT id FROM file WHERE memory_id = ?`, m.row)
	return &DeletedMemory{m.Memory, d}, err
}

// RestoreMemory brings a memory back that TakeMemory has deleted: with its id, times, revision and history, its vectors, and those of its
// links and files that are still there and free. The caller must be allowed to write where it lay. Where that place is gone, it is
// ErrNotFound; where the memory is back already, or another rule has taken its place, ErrConflict.
func (s *Store) RestoreMemory(ctx context.Context, deleted *DeletedMemory) (Memory, error) {
	if err := s.checkWritable(); err != nil {
		return Memory{}, err
	}
	if deleted == nil || deleted.held == nil || deleted.held.from != s.shared {
		return Memory{}, invalid("deleted", "deleted is not of this store; give what TakeMemory of this store returned")
	}
	var restored storedMemory
	indexed := false
	err := s.write(ctx, func(tx *sqlite.Tx, sc scope) error {
		w, err := s.newWriter(tx, sc)
		if err != nil {
			return err
		}
		if indexed, err = w.restore(deleted); err != nil {
			return err
		}
		if err := w.flush(); err != nil {
			return err
		}
		restored, err = s.memory(tx, sc, deleted.ID)
		return err
	})
	if err == nil && !indexed {
		s.worker.wake()
	}
	return restored.Memory, err
}

// restore writes a deleted memory into its place.
func (w *memoryWriter) restore(d *DeletedMemory) (indexed bool, err error) {
	condition, args := w.sc.writable()
	free, err := sqlite.Column[bool](w.tx, `SELECT ifnull(`+condition+`, 0) FROM partition p JOIN collection c ON c.id = p.collection_id WHERE p.id = ?`, append(args, d.held.partition)...)
	switch {
	case err != nil:
		return false, err
	case len(free) == 0:
		return false, newError(KindNotFound, "deleted", "collection %s is gone, in which memory %s lay", show(d.Collection), show(d.ID))
	case !free[0]:
		return false, newError(KindForbidden, "deleted", "memory %s cannot be brought back: this view may not write where it lay", show(d.ID))
	}
	there, err := sqlite.Column[int64](w.tx, `SELECT id FROM memory WHERE uid = ?`, d.ID)
	if err != nil || len(there) > 0 {
		if err == nil {
			err = newError(KindConflict, "deleted", "memory %s is there already", show(d.ID))
		}
		return false, err
	}
	at, err := w.placeByRow(d.held.partition)
	if err != nil {
		return false, err
	}
	none := storedMemory{Memory: Memory{ID: d.ID}}
	if err := w.checkRule(none, storedMemory{Memory: d.Memory}, at); err != nil {
		return false, err
	}
	row, err := w.insertDeleted(d)
	if err != nil {
		return false, err
	}
	if err := w.reattach(row, d); err != nil {
		return false, err
	}
	passages, own := w.passagesOf(d, at)
	indexed, _, err = w.addPassages(row, at, passages, own, d.Tags)
	return indexed, err
}

// insertDeleted writes the row of a deleted memory, its tags and its history.
func (w *memoryWriter) insertDeleted(d *DeletedMemory) (int64, error) {
	metadata, err := json.Marshal(orEmpty(d.Metadata))
	if err != nil {
		return 0, err
	}
	result, err := w.tx.Exec(`INSERT INTO memory (uid, partition_id, content, event_type, state, importance, classification, rule_type,
			metadata, revision, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		d.ID, d.held.partition, d.Content, null(d.EventType), null(d.State), null(string(d.Importance)), null(string(d.Classification)), null(string(d.RuleType)),
		string(metadata), d.Revision, d.CreatedAt.UnixMicro(), d.UpdatedAt.UnixMicro())
	if err != nil {
		return 0, err
	}
	row := result.LastInsertID
	if err := w.addTags(row, d.Tags); err != nil {
		return 0, err
	}
	for _, r := range d.held.revisions {
		if _, err := w.tx.Exec(`INSERT INTO memory_revision (memory_id, revision, partition_id, content, attributes, created_at)
				SELECT ?, ?, id, ?, ?, ? FROM partition WHERE id = ?`, row, r.number, r.content, r.attributes, r.created, r.partition); err != nil {
			return 0, err
		}
	}
	return row, nil
}

// reattach gives a memory that is back its links and files, as far as they are there and have not been given to another.
func (w *memoryWriter) reattach(row int64, d *DeletedMemory) error {
	for _, l := range d.held.outgoing {
		if _, err := w.tx.Exec(`INSERT INTO memory_link (memory_id, related_id, position) SELECT ?, id, ? FROM memory WHERE uid = ?`, row, l.position, l.id); err != nil {
			return err
		}
	}
	for _, l := range d.held.incoming {
		if _, err := w.tx.Exec(`INSERT INTO memory_link (memory_id, related_id, position) SELECT id, ?, ? FROM memory
				WHERE uid = ? AND (SELECT count(*) FROM memory_link WHERE memory_id = memory.id) < ?`, row, l.position, l.id, MaxRelated); err != nil {
			return err
		}
	}
	_, err := w.tx.Exec(`UPDATE file SET memory_id = ?, project_id = NULL WHERE id IN (SELECT value FROM json_each(?)) AND memory_id IS NULL AND state = 'stored'
		AND project_id IS (SELECT project_id FROM partition WHERE id = ?)`, row, jsonList(d.held.files), d.held.partition)
	return err
}

// passagesOf are the passages of a deleted memory, and the vector of its owner's own, if any. Where the store has another model
// since, the text is cut for that one, and waits for its vectors.
func (w *memoryWriter) passagesOf(d *DeletedMemory, at *place) (passages []passage, own []float32) {
	for _, p := range d.held.passages {
		p.indexed = text.Indexed(d.Content[p.start : p.start+p.length])
		passages = append(passages, p)
	}
	switch {
	case len(passages) == 0:
	case at.ownProfile != 0:
		own = passages[0].vector
	case passages[0].profile != w.target && w.target == w.store.profile:
		passages = split(d.Content, maxInput(w.store.embedder))
	}
	return passages, own
}
