//go:build !souvenir_cgo

package sqlite

import (
	"bytes"
	"math/rand/v2"
	"testing"

	base "github.com/souvenir-ai/souvenir/internal/db"
)

// A blob has the bytes that a query returns, in the given memory if that is enough, and in the snapshot of its
// transaction. Other values, and missing ones, are left to a query.
func TestBlobsAreThoseOfQueries(t *testing.T) {
	d := openWords(t)
	random := rand.NewChaCha8([32]byte{1})
	sizes := []int{1, 4_000, 300_000, 70_000}
	must(t, d.Write(t.Context(), func(tx base.Tx) error {
		for i, size := range sizes {
			data := make([]byte, size)
			_, _ = random.Read(data) // it never fails
			if _, err := tx.Exec(`INSERT INTO passage (id, memory_id, start, length, blank, vector)
				VALUES (?, 1, 0, 1, 0, ?)`, inRange.First+int64(i), data); err != nil {
				return err
			}
		}
		return nil
	}))
	var into []byte
	must(t, d.Read(t.Context(), func(tx base.Tx) error {
		for i, size := range sizes {
			row := inRange.First + int64(i)
			var want []byte
			if err := tx.QueryRow(`SELECT vector FROM passage WHERE id = ?`, row).Scan(&want); err != nil {
				return err
			}
			if i == 2 { // another transaction may change it meanwhile
				must(t, d.Write(t.Context(), func(tx base.Tx) error {
					_, err := tx.Exec(`UPDATE passage SET vector = x'00' WHERE id = ?`, row)
					return err
				}))
			}
			got, ok := tx.(base.Blobs).Blob(into, "passage", "vector", row)
			if !ok || !bytes.Equal(got, want) {
				t.Errorf("blob of %d bytes: got %d bytes and %v, want what a query returns", size, len(got), ok)
			}
			if reused := len(into) > 0 && &into[0] == &got[0]; reused != (cap(into) >= size) {
				t.Errorf("blob of %d bytes into %d: reused %v, want %v", size, cap(into), reused, !reused)
			}
			into = got
		}
		for _, column := range []string{"vector", "start", "missing"} {
			row := inRange.First
			if column == "vector" {
				row += 100 // there is none
			}
			if got, ok := tx.(base.Blobs).Blob(into, "passage", column, row); ok {
				t.Errorf("column %s of row %d: got %d bytes, want none", column, row, len(got))
			}
		}
		return nil
	}))
}
