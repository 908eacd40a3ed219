package keyring

import (
	"errors"
	"fmt"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/vectorform"
)

// vectors compares sealed and plain vectors in this program. It leaves out vectors of erased users. An engine's index
// of vectors ([db.Nearer]) has no sealed vectors.
type vectors struct{ in *transactionKeys }

const comparable = `SELECT id, memory_id, start, length, vector FROM passage
	WHERE id BETWEEN ? AND ? AND length(vector) IN (?, ?, ?, ?) AND profile_id IN ` + db.Integers

func (v vectors) Compare(in db.Range, vector []byte, profiles []int64, fn func(db.Compared) error) error {
	return v.compare(in, vector, profiles, fn, comparable)
}

// CompareOf reads the passages of the memories by index.
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
	open := opening{ring: v.in.ring, purpose: sealedrows.PassageVector.Purpose()}
	return db.Stream(v.in.tx, func(row db.Rows) error {
		var c db.Compared
		var stored []byte
		if err := row.Scan(&c.Passage, &c.Memory, &c.Start, &c.Length, &stored); err != nil {
			return err
		}
		if sealed, is := sealedrows.SealedBytes(sealedrows.PassageVector, stored); is {
			var err error
			if stored, err = open.open(v.in.tx.Context(), sealed); errors.Is(err, ErrErased) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("the vector of passage %d: %w", c.Passage, err)
			}
		}
		if err := query.Compare(&c, stored); err != nil {
			return err
		}
		return fn(c)
	}, statement, append([]any{in.First, in.Last, exact, short, sealedrows.StoredBytes(exact),
		sealedrows.StoredBytes(short),
		db.List(profiles)}, args...)...)
}
