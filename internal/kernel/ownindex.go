package kernel

import (
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
)

// IndexedMetadata is the default limit, in bytes, for metadata to be indexed by key and value. The triggers of
// memory_own contain it, too.
const IndexedMetadata = 4096

const settingIndexed = "indexed_metadata"

// ownRows selects the rows that memory_own should have.
const ownRows = db.OwnRows + ` UNION SELECT m.partition_id, '', ` + db.OwnOfLong + `, m.id FROM memory m WHERE ` +
	db.OwnLong

// indexedMetadata returns the store's limit for indexed metadata, in bytes.
func indexedMetadata(tx db.Tx) (bytes int64, err error) {
	err = tx.QueryRow(`SELECT coalesce((SELECT value FROM setting WHERE key = ?), ?)`, settingIndexed,
		IndexedMetadata).Scan(&bytes)
	return bytes, err
}

// IndexMetadata rebuilds the index of own metadata if its limit differs.
func IndexMetadata(tx db.Tx, bytes int64) error {
	present, err := indexedMetadata(tx)
	if err != nil || present == bytes {
		return err
	}
	if err := SetSetting(tx, settingIndexed, bytes); err != nil {
		return err
	}
	return RemakeOwnIndex(tx)
}

// IndexesMetadata reports whether the index of own metadata has the given limit.
func IndexesMetadata(tx db.Tx, bytes int64) (bool, error) {
	present, err := indexedMetadata(tx)
	return present == bytes, err
}

// RemakeOwnIndex rebuilds the index of own metadata from the memories.
func RemakeOwnIndex(tx db.Tx) error {
	bytes, err := indexedMetadata(tx)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(`DELETE FROM memory_own`); err != nil {
		return err
	}
	_, err = tx.Exec(`INSERT INTO memory_own (partition_id, key, value, memory_id) `+ownRows, bytes, bytes)
	return err
}

// OwnIndexDiffers counts the missing and the surplus rows of the index of own metadata.
func OwnIndexDiffers(tx db.Tx) (missing, excess int, err error) {
	bytes, err := indexedMetadata(tx)
	if err != nil {
		return 0, 0, err
	}
	const present = `SELECT partition_id, key, value, memory_id FROM memory_own`
	err = tx.QueryRow(`SELECT (SELECT count(*) FROM (SELECT * FROM (`+ownRows+`) o EXCEPT `+present+`) m),
		(SELECT count(*) FROM (`+present+` EXCEPT SELECT * FROM (`+ownRows+`) o) e)`, bytes, bytes, bytes, bytes).
		Scan(&missing, &excess)
	return missing, excess, err
}

// AddLookups adds lookups to some memories whose metadata were sealed without them, beginning after a row. It returns
// the last row; 0: there were none.
func AddLookups(tx db.Tx, from int64) (last int64, err error) {
	type sealed struct {
		id, owner int64
		metadata  string
	}
	var memories []sealed
	err = tx.Each(func(row db.Rows) error {
		var m sealed
		err := row.Scan(&m.id, &m.owner, &m.metadata)
		memories = append(memories, m)
		return err
	}, `SELECT m.id, c.owner_id, m.metadata `+FromMemory+` WHERE m.id > ? AND m.metadata < '{'
		AND `+db.Within+`(m.metadata, ?) = 0 ORDER BY m.id LIMIT ?`, from, "\n", BatchRows)
	for _, m := range memories {
		if last = m.id; err != nil || m.metadata == noMetadata { // the key was erased
			continue
		}
		var with any
		if with, err = sealedrows.SealMetadata(tx, m.owner, m.metadata); err == nil {
			_, err = tx.Exec(`UPDATE memory SET metadata = ? WHERE id = ?`, with, m.id)
		}
	}
	return last, err
}

// MissingLookups reports whether metadata of memories were sealed without lookups.
func MissingLookups(tx db.Tx) (missing bool, err error) {
	err = tx.QueryRow(`SELECT EXISTS (SELECT 1 FROM memory_own o `+db.InOrder+` memory m ON m.id = o.memory_id
		WHERE o.key = '' AND o.value = `+db.OwnOfLong+` AND m.metadata < '{' AND `+db.Within+`(m.metadata, ?) = 0)`, "\n").
		Scan(&missing)
	return missing, err
}
