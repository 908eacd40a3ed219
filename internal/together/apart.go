package together

import (
	"context"
	"sync"
	"time"
)

// Apart has callers that are kept out of a [Queue] because what was done with their calls failed: until one of their
// own goes well, or for a while. Its zero value has none.
type Apart[K comparable] struct {
	mu  sync.Mutex
	all map[K]*caller
}

// caller has one call at a time, so that many of them leave connections to others.
type caller struct {
	turn  chan struct{}
	calls int
	until time.Time
}

const (
	// keptApart is how long a caller is kept apart after a call that failed.
	keptApart = 10 * time.Second
	// mostApart bounds the memory: with more of them, it begins anew.
	mostApart = 10_000
)

// Do runs a call of a caller, which is kept apart unless that goes well. Without add, it does so only for one that is
// kept apart, and reports whether it is.
func (a *Apart[K]) Do(ctx context.Context, who K, add bool, call func() error) (is bool, err error) {
	c := a.enter(who, add)
	if c == nil {
		return false, nil
	}
	well := false
	defer func() { a.leave(who, c, well) }() // also after a panic
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return true, ctx.Err()
	}
	began := time.Now()
	err = call()
	well = err == nil && time.Since(began) < keptApart
	return true, err
}

func (a *Apart[K]) enter(who K, add bool) *caller {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.all[who]
	if c != nil && c.calls == 0 && time.Now().After(c.until) {
		delete(a.all, who)
		c = nil
	}
	if c == nil {
		if !add {
			return nil
		}
		if a.all == nil || len(a.all) >= mostApart {
			a.all = map[K]*caller{}
		}
		c = &caller{turn: make(chan struct{}, 1)}
		a.all[who] = c
	}
	c.calls++
	return c
}

func (a *Apart[K]) leave(who K, c *caller, well bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c.calls--
	if !well {
		c.until = time.Now().Add(keptApart)
	} else if c.calls == 0 && a.all[who] == c {
		delete(a.all, who)
	}
}
