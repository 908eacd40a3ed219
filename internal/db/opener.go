package db

import (
	"context"
	"log/slog"
	"time"
)

// Opener opens an engine, and creates or migrates the store's schema in its database.
type Opener func(context.Context, Opening) (DB, error)

// Opening holds the options of a store that concern its engine.
type Opening struct {
	ReadOnly bool
	Readers  int // connections that read at the same time
	Logger   *slog.Logger
	Now      func() time.Time

	// Fill completes migrations in Go, by their names without numbers.
	Fill map[string]func(Tx) error
}

type opener struct{}

// WithOpener returns a context with which souvenir.Open uses another engine instead of a file. So another package can
// open stores in an engine that the root does not import, and callers see no engine interface.
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
