// Package db is the seam between Souvenir and the engine that stores it: transactions, rows, classes of errors, and
// what an engine does in its own way. Everything above it writes one text of SQL, in the spelling that
// [internal/sqlite] and PostgreSQL share; [dbtest] holds an engine to what is promised here.
package db

import (
	"context"
)

// DB runs transactions. It is safe for concurrent use.
type DB interface {
	// Read runs fn in a read transaction: all its statements see one snapshot, taken by the first of them. It never
	// waits for writers. When ctx ends, a running statement is interrupted and ctx's error returned. fn must not call
	// Read, Write or Close.
	Read(ctx context.Context, fn func(Tx) error) error

	// Write runs fn in a serializable transaction and returns nil only when its work is durable; after an error nothing
	// of it remains. fn may run again, in a transaction of its own, and must set its results anew each time. It runs in
	// the calling goroutine and must not begin or end transactions, nor call Read, Write or Close. A call whose ctx ends
	// while it waits returns ctx's error, and fn is not run.
	//
	// Serializable includes rows that are not there: what fn has looked for and not found, nobody adds before its work is
	// committed. So a rule that fn checks by reading, such as a quota, the last administrator or one rule of a type in a
	// project, holds when it writes.
	Write(ctx context.Context, fn func(Tx) error) error

	// ReadOnly reports whether every Write gives ErrReadOnly.
	ReadOnly() bool

	// Upkeep is what whoever runs the store asks of the engine.
	Upkeep() Upkeep

	// Close waits for running calls and closes the database. Later calls give ErrClosed; closing again is no error.
	Close() error
}

// Tx is a transaction, valid until the function that it was given to returns, for one goroutine at a time. Arguments
// are positional: ? or ?1. Statements may run while rows of an earlier one are open.
type Tx interface {
	// Context is the context of the Read or Write that the transaction belongs to.
	Context() context.Context
	// Writable reports whether the transaction may write.
	Writable() bool

	// Words, Vectors and Changes are what engines do each in their own way.
	Words() Words
	Vectors() Vectors
	Changes() Changes

	// Exec runs one statement.
	Exec(query string, args ...any) (Result, error)
	// ExecScript runs several statements, separated by semicolons, without arguments.
	ExecScript(script string) error
	// Query runs one statement that gives rows.
	Query(query string, args ...any) (Rows, error)
	// QueryRow runs one statement for its first row; errors are Scan's.
	QueryRow(query string, args ...any) Row
	// Each runs a query and calls fn for each of its rows, until fn returns an error.
	Each(fn func(Rows) error, query string, args ...any) error
}

// Rows iterates over the result of a query. It belongs to its transaction: what is still open when the transaction's
// function returns is closed then.
type Rows interface {
	// Next moves to the next row. It is false at the end and after an error, which Err tells apart.
	Next() bool
	// Scan copies the columns of the current row into dest: pointers to integers, floats, strings, byte slices,
	// booleans, any, types of those kinds, sql.Scanner, or pointers to pointers, which become nil for NULL. Byte slices
	// are copies.
	Scan(dest ...any) error
	// Err is the error that ended the iteration, nil at a regular end.
	Err() error
	// Close ends the iteration early; it may be called again.
	Close() error
}

// Row is the first row of a query.
type Row interface {
	// Scan copies the row's columns like [Rows.Scan]. Without a row it returns ErrNoRows.
	Scan(dest ...any) error
}

// Result says what a statement did.
type Result struct {
	RowsAffected int64
	LastInsertID int64
}

// Insert runs an INSERT of one row that ends in RETURNING with the row's number, and returns that number: 0 where
// nothing was inserted.
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

// Freeing marks the writes of a context as ones that make room: on a full disk they may use what is held in reserve.
func Freeing(ctx context.Context) context.Context { return context.WithValue(ctx, freeing{}, true) }

// IsFreeing reports whether a context is marked by [Freeing].
func IsFreeing(ctx context.Context) bool { return ctx.Value(freeing{}) != nil }
