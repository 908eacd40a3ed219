package kernel

import (
	"errors"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// RowWriter writes the rows of memories within one transaction. It caches places, so that storing many memories
// needs no unnecessary look-ups. It decides nothing about rights, except that links lead to visible memories only.
type RowWriter struct {
	Tx         db.Tx
	Viewer     Viewer
	profile    int64  // profile of the store's embedder
	model      string // of the store's embedder
	Target     int64  // profile that new vectors must have; another process may have changed it
	outdated   bool   // something was written with another profile than target
	partitions map[int64]*Place
	numbers    map[int64]*passageNumbers // by partition
}

// passageNumbers is the number of a partition's next passage: in the database, and in memory.
type passageNumbers struct{ first, next int64 }

// Settings that say which profile new vectors must have, and which all vectors have.
const (
	SettingTarget = "embedding_target"
	SettingReady  = "embedding_ready"
)

// NewRowWriter returns a writer for a transaction. The profile and the model are those of the store's embedder.
func NewRowWriter(tx db.Tx, v Viewer, profile int64, model string) (*RowWriter, error) {
	w := &RowWriter{Tx: tx, Viewer: v, profile: profile, model: model, partitions: map[int64]*Place{},
		numbers: map[int64]*passageNumbers{}}
	if v.target != nil {
		w.Target = *v.target
		return w, nil
	}
	var err error
	w.Target, err = Setting(tx, SettingTarget)
	return w, err
}

// ShareCounts makes w one of several writers of a transaction, for other viewers: each counts what the others have
// written but not flushed.
func (w *RowWriter) ShareCounts(other *RowWriter) { w.numbers = other.numbers }

// Flush writes the counts held in memory. It must be called before the transaction ends.
func (w *RowWriter) Flush() error {
	if w.outdated {
		if err := SetSetting(w.Tx, SettingReady, 0); err != nil {
			return err
		}
	}
	for partition, n := range w.numbers {
		if n.next == n.first {
			continue
		}
		if err := db.Queue(w.Tx, `UPDATE partition SET next_passage = ? WHERE id = ?`, n.next, partition); err != nil {
			return err
		}
		n.first = n.next
	}
	return nil
}

// MaxRevision bounds revision numbers, so that an increment does not overflow.
const MaxRevision = 1 << 40

// Place is where memories are stored: a partition, its collection, and its project.
type Place struct {
	Partition, Project     int64 // rows; project 0: none
	Owner                  int64 // row of the collection's owner
	OwnerID, collection    string
	ProjectID, ProjectName string
	SharedBy               string // owner of the project, if not the caller
	OwnProfile             int64  // profile of the collection's own vectors; 0 for none
	OwnSize                int    // their dimensions
	numbers                *passageNumbers
}

// Partition returns the place of a collection and a project (0: none), by row. If there are several, it is the first;
// they come from files in which members had collections of their own in a project.
func (w *RowWriter) Partition(collection, project int64) (*Place, error) {
	rows, err := db.Column[int64](w.Tx,
		`SELECT id FROM partition WHERE collection_id = ? AND coalesce(project_id, 0) = ? ORDER BY id`, collection, project)
	if err != nil {
		return nil, err
	}
	if len(rows) > 0 {
		return w.PlaceByRow(rows[0])
	}
	row, err := db.Insert(w.Tx, `INSERT INTO partition (collection_id, project_id) VALUES (?, ?) RETURNING id`, collection,
		db.OrNull(project))
	if err != nil {
		return nil, err
	}
	return w.PlaceByRow(row)
}

// PlaceByRow returns the place of a partition.
func (w *RowWriter) PlaceByRow(partition int64) (*Place, error) {
	if known, ok := w.partitions[partition]; ok {
		return known, nil
	}
	return w.placeWhere(`p.id = ?`, partition)
}

// PlaceByName returns the place of an owner's collection and a project (0: none) as [RowWriter.Partition] does, but nil
// if there is no such collection, or it has no such partition yet.
func (w *RowWriter) PlaceByName(owner int64, collection string, project int64) (*Place, error) {
	is, stored, err := sealedrows.Is(w.Tx, sealedrows.CollectionName, owner, `c.name`, collection)
	if err != nil {
		return nil, err
	}
	p, err := w.placeWhere(named(is), owner, stored, project)
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	return p, err
}

// PlaceAhead announces that a user's own place will be looked up by name; see [db.Ahead].
func PlaceAhead(tx db.Tx, user int64, collection string) {
	if !sealedrows.Seals(tx) {
		db.Ahead(tx, selectPlace+named(`c.name = ?`), user, user, collection, int64(0))
	}
}

func named(is string) string {
	return `c.owner_id = ? AND ` + is + ` AND coalesce(p.project_id, 0) = ? ORDER BY p.id LIMIT 1`
}

const selectPlace = `SELECT p.id, coalesce(p.project_id, 0), p.next_passage, c.owner_id, u.uid, c.name,
	coalesce(c.own_profile, 0), coalesce(f.dimensions, 0), coalesce(j.uid, ''), coalesce(j.name, ''),
		CASE WHEN j.owner_id <> ? THEN (SELECT coalesce(o.name, o.uid) FROM users o WHERE o.id = j.owner_id) ELSE '' END
	FROM partition p JOIN collection c ON c.id = p.collection_id JOIN users u ON u.id = c.owner_id
	LEFT JOIN profile f ON f.id = c.own_profile LEFT JOIN project j ON j.id = p.project_id
	WHERE `

// placeWhere returns the place of the partition p, in the collection c, for which a condition holds.
func (w *RowWriter) placeWhere(condition string, args ...any) (*Place, error) {
	var p Place
	var next int64
	err := w.Tx.QueryRow(selectPlace+condition, append([]any{w.Viewer.User}, args...)...).
		Scan(&p.Partition, &p.Project, &next, &p.Owner, &p.OwnerID, &p.collection, &p.OwnProfile, &p.OwnSize, &p.ProjectID,
			&p.ProjectName, &p.SharedBy)
	if err != nil {
		return nil, err
	}
	if known, ok := w.partitions[p.Partition]; ok {
		return known, nil
	}
	if w.numbers[p.Partition] == nil { // otherwise the number in memory counts
		w.numbers[p.Partition] = &passageNumbers{next, next}
	}
	p.numbers = w.numbers[p.Partition]
	w.partitions[p.Partition] = &p
	return &p, nil
}

// AddTags adds the tags of a memory that has none, in a collection of an owner, a row in the users.
func (w *RowWriter) AddTags(memory, owner int64, tags []string) error {
	return addTags(w.Tx, memory, owner, tags)
}

func addTags(tx db.Tx, memory, owner int64, tags []string) error {
	for i, tag := range tags {
		sealed, err := sealedrows.SealText(tx, owner, sealedrows.Tag, tag)
		if err != nil {
			return err
		}
		if err := db.Queue(tx, `INSERT INTO memory_tag (memory_id, tag, position) VALUES (?, ?, ?)`, memory, sealed,
			i); err != nil {
			return err
		}
	}
	return nil
}

// ReplaceTags sets the tags of a memory in a collection of an owner, a row in the users.
func (w *RowWriter) ReplaceTags(memory, owner int64, tags []string) error {
	return replaceTags(w.Tx, memory, owner, tags)
}

func replaceTags(tx db.Tx, memory, owner int64, tags []string) error {
	if _, err := tx.Exec(`DELETE FROM memory_tag WHERE memory_id = ?`, memory); err != nil {
		return err
	}
	return addTags(tx, memory, owner, tags)
}

// AddLinks links a memory to others, which must be visible to the caller.
func (w *RowWriter) AddLinks(memory int64, related []string) error {
	condition, args := w.Viewer.Visible()
	for i, id := range related {
		targets, err := db.Column[int64](w.Tx, `SELECT m.id `+FromMemory+` WHERE m.uid IN (?, ?) AND `+condition+
			w.Viewer.Alive(`m`)+` ORDER BY m.uid = ? DESC`,
			slices.Concat([]any{id, valid.CanonicalID(id)}, args, []any{id})...)
		if err != nil {
			return err
		}
		switch {
		case len(targets) == 0:
			return fault.New(fault.KindNotFound, "related_memory_ids",
				"{}[%d]: memory %s not found, or you have no access to it", i, fault.Show(id))
		case targets[0] == memory:
			return fault.Invalid("related_memory_ids",
				"{}[%d] is the memory itself (%s); a memory is related to others", i, fault.Show(id))
		}
		if _, err := w.Tx.Exec(`INSERT INTO memory_link (memory_id, related_id, position) VALUES (?, ?, ?)
			ON CONFLICT (memory_id, related_id) DO UPDATE SET position = excluded.position`, memory, targets[0], i); err != nil {
			return err
		}
	}
	return nil
}

// ReplaceLinks replaces the links that the caller can see and leaves the others alone.
func (w *RowWriter) ReplaceLinks(memory int64, related []string) error {
	statement, args := DeleteLinks(w.Viewer, memory)
	if _, err := w.Tx.Exec(statement, args...); err != nil {
		return err
	}
	return w.AddLinks(memory, related)
}

// DeleteLinks is the statement that deletes the links of a memory that the caller can see. It checks each link: with IN
// it would first collect all memories that the caller can see.
func DeleteLinks(v Viewer, memory int64) (statement string, args []any) {
	condition, args := v.Visible()
	return `DELETE FROM memory_link WHERE memory_id = ? AND EXISTS (SELECT 1 ` + FromMemory +
		` WHERE m.id = related_id AND ` + condition + `)`, append([]any{memory}, args...)
}
