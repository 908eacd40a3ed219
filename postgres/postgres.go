// Package postgres opens stores in a PostgreSQL database, 15 or newer, instead of a file: the same [souvenir.Store] for
// several servers at once. Backups and restores are those of PostgreSQL.
//
// This engine is new. It does not shard data yet.
package postgres

import (
	"context"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/postgres"
)

// Open opens the store in a database, postgres://user:password@host:5432/name, and makes its tables if there are none.
// The tables are in the first schema of the connection's search path; search_path=NAME in the address chooses one,
// which must exist. Nil options mean the defaults; Reserve has no effect here. User keys, Options.UserKeys, are in
// the schema NAME_keys, which Open creates, unless they have another place.
//
// The error is ErrBusy if the database cannot be reached, ErrForeign if the schema has tables of another program, and
// ErrNewer if a newer version made the tables.
func Open(ctx context.Context, url string, options *souvenir.Options) (*souvenir.Store, error) {
	ctx = db.WithOpener(ctx, func(ctx context.Context, o db.Opening) (db.DB, error) {
		engine, err := postgres.Open(ctx, url, o)
		if err != nil {
			return nil, err
		}
		return engine, nil
	})
	ctx = db.WithKeysOpener(ctx, func(ctx context.Context, at string, making bool, o db.Opening) (_ db.Keys, err error) {
		var keys *postgres.Keys
		if at == "" {
			keys, err = postgres.OpenKeysOf(ctx, url, making, o)
		} else {
			keys, err = postgres.OpenKeysIn(ctx, at, making, o)
		}
		if err != nil {
			return nil, err
		}
		return keys, nil
	})
	return souvenir.Open(ctx, "", options)
}
