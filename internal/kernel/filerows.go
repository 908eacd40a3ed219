package kernel

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
)

// The rows of a file's content.
const (
	ChunkSize   = 256 << 10 // bytes
	ChunkBits   = 24        // file_chunk.id is file.id << ChunkBits | n
	LargestFile = ChunkSize << ChunkBits

	ChunksOfFile = 1 << ChunkBits // numbers for the chunks of a file; see FileOf
	DeleteBatch  = 64             // chunks deleted in one transaction
)

// FileOf is the expression for the file of a chunk, whose number is an expression, too.
func FileOf(chunk string) string { return db.Quotient(chunk, strconv.Itoa(ChunksOfFile)) }

// Abandoned is the time without progress after which an arriving file counts as given up.
const Abandoned = 24 * time.Hour

// RemoveChunks removes some chunks of a leaving file, and the file with the last of them; more is then false.
func RemoveChunks(tx db.Tx, row int64) (more bool, err error) {
	result, err := tx.Exec(`DELETE FROM file_chunk WHERE id IN (SELECT id FROM file_chunk WHERE id >= ? AND id < ? `+
		`ORDER BY id LIMIT ?)`,
		row<<ChunkBits, (row+1)<<ChunkBits, DeleteBatch)
	if err != nil || result.RowsAffected == DeleteBatch {
		return true, err
	}
	_, err = tx.Exec(`DELETE FROM file WHERE id = ? AND state = 'leaving'`, row)
	return false, err
}

// DecodeTags reads a list of tags from its stored form.
func DecodeTags(tx db.Tx, encoded string) ([]string, error) {
	tags, err := DecodeStrings(encoded)
	if err != nil || len(tags) == 0 {
		return nil, err
	}
	return sealedrows.OpenTexts(tx, tags)
}

// ReplaceFileTags sets the tags of a file.
func ReplaceFileTags(tx db.Tx, file int64, tags []string) error {
	owner, err := ownerOfFile(tx, file)
	if err != nil {
		return err
	}
	return replaceFileTags(tx, owner, file, tags)
}

func replaceFileTags(tx db.Tx, owner, file int64, tags []string) error {
	if _, err := tx.Exec(`DELETE FROM file_tag WHERE file_id = ?`, file); err != nil {
		return err
	}
	for i, tag := range tags {
		sealed, err := sealedrows.SealText(tx, owner, sealedrows.Tag, tag)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(`INSERT INTO file_tag (file_id, tag, position) VALUES (?, ?, ?)`, file, sealed,
			i); err != nil {
			return err
		}
	}
	return nil
}

// RemoveFile removes a leaving file, in several transactions.
func RemoveFile(ctx context.Context, d db.DB, row int64) error {
	for more := true; more; {
		err := d.Write(ctx, func(tx db.Tx) (err error) {
			more, err = RemoveChunks(tx, row)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// RemoveAbandoned removes a file that is leaving, or arriving and without progress since a time. It is marked as
// leaving first, so that it is removed later if this attempt fails.
func RemoveAbandoned(ctx context.Context, d db.DB, row, before int64) error {
	var leaving bool
	err := d.Write(ctx, func(tx db.Tx) error {
		if _, err := tx.Exec(`UPDATE file SET state = 'leaving' WHERE id = ? AND state = 'arriving' AND updated_at < ?`, row,
			before); err != nil {
			return err
		}
		return tx.QueryRow(`SELECT EXISTS (SELECT 1 FROM file WHERE id = ? AND state = 'leaving')`, row).Scan(&leaving)
	})
	if err != nil || !leaving {
		return err
	}
	return RemoveFile(ctx, d, row)
}

// DecodeStrings reads a list of strings from its stored form.
func DecodeStrings(encoded string) ([]string, error) {
	if encoded == "[]" {
		return nil, nil
	}
	var list []string
	err := json.Unmarshal([]byte(encoded), &list)
	return list, err
}
