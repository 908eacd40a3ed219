package db

import (
	"context"
	"log/slog"
	"time"
)

// Opener opens an engine, and creates or migrates the store's schema in its database. One process at a time does so:
// the others wait, and find it done. A schema that is newer than the program is ErrNewer; after a newer program has
// migrated it, each Write of a handle that was open before is ErrNewer, and a Read may be. Tables of another program
// are ErrForeign. With ReadOnly nothing is created or migrated: a schema that is older is ErrOlder, and a database
// that does not exist is an error that wraps fs.ErrNotExist.
type Opener func(context.Context, Opening) (DB, error)

// Opening holds the options of a store that concern its engine.
type Opening struct {
	ReadOnly bool
	// Readers is how many Reads run at the same time; 0 means the number of processors, at least 4.
	Readers int
	Logger  *slog.Logger
	Now     func() time.Time

	// Fill has the Go functions that complete migrations, by the migrations' names without numbers.
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

// Keys is a separate database for the user keys. Read, Write, ReadOnly and Close promise the same as those of [DB].
// Calls may come within a Read or Write of the store, with its context: neither database waits for the other. Of the
// store's tables, this database has only ring and user_key, which the opener makes (those of SQLite are in
// internal/sqlite/keys.go). Callers use the statements and savepoints of a Tx, but not its words, vectors or changes.
type Keys interface {
	Read(ctx context.Context, fn func(Tx) error) error
	Write(ctx context.Context, fn func(Tx) error) error
	ReadOnly() bool
	Close() error
}

// Flusher is a Keys that can also remove erased rows from its log.
type Flusher interface {
	Flush(ctx context.Context) error
}

// KeysOpener opens the user keys of a store: at an address, or with an empty one beside the store. Without making,
// missing keys are an error that wraps fs.ErrNotExist.
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
