package db

import (
	"context"
	"log/slog"
	"time"
)

// Opener opens an engine whose database has the store's schema, or gets it now.
type Opener func(context.Context, Opening) (DB, error)

// Opening has the options of a store that concern its engine.
type Opening struct {
	ReadOnly bool
	Readers  int // connections that read at the same time
	Logger   *slog.Logger
	Now      func() time.Time

	// Fill completes migrations in Go, by their names without numbers.
	Fill map[string]func(Tx) error
}

type opener struct{}

// WithOpener returns a context with which opening a store opens it in another engine than a file. So a package beside
// the root makes stores of an engine that the root does not import, and callers see no interface of engines.
func WithOpener(ctx context.Context, open Opener) context.Context {
	return context.WithValue(ctx, opener{}, open)
}

// OpenerOf returns a context's opener, nil for none, and the context without it.
func OpenerOf(ctx context.Context) (Opener, context.Context) {
	open, _ := ctx.Value(opener{}).(Opener)
	if open == nil {
		return nil, ctx
	}
	return open, context.WithValue(ctx, opener{}, Opener(nil))
}
