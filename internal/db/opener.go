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
	// Readers is how many Reads run at the same time; 0 means the number of processors, at least 4.
	Readers int
	Logger  *slog.Logger
	Now     func() time.Time

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

// Keys is a database of its own for the user keys. Read, Write, ReadOnly and Close promise what those of [DB] do.
// Calls may come within a Read or Write of the store, with its context: the two wait for nothing of each other. Of the
// store's tables there is none, but ring and user_key (the ones of SQLite are in internal/sqlite/keys.go), which the
// opener makes; of a Tx, statements and savepoints are used, and neither words, vectors nor changes. Package keyring
// has an optional Flusher.
type Keys interface {
	Read(ctx context.Context, fn func(Tx) error) error
	Write(ctx context.Context, fn func(Tx) error) error
	ReadOnly() bool
	Close() error
}

// KeysOpener opens the user keys of a store: at an address, or with an empty one beside the store. Without making,
// keys that are not there are an error that wraps fs.ErrNotExist.
type KeysOpener func(ctx context.Context, address string, making bool, o Opening) (Keys, error)

type keysOpener struct{}

// WithKeysOpener returns a context with which souvenir.Open opens user keys in another engine than a file.
func WithKeysOpener(ctx context.Context, open KeysOpener) context.Context {
	return context.WithValue(ctx, keysOpener{}, open)
}

// KeysOpenerOf returns a context's opener of keys; nil: keys are in files.
func KeysOpenerOf(ctx context.Context) KeysOpener {
	open, _ := ctx.Value(keysOpener{}).(KeysOpener)
	return open
}
