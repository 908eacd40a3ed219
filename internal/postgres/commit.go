package postgres

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// answerTime is how much longer than its context a COMMIT may take, and hurriedAnswer that of a hurried Write.
const answerTime, hurriedAnswer = 30 * time.Second, 2 * time.Second

// commit makes the work durable. It waits for the answer even if the context ends, though not for ever: without it, the
// outcome is unknown.
func (tx *Tx) commit() error {
	if !tx.begun && !slices.ContainsFunc(tx.pending, func(p pending) bool { return p.work }) {
		return nil // no statement came
	}
	wait := tx.d.answerTime
	if _, is := db.IsHurried(tx.ctx); is {
		wait = min(wait, hurriedAnswer)
	}
	ctx, cancel := extended(tx.ctx, wait)
	defer cancel()
	tx.ctx = context.WithoutCancel(tx.ctx) // an end of the other one is an unknown outcome
	if tx.conn.IsClosed() {
		return tx.failed("commit", net.ErrClosed)
	}
	if len(tx.pending) == 0 {
		results, err := tx.conn.PgConn().Exec(ctx, "COMMIT").ReadAll()
		if err != nil {
			return tx.failed("commit", tx.uncommitted(err))
		}
		return tx.committed(results[0].CommandTag)
	}
	tx.begun = true
	batch := &pgx.Batch{}
	waiting := tx.enqueue(batch)
	batch.Queue("COMMIT")
	answers := tx.conn.SendBatch(ctx, batch)
	if err := tx.settled(answers, waiting, unanswered); err != nil {
		_ = answers.Close() // the error counts
		return err
	}
	tag, err := answers.Exec()
	if closed := answers.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return tx.failed("commit", tx.uncommitted(err))
	}
	return tx.committed(tag)
}

// committed looks at the answer to a COMMIT. PostgreSQL answers that of a transaction in which something has failed
// with ROLLBACK, and not with an error.
func (tx *Tx) committed(tag pgconn.CommandTag) error {
	tx.over = true
	if tag.String() == "COMMIT" {
		return nil
	}
	return tx.failed("commit", &Error{Op: "commit", kind: db.ErrInterrupted,
		err: fmt.Errorf("the database has undone the transaction: it answered %q", tag)})
}

// extended returns a context that ends some time after another one.
func extended(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-longer.Done():
		case <-time.After(by):
			cancel()
		}
	})
	return longer, func() {
		stop()
		cancel()
	}
}

// rollback ends a transaction that is not committed.
func (tx *Tx) rollback() {
	if !tx.over {
		tx.over = true
		tx.end()
	}
}

// end makes the server end a transaction. A connection that does not answer is closed, which ends it, too.
func (tx *Tx) end() {
	delete(tx.conn.PgConn().CustomData(), reason)
	if !tx.begun || tx.conn.IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tx.ctx), 5*time.Second)
	defer cancel()
	if _, err := tx.conn.PgConn().Exec(ctx, "ROLLBACK").ReadAll(); err != nil {
		_ = tx.conn.Close(ctx)
	}
}
