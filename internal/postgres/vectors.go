package postgres

import (
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/vectorform"
)

// Vectors compares vectors in this program, as they come from the table of passages.
func (tx *Tx) Vectors() db.Vectors { return vectors{tx} }

type vectors struct{ *Tx }

const comparable = `SELECT id, memory_id, start, length, vector FROM passage
	WHERE id BETWEEN ? AND ? AND length(vector) IN (?, ?) AND profile_id IN ` + db.Integers

func (v vectors) Compare(in db.Range, vector []byte, profiles []int64, fn func(db.Compared) error) error {
	return v.compare(in, vector, profiles, fn, comparable)
}

// CompareOf reads the passages of the memories by their index.
func (v vectors) CompareOf(in db.Range, vector []byte, profiles, memories []int64,
	fn func(db.Compared) error) error {
	return v.compare(in, vector, profiles, fn, comparable+` AND memory_id IN `+db.Integers, db.List(memories))
}

func (v vectors) compare(in db.Range, vector []byte, profiles []int64, fn func(db.Compared) error, statement string,
	args ...any) error {
	query, err := vectorform.NewQuery(vector)
	if err != nil {
		return err
	}
	exact, short := query.Lengths()
	return db.Stream(v.Tx, func(row db.Rows) error {
		var c db.Compared
		var stored []byte
		if err := row.Scan(&c.Passage, &c.Memory, &c.Start, &c.Length, &stored); err != nil {
			return err
		}
		if err := query.Compare(&c, stored); err != nil {
			return err
		}
		return fn(c)
	}, statement, append([]any{in.First, in.Last, exact, short, db.List(profiles)}, args...)...)
}
