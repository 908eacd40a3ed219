package postgres

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// portion is how many rows of a query are fetched at a time.
const portion = 200

// Rows are the rows of a query: all of them, or a portion of a cursor's.
type Rows struct {
	tx     *Tx
	rows   [][]driver.Value
	at     int    // number of the current row, from 1
	cursor string // "" once everything is fetched
	number int    // of the cursor
	err    error
	closed bool
}

// Next moves to the next row.
func (r *Rows) Next() bool {
	if r.next() {
		return true
	}
	r.rows, r.at = nil, 0
	return false
}

func (r *Rows) next() bool {
	if r.closed || r.err != nil {
		return false
	}
	if r.err = r.tx.usable(); r.err == nil && r.undone() {
		r.err = &Error{Op: "rows", kind: db.ErrTxDone, err: errors.New("the part that they are of is undone")}
	}
	if r.err != nil {
		return false
	}
	if r.at == len(r.rows) && r.cursor != "" {
		var more [][]driver.Value
		// The name of a cursor is used again, by later transactions, for rows with other columns.
		more, r.err = r.tx.run(statement{text: fmt.Sprintf("FETCH %d FROM %s", portion, r.cursor)},
			[]any{pgx.QueryExecModeDescribeExec}, 0)
		if r.err != nil {
			return false
		}
		if r.rows, r.at = more, 0; len(more) < portion {
			r.err = r.closeCursor()
		}
	}
	if r.at == len(r.rows) || r.err != nil {
		return false
	}
	r.at++
	return true
}

// Scan copies the columns of the current row.
func (r *Rows) Scan(dest ...any) error {
	if r.at == 0 {
		return errors.New("postgres: scan: Next has not moved to a row")
	}
	return scan(r.rows[r.at-1], dest)
}

func scan(row []driver.Value, dest []any) error {
	if len(dest) != len(row) {
		return fmt.Errorf("postgres: scan: %d destinations for %d columns", len(dest), len(row))
	}
	for i, d := range dest {
		if err := db.ScanValue(row[i], d); err != nil {
			return fmt.Errorf("postgres: scan: column %d: %w", i+1, err)
		}
	}
	return nil
}

// Err returns the error that ended the iteration.
func (r *Rows) Err() error { return r.err }

// Close ends the iteration early.
func (r *Rows) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	r.rows, r.at = nil, 0
	if r.tx.over || r.tx.lost != nil || r.undone() { // it is closed already
		r.cursor = ""
	}
	return r.closeCursor()
}

// undone reports whether the part of the transaction that requested the rows is undone.
func (r *Rows) undone() bool {
	return slices.ContainsFunc(r.tx.undone, func(part [2]int) bool {
		return part[0] <= r.number && r.number <= part[1]
	})
}

func (r *Rows) closeCursor() error {
	if r.cursor == "" {
		return nil
	}
	name := r.cursor
	r.cursor = ""
	if err := r.tx.usable(); err != nil {
		return err
	}
	r.tx.pending = append(r.tx.pending, pending{text: "CLOSE " + name}) // with the next statement
	return nil
}

// row is the first row of a query.
type row struct {
	rows [][]driver.Value
	err  error
}

// Scan copies the row's columns. Without a row it returns db.ErrNoRows.
func (r row) Scan(dest ...any) error {
	switch {
	case r.err != nil:
		return r.err
	case len(r.rows) == 0:
		return db.ErrNoRows
	}
	return scan(r.rows[0], dest)
}

// collect reads rows, at most most of them if most is not 0.
func collect(rows pgx.Rows, most int) (all [][]driver.Value, err error) {
	defer rows.Close()
	for rows.Next() {
		if most > 0 && len(all) == most {
			break
		}
		values, err := rows.Values()
		if err != nil {
			return nil, err
		}
		converted := make([]driver.Value, len(values))
		for i, v := range values {
			if converted[i], err = fromColumn(v); err != nil {
				return nil, fmt.Errorf("column %d: %w", i+1, err)
			}
		}
		all = append(all, converted)
	}
	rows.Close()
	return all, rows.Err()
}

// fromColumn converts a value of a column to the form that SQLite returns.
func fromColumn(value any) (driver.Value, error) {
	switch v := value.(type) {
	case nil:
		return nil, nil
	case int64, float64, string:
		return v, nil
	case int32:
		return int64(v), nil
	case int16:
		return int64(v), nil
	case uint32:
		return int64(v), nil
	case float32:
		return float64(v), nil
	case bool:
		if v {
			return int64(1), nil
		}
		return int64(0), nil
	case []byte:
		return append([]byte{}, v...), nil
	case pgtype.Numeric:
		return fromNumeric(v)
	}
	return nil, fmt.Errorf("type %T is not one of the columns of a store", value)
}

// fromNumeric converts the sum of integers, which has no bound, and means.
func fromNumeric(n pgtype.Numeric) (driver.Value, error) {
	if !n.Valid {
		return nil, nil
	}
	if i, err := n.Int64Value(); err == nil && i.Valid {
		return i.Int64, nil
	}
	f, err := n.Float64Value()
	return f.Float64, err
}
