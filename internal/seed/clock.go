package seed

import (
	"sync"
	"time"
)

// clock is the time of a store that is being filled: it begins some months ago and is set forward, so that its
// content spans many days. It never returns the same time twice, so that a later call gives a later time.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(time.Millisecond)
	return c.at
}

// set moves the clock forward to a time; it ignores a time in the past.
func (c *clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.After(c.at) {
		c.at = t
	}
}
