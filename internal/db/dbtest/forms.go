package dbtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/vectorform"
)

// bothForms compares vectors in the short form and in the exact one, and bytes of neither.
func bothForms(t *testing.T, d db.DB, memory, first int64, profiles []int64) {
	east, north := make([]float32, 64), make([]float32, 64)
	east[0], north[0], north[63] = 1, 0.6, 0.8
	spoilt := vectorform.Short(east)
	spoilt[0] = 0
	in := db.Range{First: first + 10, Last: first + 12}
	write(t, d, func(tx db.Tx) error {
		for n, v := range [][]byte{vectorform.Short(north), vectorform.Exact(north), vectorform.Short(make([]float32, 64)),
			spoilt} {
			if _, err := tx.Exec(`INSERT INTO passage (id, memory_id, start, length, blank, profile_id, vector) `+
				`VALUES (?, ?, 0, 7, 0, ?, ?)`, in.First+int64(n), memory, profiles[0], v); err != nil {
				return err
			}
		}
		return nil
	})
	var found []string
	compare := func(tx db.Tx) error {
		found = nil
		return tx.Vectors().Compare(in, vectorform.Exact(east), profiles, func(c db.Compared) error {
			found = append(found, fmt.Sprintf("%d %.4f", c.Passage-in.First, c.Cosine))
			return nil
		})
	}
	read(t, d, compare)
	slices.Sort(found)
	equal(t, "short, exact and without a direction", strings.Join(found, ", "), "0 0.6000, 1 0.6000, 2 NaN")
	in.Last++
	is(t, "bytes of no form", d.Read(t.Context(), compare), db.ErrCorrupt)
}
