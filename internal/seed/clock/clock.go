// Package clock is a clock for stores that are filled with a history: it begins in the past and is set forward.
package clock

import (
	"sync"
	"time"
)

// Clock is a clock that can be set forward. Each call returns a later time than the one before. It is safe for use by
// several goroutines. Create one with [At].
type Clock struct {
	mu sync.Mutex
	at time.Time
}

// At returns a clock that begins at t.
func At(t time.Time) *Clock { return &Clock{at: t} }

// Now returns the time of the clock, a millisecond after the one it returned before.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(time.Millisecond)
	return c.at
}

// Set moves the clock forward to t. It ignores a t in the past of the clock.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.After(c.at) {
		c.at = t
	}
}
