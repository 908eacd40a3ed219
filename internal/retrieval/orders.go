package retrieval

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/lru"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
)

// Orders keeps the memories of the partitions that were listed last, ordered by time, in step with the log of changes.
// So a page far from the start costs no more than the first one, and a filter only has to say which memories match. The
// zero value is ready.
type Orders struct {
	Few   int       // memories; fewer are ordered in the database; 0: 5,000
	Alone int       // matching memories; while no order is kept, so few are ordered alone; 0: 4,000, negative: none
	kept  lru.Cache // of ordering
}

// ordering are the memories of some partitions, live or not, in an order.
type ordering struct {
	mark   db.Mark // of the log, up to which it is right
	places []orderedRow
}

// orderedRow is a memory with what orders it.
type orderedRow struct {
	at, row int64
	id      [16]byte // of its UUID
}

const (
	orderedBytes = 32       // of an orderedRow
	mostOrders   = 48 << 20 // bytes of all that Orders keeps
	fewOrdered   = 5_000    // the default of Orders.Few
	mostOrdered  = 500_000  // memories of one order; more are ordered in the database
	nearOrdered  = 2_000    // memories from the start, which are read from the index of the database
	fewMatching  = 4_000    // the default of Orders.Alone
)

// Worth reports whether a page of a selection is found with less work in a kept order than in the database.
func (o *Orders) Worth(sel Selection, order Order, offset int) bool {
	memories := sel.memories()
	return order.By == "" && memories >= cmp.Or(o.Few, fewOrdered) && memories <= mostOrdered &&
		(sel.Condition != "" || offset > nearOrdered || len(sel.Partitions) > 4*fewPartitions)
}

// memories returns how many memories the partitions have.
func (sel Selection) memories() (n int) {
	for _, p := range sel.Partitions {
		n += p.Memories
	}
	return n
}

// Page returns the same as Count and [Selection.Page], by a kept order. matching has the memories to list, hidden ones
// included; nil: all. It reports false, and returns nothing, if the database has to do it.
func (o *Orders) Page(tx db.Tx, sel Selection, order Order, limit, offset int, matching *index.RowSet) (rows []int64,
	total int, done bool, err error) {
	all, done, err := o.ordered(tx, sel, order, matching)
	if err != nil || !done {
		return nil, 0, false, err
	}
	rows = []int64{}
	for _, one := range all {
		if matching != nil && !matching.Has(one.row) || sel.Hidden[one.row] {
			continue
		}
		if total >= offset && len(rows) < limit {
			rows = append(rows, one.row)
		}
		total++
	}
	return rows, total, true, nil
}

// ordered returns the memories of the selection's partitions in an order, or at least the matching ones. If few match,
// it need not read all others: the first list after a start is often one of a tag.
func (o *Orders) ordered(tx db.Tx, sel Selection, order Order, matching *index.RowSet) (all []orderedRow, done bool,
	err error) {
	if tx.Writable() { // what a transaction writes may be undone
		return nil, false, nil
	}
	now, err := tx.Changes().Mark()
	if err != nil {
		return nil, false, err
	}
	key := fmt.Sprintf("%s %t %t", sel.PartitionList(), order.Created, order.Ascending)
	old, known := lru.Get[ordering](&o.kept, key)
	if known && old.mark == now {
		return old.places, true, nil
	}
	if !known && matching != nil && matching.Len() <= cmp.Or(o.Alone, fewMatching) {
		return order.sorted(tx, sel, slices.Collect(matching.All()))
	}
	if known {
		changed, next, complete, err := tx.Changes().Since(old.mark, mostRetested)
		if err != nil {
			return nil, false, err
		}
		if complete && next != now { // another listing saw newer changes than this snapshot has
			return nil, false, nil
		}
		if complete {
			if all, done, err = order.again(tx, sel, old.places, changed); err != nil || !done {
				return nil, false, err
			}
		}
	}
	if !done {
		if all, done, err = order.read(tx, sel, ``); err != nil || !done {
			return nil, false, err
		}
		slices.SortFunc(all, order.compareRows)
	}
	o.kept.Put(key, ordering{mark: now, places: all}, len(key)+orderedBytes*cap(all)+200, mostOrders)
	return all, true, nil
}

// again returns an order once some memories have changed.
func (order Order) again(tx db.Tx, sel Selection, old []orderedRow, changed []int64) ([]orderedRow, bool, error) {
	fresh, done, err := order.sorted(tx, sel, changed)
	if err != nil || !done {
		return nil, false, err
	}
	gone := index.NewRowSet(changed)
	all := make([]orderedRow, 0, len(old)+len(fresh))
	for _, one := range old {
		if gone.Has(one.row) {
			continue
		}
		for len(fresh) > 0 && order.compareRows(fresh[0], one) < 0 {
			all, fresh = append(all, fresh[0]), fresh[1:]
		}
		all = append(all, one)
	}
	return append(all, fresh...), true, nil
}

// sorted returns those of some memories that are in the selection's partitions, in the order.
func (order Order) sorted(tx db.Tx, sel Selection, rows []int64) (all []orderedRow, done bool, err error) {
	all, done, err = order.read(tx, sel, ` AND m.id IN `+db.Integers, db.List(rows))
	slices.SortFunc(all, order.compareRows)
	return all, done, err
}

// read reads memories of the selection's partitions, unordered. It reports false if an id is not a UUID as this store
// writes them, whose order is that of its bytes.
func (order Order) read(tx db.Tx, sel Selection, further string, args ...any) (all []orderedRow, done bool, err error) {
	column, hint := `updated_at`, db.ByUpdated
	if order.Created {
		column, hint = `created_at`, db.ByCreated
	}
	if further != "" {
		hint = ``
	}
	done = true
	var uid string
	err = tx.Each(func(row db.Rows) error {
		var one orderedRow
		if err := row.Scan(&one.row, &one.at, &uid); err != nil {
			return err
		}
		compact := strings.ReplaceAll(uid, "-", "")
		if n, err := hex.Decode(one.id[:min(16, len(compact)/2)], []byte(compact[:min(32, len(compact))])); err != nil ||
			n != 16 || len(uid) != 36 || strings.ToLower(uid) != uid {
			done = false
		}
		all = append(all, one)
		return nil
	}, `SELECT m.id, m.`+column+`, m.uid FROM memory m `+hint+` WHERE m.partition_id IN `+db.Integers+further,
		append([]any{sel.PartitionList()}, args...)...)
	return all, done, err
}

// compareRows compares as SQL orders.
func (order Order) compareRows(a, b orderedRow) int {
	sign := -1
	if order.Ascending {
		sign = 1
	}
	return cmp.Or(sign*cmp.Compare(a.at, b.at), bytes.Compare(a.id[:], b.id[:]))
}
