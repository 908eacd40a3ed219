package postgres

import (
	"fmt"
	"sync"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// numbers has numbers of rows that are not used yet, by table. They are taken from the table's sequence some at a time:
// then a row's number is known before the row is sent, and those that are lost at the end are few.
type numbers struct {
	mu   sync.Mutex
	free map[string][]int64
}

const mostNumbers = 512

// Number returns a number for a new row.
func (tx *Tx) Number(table string) (int64, error) {
	n := &tx.d.numbers
	if number, ok := n.take(table); ok {
		return number, nil
	}
	more, err := db.Column[int64](tx, fmt.Sprintf(`SELECT nextval(pg_get_serial_sequence('%s', 'id'))
		FROM generate_series(1, ?)`, table), mostNumbers)
	if err != nil {
		return 0, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.free[table] = append(n.free[table], more[1:]...)
	return more[0], nil
}

func (n *numbers) take(table string) (int64, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.free[table]) == 0 {
		return 0, false
	}
	number := n.free[table][0]
	n.free[table] = n.free[table][1:]
	return number, true
}
