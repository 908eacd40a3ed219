package kernel

import (
	"errors"
	"fmt"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
)

// ErrOutside is the cause of a damaged passage.
var ErrOutside = errors.New("they are outside its content")

// PassageBits is the number of bits of a passage's id that count passages; the bits above are its partition.
const PassageBits = 32

// PassageRange returns the possible ids of a partition's passages.
func PassageRange(partition int64) db.Range {
	return db.Range{First: partition << PassageBits, Last: (partition+1)<<PassageBits - 1}
}

// OwnerOfPartition returns the row of the user to whom a partition belongs: the owner of its collection.
func OwnerOfPartition(tx db.Tx, partition int64) (owner int64, err error) {
	err = db.Beyond(tx, func() error {
		return tx.QueryRow(`SELECT c.owner_id FROM partition p JOIN collection c ON c.id = p.collection_id WHERE p.id = ?`,
			partition).Scan(&owner)
	})
	return owner, err
}

// SealIn returns the argument for a value of a column of bytes in a partition: sealed, if the store has user keys.
func SealIn(tx db.Tx, partition int64, c sealedrows.SealedColumn, plain []byte) (any, error) {
	if !sealedrows.Seals(tx) {
		return plain, nil
	}
	owner, err := OwnerOfPartition(tx, partition)
	if err != nil {
		return nil, err
	}
	return sealedrows.SealBytes(tx, owner, c, plain)
}

// BatchRows is how many memories are read at once.
const BatchRows = 500

// NextBatch returns the rows of the next memories after one. In a damaged file, the pages of a table can form a cycle;
// then the error is db.ErrCorrupt, and callers' loops end.
func NextBatch(tx db.Tx, after int64) ([]int64, error) {
	rows, err := db.Column[int64](tx, `SELECT id FROM memory WHERE id > ? ORDER BY id LIMIT ?`, after, BatchRows)
	if err != nil {
		return nil, err
	}
	return rows, Ascending(after, rows)
}

// Ascending returns db.ErrCorrupt if the rows after one are not in ascending order, as requested.
func Ascending(after int64, rows []int64) error {
	for _, row := range rows {
		if row <= after {
			return fmt.Errorf("%w: row %d comes after row %d", db.ErrCorrupt, row, after)
		}
		after = row
	}
	return nil
}

// EachBatch iterates over the rows of all memories after one.
func EachBatch(tx db.Tx, after int64, fn func(rows []int64) error) error {
	for {
		rows, err := NextBatch(tx, after)
		if err != nil || len(rows) == 0 {
			return err
		}
		if err := fn(rows); err != nil {
			return err
		}
		after = rows[len(rows)-1]
	}
}
