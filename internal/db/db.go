// Package db is the interface between Souvenir and its storage engine: transactions, rows, classes of errors, and the
// operations that each engine implements in its own way. All code above it writes the same SQL, in the spelling that
// [internal/sqlite] and PostgreSQL share; [dbtest] tests that an engine keeps the promises made here. docs/engines.md
// is the manual for authors of engines.
package db

import (
	"context"
	"time"
)

// DB runs transactions. It is safe for concurrent use.
type DB interface {
	// Read runs fn in a read transaction: all its statements see one snapshot, taken by the first of them. So do Words,
	// Vectors and Changes. It never waits for writers, except in a database in memory, which has only one handle. It may
	// wait a limited time for a change of the schema, and then the statement fails with ErrBusy. When ctx ends, a running
	// statement is interrupted, later ones fail with ctx's error, and Read returns that error, not fn's result. fn must
	// not call Read, Write or Close. It runs once, so it may pass on rows as it reads them. If an engine loses the
	// snapshot, this statement and all later ones fail: with ErrUnavailable if the connection has ended, with
	// ErrInterrupted if the database or its operator ended the transaction. Otherwise Read returns fn's result.
	Read(ctx context.Context, fn func(Tx) error) error

	// Write runs fn in a serializable transaction and returns nil only when its work is durable. After an error nothing
	// of it remains, except after ErrOutcomeUnknown: then all of it may be durable. fn may run again, in another
	// transaction, before Write returns. So it must reset its results each time, and do nothing outside the transaction
	// that must happen only once (a message, a file, a count in memory). It runs in the calling goroutine and must not
	// begin or end transactions ([Tx.Savepoint] undoes a part), nor call Read, Write or Close. If ctx ends while a call
	// waits, Write returns ctx's error without running fn; if it ends while fn runs, statements fail with its error, and
	// Write rolls back and returns it, not fn's result. A statement that is running at that moment may finish first,
	// since an engine may let several Writes share a transaction. Write waits a limited time for locks, such as those of
	// a long transaction, and then returns ErrBusy.
	//
	// An engine decides to run fn again by the error of a statement or of the commit, and remembers that error, since
	// fn may wrap or ignore it. If the engine gives up after several runs, Write returns ErrBusy: nothing is stored,
	// and the caller may try again. A panic of fn rolls back and propagates. A failed statement has changed nothing.
	// After a failed write, the transaction can continue. After a failed read, or a statement that the database does
	// not understand, an engine may have lost the transaction: then the next statement and Write return that error,
	// unless a [Tx.Savepoint] was around the failed statement. References from memory_tag and passage to memory may be
	// checked only at the commit.
	//
	// Serializable includes rows that do not exist: if fn looks for a row and does not find it, no other transaction adds
	// it before fn's work is committed. A statement may violate a constraint because of a row that the snapshot does not
	// show. An engine must then run fn again, so that it finds the row, before Write may report the error. So a rule
	// that fn checks by reading, such as a quota, the last administrator, or one rule per type in a project, still holds
	// when it writes.
	Write(ctx context.Context, fn func(Tx) error) error

	// ReadOnly reports whether every Write returns ErrReadOnly.
	ReadOnly() bool

	// Upkeep returns the maintenance interface of the engine.
	Upkeep() Upkeep

	// Close waits for running calls and closes the database. Later calls return ErrClosed; closing again is no
	// error.
	Close() error
}

