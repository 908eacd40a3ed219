package kernel

import (
	"errors"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// ErrOutside is the cause of a damaged passage.
var ErrOutside = errors.New("they lie outside its content")

// PassageBits is the number of bits of a passage's id that count passages; the bits above are its partition.
const PassageBits = 32

// PassageRange returns the possible ids of a partition's passages.
func PassageRange(partition int64) db.Range {
	return db.Range{First: partition << PassageBits, Last: (partition+1)<<PassageBits - 1}
}

// BatchRows is how many memories are read at once.
const BatchRows = 500

// NextBatch returns the rows of the next memories after one.
func NextBatch(tx db.Tx, after int64) ([]int64, error) {
	return db.Column[int64](tx, `SELECT id FROM memory WHERE id > ? ORDER BY id LIMIT ?`, after, BatchRows)
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
