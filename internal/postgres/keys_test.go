package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/postgres"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
)

// Calls for user keys keep the promises of package db about transactions.
func TestKeysKeepTheContractOfTransactions(t *testing.T) {
	pgtest.Server(t)
	pgtest.NotOnCitus(t, "user keys are in a schema of their own on the coordinator")
	k, err := postgres.OpenKeys(t.Context(), pgtest.Address(t), db.Opening{Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	const add = `INSERT INTO user_key (id, owner, made_at) VALUES (?, ?, 0)`
	keys := func() (n int) {
		t.Helper()
		if err := k.Read(t.Context(), func(tx db.Tx) error {
			return tx.QueryRow(`SELECT count(*) FROM user_key`).Scan(&n)
		}); err != nil {
			t.Error(err)
		}
		return n
	}
	t.Run("a conflict that the function gives another error runs again", func(t *testing.T) {
		runs := 0
		err := k.Write(t.Context(), func(tx db.Tx) error {
			runs++
			var n int
			if err := tx.QueryRow(`SELECT count(*) FROM user_key`).Scan(&n); err != nil {
				return err
			}
			if runs == 1 {
				if err := k.Write(t.Context(), func(tx db.Tx) error {
					_, err := tx.Exec(add, []byte("one"), []byte("ann"))
					if err == nil {
						_, err = tx.Exec(`UPDATE ring SET store = ?`, n)
					}
					return err
				}); err != nil {
					return err
				}
			}
			if _, err := tx.Exec(add, []byte("one"), []byte("ann")); n == 0 && err != nil {
				return errors.New("mine")
			}
			return nil
		})
		if err != nil || runs != 2 || keys() != 1 {
			t.Errorf("got %v after %d runs, and %d keys, want none after 2, and 1", err, runs, keys())
		}
	})
	t.Run("a context that ends within stores nothing", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		err := k.Write(ctx, func(tx db.Tx) error {
			_, err := tx.Exec(add, []byte("two"), []byte("ben"))
			cancel()
			return err
		})
		if !errors.Is(err, context.Canceled) || keys() != 1 {
			t.Errorf("got %v and %d keys, want %v and 1", err, keys(), context.Canceled)
		}
	})
	k.SetPatience(500 * time.Millisecond)
	for what, call := range map[string]func(context.Context, func(db.Tx) error) error{"Read": k.Read, "Write": k.Write} {
		t.Run("a "+what+" within a "+what, func(t *testing.T) {
			err := call(t.Context(), func(tx db.Tx) error {
				return call(tx.Context(), func(db.Tx) error { return nil })
			})
			if !errors.Is(err, db.ErrNested) {
				t.Errorf("with its context: got %v, want %v", err, db.ErrNested)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			var within func(db.Tx) error
			within = func(db.Tx) error { return call(ctx, within) }
			if err := call(ctx, within); !errors.Is(err, db.ErrBusy) {
				t.Errorf("and ever more of them, with another: got %v, want %v", err, db.ErrBusy)
			}
		})
	}
}
