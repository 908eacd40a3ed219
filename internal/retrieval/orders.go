package retrieval

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
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
	Least int       // memories of the smallest stretch of an order that is read and kept; 0: 1,024
	kept  lru.Cache // of ordering
}

// ordering are the memories of some partitions, live or not, in an order: all of them, or those at one end.
type ordering struct {
	mark   db.Mark // of the log, up to which it is right
	places []orderedRow
	stretch
}

// stretch is the part of an order that a page needs, or that is kept.
type stretch struct {
	whole bool
	tail  bool  // its end, not its beginning
	rows  int   // about as many memories
	bound int64 // the time up to which it has all
}

// upwards reports whether the stretch begins with the earliest memories.
func (s stretch) upwards(order Order) bool { return order.Ascending != s.tail }

// has reports whether a memory belongs to the stretch.
func (s stretch) has(order Order, at int64) bool {
	return s.whole || at == s.bound || s.upwards(order) == (at < s.bound)
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
	leastStretch = 1_024    // the default of Orders.Least
)

// Worth reports whether a page of a selection is found with less work in a kept order than in the database.
func (o *Orders) Worth(sel Selection, order Order, offset int) bool {
	memories := sel.memories()
	return order.By == "" && memories >= cmp.Or(o.Few, fewOrdered) && memories <= mostOrdered &&
		(len(sel.Condition) > 0 || offset > nearOrdered || len(sel.Partitions) > 4*fewPartitions)
}

// memories returns how many memories the partitions have.
func (sel Selection) memories() (n int) {
	for _, p := range sel.Partitions {
		n += p.Memories
	}
	return n
}

// Page returns the same as Count and [Selection.Page], by a kept order. It reports false, and returns nothing, if the
// database has to do it.
func (o *Orders) Page(tx db.Tx, f *Filters, sel Selection, order Order, limit, offset int) (rows []int64, total int,
	done bool, err error) {
	var matching *index.RowSet // nil: all
	if len(sel.Condition) > 0 {
		if matching, err = f.Indexed(tx, sel); err != nil {
			return nil, 0, false, err
		}
	}
	wanted := o.stretch(sel, matching, limit, offset)
	for {
		all, done, err := o.ordered(tx, sel, order, matching, wanted)
		if err == nil && done && matching != nil && !all.whole { // it does not tell which ones are in other partitions
			matching, err = f.Selected(tx, sel)
		}
		if err != nil || !done {
			return nil, 0, false, err
		}
		total = all.total(sel, matching)
		n := max(min(limit, total-offset), 0)
		if rows = all.page(sel, matching, total, n, offset); all.whole || len(rows) == n {
			return rows, total, true, nil
		}
		wanted = stretch{whole: true} // the matching memories are further away
	}
}

// lists reports whether a memory is one of the matching ones and not hidden.
func (sel Selection) lists(row int64, matching *index.RowSet) bool {
	return (matching == nil || matching.Has(row)) && !sel.Hidden[row]
}

// total returns how many memories match.
func (all ordering) total(sel Selection, matching *index.RowSet) (n int) {
	if matching == nil {
		return sel.memories()
	}
	if all.whole {
		for _, one := range all.places {
			if sel.lists(one.row, matching) {
				n++
			}
		}
		return n
	}
	n = matching.Len()
	for row := range sel.Hidden {
		if matching.Has(row) {
			n--
		}
	}
	return n
}

// page returns n of the total matching memories after skipping offset, as far as the stretch has them.
func (all ordering) page(sel Selection, matching *index.RowSet, total, n, offset int) []int64 {
	rows, places := make([]int64, 0, n), slices.All(all.places)
	if all.tail {
		places, offset = slices.Backward(all.places), total-offset-n
	}
	for _, one := range places {
		if len(rows) == n {
			break
		}
		if !sel.lists(one.row, matching) {
			continue
		}
		if offset--; offset < 0 {
			rows = append(rows, one.row)
		}
	}
	if all.tail {
		slices.Reverse(rows)
	}
	return rows
}

// stretch returns the stretch of an order that likely has a page.
func (o *Orders) stretch(sel Selection, matching *index.RowSet, limit, offset int) stretch {
	s, needed, memories, least := stretch{}, offset+limit, sel.memories(), cmp.Or(o.Least, leastStretch)
	total := memories
	if matching != nil {
		total = min(total, matching.Len())
	}
	if offset > total/2 {
		s.tail, needed = true, max(total-offset, limit)
	}
	if s.rows = needed + needed/16 + least/4; matching != nil {
		s.rows = needed*memories/max(total, 1)*3/2 + least/4
	}
	for step := least; step <= 16*least; step *= 2 { // the next pages are often in the same stretch
		if s.rows <= step {
			s.rows = step
			break
		}
	}
	if s.rows > memories/2 {
		return stretch{whole: true}
	}
	return s
}

