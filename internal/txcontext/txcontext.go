// Package txcontext carries a snapshot or a transaction of a database from call to call in a context.
package txcontext

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Errors of calls with the context of a snapshot or transaction; see [DB].
var (
	ErrEnded    = errors.New("the snapshot or transaction that the context belongs to has ended")
	ErrReadOnly = errors.New("the context belongs to a snapshot, which is read-only")
	errWaited   = fmt.Errorf("another call with the context of this transaction takes too long: %w", db.ErrBusy)
)

// DB is a [db.DB] whose snapshots and transactions can span several calls: with the context that [DB.Snapshot]
// passes on, Read runs in that snapshot instead of one of its own.
type DB struct {
	db.DB
	Wrote    func()        // called after each durable write; nil for none
	Patience time.Duration // how long a call waits for another one with its context; 0: 30 seconds

	// OnlyRecords makes it read-only, except for [DB.Record] and with contexts of [Always].
	OnlyRecords bool

	writing atomic.Int64
}

type always struct{}

// Always returns a context whose writes also a DB with OnlyRecords runs.
func Always(ctx context.Context) context.Context { return context.WithValue(ctx, always{}, true) }

// ReadOnly reports whether Write is refused.
func (d *DB) ReadOnly() bool { return d.OnlyRecords || d.DB.ReadOnly() }

// Writing returns how many writes are running or waiting.
func (d *DB) Writing() int { return int(d.writing.Load()) }

// write runs a Write of the DB.
func (d *DB) write(ctx context.Context, fn func(db.Tx) error) error {
	if d.OnlyRecords && ctx.Value(always{}) == nil {
		return db.ErrReadOnly
	}
	return d.Record(ctx, fn)
}

// Record runs a Write of the DB outside of any transaction, also with OnlyRecords: for an entry of the audit log.
func (d *DB) Record(ctx context.Context, fn func(db.Tx) error) error {
	d.writing.Add(1)
	defer d.writing.Add(-1)
	err := d.DB.Write(ctx, fn)
	if err == nil && d.Wrote != nil {
		d.Wrote()
	}
	return err
}

// spanKey is the key of a database's open snapshot in a context.
type spanKey struct{ d *DB }

// span is a transaction that spans several calls. One of them runs at a time.
type span struct {
	tx       db.Tx
	turn     chan struct{} // holds one element while a call runs
	writes   bool          // begun by [DB.Transaction]
	patience time.Duration

	mu     sync.Mutex // guards the rest
	failed error      // the reason why it must not be committed
	ended  bool
	atEnd  []func(error) // functions to call after it
}

func (d *DB) open(ctx context.Context) *span {
	s, _ := ctx.Value(spanKey{d}).(*span)
	return s
}

// InSnapshot reports whether a context belongs to a snapshot.
func (d *DB) InSnapshot(ctx context.Context) bool {
	s := d.open(ctx)
	return s != nil && !s.writes
}

// InTransaction reports whether a context belongs to a transaction.
func (d *DB) InTransaction(ctx context.Context) bool {
	s := d.open(ctx)
	return s != nil && s.writes
}

// Outside returns the context without its snapshot or transaction.
func (d *DB) Outside(ctx context.Context) context.Context {
	if d.open(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, spanKey{d}, (*span)(nil))
}

// AtEnd calls fn when the context's snapshot or transaction has ended: with nil after a snapshot or once everything in
// the transaction is durable, or with the reason why it was rolled back. Outside of both it calls fn at once.
func (d *DB) AtEnd(ctx context.Context, fn func(undone error)) {
	if s := d.open(ctx); s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.ended {
			s.atEnd = append(s.atEnd, fn)
		}
		return
	}
	fn(nil)
}

// Read runs fn in the context's snapshot or transaction, if any, and otherwise as the DB does.
func (d *DB) Read(ctx context.Context, fn func(db.Tx) error) error {
	s := d.open(ctx)
	if s == nil {
		return d.DB.Read(ctx, fn)
	}
	return s.run(ctx, func() error { return fn(s.tx) })
}

