// Package sharedstate keeps short-lived state that all processes on one database share, in the table shared_state, such
// as which process does a piece of work. All of it expires by the database's clock, so a crashed process delays the
// others only for a limited time.
package sharedstate

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Lease is a right that only one process on a database can have at a time.
type Lease struct {
	db    db.DB
	key   string
	owner []byte
	life  time.Duration
}

// NewLease returns a lease with a name, for one owner. It is not taken yet.
func NewLease(d db.DB, name string, life time.Duration) *Lease {
	return &Lease{db: d, key: "lease/" + name, owner: []byte(rand.Text()), life: life}
}

// Take takes or renews the lease for its lifetime. It reports false while another owner has it.
func (l *Lease) Take(ctx context.Context) (held bool, err error) {
	err = l.db.Write(ctx, func(tx db.Tx) error {
		got, err := tx.Exec(`INSERT INTO shared_state (key, value, expires_at) VALUES (?1, ?2, `+db.Clock+` + ?3)
			ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at
			WHERE shared_state.value = excluded.value OR shared_state.expires_at <= excluded.expires_at - ?3`, l.key, l.owner,
			l.life.Microseconds())
		held = got.RowsAffected > 0
		return err
	})
	return held && err == nil, err
}

// Release gives the lease back, if this owner has it.
func (l *Lease) Release(ctx context.Context) error {
	return l.db.Write(ctx, func(tx db.Tx) error {
		_, err := tx.Exec(`DELETE FROM shared_state WHERE key = ? AND value = ?`, l.key, l.owner)
		return err
	})
}

// While runs fn if no other owner has the lease, and keeps the lease until fn returns. It reports whether fn ran. fn
// continues even if the lease cannot be renewed, so it must be correct even if another process runs it as well.
func (l *Lease) While(ctx context.Context, fn func() error) (ran bool, err error) {
	held, err := l.Take(ctx)
	if err != nil || !held {
		return false, err
	}
	renewing, end := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		again := time.NewTicker(l.life / 3)
		defer again.Stop()
		for {
			select {
			case <-renewing.Done():
				return
			case <-again.C:
				_, _ = l.Take(renewing) // another owner may take a lost lease
			}
		}
	})
	defer func() {
		end()
		done.Wait()
		if gone := l.Release(context.WithoutCancel(ctx)); err == nil && ctx.Err() == nil {
			err = gone
		}
	}()
	return true, fn()
}
