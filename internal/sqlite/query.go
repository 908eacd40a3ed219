package sqlite

import "github.com/souvenir-ai/souvenir/internal/db"

// Each runs a query and calls fn for each of its rows, until fn returns an error.
func (tx *Tx) Each(fn func(db.Rows) error, query string, args ...any) error {
	return db.Stream(tx, fn, query, args...)
}

// Blob reads a blob of a row into a piece of memory, or into a new one if that is too small.
func (tx *Tx) Blob(into []byte, table, column string, row int64) (blob []byte, ok bool) {
	if tx.usable() != nil {
		return nil, false
	}
	return readBlob(tx.conn.raw, into, table, column, row)
}

// Writable reports whether the transaction may write.
func (tx *Tx) Writable() bool { return tx.writable }
