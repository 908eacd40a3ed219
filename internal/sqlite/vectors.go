package sqlite

import (
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/vectorform"
)

// Vectors compares vectors in this program, as they come from the table of passages.
func (tx *Tx) Vectors() db.Vectors { return vectors{tx} }

type vectors struct{ *Tx }

func (v vectors) Compare(in db.Range, vector []byte, profiles []int64, fn func(db.Compared) error) error {
	query, err := vectorform.NewQuery(vector)
	if err != nil {
		return err
	}
	exact, short := query.Lengths()
	return v.Each(func(row db.Rows) error {
		var c db.Compared
		var stored []byte
		if err := row.Scan(&c.Passage, &c.Memory, &c.Start, &c.Length, &stored); err != nil {
			return err
		}
		if err := query.Compare(&c, stored); err != nil {
			return err
		}
		return fn(c)
	}, `SELECT id, memory_id, start, length, vector FROM passage
		WHERE id BETWEEN ? AND ? AND length(vector) IN (?, ?) AND profile_id IN `+db.Integers,
		in.First, in.Last, exact, short, db.List(profiles))
}
