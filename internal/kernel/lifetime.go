package kernel

import (
	"fmt"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Bounds are the nearest times before and after now at which a memory of the file expires, or its validity begins or
// ends. Conditions compare with them rather than with the present time: so the text of a statement changes only at
// these times, and a file without such memories has no such conditions.
type Bounds struct {
	Expired    int64  // the latest time up to now at which a memory has expired; 0: none has
	Ended      *int64 // the latest time up to now at which a memory's validity ended; nil: none has
	Begins     *int64 // the earliest time after now at which one begins; nil: none does
	Superseded bool   // some memories supersede others
}

const boundsAt = `SELECT coalesce((SELECT max(expires_at) FROM memory WHERE expires_at <= ?1), 0),
	(SELECT max(valid_until) FROM memory WHERE valid_until <= ?1),
	(SELECT min(valid_from) FROM memory WHERE valid_from > ?1),
	EXISTS (SELECT 1 FROM memory WHERE supersedes IS NOT NULL)`

// ReadBounds sets the bounds for a time, which within a snapshot is the time of its first call. In a transaction that
// may write it also reads the profile that new vectors must have.
func (v *Viewer) ReadBounds(tx db.Tx, now int64) error {
	if !tx.Writable() {
		var err error
		v.Bounds, err = db.Once(tx, "bounds", func() (b Bounds, err error) {
			err = tx.QueryRow(boundsAt, now).Scan(&b.Expired, &b.Ended, &b.Begins, &b.Superseded)
			return b, err
		})
		return err
	}
	var target int64
	err := tx.QueryRow(boundsAt+`, coalesce((SELECT value FROM setting WHERE key = '`+SettingTarget+`'), 0)`, now).
		Scan(&v.Expired, &v.Ended, &v.Begins, &v.Superseded, &target)
	v.target = &target
	return err
}

// SetBounds sets the bounds that another viewer has read in the same transaction.
func (v *Viewer) SetBounds(read Viewer) { v.Bounds, v.target = read.Bounds, read.target }

// Alive is the condition that a memory, a row of the given table, has not expired, to be appended to another condition.
// It is empty if no memory has expired.
func (v Viewer) Alive(memory string) string {
	if v.Expired == 0 {
		return ``
	}
	return fmt.Sprintf(` AND (%[1]s.expires_at IS NULL OR %[1]s.expires_at > %[2]d)`, memory, v.Expired)
}

// aliveTurn is the same for a row of the table turn.
func (v Viewer) aliveTurn() string {
	if v.Expired == 0 {
		return ``
	}
	return fmt.Sprintf(` AND memory_id NOT IN (SELECT id FROM memory WHERE expires_at <= %d)`, v.Expired)
}

// Held is the number of memories of a partition p that have not expired.
func (v Viewer) Held() string {
	if v.Expired == 0 {
		return `p.memories`
	}
	return fmt.Sprintf(`(p.memories - (SELECT count(*) FROM memory e WHERE e.partition_id = p.id AND e.expires_at <= %d))`,
		v.Expired)
}

// Current is the condition that a memory m has not expired, is valid now, and is not superseded, to be appended to
// another condition.
func (v Viewer) Current() string {
	condition := v.Alive(`m`)
	if v.Ended != nil {
		condition += fmt.Sprintf(` AND (m.valid_until IS NULL OR m.valid_until > %d)`, *v.Ended)
	}
	if v.Begins != nil {
		condition += fmt.Sprintf(` AND (m.valid_from IS NULL OR m.valid_from < %d)`, *v.Begins)
	}
	if v.Superseded {
		condition += ` AND NOT EXISTS (SELECT 1 FROM memory s WHERE ` + v.successor() + `)`
	}
	return condition
}

// successor is the condition that a memory s supersedes m now. Both must be in the same place, even after an import: so
// only a user who may delete a memory can supersede it.
func (v Viewer) successor() string {
	condition := Successor + v.Alive(`s`)
	if v.Begins != nil {
		condition += fmt.Sprintf(` AND (s.valid_from IS NULL OR s.valid_from < %d)`, *v.Begins)
	}
	return condition
}

// Successor is the condition that a memory s is stored as the one that supersedes m.
const Successor = `s.supersedes = m.uid AND s.partition_id = m.partition_id`

// AsOf is the condition that a memory m was created by a time, and valid then, as known then. It is to be appended to
// another condition. Without [db.NoIndex], SQLite may read the partition along an index by time, for each of its
// memories.
func (v Viewer) AsOf(at int64) (condition string, args []any) {
	return db.NoIndex + `m.created_at <= ? AND (m.valid_from IS NULL OR m.valid_from <= ?)
		AND (m.valid_until IS NULL OR m.valid_until > ?) AND NOT EXISTS (SELECT 1 FROM memory s WHERE ` + Successor +
			v.Alive(`s`) + ` AND ` + db.NoIndex + `s.created_at <= ? AND (s.valid_from IS NULL OR s.valid_from <= ?))`,
		[]any{at, at, at, at, at}
}

// Hidden returns, by partition, the rows of memories in some partitions, a [db.List], that are not current. With all,
// it returns only the expired ones. It only reads the indexes of these partitions.
func (v Viewer) Hidden(tx db.Tx, partitions string, all bool) (map[int64][]int64, error) {
	query, args := v.HiddenQuery(partitions, all)
	if query == "" {
		return nil, nil
	}
	hidden := map[int64][]int64{}
	err := tx.Each(func(row db.Rows) error {
		var partition, memory int64
		err := row.Scan(&partition, &memory)
		hidden[partition] = append(hidden[partition], memory)
		return err
	}, query, args...)
	return hidden, err
}

// HiddenQuery is the statement of Hidden; empty: nothing can be hidden.
func (v Viewer) HiddenQuery(partitions string, all bool) (query string, args []any) {
	var parts []string
	add := func(query string, arg ...any) {
		parts, args = append(parts, query), append(args, append([]any{partitions}, arg...)...)
	}
	const in = `SELECT partition_id, id FROM memory WHERE partition_id IN ` + db.Integers
	if v.Expired != 0 {
		add(in+` AND expires_at <= ?`, v.Expired)
	}
	if v.Ended != nil && !all {
		add(in+` AND valid_until <= ?`, *v.Ended)
	}
	if v.Begins != nil && !all {
		add(in+` AND valid_from >= ?`, *v.Begins)
	}
	if v.Superseded && !all { // several memories may supersede the same one
		add(`SELECT DISTINCT m.partition_id, m.id FROM memory s JOIN memory m ON m.uid = s.supersedes ` +
			`WHERE s.partition_id IN ` + db.Integers + ` AND s.supersedes IS NOT NULL AND ` + v.successor())
	}
	return strings.Join(parts, ` UNION `), args
}

// FreeKey removes a key from an expired memory of a partition, so that another memory can have it.
func FreeKey(tx db.Tx, v Viewer, partition int64, key string) error {
	if v.Expired == 0 || key == "" {
		return nil
	}
	is, stored, err := isKey(tx, partition, `key`, key)
	if err == nil {
		_, err = tx.Exec(`UPDATE memory SET key = NULL WHERE partition_id = ? AND `+is+` AND expires_at <= ?`, partition,
			stored, v.Expired)
	}
	return err
}
