package sqlite

import (
	"math"
	"math/rand/v2"
	"testing"

	base "github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/vectorform"
)

// The comparison in Go agrees with sqlite-vec, which computes with float32: up to float32's precision for float32
// vectors, and up to 16 bits for short ones.
func TestCosinesAreThoseOfSQLiteVec(t *testing.T) {
	const passages, dimensions = 40, 256
	d := openWords(t)
	random := rand.New(rand.NewPCG(1, 2))
	vector := func() []float32 {
		v := make([]float32, dimensions)
		for i := range v {
			v[i] = float32(random.NormFloat64())
		}
		return v
	}
	query := vectorform.Exact(vector())
	first := inRange.First
	oracle := map[int64]float64{}
	must(t, d.Write(t.Context(), func(tx base.Tx) error {
		if _, err := tx.Exec(`INSERT INTO profile (id, key, model, dimensions, created_at) VALUES (1, 'k', 'm', ?, 0)`,
			dimensions); err != nil {
			return err
		}
		for n := range int64(passages) {
			v := vector()
			exact, stored := vectorform.Exact(v), vectorform.Exact(v)
			if n%2 == 1 {
				stored = vectorform.Short(v)
			}
			if _, err := tx.Exec(`INSERT INTO passage (id, memory_id, start, length, blank, profile_id, vector)
				VALUES (?, 1, 0, 1, 0, 1, ?)`, first+n, stored); err != nil {
				return err
			}
			var distance float64
			if err := tx.QueryRow(`SELECT vec_distance_cosine(?, ?)`, exact, query).Scan(&distance); err != nil {
				return err
			}
			oracle[first+n] = 1 - distance
		}
		return nil
	}))
	seen := 0
	must(t, d.Read(t.Context(), func(tx base.Tx) error {
		return tx.Vectors().Compare(inRange, query, []int64{1}, func(c base.Compared) error {
			seen++
			tolerance := 1e-6
			if (c.Passage-first)%2 == 1 {
				tolerance = 1e-4
			}
			if want := oracle[c.Passage]; math.Abs(c.Cosine-want) > tolerance {
				t.Errorf("passage %d: got a cosine of %v, want %v", c.Passage-first, c.Cosine, want)
			}
			return nil
		})
	}))
	if seen != passages {
		t.Errorf("got %d passages, want %d", seen, passages)
	}
}
