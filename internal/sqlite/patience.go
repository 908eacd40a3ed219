package sqlite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// patience says how to wait for other processes' locks: by trying again, since SQLite does not signal when a lock
// is freed, and its own waiting cannot be cancelled.
type patience struct {
	until  time.Time       // after this, the lock's error is returned
	closed <-chan struct{} // ends all waiting
}

// retry calls f until it returns something other than a lock's error.
func (p patience) retry(ctx context.Context, f func() error) error {
	pause := 500 * time.Microsecond
	for {
		err := f()
		if code := primaryCode(err); code != codeBusy && code != codeProtocol {
			return err
		}
		if !time.Now().Before(p.until) {
			return err
		}
		// A busy writer leaves short gaps: a long pause would always miss them. The random part keeps several
		// waiters from trying in step.
		timer := time.NewTimer(pause/2 + rand.N(pause))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-p.closed:
			timer.Stop()
			return fmt.Errorf("sqlite: waiting for a lock: %w", db.ErrClosed)
		}
		pause = min(pause*5/4, 5*time.Millisecond)
	}
}

// await receives a signal that another transaction of this process has to send. Now and then it calls giveUp, and
// returns its error if there is one.
func (d *DB) await(ctx context.Context, c <-chan struct{}, giveUp func(waited time.Duration) error) error {
	began := time.Now()
	look := time.NewTicker(min(2*time.Second, d.lockTimeout))
	defer look.Stop()
	for {
		select {
		case <-c:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
			if err := giveUp(time.Since(began)); err != nil {
				return err
			}
		}
	}
}
