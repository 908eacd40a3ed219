package postgres

import (
	"context"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Maintain brings the indexes of words and of vectors up to date if much is missing from them; with wait it waits for
// other processes that do so.
func (d *DB) Maintain(ctx context.Context, wait bool) error {
	if d.readOnly {
		return nil
	}
	if err := d.maintainWords(ctx, wait); err != nil || d.near == nil || !d.near.fills {
		return err
	}
	return d.maintainNear(ctx, wait)
}

// locked takes a lock until the end of the transaction. Without wait it reports false if another process has it.
func locked(tx db.Tx, key int64, wait bool) (alone bool, err error) {
	lock := `SELECT pg_try_advisory_xact_lock(hashtextextended(current_schema(), ?))`
	if wait {
		lock = `SELECT pg_advisory_xact_lock(hashtextextended(current_schema(), ?)) IS NOT NULL`
	}
	err = tx.QueryRow(lock, key).Scan(&alone)
	return alone, err
}
