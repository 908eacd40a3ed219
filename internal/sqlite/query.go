package sqlite

import "github.com/souvenir-ai/souvenir/internal/db"

// Each runs a query and calls fn for each of its rows, until fn returns an error.
func (tx *Tx) Each(fn func(db.Rows) error, query string, args ...any) error {
	return db.Stream(tx, fn, query, args...)
}

// Writable reports whether the transaction may write.
func (tx *Tx) Writable() bool { return tx.writable }