// Tx is a transaction, valid for one goroutine at a time, until the function that received it returns. Statements may
// run while rows of an earlier one are open.
//
// Parameters are ?, in the order of the arguments, or numbered from ?1 without a gap; a number may be repeated. A
// statement uses one form. Some older statements mix them: there, a ? has the number after the highest one before it.
// Too few arguments are an error; too many may go unnoticed.
type Tx interface {
	// Context returns the context of the Read or Write that the transaction belongs to.
	Context() context.Context
	// Writable reports whether the transaction may write.
	Writable() bool

	// Savepoint runs fn as a part of the transaction: after an error or a panic, fn's writes are rolled back, and the
	// rest of the transaction stays usable, also in a Read, where a part undoes a failed read. Savepoints may be
	// nested. If a savepoint can be neither rolled back nor released, the transaction is lost: later statements return
	// the error, and Write rolls back and returns it. Rows that fn leaves open may be closed afterwards, but not read.
	Savepoint(fn func() error) error

	// Words, Vectors and Changes are the operations that each engine implements in its own way.
	Words() Words
	Vectors() Vectors
	Changes() Changes

	// Exec runs one statement. Arguments are nil, booleans, integers, floats, strings, byte slices, values of such kinds,
	// pointers to them (a nil pointer is NULL, and so is a nil byte slice), or implement driver.Valuer. Stored texts are
	// UTF-8 without U+0000. Callers have to check this, since engines treat other texts differently. Compared with stored
	// data, such a text equals nothing. A write within a Read is ErrReadOnly. A statement may have up to 1,000
	// parameters. A list is one parameter and has any length.
	Exec(query string, args ...any) (Result, error)
	// Query runs one statement that returns rows, and reads them as Next is called: any number of rows needs little
	// memory.
	Query(query string, args ...any) (Rows, error)
	// QueryRow runs one statement for its first row; Scan returns its errors.
	QueryRow(query string, args ...any) Row
	// Each runs a query and calls fn for each of its rows, until fn returns an error. It is for results that fit into
	// memory: an engine may read all rows before the first call. [Stream] reads larger ones.
	Each(fn func(Rows) error, query string, args ...any) error
}

// Rows iterates over the result of a query. It belongs to its transaction, which closes open Rows when its
// function returns.
type Rows interface {
	// Next moves to the next row. It returns false at the end and after an error; Err tells them apart.
	Next() bool
	// Scan copies the columns of the current row into dest: pointers to integers, floats, strings, byte slices, booleans
	// (from 0 and 1), any, types of those kinds, sql.Scanner, or pointers to pointers, which become nil for NULL, as do
	// byte slices and any. ErrMisfit is the error for NULL in any other destination, for a text or a fraction in an
	// integer, and for an integer in a type that is too small for it. Byte slices are copies. Scan may be called again for
	// the same row; without a current row, before Next and after it has returned false or Close, it is an error.
	Scan(dest ...any) error
	// Err returns the error that ended the iteration, nil at a regular end.
	Err() error
	// Close ends the iteration early; it may be called again.
	Close() error
}

// Row is the first row of a query.
type Row interface {
	// Scan copies the row's columns like [Rows.Scan]. Without a row it returns ErrNoRows.
	Scan(dest ...any) error
}

// Result is the outcome of a statement.
type Result struct {
	// RowsAffected counts the rows that the statement inserted, updated or deleted, including rows that an update set to
	// the values they already had. Rows that ON CONFLICT left as they were do not count, nor do rows that triggers and
	// cascades wrote. It is 0 for any other statement, such as a SELECT.
	RowsAffected int64
}

// Wrapping is a Tx around another one, such as one that opens sealed values.
type Wrapping interface {
	Wrapped() Tx
}

// Stored returns the engine's own transaction, which scans values as they are stored, and has the optional interfaces
// of the engine.
func Stored(tx Tx) Tx {
	for {
		w, wraps := tx.(Wrapping)
		if !wraps {
			return tx
		}
		tx = w.Wrapped()
	}
}

