package postgres

import (
	"database/sql/driver"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// A transaction takes numbers for its rows from the table's sequence, some at a time: then a row's number is known
// before the row is sent. Numbers left over at its end are lost, so that rows of later transactions have higher
// numbers.

const fewNumbers, mostNumbers = 16, 512

const takeNumbers = `SELECT nextval(pg_get_serial_sequence($1::text, 'id')) FROM generate_series(1, $2::int8)`

// Reserve takes numbers with the next statement.
func (tx *Tx) Reserve(table string, n int) error {
	if err := tx.usable(); err != nil || n < 1 {
		return err
	}
	tx.pending = append(tx.pending, pending{text: takeNumbers, args: []any{table, int64(min(n, mostNumbers))},
		answer: func(rows [][]driver.Value) { tx.gotNumbers(table, rows) }})
	return nil
}

func (tx *Tx) gotNumbers(table string, rows [][]driver.Value) {
	if tx.numbers == nil {
		tx.numbers = map[string][]int64{}
	}
	for _, row := range rows {
		if number, is := row[0].(int64); is {
			tx.numbers[table] = append(tx.numbers[table], number)
		}
	}
}

// Number returns a number for a new row.
func (tx *Tx) Number(table string) (int64, error) {
	if len(tx.numbers[table]) == 0 {
		if err := tx.flush(); err != nil { // it may have been reserved
			return 0, err
		}
	}
	if len(tx.numbers[table]) == 0 {
		tx.taken = min(max(2*tx.taken, fewNumbers), mostNumbers)
		if err := tx.Reserve(table, tx.taken); err != nil {
			return 0, err
		}
		if err := tx.flush(); err != nil {
			return 0, err
		}
	}
	all := tx.numbers[table]
	if len(all) == 0 {
		return 0, db.ErrMisfit
	}
	tx.numbers[table] = all[1:]
	return all[0], nil
}
