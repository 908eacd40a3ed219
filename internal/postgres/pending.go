package postgres

import (
	"database/sql/driver"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Statements that need no answer of their own travel with the next one that does, or with the COMMIT: the beginning of
// a transaction, its caller, and statements of [Tx.Queue].

// pending is a statement that is not sent yet.
type pending struct {
	text string
	args []any
	// work says that the statement comes from the transaction's function: its errors are handled as for such a statement.
	work bool
	// version says that it looks at the version of the schema.
	version bool
	// answer gets the rows of a statement that has some.
	answer func(rows [][]driver.Value)
	// row is set for an INSERT of one row, which may be sent as one statement with others; see merge.go.
	row *newRow
}

// Queue runs a statement whose result does not matter, before the next one or at the end. If it fails, the transaction
// is lost.
func (tx *Tx) Queue(query string, args ...any) error {
	if err := tx.usable(); err != nil {
		return err
	}
	values, types, err := values(query, args)
	if err != nil {
		return err
	}
	st, bound, err := tx.d.statements.bound(query, values, types)
	if err == nil {
		err = tx.allowed(st)
	}
	if err != nil {
		return err
	}
	tx.settle()
	tx.writes()
	p := pending{text: st.text, args: bound, work: true}
	if shape := tx.d.statements.insertOf(query); shape != nil {
		p.row = &newRow{shape, values, types}
	}
	tx.pending = append(tx.pending, p)
	tx.waiting += sizeOf(values)
	tx.changed = tx.changed || st.changes
	if len(tx.pending) >= mostPending || tx.waiting >= mostWaiting {
		return tx.flush()
	}
	return nil
}

// mostPending and mostWaiting limit the pending statements in memory, in bytes.
const mostPending, mostWaiting = 2000, 4 << 20

func sizeOf(values []any) (bytes int) {
	for _, v := range values {
		switch v := v.(type) {
		case string:
			bytes += len(v)
		case []byte:
			bytes += len(v)
		}
	}
	return bytes
}

// flush sends the pending statements.
func (tx *Tx) flush() error {
	if len(tx.pending) == 0 {
		return nil
	}
	batch := &pgx.Batch{}
	waiting := tx.enqueue(batch)
	answers := tx.conn.SendBatch(tx.ctx, batch)
	err := tx.settled(answers, waiting, nil)
	if closed := answers.Close(); err == nil {
		err = tx.failed("exec", closed)
	}
	return err
}

// enqueue puts the pending statements into a batch.
func (tx *Tx) enqueue(batch *pgx.Batch) (waiting []pending) {
	waiting = merged(tx.pending)
	tx.pending, tx.waiting = nil, 0
	for _, p := range waiting {
		batch.Queue(p.text, p.args...)
	}
	return waiting
}

// settled reads the answers to the pending statements. Its errors go through lost, unless that is nil.
func (tx *Tx) settled(answers pgx.BatchResults, waiting []pending, lost func(error) error) error {
	for _, p := range waiting {
		if err := p.received(answers); err != nil {
			if lost != nil {
				err = lost(err)
			}
			err = tx.failed("exec", err)
			if p.version {
				err = tx.outdated(err)
			}
			tx.violated = tx.violated || p.work && (errors.Is(err, db.ErrUnique) || errors.Is(err, db.ErrForeignKey))
			return err
		}
		tx.begun = true
	}
	return nil
}

// received reads the answer to a statement.
func (p pending) received(answers pgx.BatchResults) error {
	if p.answer == nil {
		_, err := answers.Exec()
		return err
	}
	rows, err := answers.Query()
	if err != nil {
		return err
	}
	all, err := collect(rows, 0)
	if err == nil {
		p.answer(all)
	}
	return err
}
