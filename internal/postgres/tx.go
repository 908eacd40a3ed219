package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Tx is a transaction, valid until the function that received it returns. Only one goroutine may use it at a time.
type Tx struct {
	d        *DB
	conn     *pgx.Conn
	ctx      context.Context
	writable bool
	alone    bool // no other Write runs meanwhile
	over     bool
	lost     error // PostgreSQL has given the transaction up; the reason
	rerun    error // it has to run again; the reason
	violated bool  // a statement violated a constraint, maybe because of rows that the snapshot does not show
	changed  bool  // it wrote what other servers have in their indexes
	cursors  int
	undone   [][2]int   // first and last of the cursors that were undone with a part
	caller   *db.Caller // for whom policies decide; nil: everything is allowed
	declared *db.Caller // the caller that the server knows
	// unsettled says that declared may be out of date.
	unsettled bool
	pending   []pending // to be sent before the next statement
	waiting   int       // bytes of its arguments
	begun     bool      // the server has begun the transaction
	kept      map[string]any
	numbers   map[string][]int64 // for new rows, by table
	taken     int                // how many were taken the last time
	seen      *seen              // what a transaction for reading has read, or another one before it writes
	wrote     bool               // it may have written, so that what it has read may be out of date
}

// Kept returns what db.Once keeps.
func (tx *Tx) Kept() map[string]any {
	if tx.kept == nil {
		tx.kept = map[string]any{}
	}
	return tx.kept
}

// Context returns the context of the Read or Write that the transaction belongs to.
func (tx *Tx) Context() context.Context { return tx.ctx }

// Writable reports whether the transaction may write.
func (tx *Tx) Writable() bool { return tx.writable }

// Exec runs one statement.
func (tx *Tx) Exec(query string, args ...any) (db.Result, error) {
	st, bound, err := tx.prepare(query, args)
	if err != nil {
		return db.Result{}, err
	}
	var result db.Result
	_, err = tx.runInto(st, bound, 0, &result)
	if st.kind != writes {
		result.RowsAffected = 0 // PostgreSQL counts the rows of a SELECT
	}
	return result, err
}

// ExecScript runs several statements, separated by semicolons, without arguments.
func (tx *Tx) ExecScript(script string) error {
	if err := tx.usable(); err != nil {
		return err
	}
	tx.settle()
	tx.writes()
	if err := tx.flush(); err != nil {
		return err
	}
	for _, part := range tx.d.scriptParts(script) {
		if _, err := tx.conn.PgConn().Exec(tx.ctx, part).ReadAll(); err != nil {
			return tx.failed("script", err)
		}
	}
	return nil
}

// Savepoint runs fn as a part of the transaction, which is undone after its error or panic.
func (tx *Tx) Savepoint(fn func() error) error {
	if err := tx.usable(); err != nil {
		return err
	}
	tx.writes()
	if err := tx.command("SAVEPOINT part"); err != nil { // sends pending statements, too
		return err
	}
	kept, before := false, tx.cursors
	defer func() {
		if kept || tx.over || tx.rerun != nil || tx.ctx.Err() != nil || tx.conn.IsClosed() {
			return // anything not kept is undone with the transaction
		}
		tx.unsettled, tx.pending, tx.waiting = true, nil, 0 // settings are undone, too
		tx.undone = append(tx.undone, [2]int{before + 1, tx.cursors})
		if err := tx.command("ROLLBACK TO part; RELEASE part"); err == nil {
			tx.lost = nil
		}
	}()
	err := fn()
	if err == nil {
		err = tx.usable()
	}
	if err == nil {
		err = tx.command("RELEASE part")
	}
	kept = err == nil
	return err
}

// Query runs one statement that returns rows. A SELECT has a cursor, which reads rows in portions.
func (tx *Tx) Query(query string, args ...any) (db.Rows, error) {
	st, bound, err := tx.prepare(query, args)
	if err != nil {
		return nil, err
	}
	if st.kind != reads {
		rows, err := tx.run(st, bound, 0)
		if err != nil {
			return nil, err
		}
		return &Rows{tx: tx, rows: rows}, nil
	}
	tx.cursors++
	name := fmt.Sprintf("rows_%d", tx.cursors)
	st.text, st.kind = fmt.Sprintf("DECLARE %s NO SCROLL CURSOR FOR %s", name, st.text), other
	st.constant = false // read ahead, with other arguments, its name would be taken
	if _, err := tx.run(st, bound, 0); err != nil {
		return nil, err
	}
	return &Rows{tx: tx, cursor: name, number: tx.cursors}, nil
}

// QueryRow runs one statement for its first row.
func (tx *Tx) QueryRow(query string, args ...any) db.Row {
	st, bound, err := tx.prepare(query, args)
	if err != nil {
		return row{err: err}
	}
	rows, err := tx.run(st, bound, 1)
	return row{rows: rows, err: err}
}

