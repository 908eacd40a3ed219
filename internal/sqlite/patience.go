package sqlite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// patience is how waiting for other processes' locks is done: by trying again, since SQLite
// tells nobody when a lock is freed, and its own waiting cannot be cancelled.
type patience struct {
	until  time.Time       // after this, the lock's error is the answer
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
		// The gaps that a busy writer leaves are short: a long pause would miss them for ever. The
		// random part keeps several waiters from trying in step.
		timer := time.NewTimer(pause/2 + rand.N(pause))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-p.closed:
			timer.Stop()
			return fmt.Errorf("sqlite: waiting for a lock: %w", ErrClosed)
		}
		pause = min(pause*5/4, 5*time.Millisecond)
	}
}
