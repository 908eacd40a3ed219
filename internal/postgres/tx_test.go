package postgres_test

import (
	"errors"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/postgres"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
)

// A savepoint that stayed would be what a later failure rolls back to.
func TestAFailedWriteLeavesNoSavepoint(t *testing.T) {
	d, err := postgres.Open(t.Context(), pgtest.Address(t), db.Opening{Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	const missing = "3B001"
	err = d.Write(t.Context(), func(tx db.Tx) error {
		if _, err := tx.Exec(`UPDATE users SET role = NULL WHERE id IN (SELECT 1 / 0)`); err == nil {
			t.Error("a write that divides by zero: got no error, want one")
		}
		if _, err := tx.Exec(`INSERT INTO setting (key, value) VALUES ('a', 1)`); err != nil {
			t.Errorf("a write after a failed one: got %v, want no error", err)
		}
		return tx.(*postgres.Tx).ExecScript(`RELEASE guard`)
	})
	var known *postgres.Error
	if !errors.As(err, &known) || known.Code != missing {
		t.Errorf("releasing the savepoint of writes: got %v, want the code %s, as there is none", err, missing)
	}
}
