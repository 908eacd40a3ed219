package db

import (
	"context"
	"errors"
	"sync"
)

// Errors of calls with the context of a snapshot; see [Spanning].
var (
	ErrSpanEnded    = errors.New("the snapshot that the context belongs to has ended")
	ErrSpanReadOnly = errors.New("the context belongs to a snapshot, which is only for reading")
)

// Spanning is a DB whose snapshots can span several calls: with the context that [Spanning.Snapshot] passes on, Read
// runs in that snapshot instead of one of its own.
type Spanning struct{ DB }

// spanKey is the key of a database's open snapshot in a context.
type spanKey struct{ d *Spanning }

// span is a read transaction that spans several calls. One of them runs at a time.
type span struct {
	mu    sync.Mutex
	tx    Tx
	ended bool
}

func (d *Spanning) open(ctx context.Context) *span {
	s, _ := ctx.Value(spanKey{d}).(*span)
	return s
}

// InSnapshot reports whether a context belongs to a snapshot.
func (d *Spanning) InSnapshot(ctx context.Context) bool { return d.open(ctx) != nil }

// Read runs fn in the context's snapshot, or else as the DB does.
func (d *Spanning) Read(ctx context.Context, fn func(Tx) error) error {
	s := d.open(ctx)
	if s == nil {
		return d.DB.Read(ctx, fn)
	}
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

// Write runs fn as the DB does. In a snapshot it is ErrSpanReadOnly.
func (d *Spanning) Write(ctx context.Context, fn func(Tx) error) error {
	if d.InSnapshot(ctx) {
		return ErrSpanReadOnly
	}
	return d.DB.Write(ctx, fn)
}

// Snapshot runs fn with a context whose reads all see the state of one moment, and whose writes are refused. Within a
// snapshot it runs in that one. fn runs once, as that of [DB.Read].
func (d *Spanning) Snapshot(ctx context.Context, fn func(context.Context) error) error {
	if d.InSnapshot(ctx) {
		return fn(ctx)
	}
	return d.DB.Read(ctx, func(tx Tx) error {
		s := &span{tx: tx}
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.ended = true
		}()
		return fn(context.WithValue(ctx, spanKey{d}, s))
	})
}
