package kernel

import (
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
)

// noMetadata is metadata without a key, which are not sealed: there is nothing in them.
const noMetadata = "{}"

// SealMemory returns the arguments for the content and the metadata of a memory in the collection of an owner, a row in
// the users; see [sealedrows.SealText] and [sealedrows.SealMetadata].
func SealMemory(tx db.Tx, owner int64, content, metadata string) (sealedContent, sealedMetadata any, err error) {
	sealedContent, err = sealedrows.SealText(tx, owner, sealedrows.MemoryContent, content)
	if err != nil || metadata == noMetadata {
		return sealedContent, metadata, err
	}
	sealedMetadata, err = sealedrows.SealMetadata(tx, owner, metadata)
	return sealedContent, sealedMetadata, err
}

// sealRevision does the same for a past version, from its time in a place of the owner. Nothing is looked up in it.
func sealRevision(tx db.Tx, owner int64, content, attributes string) (sealedContent, sealedAttributes any, err error) {
	sealedContent, err = sealedrows.SealText(tx, owner, sealedrows.RevisionContent, content)
	if err != nil || attributes == noMetadata {
		return sealedContent, attributes, err
	}
	sealedAttributes, err = sealedrows.SealText(tx, owner, sealedrows.RevisionAttributes, attributes)
	return sealedContent, sealedAttributes, err
}

// MemoryBytes is how many bytes a memory takes with its content and metadata, as quotas count them: as they are stored.
func MemoryBytes(tx db.Tx, content, metadata string) int64 {
	if !sealedrows.Seals(tx) || metadata == noMetadata {
		return RevisionBytes(tx, content, metadata)
	}
	return int64(sealedrows.SealedLength(len(content)) + sealedrows.SealedMetadataLength(metadata))
}

// RevisionBytes is the same for a past version with its attributes.
func RevisionBytes(tx db.Tx, content, attributes string) int64 {
	switch {
	case !sealedrows.Seals(tx):
		return int64(len(content) + len(attributes))
	case attributes == noMetadata:
		return int64(sealedrows.SealedLength(len(content)) + len(attributes))
	}
	return int64(sealedrows.SealedLength(len(content)) + sealedrows.SealedLength(len(attributes)))
}

// Reseal seals the memories and past versions of a partition again, for its present owner, with the keys, the tags and
// the places in conversations.
func Reseal(tx db.Tx, partition, owner int64) error {
	if !sealedrows.Seals(tx) {
		return nil
	}
	for _, table := range []struct {
		name, metadata string
		seal           func(tx db.Tx, owner int64, content, metadata string) (any, any, error)
	}{{"memory", "metadata", SealMemory}, {"memory_revision", "attributes", sealRevision}} {
		rows, err := db.Column[int64](tx, `SELECT id FROM `+table.name+` WHERE partition_id = ? ORDER BY id`, partition)
		if err != nil {
			return err
		}
		for _, row := range rows { // one by one: there may be very many
			var content, metadata string
			if err := tx.QueryRow(`SELECT content, `+table.metadata+` FROM `+table.name+` WHERE id = ?`, row).
				Scan(&content, &metadata); err != nil {
				return err
			}
			sealed, with, err := table.seal(tx, owner, content, metadata)
			if err != nil {
				return err
			}
			if _, err := tx.Exec(`UPDATE `+table.name+` SET content = ?, `+table.metadata+` = ? WHERE id = ?`, sealed, with,
				row); err != nil {
				return err
			}
		}
	}
	return resealNames(tx, partition, owner)
}

// resealNames seals keys, tags and places in conversations again.
func resealNames(tx db.Tx, partition, owner int64) error {
	rows, err := db.Column[int64](tx, `SELECT id FROM memory WHERE partition_id = ? ORDER BY id`, partition)
	if err != nil {
		return err
	}
	for _, row := range rows {
		var key string
		if err := tx.QueryRow(`SELECT coalesce(key, '') FROM memory WHERE id = ?`, row).Scan(&key); err != nil {
			return err
		}
		if key != "" {
			sealed, err := SealKey(tx, owner, key)
			if err != nil {
				return err
			}
			if _, err := tx.Exec(`UPDATE memory SET key = ? WHERE id = ?`, sealed, row); err != nil {
				return err
			}
		}
		tags, err := db.Column[string](tx, `SELECT tag FROM memory_tag WHERE memory_id = ? ORDER BY position`, row)
		if err == nil && len(tags) > 0 {
			err = replaceTags(tx, row, owner, tags)
		}
		if err != nil {
			return err
		}
	}
	for batch := range slices.Chunk(rows, BatchRows) {
		if err := KeepTurns(tx, batch...); err != nil {
			return err
		}
	}
	return nil
}
