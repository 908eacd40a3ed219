package kernel

import (
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
)

// KeyHolder returns the row of the memory that has a key in a partition, 0 for none.
func KeyHolder(tx db.Tx, partition int64, key string) (int64, error) {
	if key == "" {
		return 0, nil
	}
	is, stored, err := isKey(tx, partition, `key`, key)
	if err != nil {
		return 0, err
	}
	rows, err := db.Column[int64](tx, `SELECT id FROM memory WHERE partition_id = ? AND `+is, partition, stored)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return rows[0], nil
}

// isKey returns the condition that a column has the key of a memory in a partition, and its argument.
func isKey(tx db.Tx, partition int64, column, key string) (condition string, arg any, err error) {
	if !sealedrows.Seals(tx) {
		return column + ` = ?`, key, nil
	}
	owner, err := OwnerOfPartition(tx, partition)
	if err != nil {
		return "", nil, err
	}
	return sealedrows.Is(tx, sealedrows.MemoryKey, owner, column, key)
}

// WithKey returns the condition for the memory m, in the partition p and collection c, that has a key in a collection
// of an owner and a project (0: none), and its arguments.
func WithKey(tx db.Tx, owner, project int64, collection, key string) (condition string, args []any, err error) {
	hasKey, storedKey, err := sealedrows.Is(tx, sealedrows.MemoryKey, owner, `m.key`, key)
	if err != nil {
		return "", nil, err
	}
	named, storedName, err := sealedrows.Is(tx, sealedrows.CollectionName, owner, `c.name`, collection)
	return hasKey + ` AND ` + named + ` AND c.owner_id = ? AND coalesce(p.project_id, 0) = ?`,
		[]any{storedKey, storedName, owner, project}, err
}

// SealKey returns the argument for the key of a memory in the collection of an owner, a row in the users; without a
// key, it is NULL.
func SealKey(tx db.Tx, owner int64, key string) (any, error) {
	if key == "" {
		return nil, nil //nolint:nilnil // NULL
	}
	return sealedrows.SealText(tx, owner, sealedrows.MemoryKey, key)
}

// SameContent returns the row of the oldest memory of a partition that has a content and is valid, 0 for none.
func SameContent(tx db.Tx, v Viewer, partition int64, content string) (int64, error) {
	if sealedrows.Seals(tx) {
		return firstWith(tx, content, `partition_id = ? AND octet_length(content) = ?`+v.Current(), partition,
			sealedrows.SealedLength(len(content)))
	}
	rows, err := db.Column[int64](tx, `SELECT id FROM memory m WHERE partition_id = ?2 AND `+db.SameContent+
		v.Current()+` ORDER BY id LIMIT 1`, content, partition)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return rows[0], nil
}

// firstWith returns the row of the oldest memory m that has a content, among those for which a condition holds: it
// opens them. There are few if the condition has the length of the content.
func firstWith(tx db.Tx, content, condition string, args ...any) (first int64, err error) {
	err = tx.Each(func(row db.Rows) error {
		var id int64
		var has string
		err := row.Scan(&id, &has)
		if has == content && first == 0 {
			first = id
		}
		return err
	}, `SELECT id, content FROM memory m WHERE `+condition+` ORDER BY id`, args...)
	return first, err
}

// HasStored reports whether a memory of a collection and project (0: none), by row, has a key and a content, or,
// without a key, the content.
func HasStored(tx db.Tx, collection, project int64, key, content string) (bool, error) {
	condition, args := `m.key = ?4 AND m.content = ?1`, []any{content, collection, project, key}
	if key == "" {
		condition, args = db.SameContent, args[:3]
	}
	if sealedrows.Seals(tx) {
		length := ` AND octet_length(content) = ?`
		args = []any{collection, project, sealedrows.SealedLength(len(content))}
		if key != "" {
			var owner int64
			if err := tx.QueryRow(`SELECT owner_id FROM collection WHERE id = ?`, collection).Scan(&owner); err != nil {
				return false, err
			}
			is, stored, err := sealedrows.Is(tx, sealedrows.MemoryKey, owner, `m.key`, key)
			if err != nil {
				return false, err
			}
			length, args[2] = ` AND `+is, stored
		}
		row, err := firstWith(tx, content, `partition_id IN (SELECT p.id FROM partition p WHERE p.collection_id = ?
			AND coalesce(p.project_id, 0) = ?)`+length, args...)
		return row != 0, err
	}
	same, err := db.Column[int64](tx, `SELECT 1 FROM partition p `+db.InOrder+` memory m ON m.partition_id = p.id
		WHERE p.collection_id = ?2 AND coalesce(p.project_id, 0) = ?3 AND `+condition+` LIMIT 1`, args...)
	return len(same) > 0, err
}
