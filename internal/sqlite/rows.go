package sqlite

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Rows iterates over the result of a query. It belongs to its transaction, which closes open Rows when its
// function returns.
type Rows struct {
	conn    *conn
	tx      *Tx // nil inside the package
	stmt    *stmt
	raw     driver.Rows
	row     []driver.Value
	fetched bool // row already holds the next row
	on      bool // Next has moved to row
	done    bool // all rows are read
	err     error
}

// Next moves to the next row. It returns false at the end and on an error; Err tells which.
func (r *Rows) Next() bool {
	r.on = r.next()
	return r.on
}

func (r *Rows) next() bool {
	if r.fetched {
		r.fetched = false
		return true
	}
	if r.done {
		return false
	}
	if r.tx != nil {
		if r.err = r.tx.usable(); r.err != nil {
			r.finish()
			return false
		}
	}
	if err := r.fetch(); err != nil {
		if r.tx != nil {
			err = r.tx.failed("query", err)
		}
		r.err = err
		r.finish()
		return false
	}
	if r.tx != nil {
		if r.err = r.tx.interrupted(); r.err != nil {
			r.finish()
			return false
		}
	}
	r.fetched = false
	if r.done {
		r.finish()
		return false
	}
	return true
}

// fetch reads the next row from the driver, or sets done at the end.
func (r *Rows) fetch() error {
	err := r.raw.Next(r.row)
	if errors.Is(err, io.EOF) {
		r.done = true
		return nil
	}
	r.fetched = err == nil
	return err
}

// Scan copies the columns of the current row.
func (r *Rows) Scan(dest ...any) error {
	if !r.on {
		return errNoRow
	}
	if len(dest) != len(r.row) {
		return fmt.Errorf("sqlite: scan: %d destinations for %d columns", len(dest), len(r.row))
	}
	for i, d := range dest {
		if err := db.ScanValue(r.row[i], d); err != nil {
			return fmt.Errorf("sqlite: scan: column %d: %w", i+1, err)
		}
	}
	return nil
}

var errNoRow = errors.New("sqlite: scan: Next has not moved to a row")

// Err returns the error that ended the iteration, nil at a regular end.
func (r *Rows) Err() error { return r.err }

// Close ends the iteration early. It may be called again, and is not needed after Next has returned false.
func (r *Rows) Close() error {
	r.finish()
	return nil
}

// finish frees the statement for its next use.
func (r *Rows) finish() {
	r.done, r.fetched, r.on = true, false, false
	if r.raw == nil {
		return
	}
	// The driver repeats the error of the last step here; it is already reported.
	_ = r.raw.Close()
	r.raw = nil
	r.conn.stmts.release(r.stmt)
	if r.tx != nil {
		r.tx.forget(r)
	}
}

// row is the first row of a query.
type row struct {
	rows *Rows
	err  error
}

// Scan copies the row's columns like [Rows.Scan]. Without a row it returns ErrNoRows.
func (r *row) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.finish()
	if !r.rows.Next() {
		if r.rows.err != nil {
			return r.rows.err
		}
		return db.ErrNoRows
	}
	return r.rows.Scan(dest...)
}
