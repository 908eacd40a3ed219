package sqlite

import (
	"context"
	"embed"
	"io/fs"
	"log/slog"
)

//go:embed keys/*.sql
var keysSchema embed.FS

// keysID marks a file with keys of users: "Svnk".
const keysID = 0x53766e6b

// Keys is a file with the keys of users. It is a place of package keyring.
type Keys struct{ *DB }

// Flush removes what was erased from the log, too.
func (k Keys) Flush(ctx context.Context) error { return k.DB.Flush(ctx) }

// OpenKeys opens the file with the keys of users, and makes it if there is none. Only its owner can read it.
func OpenKeys(ctx context.Context, path string, readOnly bool, log *slog.Logger) (Keys, error) {
	schema, err := fs.Sub(keysSchema, "keys")
	if err != nil {
		return Keys{}, err
	}
	d, err := Open(ctx, Config{Path: path, ApplicationID: keysID, Migrations: schema, ReadOnly: readOnly, Readers: 2,
		Logger: log})
	return Keys{d}, err
}