func (d *DB) newSpan(tx db.Tx, writes bool) *span {
	return &span{tx: tx, turn: make(chan struct{}, 1), writes: writes, patience: cmp.Or(d.Patience, 30*time.Second)}
}

// run runs a call once it has the turn.
func (s *span) run(ctx context.Context, fn func() error) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	defer func() { <-s.turn }()
	if err := s.usable(ctx); err != nil {
		return err
	}
	return fn()
}

// wait returns nil once the call has the turn. A call made inside the function of another call gives up after a time.
func (s *span) wait(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	default:
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.patience, errWaited)
	defer cancel()
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), errWaited) {
			return errWaited
		}
		return ctx.Err()
	}
}

func (s *span) usable(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		return ErrEnded
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return s.failed
}

// Write runs fn as the DB does. In a snapshot it returns ErrReadOnly. In a transaction it is part of that: after an
// error or a panic, fn's writes are rolled back, and the rest stays.
func (d *DB) Write(ctx context.Context, fn func(db.Tx) error) error {
	s := d.open(ctx)
	switch {
	case s == nil:
		return d.write(ctx, fn)
	case !s.writes:
		return ErrReadOnly
	}
	return s.run(ctx, func() error { return s.tx.Savepoint(func() error { return fn(s.tx) }) })
}

// Transaction runs fn with a context whose writes are one transaction: all are durable when it returns nil, and none
// remain after an error or a panic of fn. Reads with the context see the earlier writes. Within a transaction it is
// part of that one, and its error ends both; in a snapshot it returns ErrReadOnly. fn may run again, as in
// [db.DB.Write], and other writers wait for it.
func (d *DB) Transaction(ctx context.Context, fn func(context.Context) error) (err error) {
	if s := d.open(ctx); s != nil {
		return s.join(ctx, fn)
	}
	var runs []*span
	defer func() {
		for i, s := range runs {
			outcome := err
			if i < len(runs)-1 {
				outcome = errors.New("the transaction ran again")
			}
			s.callAtEnd(outcome)
		}
	}()
	err = errors.New("the transaction panicked") // replaced if fn returns
	err = d.write(db.Alone(ctx), func(tx db.Tx) error {
		s := d.newSpan(tx, true)
		runs = append(runs, s)
		defer s.end()
		if err := fn(context.WithValue(ctx, spanKey{d}, s)); err != nil {
			return err
		}
		return s.usable(ctx) // if the context has ended, nothing is committed
	})
	return err
}

// join runs fn as a part of an open transaction; an error of fn is the transaction's.
func (s *span) join(ctx context.Context, fn func(context.Context) error) error {
	if !s.writes {
		return ErrReadOnly
	}
	err := errors.New("a transaction within the transaction has panicked")
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil && s.failed == nil {
			s.failed = err
		}
	}()
	err = fn(ctx)
	return err
}

// end waits for the calls of other goroutines.
func (s *span) end() {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

// callAtEnd calls the functions for the end.
func (s *span) callAtEnd(undone error) {
	for _, f := range s.atEnd {
		f(undone)
	}
}

// Snapshot runs fn with a context whose reads all see one snapshot, and whose writes are refused. Within a snapshot it
// uses that one. fn runs once, as in [db.DB.Read].
func (d *DB) Snapshot(ctx context.Context, fn func(context.Context) error) error {
	if d.open(ctx) != nil {
		return fn(ctx)
	}
	var s *span
	defer func() {
		if s != nil {
			s.callAtEnd(nil)
		}
	}()
	return d.DB.Read(ctx, func(tx db.Tx) error {
		s = d.newSpan(tx, false)
		defer s.end()
		return fn(context.WithValue(ctx, spanKey{d}, s))
	})
}
