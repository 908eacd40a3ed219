package sqlite

import "github.com/souvenir-ai/souvenir/internal/db"

// Changes returns the log that triggers on memory and passage write.
func (tx *Tx) Changes() db.Changes { return changes{tx} }

type changes struct{ *Tx }

func (c changes) Mark() (m db.Mark, err error) {
	err = c.QueryRow(`SELECT coalesce(max(seq), 0) FROM change`).Scan(&m.High)
	return m, err
}

func (c changes) Since(mark db.Mark, limit int) ([]int64, db.Mark, bool, error) {
	var first, last int64
	err := c.QueryRow(`SELECT coalesce((SELECT min(seq) FROM change), 0), coalesce((SELECT max(seq) FROM change), 0)`).
		Scan(&first, &last)
	if err != nil || mark.High < first-1 {
		return nil, mark, false, err
	}
	memories, err := db.Column[int64](c, `SELECT DISTINCT memory_id FROM change WHERE seq > ? LIMIT ?`, mark.High, limit+1)
	if err != nil || len(memories) > limit {
		return nil, mark, false, err
	}
	return memories, db.Mark{High: max(mark.High, last)}, true, nil
}
