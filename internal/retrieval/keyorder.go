package retrieval

import (
	"cmp"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
)

// keyed is a memory with its key.
type keyed struct {
	row     int64
	key, id string
}

// Opens reports whether rows in an order have to be opened to be sorted: keys of memories are sealed.
func (order Order) Opens(tx db.Tx) bool { return order.By == ByKey && sealedrows.Seals(tx) }

// Opened returns up to limit rows of the memories m that a clause from FROM on selects, sorted by their keys, after
// skipping offset. A limit below 0 is none.
func (order Order) Opened(tx db.Tx, from string, limit, offset int, args ...any) ([]int64, error) {
	var all []keyed
	err := tx.Each(func(row db.Rows) error {
		var k keyed
		err := row.Scan(&k.row, &k.key, &k.id)
		all = append(all, k)
		return err
	}, `SELECT m.id, coalesce(m.key, ''), m.uid `+from, args...)
	sign := -1
	if order.Ascending {
		sign = 1
	}
	slices.SortFunc(all, func(a, b keyed) int {
		switch {
		case a.key == "" && b.key != "":
			return 1
		case a.key != "" && b.key == "":
			return -1
		}
		return cmp.Or(sign*cmp.Compare(a.key, b.key), cmp.Compare(a.id, b.id))
	})
	all = all[min(offset, len(all)):]
	if limit >= 0 {
		all = all[:min(limit, len(all))]
	}
	rows := make([]int64, len(all))
	for i, k := range all {
		rows[i] = k.row
	}
	return rows, err
}
