package db

import (
	"context"
	"time"
)

type freeing struct{}

// Freeing marks the writes of a context as freeing space: on a full disk they may use the reserve.
func Freeing(ctx context.Context) context.Context { return context.WithValue(ctx, freeing{}, true) }

// IsFreeing reports whether a context is marked by [Freeing].
func IsFreeing(ctx context.Context) bool {
	is, _ := ctx.Value(freeing{}).(bool)
	return is
}

type alone struct{}

// Alone marks the writes of a context: each needs its own transaction, spans several calls, and may hold the writer for
// long. An engine with group commits must not let other writes share its commit, and waiting writers give up after a
// limited time.
func Alone(ctx context.Context) context.Context {
	return context.WithValue(context.WithValue(ctx, freeing{}, false), alone{}, true)
}

// IsAlone reports whether a context is marked by [Alone].
func IsAlone(ctx context.Context) bool { return ctx.Value(alone{}) != nil }

type yielding struct{}

// Yielding marks the writes of a context as parts of a long job: each starts its own transaction, so that the finished
// work of other writers does not wait for it. Such a write ends early when [ShouldYield] says so.
func Yielding(ctx context.Context) context.Context { return context.WithValue(ctx, yielding{}, true) }

// IsYielding reports whether a context is marked by [Yielding].
func IsYielding(ctx context.Context) bool { return ctx.Value(yielding{}) != nil }

// yieldAfter is how long other writers wait for a part of a long job, not counting its commit.
const yieldAfter = 3 * time.Millisecond

// ShouldYield reports whether a part of a long job, which began at a time, should end because other writers wait. It is
// false for engines whose writers do not wait for each other.
func ShouldYield(tx Tx, began time.Time) bool {
	c, says := Stored(tx).(Contender)
	return says && time.Since(began) >= yieldAfter && c.Contended()
}

type hurried struct{}

// Hurried marks the writes of a context, which run one at a time and hold up many calls. Each waits for a lock for at
// most the given time, and then fails with ErrBusy. If the context has a deadline, the write does not wait much past it
// for the answer to its COMMIT, either. An engine keeps a connection for such a write besides all others. Only an
// [Ungrouped] engine gets such writes.
func Hurried(ctx context.Context, locks time.Duration) context.Context {
	return context.WithValue(ctx, hurried{}, locks)
}

// IsHurried reports whether a context is marked by [Hurried], and how long its writes wait for a lock.
func IsHurried(ctx context.Context) (locks time.Duration, is bool) {
	locks, is = ctx.Value(hurried{}).(time.Duration)
	return locks, is
}
