package kernel

import (
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/lifespan"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
)

// MemoryRow has the values of a memory's row, before they are sealed. Tags, links, passages and turns have rows of
// their own. Times are microseconds since 1970.
type MemoryRow struct {
	ID             string
	Content        string
	EventType      string
	State          string
	Importance     string
	Classification string
	RuleType       string
	Key            string
	EventTime      *int64
	Times          lifespan.Times
	Metadata       string // JSON
	Revision       int64
	Created        int64
	Updated        int64
}

// InsertMemory creates the row of a memory. The caller adds the parts that have rows of their own.
func (w *RowWriter) InsertMemory(at *Place, m MemoryRow) (row int64, err error) {
	values, err := w.columns(at, m)
	if err != nil {
		return 0, err
	}
	row, err = db.InsertNumbered(w.Tx, `memory`, `INSERT INTO memory (id, uid, partition_id, content, event_type, state,
			importance, classification, rule_type, key, event_time, expires_at, valid_from, valid_until, supersedes, metadata,
			revision, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		slices.Concat([]any{m.ID}, values)...)
	if err == nil && m.RuleType != "" {
		err = KeepRule(w.Tx, row)
	}
	return row, err
}

// ReplaceMemory writes a memory over the row of another, and deletes the parts that have rows of their own. If m leaves
// out the key, the times or the event time, the earlier ones stay.
func (w *RowWriter) ReplaceMemory(row int64, at *Place, m MemoryRow) error {
	if m.Key == "" && sealedrows.Seals(w.Tx) { // it stays, perhaps with another owner
		if err := w.Tx.QueryRow(`SELECT coalesce(key, '') FROM memory WHERE id = ?`, row).Scan(&m.Key); err != nil {
			return err
		}
	}
	for _, statement := range []string{
		`DELETE FROM memory_tag WHERE memory_id = ?`, `DELETE FROM memory_link WHERE memory_id = ?`,
		`DELETE FROM memory_revision WHERE memory_id = ?`, `DELETE FROM passage WHERE memory_id = ?`,
	} {
		if _, err := w.Tx.Exec(statement, row); err != nil {
			return err
		}
	}
	values, err := w.columns(at, m)
	if err != nil {
		return err
	}
	if _, err := w.Tx.Exec(`UPDATE memory SET partition_id = ?, content = ?, event_type = ?, state = ?, importance = ?,
			classification = ?, rule_type = ?, key = coalesce(?, key), event_time = coalesce(?, event_time),
			expires_at = coalesce(?, expires_at), valid_from = coalesce(?, valid_from),
			valid_until = coalesce(?, valid_until), supersedes = coalesce(?, supersedes), metadata = ?, revision = ?,
			created_at = ?, updated_at = ? WHERE id = ?`, append(values, row)...); err != nil {
		return err
	}
	return KeepRule(w.Tx, row)
}

// UpdateMemory writes the new state of a memory over its row, as its next revision. The time of its creation stays, and
// so does its key if m leaves it out; m has it if the memory comes to another place.
func (w *RowWriter) UpdateMemory(row int64, at *Place, m MemoryRow) error {
	content, metadata, err := SealMemory(w.Tx, at.Owner, m.Content, m.Metadata)
	if err != nil {
		return err
	}
	if m.Key != "" && sealedrows.Seals(w.Tx) { // perhaps of another owner
		key, err := SealKey(w.Tx, at.Owner, m.Key)
		if err != nil {
			return err
		}
		if _, err := w.Tx.Exec(`UPDATE memory SET key = ? WHERE id = ?`, key, row); err != nil {
			return err
		}
	}
	_, err = w.Tx.Exec(`UPDATE memory SET partition_id = ?, content = ?, event_type = ?, state = ?, importance = ?,
			classification = ?, rule_type = ?, event_time = ?, expires_at = ?, valid_from = ?, valid_until = ?,
			supersedes = ?, metadata = ?, revision = revision + 1, updated_at = ? WHERE id = ?`,
		at.Partition, content, db.OrNull(m.EventType), db.OrNull(m.State), db.OrNull(m.Importance),
		db.OrNull(m.Classification), db.OrNull(m.RuleType), m.EventTime, m.Times.Expires, m.Times.From, m.Times.Until,
		db.OrNull(m.Times.Supersedes), metadata, m.Updated, row)
	return err
}

// columns returns the values of a memory's columns, from partition_id to updated_at, as they are stored.
func (w *RowWriter) columns(at *Place, m MemoryRow) ([]any, error) {
	content, metadata, err := SealMemory(w.Tx, at.Owner, m.Content, m.Metadata)
	if err != nil {
		return nil, err
	}
	key, err := SealKey(w.Tx, at.Owner, m.Key)
	return []any{at.Partition, content, db.OrNull(m.EventType), db.OrNull(m.State), db.OrNull(m.Importance),
		db.OrNull(m.Classification), db.OrNull(m.RuleType), key, m.EventTime, m.Times.Expires, m.Times.From,
		m.Times.Until, db.OrNull(m.Times.Supersedes), metadata, m.Revision, m.Created, m.Updated}, err
}

// KeepRule marks a memory that was just written as the rule of its project, or as none. The schema allows one rule per
// type and project; a second one is db.ErrUnique.
func KeepRule(tx db.Tx, row int64) error {
	_, err := tx.Exec(`UPDATE memory SET rule_of = CASE WHEN rule_type IS NOT NULL THEN (SELECT p.project_id
		FROM partition p WHERE p.id = memory.partition_id) END WHERE id = ?`, row)
	return err
}

// Revision is a past version of a memory, with its place and the user to whom that belongs, as rows.
type Revision struct {
	Memory, Partition, Owner int64
	Number, Created          int64
	Content, Attributes      string
}

// Insert adds the past version, and returns its row.
func (r Revision) Insert(tx db.Tx) (row int64, err error) {
	content, attributes, err := sealRevision(tx, r.Owner, r.Content, r.Attributes)
	if err != nil {
		return 0, err
	}
	return db.Insert(tx, `INSERT INTO memory_revision (memory_id, revision, partition_id, content, attributes, created_at)
		VALUES (?, ?, ?, ?, ?, ?) RETURNING id`, r.Memory, r.Number, r.Partition, content, attributes, r.Created)
}
