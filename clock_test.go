package souvenir

import (
	"sync/atomic"
	"time"
)

// movingClock is a clock that a test moves. The background worker asks it, too.
type movingClock struct{ micros atomic.Int64 }

func newMovingClock(start time.Time) *movingClock {
	c := new(movingClock)
	c.micros.Store(start.UnixMicro())
	return c
}

func (c *movingClock) Now() time.Time       { return time.UnixMicro(c.micros.Load()).UTC() }
func (c *movingClock) Pass(d time.Duration) { c.micros.Add(d.Microseconds()) }

// Tick is Now that passes an hour first: no two answers are the same.
func (c *movingClock) Tick() time.Time {
	return time.UnixMicro(c.micros.Add(time.Hour.Microseconds())).UTC()
}
