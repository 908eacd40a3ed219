package postgres

import (
	"encoding/binary"
	"math"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Vectors compares vectors in this program, as they come from the table of passages.
func (tx *Tx) Vectors() db.Vectors { return vectors{tx} }

type vectors struct{ *Tx }

const comparable = `SELECT id, memory_id, start, length, vector FROM passage
	WHERE id BETWEEN ? AND ? AND length(vector) = ? AND profile_id IN ` + db.Integers

func (v vectors) Compare(in db.Range, vector []byte, profiles []int64, fn func(db.Compared) error) error {
	return v.compare(vector, fn, comparable, in.First, in.Last, len(vector), db.List(profiles))
}

// CompareOf reads the passages of the memories by their index.
func (v vectors) CompareOf(in db.Range, vector []byte, profiles, memories []int64,
	fn func(db.Compared) error) error {
	return v.compare(vector, fn, comparable+` AND memory_id IN `+db.Integers, in.First, in.Last, len(vector),
		db.List(profiles), db.List(memories))
}

func (v vectors) compare(vector []byte, fn func(db.Compared) error, statement string, args ...any) error {
	query := floats(vector)
	return db.Stream(v.Tx, func(row db.Rows) error {
		var c db.Compared
		var other []byte
		if err := row.Scan(&c.Passage, &c.Memory, &c.Start, &c.Length, &other); err != nil {
			return err
		}
		c.Cosine = cosine(query, other)
		return fn(c)
	}, statement, args...)
}

func floats(vector []byte) []float32 {
	values := make([]float32, len(vector)/4)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(vector[4*i:]))
	}
	return values
}

// cosine is NaN where a vector has no direction.
func cosine(a []float32, encoded []byte) float64 {
	var product, aa, bb float64
	for i, x := range a {
		y := float64(math.Float32frombits(binary.LittleEndian.Uint32(encoded[4*i:])))
		product += float64(x) * y
		aa += float64(x) * float64(x)
		bb += y * y
	}
	return product / (math.Sqrt(aa) * math.Sqrt(bb))
}
