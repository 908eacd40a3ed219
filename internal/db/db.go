// Package db is the interface between Souvenir and its storage engine: transactions, rows, classes of errors, and the
// operations that each engine implements in its own way. All code above it writes the same SQL, in the spelling that
// [internal/sqlite] and PostgreSQL share; [dbtest] tests that an engine keeps the promises made here. docs/engines.md
// is the manual for authors of engines.
//
// Each engine implements the interfaces of db.go, words.go, vectors.go and changes.go, and returns an [Upkeep]. It may
// heed the hints of hints.go, and implement interfaces of optional.go, of wall.go, and those beside the first ones.
package db

import "context"

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
	// data, such a text equals nothing, also in a list. But an engine may refuse it in an INSERT or UPDATE, even one that
	// only compares it: ErrConstraint. A write within a Read is ErrReadOnly. A statement may have up to 1,000 parameters.
	// A list is one parameter and has any length.
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
