package vectorform

import (
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Sealed opens vectors that are stored in another form, beside ones that are stored as they are.
type Sealed struct {
	// Length is the length in bytes of the stored form of a vector, by the vector's own.
	Length func(vector int) int
	// Open returns the vector of a passage, valid until the next call, and false to leave it out.
	Open func(passage int64, stored []byte) (vector []byte, ok bool, err error)
}

// Compare is [db.Vectors.Compare] in this program, for vectors as they come from the table of passages. sealed may be
// nil.
func Compare(tx db.Tx, in db.Range, vector []byte, profiles []int64, sealed *Sealed, fn func(db.Compared) error) error {
	return compare(tx, in, vector, profiles, sealed, fn, ``)
}

// CompareOf is [Compare] for some memories, whose passages it reads by their index.
func CompareOf(tx db.Tx, in db.Range, vector []byte, profiles, memories []int64, sealed *Sealed,
	fn func(db.Compared) error) error {
	return compare(tx, in, vector, profiles, sealed, fn, ` AND memory_id IN `+db.Integers, db.List(memories))
}

func compare(tx db.Tx, in db.Range, vector []byte, profiles []int64, sealed *Sealed, fn func(db.Compared) error,
	condition string, more ...any) error {
	query, err := NewQuery(vector)
	if err != nil {
		return err
	}
	exact, short := query.Lengths()
	lengths := []any{exact, short}
	if sealed != nil {
		lengths = append(lengths, sealed.Length(exact), sealed.Length(short))
	}
	args := append(append([]any{in.First, in.Last}, lengths...), db.List(profiles))
	return db.Stream(tx, func(row db.Rows) error {
		var c db.Compared
		var stored []byte
		if err := row.Scan(&c.Passage, &c.Memory, &c.Start, &c.Length, &stored); err != nil {
			return err
		}
		if sealed != nil {
			var ok bool
			if stored, ok, err = sealed.Open(c.Passage, stored); err != nil || !ok {
				return err
			}
		}
		if err := query.Compare(&c, stored); err != nil {
			return err
		}
		return fn(c)
	}, `SELECT id, memory_id, start, length, vector FROM passage WHERE id BETWEEN ? AND ?
		AND length(vector) IN (?`+strings.Repeat(`, ?`, len(lengths)-1)+`) AND profile_id IN `+db.Integers+condition,
		append(args, more...)...)
}