// Stream calls fn for each row of a query, until fn returns an error, and holds few rows at a time.
func Stream(tx Tx, fn func(Rows) error, query string, args ...any) error {
	rows, err := tx.Query(query, args...)
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

// Insert runs an INSERT of one row, or an UPDATE of at most one, that ends in RETURNING with the row's number. It
// returns that number: 0 if no row was inserted or updated.
func Insert(tx Tx, query string, args ...any) (row int64, err error) {
	err = tx.Each(func(r Rows) error { return r.Scan(&row) }, query, args...)
	return row, err
}

// Column runs a query of one column and returns its values.
func Column[T any](tx Tx, query string, args ...any) ([]T, error) {
	var values []T
	err := tx.Each(func(row Rows) error {
		var v T
		err := row.Scan(&v)
		values = append(values, v)
		return err
	}, query, args...)
	return values, err
}

type freeing struct{}

// Freeing marks the writes of a context as freeing space: on a full disk they may use the reserve.
func Freeing(ctx context.Context) context.Context { return context.WithValue(ctx, freeing{}, true) }

// IsFreeing reports whether a context is marked by [Freeing].
func IsFreeing(ctx context.Context) bool {
	is, _ := ctx.Value(freeing{}).(bool)
	return is
}

type alone struct{}

// Alone marks the writes of a context: each needs its own transaction, spans several calls, and may hold the writer for
// long. An engine with group commits must not let other writes share its commit, and waiting writers give up after a
// limited time.
func Alone(ctx context.Context) context.Context {
	return context.WithValue(context.WithValue(ctx, freeing{}, false), alone{}, true)
}

// IsAlone reports whether a context is marked by [Alone].
func IsAlone(ctx context.Context) bool { return ctx.Value(alone{}) != nil }

type yielding struct{}

// Yielding marks the writes of a context as parts of a long job: each starts its own transaction, so that the finished
// work of other writers does not wait for it. Such a write ends early when [ShouldYield] says so.
func Yielding(ctx context.Context) context.Context { return context.WithValue(ctx, yielding{}, true) }

// IsYielding reports whether a context is marked by [Yielding].
func IsYielding(ctx context.Context) bool { return ctx.Value(yielding{}) != nil }

// yieldAfter is how long other writers wait for a part of a long job, not counting its commit.
const yieldAfter = 3 * time.Millisecond

// ShouldYield reports whether a part of a long job, which began at a time, should end because other writers wait. It is
// false for engines whose writers do not wait for each other.
func ShouldYield(tx Tx, began time.Time) bool {
	c, says := Stored(tx).(Contender)
	return says && time.Since(began) >= yieldAfter && c.Contended()
}

type hurried struct{}

// Hurried marks the writes of a context, which run one at a time and hold up many calls. Each waits for a lock for at
// most the given time, and then fails with ErrBusy. If the context has a deadline, the write does not wait much past it
// for the answer to its COMMIT, either. An engine keeps a connection for such a write besides all others. Only an
// [Ungrouped] engine gets such writes.
func Hurried(ctx context.Context, locks time.Duration) context.Context {
	return context.WithValue(ctx, hurried{}, locks)
}

// IsHurried reports whether a context is marked by [Hurried], and how long its writes wait for a lock.
func IsHurried(ctx context.Context) (locks time.Duration, is bool) {
	locks, is = ctx.Value(hurried{}).(time.Duration)
	return locks, is
}

// Contender is a Tx of an engine with one writer at a time.
type Contender interface {
	// Contended reports whether other writers wait for the end of this transaction.
	Contended() bool
}

// Queue runs a statement whose result does not matter. An engine may send it with the next statement, or at the end of
// the transaction. If it fails, the next statement or the commit returns its error, and the transaction is lost.
// INSERTs of one row with the same text may become one statement, in the place of the first; but new memories stay
// before the rows that refer to them. Apart from these, rows must not refer to queued ones. An INSERT with DO UPDATE
// must have its first column among the conflicting ones to be merged in this way.
func Queue(tx Tx, query string, args ...any) error {
	if q, able := tx.(Queuer); able {
		return q.Queue(query, args...)
	}
	_, err := tx.Exec(query, args...)
	return err
}

// Queuer is a Tx of an engine for which each statement is a round trip.
type Queuer interface {
	// Queue runs a statement, at the latest with the next one or at the end of the transaction; see [Queue].
	Queue(query string, args ...any) error
}

// Ahead announces a query that a transaction will likely run with these arguments before it writes. An engine may read
// its rows along with the next statement. If the query fails, that statement fails with it, unless it is the first of
// the transaction. So do not announce a query that may fail, or one inside a [Tx.Savepoint].
func Ahead(tx Tx, query string, args ...any) {
	if f, able := Stored(tx).(Foreseer); able {
		f.Ahead(query, args...)
	}
}

// MarkAhead is [Ahead] for the position in the log of changes, which [Changes] reads first.
func MarkAhead(tx Tx) {
	if f, able := Stored(tx).(Foreseer); able {
		f.MarkAhead()
	}
}

// Foreseer is a Tx of an engine for which each statement is a round trip.
type Foreseer interface {
	// Ahead reads the rows of a query along with the next statement, so that they are there when the query runs. See
	// [Ahead].
	Ahead(query string, args ...any)
	// MarkAhead does the same for the position in the log of changes.
	MarkAhead()
}

// InsertNumbered runs an INSERT of one row into a table and returns the row's number. The statement is INSERT INTO
// table (id, …) VALUES (?, …); the arguments are for the other columns. An engine may send it later, as with [Queue].
// An engine whose Tx is not a [Numberer] gets NULL as the id, and has to give the row the next number. Rows that a
// transaction inserts in this way have rising numbers, higher than those of all transactions that ended before it
// began. Other inserted rows may have any number among these.
func InsertNumbered(tx Tx, table, query string, args ...any) (row int64, err error) {
	n, able := Stored(tx).(Numberer)
	if !able {
		return Insert(tx, query+` RETURNING id`, append([]any{nil}, args...)...)
	}
	if row, err = n.Number(table); err != nil {
		return 0, err
	}
	return row, Queue(tx, query, append([]any{row}, args...)...)
}

// Numberer is a Tx of an engine for which each statement is a round trip.
type Numberer interface {
	// Number returns a number that no row of a table has, and that the table gives to no other row.
	Number(table string) (int64, error)
	// Reserve says how many numbers of a table will be requested. It is called before the first of them and before other
	// statements.
	Reserve(table string, n int) error
}

// Reserve says how many rows [InsertNumbered] will insert into a table. An engine may need it to save a round trip.
func Reserve(tx Tx, table string, n int) error {
	if r, able := Stored(tx).(Numberer); able {
		return r.Reserve(table, n)
	}
	return nil
}

// Hashing is a Tx of an engine that keeps hashes of rows, in row_hash. Without them, damaged rows cannot be detected.
// Only SQLite has it: its configuration, and not [Opening], says which rows have hashes.
type Hashing interface {
	// ColumnsOf returns the columns that the hashes of tables may cover, by table, in one statement: all of them, in
	// their order. A table that does not exist has none.
	ColumnsOf(tables ...string) (map[string][]string, error)
}

// Hashes reports whether the engine of a transaction keeps hashes of rows.
func Hashes(tx Tx) bool {
	_, keeps := Stored(tx).(Hashing)
	return keeps
}

// ColumnsOf is [Hashing.ColumnsOf]; where no hashes are kept, no table has any.
func ColumnsOf(tx Tx, tables ...string) (map[string][]string, error) {
	if h, keeps := Stored(tx).(Hashing); keeps {
		return h.ColumnsOf(tables...)
	}
	return nil, nil
}

// Ungrouped is a DB in which callers cannot share a commit, and in which several small writes cost much less in one
// transaction than in one each.
type Ungrouped interface {
	Ungrouped() bool
}

// Once returns the result of read. In a read transaction, it calls read only once per key, unless read fails.
func Once[T any](tx Tx, key string, read func() (T, error)) (T, error) {
	k, able := Stored(tx).(Keeper)
	if !able || tx.Writable() {
		return read()
	}
	kept := k.Kept()
	if known, ok := kept[key].(T); ok {
		return known, nil
	}
	value, err := read()
	if err == nil {
		kept[key] = value
	}
	return value, err
}

// Keeper is a Tx that keeps what [Once] reads.
type Keeper interface {
	// Kept returns the values by key, which live as long as the transaction.
	Kept() map[string]any
}

// Follower is a DB that reports writes of other processes. This is only a hint: the log of changes is authoritative.
type Follower interface {
	// Follow calls fn, until Close, soon after another process has changed memories. It may miss some, and call fn without
	// a change.
	Follow(fn func())
}
