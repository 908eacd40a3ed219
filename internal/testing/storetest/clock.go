package storetest

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Clock is a clock that only tests move. The zero value is at 2026-03-01 09:00 UTC.
type Clock struct{ passed atomic.Int64 }

var start = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// Now returns the time, for [souvenir.Options].
func (c *Clock) Now() time.Time { return start.Add(time.Duration(c.passed.Load())) }

// Pass moves the clock; a negative duration moves it back, as people and time servers do.
func (c *Clock) Pass(d time.Duration) { c.passed.Add(int64(d)) }

// IDs makes distinct ids whose order differs from the order of creation, so that a test sees whether an order
// depends on the id or only on the time.
type IDs struct{ made atomic.Int64 }

// Next returns a new id, for [souvenir.Options].
func (i *IDs) Next() string {
	n := i.made.Add(1)
	return fmt.Sprintf("%05d-%d", n*61_803%99_991, n) // 99,991 is prime: the first part takes every value once
}
