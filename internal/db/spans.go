package db

import (
	"context"
	"errors"
	"sync"
)

// Errors of calls within a transaction that spans several calls; see [Spanning].
var (
	ErrSpanEnded    = errors.New("the transaction that the context belongs to has ended")
	ErrSpanReadOnly = errors.New("the context belongs to a snapshot, which is only for reading")
)

// Spanning is a DB whose transactions can span several calls: with the context that [Spanning.Snapshot] and
// [Spanning.Transaction] pass on, Read and Write run in that transaction instead of one of their own.
type Spanning struct{ DB }

// spanKey is the key of a database's open transaction in a context.
type spanKey struct{ d *Spanning }

// span is a transaction that spans several calls. One of them runs at a time.
type span struct {
	mu     sync.Mutex
	tx     Tx
	ended  bool
	failed error // of a write within it; the transaction is then not committed
}

func (d *Spanning) open(ctx context.Context) *span {
	s, _ := ctx.Value(spanKey{d}).(*span)
	return s
}

// InSnapshot reports whether a context belongs to a snapshot.
func (d *Spanning) InSnapshot(ctx context.Context) bool {
	s := d.open(ctx)
	return s != nil && !s.tx.Writable()
}

// run runs fn in the span.
func (s *span) run(ctx context.Context, fn func(Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		return ErrSpanEnded
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fn(s.tx)
}

func (s *span) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	return s.failed
}

// Read runs fn in the context's transaction, or else as the DB does.
func (d *Spanning) Read(ctx context.Context, fn func(Tx) error) error {
	if s := d.open(ctx); s != nil {
		return s.run(ctx, fn)
	}
	return d.DB.Read(ctx, fn)
}

// Write runs fn in the context's transaction, or else as the DB does. A snapshot refuses it with ErrSpanReadOnly. If fn
// fails in a transaction, nothing of that transaction is committed, even if the caller goes on.
func (d *Spanning) Write(ctx context.Context, fn func(Tx) error) error {
	s := d.open(ctx)
	if s == nil {
		return d.DB.Write(ctx, fn)
	}
	return s.run(ctx, func(tx Tx) error {
		if !tx.Writable() {
			return ErrSpanReadOnly
		}
		err := fn(tx)
		if err != nil && s.failed == nil {
			s.failed = err
		}
		return err
	})
}

// Snapshot runs fn with a context whose reads all see the state of one moment, and whose writes are refused. Within a
// transaction that the context belongs to, it runs in that one.
func (d *Spanning) Snapshot(ctx context.Context, fn func(context.Context) error) error {
	return d.span(ctx, d.DB.Read, fn)
}

// Transaction runs fn with a context whose reads and writes are one transaction, as [DB.Write] describes it: fn may run
// again. Within another transaction it is a part of that one.
func (d *Spanning) Transaction(ctx context.Context, fn func(context.Context) error) error {
	if d.open(ctx) != nil {
		if err := d.Write(ctx, func(Tx) error { return nil }); err != nil { // a snapshot
			return err
		}
	}
	return d.span(ctx, d.DB.Write, fn)
}

func (d *Spanning) span(ctx context.Context, begin func(context.Context, func(Tx) error) error,
	fn func(context.Context) error) error {
	if d.open(ctx) != nil {
		return fn(ctx)
	}
	return begin(ctx, func(tx Tx) error {
		s := &span{tx: tx}
		defer s.end() //nolint:errcheck // after a panic
		if err := fn(context.WithValue(ctx, spanKey{d}, s)); err != nil {
			return err
		}
		return s.end()
	})
}