// Each runs a query, and calls fn for each of its rows once all of them are read.
func (tx *Tx) Each(fn func(db.Rows) error, query string, args ...any) error {
	st, bound, err := tx.prepare(query, args)
	if err != nil {
		return err
	}
	all, err := tx.run(st, bound, 0)
	if err != nil {
		return err
	}
	rows := &Rows{tx: tx, rows: all}
	for rows.Next() {
		if err := fn(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// prepare checks that the transaction can go on, and translates a statement.
func (tx *Tx) prepare(query string, args []any) (statement, []any, error) {
	if err := tx.usable(); err != nil {
		return statement{}, nil, err
	}
	st, bound, err := tx.d.statements.bind(query, args)
	if err == nil {
		err = tx.allowed(st)
	}
	return st, bound, err
}

// allowed refuses a write in a transaction for reading.
func (tx *Tx) allowed(st statement) error {
	if st.kind == writes && !tx.writable {
		return &Error{Op: "exec", kind: db.ErrReadOnly, err: errors.New("a Read does not write")}
	}
	return nil
}

// usable is called before each statement.
func (tx *Tx) usable() error {
	switch {
	case tx.over:
		return db.ErrTxDone
	case tx.rerun != nil:
		return tx.rerun
	case tx.ctx.Err() != nil:
		return tx.ctx.Err()
	}
	return tx.lost
}

// run runs a statement, and returns its rows: at most most of them if most is not 0.
func (tx *Tx) run(st statement, args []any, most int) ([][]driver.Value, error) {
	return tx.runInto(st, args, most, nil)
}

// guard is the savepoint around each statement that writes, so that one that fails leaves the transaction usable. It
// travels with the statement, and takes no answer of its own.
const guard = "guard"

func (tx *Tx) runInto(st statement, args []any, most int, result *db.Result) ([][]driver.Value, error) {
	key := ""
	if tx.writable && !st.constant {
		tx.writes()
	}
	if tx.seen != nil && st.constant {
		key = tx.key(st, args)
		if rows, ok := tx.seen.get(key, most); ok {
			tx.seen.note(key, st, args, most)
			return rows, nil
		}
	}
	all, err := tx.send(st, args, most, result, tx.expected(key))
	if key != "" && err == nil && !tx.writable {
		tx.seen.keep(key, all, most)
		tx.seen.note(key, st, args, most)
	}
	return all, err
}

// send runs a statement and returns its rows; ahead is read with it. If the statements that begin the transaction fail
// with it, the transaction begins anew without the reads ahead, none of which was handed out.
func (tx *Tx) send(st statement, args []any, most int, result *db.Result, ahead []read) ([][]driver.Value, error) {
	tx.settle()
	if st.kind != writes && len(tx.pending) == 0 && len(ahead) == 0 {
		rows, err := tx.conn.Query(tx.ctx, st.text, args...)
		if err != nil {
			return nil, tx.failed("query", err)
		}
		all, err := collect(rows, most)
		if err == nil && result != nil {
			result.RowsAffected = rows.CommandTag().RowsAffected()
		}
		return all, tx.failed("query", err)
	}
	if len(args) > 0 {
		if _, mode := args[0].(pgx.QueryExecMode); mode { // not for a batch
			if err := tx.flush(); err != nil {
				return nil, err
			}
			return tx.send(st, args, most, result, nil)
		}
	}
	batch := &pgx.Batch{}
	var beginning []pending
	if !tx.begun && len(ahead) > 0 { // then nothing is written yet
		beginning = slices.Clone(tx.pending)
	}
	waiting := tx.enqueue(batch)
	if st.kind == writes {
		batch.Queue("SAVEPOINT " + guard)
	}
	batch.Queue(st.text, args...)
	if st.kind == writes {
		batch.Queue("RELEASE " + guard)
	}
	for _, r := range ahead {
		batch.Queue(r.st.text, r.args...)
	}
	answers := tx.conn.SendBatch(tx.ctx, batch)
	if err := tx.settled(answers, waiting, nil); err != nil {
		_ = answers.Close() // the error counts
		if unread := (pgx.ErrPreprocessingBatch{}); errors.As(err, &unread) && tx.beginAnew(beginning) {
			return tx.send(st, args, most, result, nil)
		}
		return nil, err
	}
	guarded, all, err := tx.answered(answers, st.kind == writes, most, result)
	if err == nil {
		err = tx.readAhead(answers, ahead)
	}
	closed := answers.Close()
	if err == nil {
		tx.changed = tx.changed || st.changes
		return all, tx.failed("exec", closed)
	}
	err = tx.failed("exec", err)
	if tx.beginAnew(beginning) {
		return tx.send(st, args, most, result, nil)
	}
	tx.violated = tx.violated || errors.Is(err, db.ErrUnique) || errors.Is(err, db.ErrForeignKey)
	if guarded && tx.rerun == nil && tx.ctx.Err() == nil && !tx.conn.IsClosed() {
		if undo := tx.command("ROLLBACK TO " + guard + "; RELEASE " + guard); undo != nil {
			return nil, errors.Join(err, undo)
		}
		tx.lost = nil
	}
	return nil, err
}

// answered reads the answers to a statement, maybe within its savepoint. guarded: the savepoint is still there.
func (tx *Tx) answered(answers pgx.BatchResults, within bool, most int, result *db.Result) (guarded bool,
	all [][]driver.Value, err error) {
	if within {
		if _, err := answers.Exec(); err != nil {
			return false, nil, err
		}
	}
	rows, err := answers.Query()
	if err != nil {
		return within, nil, err
	}
	if all, err = collect(rows, most); err != nil {
		return within, nil, err
	}
	if result != nil {
		result.RowsAffected = rows.CommandTag().RowsAffected()
	}
	if within {
		_, err = answers.Exec()
	}
	return within && err != nil, all, err
}

// command runs statements that begin or end a transaction.
func (tx *Tx) command(text string) error {
	if err := tx.flush(); err != nil {
		return err
	}
	_, err := tx.conn.PgConn().Exec(tx.ctx, text).ReadAll()
	return tx.failed("transaction", err)
}

// failed classifies the error of a statement, and remembers what it means for the transaction.
func (tx *Tx) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	if ended := tx.ctx.Err(); ended != nil {
		tx.lost = ended
		return ended
	}
	err = classify(op, tx.ofWorker(err))
	if again(err) || tx.alone && errors.Is(err, db.ErrBusy) {
		tx.rerun = err
	}
	tx.lost = err
	return err
}
