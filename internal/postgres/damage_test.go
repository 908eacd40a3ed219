package postgres_test

import (
	"errors"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/postgres"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
)

func TestOnlyStoredDataCountsAsDamaged(t *testing.T) {
	d, err := postgres.Open(t.Context(), pgtest.Address(t), db.Opening{Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, c := range []struct {
		statement string
		class     error
		damaged   bool
	}{
		{`SELECT 'no JSON'::jsonb`, nil, true},
		{`SELECT 1 / (SELECT 0)`, nil, true},
		{`SELECT missing FROM setting`, nil, false},
		{`SELECT pg_cancel_backend(pg_backend_pid()), pg_sleep(60)`, db.ErrInterrupted, false},
		{`SELECT pg_terminate_backend(pg_backend_pid()), pg_sleep(60)`, db.ErrUnavailable, false},
	} {
		err := d.Read(t.Context(), func(tx db.Tx) error {
			var value any
			return tx.QueryRow(c.statement).Scan(&value)
		})
		if err == nil || c.class != nil && !errors.Is(err, c.class) || d.Damaged(err) != c.damaged {
			t.Errorf("%s: got %v, damage %t; want class %v, damage %t", c.statement, err, d.Damaged(err), c.class, c.damaged)
		}
	}
}
