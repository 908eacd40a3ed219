package batch

import (
	"context"
	"sync"
	"time"
)

// Quarantine keeps callers out of a [Queue] after a batch with one of their calls failed, until one of their calls
// succeeds or a time has passed. Its zero value is empty.
type Quarantine[K comparable] struct {
	mu  sync.Mutex
	all map[K]*caller
}

// caller runs one call at a time, so that many callers leave connections for others.
type caller struct {
	turn  chan struct{}
	calls int
	until time.Time
}

const (
	// quarantined is how long a caller stays after a failed call.
	quarantined = 10 * time.Second
	// mostCallers bounds the memory: with more of them, all are released.
	mostCallers = 10_000
)

// Do runs a call of a caller. If the call succeeds, the caller is released, and otherwise stays in quarantine. Without
// add, it runs the call only if the caller is in quarantine, and reports whether it is.
func (q *Quarantine[K]) Do(ctx context.Context, who K, add bool, call func() error) (is bool, err error) {
	c := q.enter(who, add)
	if c == nil {
		return false, nil
	}
	well := false
	defer func() { q.leave(who, c, well) }() // also after a panic
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return true, ctx.Err()
	}
	began := time.Now()
	err = call()
	well = err == nil && time.Since(began) < quarantined
	return true, err
}

func (q *Quarantine[K]) enter(who K, add bool) *caller {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.all[who]
	if c != nil && c.calls == 0 && time.Now().After(c.until) {
		delete(q.all, who)
		c = nil
	}
	if c == nil {
		if !add {
			return nil
		}
		if q.all == nil || len(q.all) >= mostCallers {
			q.all = map[K]*caller{}
		}
		c = &caller{turn: make(chan struct{}, 1)}
		q.all[who] = c
	}
	c.calls++
	return c
}

func (q *Quarantine[K]) leave(who K, c *caller, well bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c.calls--
	if !well {
		c.until = time.Now().Add(quarantined)
	} else if c.calls == 0 && q.all[who] == c {
		delete(q.all, who)
	}
}
