package souvenir

import (
	"cmp"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// count counts the memories that are selected, in each partition.
func (sel *selection) count(tx db.Tx) (total int, err error) {
	fitting := map[int64]int{}
	if sel.condition != "" {
		err = tx.Each(func(row db.Rows) error {
			var partition int64
			var n int
			err := row.Scan(&partition, &n)
			fitting[partition] = n
			return err
		}, `SELECT p.id, count(*) `+fromPartitions(``)+` WHERE p.id IN `+db.Integers+sel.further()+` GROUP BY p.id`, append([]any{sel.partitionList()}, sel.args...)...)
	}
	for i := range sel.partitions {
		p := &sel.partitions[i]
		p.fitting = p.memories
		if sel.condition != "" {
			p.fitting = fitting[p.id]
		}
		total += p.fitting
	}
	return total, err
}

// all returns the rows of the selection in an order by time.
func (sel selection) all(tx db.Tx, order SortOrder) ([]int64, error) {
	condition, args := sel.where()
	return db.Column[int64](tx, `SELECT m.id `+fromMemory+` WHERE `+condition+` ORDER BY `+timeOrder(order), args...)
}

// page returns rows of a counted selection in an order by time, up to limit of them after skipping offset.
func (sel selection) page(tx db.Tx, order SortOrder, limit, offset int) ([]int64, error) {
	if sel.worthMerging(limit + offset) {
		return sel.merged(tx, order, limit, offset)
	}
	return db.Column[int64](tx, `SELECT m.id `+fromPartitions(db.ByUpdated)+` WHERE p.id IN `+db.Integers+sel.further()+
		` ORDER BY +`+timeOrder(order)+` LIMIT ? OFFSET ?`, append(append([]any{sel.partitionList()}, sel.args...), limit, offset)...)
}

// mostMerged is how many rows of all partitions are worth reading along indexes, rather than letting SQLite sort them.
const mostMerged = 200_000

// worthMerging tells whether the first rows of each partition are found with less work along the index of an order than by sorting
// all that fit. Without a condition these are the first rows of the index; with one, a part of those that are looked at. The rows
// of inRows would be gathered anew for each partition.
func (sel selection) worthMerging(first int) bool {
	lookedAt, fitting := 0, 0
	for _, p := range sel.partitions {
		if p.fitting > 0 {
			lookedAt += p.memories / p.fitting * min(first, p.fitting)
			fitting += p.fitting
		}
	}
	return lookedAt <= mostMerged && (sel.condition == "" || !strings.Contains(sel.condition, inRows) && lookedAt < fitting)
}

// merged does what page does, from the first rows of each partition: at first somewhat more than its share, and all that a page could
// have where these do not reach as far as the page does.
func (sel selection) merged(tx db.Tx, order SortOrder, limit, offset int) ([]int64, error) {
	total := 0
	for _, p := range sel.partitions {
		total += p.fitting
	}
	first := min(limit+offset, total)
	var all []timedRow
	var further []selectedPartition // which may have more
	for _, p := range sel.partitions {
		if p.fitting == 0 {
			continue
		}
		share := min(first*p.fitting/total*3/2+32, first)
		rows, err := sel.first(tx, p, order, share)
		if err != nil {
			return nil, err
		}
		if len(rows) == share && share < min(first, p.fitting) {
			p.last = rows[len(rows)-1]
			further = append(further, p)
		}
		all = append(all, rows...)
	}
	compare := inTime(order)
	slices.SortFunc(all, compare)
	for _, p := range further {
		if len(all) >= first && compare(p.last, all[first-1]) >= 0 {
			continue
		}
		rows, err := sel.first(tx, p, order, first)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			if compare(row, p.last) > 0 {
				all = append(all, row)
			}
		}
		slices.SortFunc(all, compare)
	}
	rows := []int64{}
	first = min(first, len(all))
	for _, t := range all[min(offset, first):first] {
		rows = append(rows, t.row)
	}
	return rows, nil
}

// timedRow is a memory with what it is ordered by.
type timedRow struct {
	at, row int64
	id      string
}

// inTime compares as timeOrder orders.
func inTime(order SortOrder) func(a, b timedRow) int {
	sign := -1
	if order == SortCreatedAsc || order == SortUpdatedAsc {
		sign = 1
	}
	return func(a, b timedRow) int {
		return cmp.Or(sign*cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id))
	}
}

// first returns the first rows of a partition in an order by time, along the index of that order.
func (sel selection) first(tx db.Tx, p selectedPartition, order SortOrder, limit int) (rows []timedRow, err error) {
	column, index := `m.updated_at`, db.ByUpdated
	if order == SortCreatedAsc || order == SortCreatedDesc {
		column, index = `m.created_at`, db.ByCreated
	}
	err = tx.Each(func(row db.Rows) error {
		var t timedRow
		err := row.Scan(&t.at, &t.id, &t.row)
		rows = append(rows, t)
		return err
	}, `SELECT `+column+`, m.uid, m.id `+fromPartitions(index)+` WHERE p.id = ?`+sel.further()+` ORDER BY `+timeOrder(order)+` LIMIT ?`,
		append(append([]any{p.id}, sel.args...), limit)...)
	return rows, err
}

// fromPartitions goes through memories partition by partition, with what a condition may speak of, along an index if one is named.
func fromPartitions(index string) string {
	return `FROM partition p ` + db.InOrder + ` collection c ON c.id = p.collection_id ` + db.InOrder + ` memory m ` + index + ` ON m.partition_id = p.id`
}

// further is the condition as what goes on after another one.
func (sel selection) further() string {
	if sel.condition == "" {
		return ""
	}
	return ` AND ` + sel.condition
}

// timeOrder is an order by time in SQL.
func timeOrder(order SortOrder) string {
	switch order {
	case SortCreatedAsc:
		return `m.created_at, m.uid`
	case SortCreatedDesc:
		return `m.created_at DESC, m.uid`
	case SortUpdatedAsc:
		return `m.updated_at, m.uid`
	}
	return `m.updated_at DESC, m.uid`
}
