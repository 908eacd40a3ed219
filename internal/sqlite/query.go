package sqlite

import "github.com/souvenir-ai/souvenir/internal/db"

// Each runs a query and calls fn for each of its rows, until fn returns an error.
func (tx *Tx) Each(fn func(db.Rows) error, query string, args ...any) error {
	rows, err := tx.query(query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := fn(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Writable reports whether the transaction may write.
func (tx *Tx) Writable() bool { return tx.writable }
