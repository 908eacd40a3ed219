package retrieval

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/retrieval/filter"
)

// Selection is the part of the store that a query covers.
type Selection struct {
	Partitions []Partition
	Condition  filter.SQL // a further condition; nil for none
	Args       []any
	Steady     bool // whether a memory matches changes only when the memory is written

	// Indexed selects the rows that match, in any partition, from an index; "" if the condition is of another form.
	Indexed string

	// Current is the condition that a memory m exists and is valid, in the form that follows another one; "" if all are.
	Current string

	Hidden map[int64]bool // rows in the partitions that are not current
}

// Add adds a partition without its hidden memories, unless no memory is left.
func (sel *Selection) Add(p Partition, hidden []int64) {
	if p.Memories -= len(hidden); p.Memories <= 0 {
		return
	}
	sel.Partitions = append(sel.Partitions, p)
	if sel.Hidden == nil && len(hidden) > 0 {
		sel.Hidden = map[int64]bool{}
	}
	for _, row := range hidden {
		sel.Hidden[row] = true
	}
}

// Partition is a partition that a query covers.
type Partition struct {
	ID       int64
	Memories int
	OwnSize  int      // dimensions of the collection's own vectors; 0: the embedder makes its vectors
	fitting  int      // memories that match the condition, once counted
	last     timedRow // the last row read
}

// By is a value that only some memories have; the others come last.
type By string

// The values of [By], which are columns.
const (
	ByKey       By = "key"
	ByEventTime By = "event_time"
)

// Order is an order by time; ids break ties. The zero value has the latest change first.
type Order struct {
	By        By   // something that not all memories have; the zero value: by a time that they have
	Created   bool // by creation, not by the last change
	Ascending bool // the oldest first
}

// SQL returns the order for the rows of a table with the columns created_at, updated_at and uid.
func (order Order) SQL(table string) string {
	column, direction := `.updated_at`, ` DESC, `
	if order.Created {
		column = `.created_at`
	}
	if order.Ascending {
		direction = `, `
	}
	if order.By != "" {
		column = `.` + string(order.By)
		return table + column + ` IS NULL, ` + table + column + direction + table + `.uid`
	}
	return table + column + direction + table + `.uid`
}

// PartitionList returns the ids for [db.Integers].
func (sel Selection) PartitionList() string {
	ids := make([]int64, len(sel.Partitions))
	for i, p := range sel.Partitions {
		ids[i] = p.ID
	}
	return db.List(ids)
}

// Where returns the selection as a condition on m, p and c.
func (sel Selection) Where() (condition string, args []any) {
	condition, args = `m.partition_id IN `+db.Integers, []any{sel.PartitionList()}
	if len(sel.Condition) > 0 {
		args = append(args, sel.Args...)
	}
	return condition + sel.further(), args
}

// Count counts the selected memories in each partition.
func (sel *Selection) Count(tx db.Tx) (total int, err error) {
	fitting := map[int64]int{}
	if len(sel.Condition) > 0 {
		from, args := fromPartitions(``)+` WHERE p.id IN `+db.Integers+sel.further(),
			append([]any{sel.PartitionList()}, sel.Args...)
		if sel.Condition.ByRow() {
			condition, given := sel.Where()
			from, args = kernel.FromMemory+` WHERE `+condition, given // from the rows of the condition
		}
		// Without NoIndex, SQLite may read all memories along an index, to have them grouped.
		const partition = db.NoIndex + `m.partition_id`
		err = tx.Each(func(row db.Rows) error {
			var id int64
			var n int
			err := row.Scan(&id, &n)
			fitting[id] = n
			return err
		}, `SELECT `+partition+`, count(*) `+from+` GROUP BY `+partition, args...)
	}
	for i := range sel.Partitions {
		p := &sel.Partitions[i]
		p.fitting = p.Memories
		if len(sel.Condition) > 0 {
			p.fitting = fitting[p.ID]
		}
		total += p.fitting
	}
	return total, err
}

// Sample restricts a selection that is not counted yet to a share of its memories. Whether a memory is among them
// depends on its id alone, which ends in random digits.
func (sel *Selection) Sample(share string) {
	sel.Condition = sel.Condition.And(filter.Plain(`substr(m.uid, 34, 3) < ?`))
	sel.Args = append(slices.Clip(sel.Args), share)
}

// Share is the part of total memories that a sample of about limit of them has: different samples of the same memories
// have different ones.
func Share(limit, total int) string {
	const parts = 0x1000 // of three hexadecimal digits
	return fmt.Sprintf("%03x", max(parts*limit/total*31/32, 1))
}

// Among returns those of some rows that are selected.
func (sel Selection) Among(tx db.Tx, rows []int64) ([]int64, error) {
	condition, args := sel.Where()
	return db.Column[int64](tx, `SELECT m.id FROM `+db.Numbered+` r `+db.InOrder+` memory m ON m.id = r.value
		JOIN partition p ON p.id = m.partition_id JOIN collection c ON c.id = p.collection_id WHERE `+condition,
		append([]any{db.List(rows)}, args...)...)
}

