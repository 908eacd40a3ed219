package sqlite

import (
	"math"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Vectors compares with sqlite-vec's distance functions.
func (tx *Tx) Vectors() db.Vectors { return vectors{tx} }

type vectors struct{ *Tx }

func (v vectors) Compare(in db.Range, vector []byte, profiles []int64, fn func(db.Compared) error) error {
	return v.Each(func(row db.Rows) error {
		var c db.Compared
		var distance *float64
		if err := row.Scan(&c.Passage, &c.Memory, &c.Start, &c.Length, &distance); err != nil {
			return err
		}
		c.Cosine = math.NaN()
		if distance != nil {
			c.Cosine = 1 - *distance
		}
		return fn(c)
	}, `SELECT id, memory_id, start, length, vec_distance_cosine(vector, ?) FROM passage
		WHERE id BETWEEN ? AND ? AND length(vector) = ? AND profile_id IN `+db.Integers,
		vector, in.First, in.Last, len(vector), db.List(profiles))
}
