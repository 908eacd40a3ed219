package sqlite

import (
	"context"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Tx is a transaction, valid until the function that received it returns. Only one goroutine may use it at a time.
// Statements are prepared once per connection and kept.
type Tx struct {
	conn     *conn
	ctx      context.Context
	writable bool
	late     *lateWords  // nil: rows of full text are written at once
	waited   func() bool // reports whether others wait for the turn to write; nil: none can
	over     bool
	used     bool    // a statement has succeeded: the snapshot is taken
	lost     error   // SQLite rolled the transaction back by itself; the reason
	open     []*Rows // to be closed at the end
	patience patience
}

// Context returns the context of the Read or Write that the transaction belongs to.
func (tx *Tx) Context() context.Context { return tx.ctx }

// Writable reports whether the transaction may write.
func (tx *Tx) Writable() bool { return tx.writable }

// Contended reports whether other callers of this process wait for the turn to write.
func (tx *Tx) Contended() bool { return tx.waited != nil && tx.waited() }

// Exec runs one statement. Arguments are positional (?, ?1).
func (tx *Tx) Exec(query string, args ...any) (db.Result, error) {
	if err := tx.usable(); err != nil {
		return db.Result{}, err
	}
	var r db.Result
	err := tx.patiently("exec", func() (err error) {
		r, err = tx.conn.exec(query, args)
		return err
	})
	return r, err
}

// ExecScript runs several statements, separated by semicolons, without arguments.
func (tx *Tx) ExecScript(script string) error {
	if err := tx.usable(); err != nil {
		return err
	}
	if err := tx.conn.script(script); err != nil {
		return tx.failed("script", err)
	}
	tx.used = true
	return nil
}

// Savepoint runs fn as a part of the transaction, which is undone after its error or panic.
func (tx *Tx) Savepoint(fn func() error) error {
	if err := tx.usable(); err != nil {
		return err
	}
	if err := (words{tx}).written(); err != nil { // undoing the part must not undo what was put before it
		return err
	}
	if _, err := tx.conn.exec("SAVEPOINT part", nil); err != nil {
		return tx.failed("savepoint", err)
	}
	kept := false
	defer func() {
		if !kept && tx.lost == nil {
			if tx.late != nil {
				tx.late.rows = nil // those of the part
			}
			tx.lost = classify("savepoint", tx.conn.script("ROLLBACK TO part; RELEASE part"))
		}
	}()
	err := fn()
	if err == nil {
		err = tx.usable() // fn may have ignored that its context ended
	}
	if err != nil {
		return err
	}
	if _, err := tx.conn.exec("RELEASE part", nil); err != nil {
		return tx.failed("savepoint", err)
	}
	kept = true
	return nil
}

// Query runs one statement that returns rows.
func (tx *Tx) Query(query string, args ...any) (db.Rows, error) {
	rows, err := tx.query(query, args...)
	if err != nil {
		return nil, err // not a nil *Rows in an interface
	}
	return rows, nil
}

func (tx *Tx) query(query string, args ...any) (*Rows, error) {
	if err := tx.usable(); err != nil {
		return nil, err
	}
	var r *Rows
	err := tx.patiently("query", func() (err error) {
		r, err = tx.conn.query(query, args)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := tx.interrupted(); err != nil {
		r.finish()
		return nil, err
	}
	if r.done {
		r.finish() // no rows: the statement is free again
		return r, nil
	}
	r.tx = tx
	tx.open = append(tx.open, r)
	return r, nil
}

// QueryRow runs one statement for its first row.
func (tx *Tx) QueryRow(query string, args ...any) db.Row {
	rows, err := tx.query(query, args...)
	return &row{rows: rows, err: err}
}

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

// patiently repeats the first statement of a read while a lock is in its way: a reader takes its snapshot there,
// and meets a lock only while another process recovers or closes the file.
func (tx *Tx) patiently(op string, f func() error) error {
	err := f()
	if err != nil && !tx.writable && !tx.used && primaryCode(err) == codeBusy {
		err = tx.patience.retry(tx.ctx, f)
	}
	if err != nil {
		return tx.failed(op, err)
	}
	tx.used = true
	return nil
}

// usable is called before each statement. It checks the context here, between statements, because nothing may be
// interrupted inside a write.
func (tx *Tx) usable() error {
	if tx.over {
		return db.ErrTxDone
	}
	if tx.lost != nil {
		return tx.lost
	}
	return tx.ctx.Err()
}

// interrupted returns the context's error in a read. An interrupted step may look like an empty row or the end of
// the rows: one driver asks for the error code in a second call, and by then the code may be another's.
func (tx *Tx) interrupted() error {
	if tx.writable {
		return nil // never interrupted
	}
	return tx.ctx.Err()
}

// failed classifies the error of a statement, and detects when SQLite has rolled back the whole transaction
// because of it: later statements would each commit on their own.
func (tx *Tx) failed(op string, err error) error {
	if cerr := tx.ctx.Err(); cerr != nil && (!tx.writable || primaryCode(err) == codeInterrupt) {
		return cerr
	}
	if primaryCode(err) == 0 {
		return err // not SQLite's: a context that ended, an invalid argument
	}
	err = classify(op, err)
	if tx.writable && !tx.conn.inTransaction() {
		tx.lost = err
	}
	return err
}

func (tx *Tx) forget(r *Rows) {
	if i := slices.Index(tx.open, r); i >= 0 {
		tx.open = slices.Delete(tx.open, i, i+1)
	}
}

// end closes what the function left open.
func (tx *Tx) end() {
	for len(tx.open) > 0 {
		tx.open[len(tx.open)-1].finish()
	}
	tx.over = true
}

// watch interrupts the connection when the context ends, until stop is called. It repeats the interrupt: one that
// falls between two statements is lost.
func (c *conn) watch(ctx context.Context) (stop func()) {
	if ctx.Done() == nil || c.interrupt == nil {
		return func() {}
	}
	over, ended := make(chan struct{}), make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		defer close(ended)
		for {
			c.interrupt()
			select {
			case <-over:
				return
			case <-time.After(time.Millisecond):
			}
		}
	})
	return func() {
		if !cancel() { // it is running: after this it must not touch the connection again
			close(over)
			<-ended
		}
	}
}
