package kernel

import "github.com/souvenir-ai/souvenir/internal/db"

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

// IndexesMetadata reports whether the index of own metadata has a limit.
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