// All returns the rows of the selection, ordered by time.
func (sel Selection) All(tx db.Tx, order Order) ([]int64, error) {
	condition, args := sel.Where()
	if order.Opens(tx) {
		return order.Opened(tx, kernel.FromMemory+` WHERE `+condition, -1, 0, args...)
	}
	return db.Column[int64](tx, `SELECT m.id `+kernel.FromMemory+` WHERE `+condition+` ORDER BY `+order.SQL(`m`),
		args...)
}

// Page returns up to limit rows of a counted selection, ordered by time, after skipping offset.
func (sel Selection) Page(tx db.Tx, order Order, limit, offset int) ([]int64, error) {
	if order.By == "" && sel.worthMerging(limit+offset) {
		return sel.merged(tx, order, limit, offset)
	}
	from, args := fromPartitions(db.ByUpdated)+` WHERE p.id IN `+db.Integers+sel.further(),
		append([]any{sel.PartitionList()}, sel.Args...)
	if sel.few() {
		condition, given := sel.Where()
		from, args = kernel.FromMemory+` WHERE `+condition, given
	}
	if order.Opens(tx) {
		return order.Opened(tx, from, limit, offset, args...)
	}
	return db.Column[int64](tx, `SELECT m.id `+from+` ORDER BY `+db.NoIndex+order.SQL(`m`)+` LIMIT ? OFFSET ?`,
		append(args, limit, offset)...)
}

// few reports whether a condition has selected so few rows, from another table, that reading them by row is less work
// than reading an index of all.
func (sel Selection) few() bool {
	fitting, memories := 0, 0
	for _, p := range sel.Partitions {
		fitting, memories = fitting+p.fitting, memories+p.Memories
	}
	return sel.Condition.ByRow() && fitting < memories/8
}

// mostMerged is the most rows of all partitions that are worth reading along indexes, rather than letting the
// engine sort them.
const mostMerged = 200_000

// fewPartitions is how many partitions are cheap to read one after another.
const fewPartitions = 40

// worthMerging reports whether reading the first rows of each partition along the index of an order is less work than
// sorting all matching rows. Without a condition these are the first rows of the index; with one, only a part of the
// rows read matches. Rows of other tables would be collected again for each partition.
func (sel Selection) worthMerging(first int) bool {
	const statement = 40 // rows that are sorted while a partition's statement begins
	lookedAt, fitting := 0, 0
	for _, p := range sel.Partitions {
		if p.fitting > 0 {
			lookedAt += p.Memories / p.fitting * min(first, p.fitting)
			fitting += p.fitting
		}
	}
	return lookedAt <= mostMerged && (len(sel.Partitions) <= fewPartitions || statement*len(sel.Partitions) < fitting) &&
		(len(sel.Condition) == 0 || !sel.Condition.Reads() && lookedAt < fitting)
}

// merged does the same as page, from the first rows of each partition: at first somewhat more than its share, and then
// all that the page could need from partitions whose first rows end before the page does.
func (sel Selection) merged(tx db.Tx, order Order, limit, offset int) ([]int64, error) {
	total := 0
	for _, p := range sel.Partitions {
		total += p.fitting
	}
	first := min(limit+offset, total)
	var all []timedRow
	var further []Partition // partitions that may have more rows
	for _, p := range sel.Partitions {
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
	compare := order.compare()
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

// timedRow is a memory with its sort key.
type timedRow struct {
	at, row int64
	id      string
}

// compare compares as SQL orders.
func (order Order) compare() func(a, b timedRow) int {
	sign := -1
	if order.Ascending {
		sign = 1
	}
	return func(a, b timedRow) int {
		return cmp.Or(sign*cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id))
	}
}

// first returns the first rows of a partition, ordered by time, along the index of that order.
func (sel Selection) first(tx db.Tx, p Partition, order Order, limit int) (rows []timedRow, err error) {
	column, index := `m.updated_at`, db.ByUpdated
	if order.Created {
		column, index = `m.created_at`, db.ByCreated
	}
	err = tx.Each(func(row db.Rows) error {
		var t timedRow
		err := row.Scan(&t.at, &t.id, &t.row)
		rows = append(rows, t)
		return err
	}, `SELECT `+column+`, m.uid, m.id `+fromPartitions(index)+` WHERE p.id = ?`+sel.further()+` ORDER BY `+
		order.SQL(`m`)+` LIMIT ?`,
		append(append([]any{p.ID}, sel.Args...), limit)...)
	return rows, err
}

// fromPartitions is the FROM clause that reads memories partition by partition, with the tables that a condition may
// use, along an index if one is named.
func fromPartitions(index string) string {
	return `FROM partition p ` + db.InOrder + ` collection c ON c.id = p.collection_id ` + db.InOrder + ` memory m ` +
		index + ` ON m.partition_id = p.id`
}

// further returns the condition in the form that follows another one.
func (sel Selection) further() string {
	if len(sel.Condition) == 0 {
		return sel.Current
	}
	return ` AND ` + sel.Condition.String() + sel.Current
}
