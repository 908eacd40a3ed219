package kernel

import (
	"fmt"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// LastExpired returns the latest time up to now at which a memory that is still in the file has expired, 0 if there is
// none. [Viewer.Alive] compares with it rather than with the present time: the text of a statement changes only when
// another memory expires, and as long as none has, no statement has a condition at all.
func LastExpired(tx db.Tx, now int64) (last int64, err error) {
	err = tx.QueryRow(`SELECT coalesce(max(expires_at), 0) FROM memory WHERE expires_at <= ?`, now).Scan(&last)
	return last, err
}

// Alive is the condition that a memory, a row of the table named, has not expired, in the form that follows another
// condition. It is empty if no memory has.
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

// Hidden returns the rows of the memories in some partitions, a [db.List], that have expired, by partition.
func (v Viewer) Hidden(tx db.Tx, partitions string) (map[int64][]int64, error) {
	if v.Expired == 0 {
		return nil, nil
	}
	hidden := map[int64][]int64{}
	err := tx.Each(func(row db.Rows) error {
		var partition, memory int64
		err := row.Scan(&partition, &memory)
		hidden[partition] = append(hidden[partition], memory)
		return err
	}, `SELECT partition_id, id FROM memory WHERE partition_id IN `+db.Integers+` AND expires_at <= ?`, partitions, v.Expired)
	return hidden, err
}

// FreeKey takes a key from a memory of a partition that has expired, for another one.
func FreeKey(tx db.Tx, v Viewer, partition int64, key string) error {
	if v.Expired == 0 || key == "" {
		return nil
	}
	_, err := tx.Exec(`UPDATE memory SET key = NULL WHERE partition_id = ? AND key = ? AND expires_at <= ?`, partition, key,
		v.Expired)
	return err
}