// ordered returns a stretch of the memories of the selection's partitions in an order, or at least the matching ones.
// If few match, it need not read all others: the first list after a start is often one of a tag.
func (o *Orders) ordered(tx db.Tx, sel Selection, order Order, matching *index.RowSet, wanted stretch) (all ordering,
	done bool, err error) {
	if tx.Writable() { // what a transaction writes may be undone
		return all, false, nil
	}
	now, err := tx.Changes().Mark()
	if err != nil {
		return all, false, err
	}
	key := fmt.Sprintf("%s %t %t", sel.PartitionList(), order.Created, order.Ascending)
	old, known := lru.Get[ordering](&o.kept, key)
	if wanted.tail && !(known && old.whole) {
		key += " tail"
		old, known = lru.Get[ordering](&o.kept, key)
	}
	known = known && (old.whole || !wanted.whole && old.rows >= wanted.rows)
	if known && old.mark == now {
		return old, true, nil
	}
	if !known && matching != nil && matching.Len() <= cmp.Or(o.Alone, fewMatching) {
		all.whole = true
		all.places, done, err = order.sorted(tx, sel, slices.Collect(matching.All()))
		return all, done, err
	}
	if known {
		changed, next, complete, err := tx.Changes().Since(old.mark, mostRetested)
		if err != nil {
			return all, false, err
		}
		if complete && next != now { // another listing saw newer changes than this snapshot has
			return all, false, nil
		}
		if complete {
			all = ordering{mark: now, stretch: old.stretch}
			if all.places, done, err = order.again(tx, sel, old, changed); err != nil || !done {
				return all, false, err
			}
		}
	}
	if !done {
		if all, done, err = order.readStretch(tx, sel, wanted); err != nil || !done {
			return all, false, err
		}
		all.mark = now
	}
	o.kept.Put(key, all, len(key)+orderedBytes*cap(all.places)+200, mostOrders)
	return all, true, nil
}

// readStretch reads a stretch of an order, up to the time of a memory in the largest partition.
func (order Order) readStretch(tx db.Tx, sel Selection, s stretch) (all ordering, done bool, err error) {
	column, hint := order.column()
	further, args := ``, []any(nil)
	if !s.whole {
		direction, side := ` DESC`, ` >= ?`
		if s.upwards(order) {
			direction, side = ``, ` <= ?`
		}
		largest := slices.MaxFunc(sel.Partitions, func(a, b Partition) int { return cmp.Compare(a.Memories, b.Memories) })
		err = tx.QueryRow(`SELECT `+column+` FROM memory m `+hint+` WHERE m.partition_id = ? ORDER BY `+column+direction+
			` LIMIT 1 OFFSET ?`, largest.ID, s.rows*largest.Memories/sel.memories()).Scan(&s.bound)
		switch {
		case errors.Is(err, db.ErrNoRows):
			s = stretch{whole: true}
		case err != nil:
			return all, false, err
		default:
			further, args = ` AND `+column+side, []any{s.bound}
		}
	}
	all.stretch = s
	all.places, done, err = order.read(tx, sel, hint, further, args...)
	slices.SortFunc(all.places, order.compareRows)
	return all, done, err
}

// again returns the memories of an order once some have changed.
func (order Order) again(tx db.Tx, sel Selection, old ordering, changed []int64) ([]orderedRow, bool, error) {
	fresh, done, err := order.sorted(tx, sel, changed)
	if err != nil || !done {
		return nil, false, err
	}
	fresh = slices.DeleteFunc(fresh, func(one orderedRow) bool { return !old.has(order, one.at) })
	gone := index.NewRowSet(changed)
	all := make([]orderedRow, 0, len(old.places)+len(fresh))
	for _, one := range old.places {
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
	all, done, err = order.read(tx, sel, ``, ` AND m.id IN `+db.Integers, db.List(rows))
	slices.SortFunc(all, order.compareRows)
	return all, done, err
}

// column returns the column that orders, with the hint for its index.
func (order Order) column() (column, hint string) {
	if order.Created {
		return `m.created_at`, db.ByCreated
	}
	return `m.updated_at`, db.ByUpdated
}

// read reads memories of the selection's partitions, unordered. It reports false if an id is not a UUID as this store
// writes them, whose order is that of its bytes.
func (order Order) read(tx db.Tx, sel Selection, hint, further string, args ...any) (all []orderedRow, done bool,
	err error) {
	column, _ := order.column()
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
	}, `SELECT m.id, `+column+`, m.uid FROM memory m `+hint+` WHERE m.partition_id IN `+db.Integers+further,
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
