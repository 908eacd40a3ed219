package seed

import (
	"sync"
	"time"
)

// clock tells the time of a store that is being filled: it begins some months ago and is set forward, so that what is
// stored has been stored on many days. It never tells the same time twice, so that what came later is later.
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

// set moves the clock forward to a time; one that has passed is left out.
func (c *clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.After(c.at) {
		c.at = t
	}
}
