// Package slots bounds how much work runs at once.
package slots

import "context"

// Slots has one element per piece of work that runs; its capacity is how many may run at once.
type Slots chan struct{}

// Do runs fn once there is a slot. It returns the error of fn, or that of ctx if no slot became free before its end.
func (s Slots) Do(ctx context.Context, fn func() error) error {
	select {
	case s <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s }()
	return fn()
}
