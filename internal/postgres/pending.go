package postgres

import (
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// What needs no answer of its own travels with the next statement that does: the beginning of a transaction, its
// caller, and statements of [Tx.Queue].

// pending is a statement that is not sent yet.
type pending struct {
	text string
	args []any
	// work says that it is one of the transaction's function: its errors are those of such a statement.
	work bool
}

// Queue runs a statement whose result does not matter, before the next one or at the end. If it fails, the transaction
// is lost.
func (tx *Tx) Queue(query string, args ...any) error {
	st, bound, err := tx.prepare(query, args)
	if err != nil {
		return err
	}
	tx.settle()
	tx.pending = append(tx.pending, pending{st.text, bound, true})
	tx.changed = tx.changed || st.changes
	if len(tx.pending) >= mostPending {
		return tx.flush()
	}
	return nil
}

// mostPending bounds what is kept in memory.
const mostPending = 200

// flush sends what is pending.
func (tx *Tx) flush() error {
	if len(tx.pending) == 0 {
		return nil
	}
	batch := &pgx.Batch{}
	waiting := tx.enqueue(batch)
	answers := tx.conn.SendBatch(tx.ctx, batch)
	err := tx.settled(answers, waiting)
	if closed := answers.Close(); err == nil {
		err = tx.failed("exec", closed)
	}
	return err
}

// enqueue puts what is pending into a batch.
func (tx *Tx) enqueue(batch *pgx.Batch) (waiting []pending) {
	waiting, tx.pending = tx.pending, nil
	for _, p := range waiting {
		batch.Queue(p.text, p.args...)
	}
	return waiting
}

// settled reads the answers to what was pending.
func (tx *Tx) settled(answers pgx.BatchResults, waiting []pending) error {
	for _, p := range waiting {
		if _, err := answers.Exec(); err != nil {
			err = tx.failed("exec", err)
			tx.violated = tx.violated || p.work && (errors.Is(err, db.ErrUnique) || errors.Is(err, db.ErrForeignKey))
			return err
		}
		tx.begun = true
	}
	return nil
}
