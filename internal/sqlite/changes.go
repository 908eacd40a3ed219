package sqlite

import (
	"fmt"
	"strconv"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Changes returns the log that triggers on memory and passage write.
func (tx *Tx) Changes() db.Changes { return changes{tx} }

type changes struct{ *Tx }

// The mark is the number of the last row of the log.
func (c changes) Mark() (db.Mark, error) {
	var last int64
	err := c.QueryRow(`SELECT coalesce(max(seq), 0) FROM change`).Scan(&last)
	return markOf(last), err
}

func markOf(last int64) db.Mark {
	if last == 0 {
		return ""
	}
	return db.Mark(strconv.FormatInt(last, 10))
}

func (c changes) Since(mark db.Mark, limit int) ([]int64, db.Mark, bool, error) {
	seen := int64(0)
	if mark != "" {
		var err error
		if seen, err = strconv.ParseInt(string(mark), 10, 64); err != nil {
			return nil, mark, false, fmt.Errorf("sqlite: a mark of another engine: %w", err)
		}
	}
	var first, last int64
	err := c.QueryRow(`SELECT coalesce((SELECT min(seq) FROM change), 0), coalesce((SELECT max(seq) FROM change), 0)`).
		Scan(&first, &last)
	if err != nil || seen < first-1 {
		return nil, mark, false, err
	}
	memories, err := db.Column[int64](c, `SELECT DISTINCT memory_id FROM change WHERE seq > ? LIMIT ?`, seen, limit+1)
	if err != nil || len(memories) > limit {
		return nil, mark, false, err
	}
	return memories, markOf(max(seen, last)), true, nil
}
