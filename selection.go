package souvenir

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/filter"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// selection is the part of the store that a query covers.
type selection struct {
	partitions []selectedPartition
	condition  string // additional condition on m, p and c; "" for none
	args       []any
	warnings   []string
}

type selectedPartition struct {
	id       int64
	memories int
	fitting  int      // memories that match the condition, once counted
	last     timedRow // the last row read
	ownSize  int      // dimensions of the collection's own vectors; 0: the embedder makes its vectors
}

// partitionList returns the ids for json_each.
func (sel selection) partitionList() string {
	ids := make([]int64, len(sel.partitions))
	for i, p := range sel.partitions {
		ids[i] = p.id
	}
	return db.List(ids)
}

// selection resolves the collections, the project and the filters of a query.
func (s *Store) selection(tx db.Tx, v viewer, q Query) (selection, error) {
	var sel selection
	if err := sel.addFilters(v, q); err != nil {
		return sel, err
	}
	if v.Limited && len(v.Projects) == 0 && len(s.access.Projects) > 0 {
		sel.warnings = append(sel.warnings, s.goneProjects())
	}
	condition, args := v.Visible()
	collections := valid.Distinct(q.Collections)
	if len(collections) > maxCollections {
		return sel, newError(KindTooLarge, "collection_name", "collection_name lists %d collections; at most %d are allowed",
			len(collections), maxCollections)
	}
	for _, name := range collections {
		if _, err := s.collection(tx, v, name); err != nil {
			return sel, err
		}
	}
	if len(collections) > 0 {
		condition += ` AND c.name IN (` + questionMarks(len(collections)) + `)`
		args = append(args, anys(collections)...)
	}
	if q.ProjectID != "" || q.ProjectName != "" {
		if err := valid.Project(q.ProjectID, q.ProjectName); err != nil {
			return sel, err
		}
		project, err := findProject(tx, v, q.ProjectID, q.ProjectName)
		if err != nil {
			return sel, err
		}
		if project == nil {
			sel.warnings = append(sel.warnings,
				fmt.Sprintf("project %s not found, or you have no access to it, so nothing is found in it",
					show(q.ProjectID+q.ProjectName)))
			return sel, nil
		}
		sel.warnings = append(sel.warnings, project.notes()...)
		condition += ` AND p.project_id = ?`
		args = append(args, project.row)
	}
	err := tx.Each(func(row db.Rows) error {
		var p selectedPartition
		err := row.Scan(&p.id, &p.memories, &p.ownSize)
		sel.partitions = append(sel.partitions, p)
		return err
	}, `SELECT p.id, p.memories, coalesce(f.dimensions, 0) FROM partition p JOIN collection c ON c.id = p.collection_id
		LEFT JOIN profile f ON f.id = c.own_profile WHERE p.memories > 0 AND `+condition, args...)
	return sel, err
}

// maxCollections bounds how many collections one search may name.
const maxCollections = 100

func (sel *selection) addFilters(v viewer, q Query) error {
	var parts []string
	add := func(f Filter) error {
		condition, args, err := f.compile(v)
		if err == nil && condition != "" {
			parts, sel.args = append(parts, condition), append(sel.args, args...)
		}
		return err
	}
	if err := valid.Enum("classification", string(q.Classification), kernel.Classifications); err != nil {
		return err
	}
	if q.Classification != "" {
		if err := add(Filter{"classification": q.Classification}); err != nil {
			return err
		}
	}
	if len(q.Tags) > 0 {
		tags, err := valid.Tags(q.Tags, filter.MaxAlternatives)
		if err != nil {
			return err
		}
		if err := add(Filter{"tags": tags}); err != nil {
			return err
		}
	}
	if err := add(q.Filter); err != nil {
		return err
	}
	sel.condition = strings.Join(parts, ` AND `)
	return nil
}

// where returns the selection as a condition on m, p and c.
func (sel selection) where() (condition string, args []any) {
	condition, args = `m.partition_id IN `+db.Integers, []any{sel.partitionList()}
	if sel.condition != "" {
		condition += ` AND ` + sel.condition
		args = append(args, sel.args...)
	}
	return condition, args
}

// count counts the selected memories in each partition.
func (sel *selection) count(tx db.Tx) (total int, err error) {
	fitting := map[int64]int{}
	if sel.condition != "" {
		err = tx.Each(func(row db.Rows) error {
			var partition int64
			var n int
			err := row.Scan(&partition, &n)
			fitting[partition] = n
			return err
		}, `SELECT p.id, count(*) `+fromPartitions(``)+` WHERE p.id IN `+db.Integers+sel.further()+` GROUP BY p.id`,
			append([]any{sel.partitionList()}, sel.args...)...)
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

// all returns the rows of the selection, ordered by time.
func (sel selection) all(tx db.Tx, order SortOrder) ([]int64, error) {
	condition, args := sel.where()
	return db.Column[int64](tx, `SELECT m.id `+kernel.FromMemory+` WHERE `+condition+` ORDER BY `+timeOrder(order),
		args...)
}

// page returns up to limit rows of a counted selection, ordered by time, after skipping offset.
func (sel selection) page(tx db.Tx, order SortOrder, limit, offset int) ([]int64, error) {
	if sel.worthMerging(limit + offset) {
		return sel.merged(tx, order, limit, offset)
	}
	return db.Column[int64](tx, `SELECT m.id `+fromPartitions(db.ByUpdated)+` WHERE p.id IN `+db.Integers+sel.further()+
		` ORDER BY +`+timeOrder(order)+` LIMIT ? OFFSET ?`,
		append(append([]any{sel.partitionList()}, sel.args...), limit, offset)...)
}

// mostMerged is the most rows of all partitions that are worth reading along indexes, rather than letting SQLite sort
// them.
const mostMerged = 200_000

// worthMerging reports whether reading the first rows of each partition along the index of an order is less work than
// sorting all matching rows. Without a condition these are the first rows of the index; with one, only a part of the
// rows read matches. The rows of filter.InRows would be collected again for each partition.
func (sel selection) worthMerging(first int) bool {
	lookedAt, fitting := 0, 0
	for _, p := range sel.partitions {
		if p.fitting > 0 {
			lookedAt += p.memories / p.fitting * min(first, p.fitting)
			fitting += p.fitting
		}
	}
	return lookedAt <= mostMerged &&
		(sel.condition == "" || !strings.Contains(sel.condition, filter.InRows) && lookedAt < fitting)
}

// merged does the same as page, from the first rows of each partition: at first somewhat more than its share, and then
// all that the page could need from partitions whose first rows end before the page does.
func (sel selection) merged(tx db.Tx, order SortOrder, limit, offset int) ([]int64, error) {
	total := 0
	for _, p := range sel.partitions {
		total += p.fitting
	}
	first := min(limit+offset, total)
	var all []timedRow
	var further []selectedPartition // partitions that may have more rows
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

// timedRow is a memory with its sort key.
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

// first returns the first rows of a partition, ordered by time, along the index of that order.
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
	}, `SELECT `+column+`, m.uid, m.id `+fromPartitions(index)+` WHERE p.id = ?`+sel.further()+` ORDER BY `+
		timeOrder(order)+` LIMIT ?`,
		append(append([]any{p.id}, sel.args...), limit)...)
	return rows, err
}

// fromPartitions is the FROM clause that reads memories partition by partition, with the tables that a condition may
// use, along an index if one is named.
func fromPartitions(index string) string {
	return `FROM partition p ` + db.InOrder + ` collection c ON c.id = p.collection_id ` + db.InOrder + ` memory m ` +
		index + ` ON m.partition_id = p.id`
}

// further returns the condition in the form that follows another one.
func (sel selection) further() string {
	if sel.condition == "" {
		return ""
	}
	return ` AND ` + sel.condition
}

// timeOrder is an order by time, in SQL.
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

// maxAhead is how far a stored time may be in the future before its clock counts as wrong.
const maxAhead = 10 * time.Minute

// mostAhead is how many memories with a time in the future are candidates for the newest.
const mostAhead = 1000

// changedRow is a memory and the time of its last change, for orders with the newest change first.
type changedRow struct {
	row, at int64
}

// estimate is the estimated time of a change: its own time, or if that is in the future, after the memory stored before
// it.
type estimate struct {
	at     int64
	anchor int64 // the row whose time it uses: its own, or the memory stored before it
	stored int64 // its own time, even if wrong
}

// horizon returns the latest time that counts as right.
func (s *shared) horizon() int64 { return s.now() + maxAhead.Microseconds() }

// newestFirst sorts memories by their last change if any of their times is in the future: by their stored times, these
// would stay the newest for as long as the clock was ahead. Otherwise it keeps their order.
func (s *shared) newestFirst(tx db.Tx, rows []changedRow) error {
	horizon := s.horizon()
	var ahead []int64
	for _, r := range rows {
		if r.at > horizon {
			ahead = append(ahead, r.row)
		}
	}
	if len(ahead) == 0 {
		return nil
	}
	estimates, err := estimateChanges(tx, ahead, s.now())
	if err != nil {
		return err
	}
	of := func(r changedRow) estimate {
		e, ok := estimates[r.row]
		if !ok {
			e = estimate{at: r.at, anchor: r.row}
		}
		e.stored = r.at
		return e
	}
	slices.SortFunc(rows, func(x, y changedRow) int {
		a, b := of(x), of(y)
		return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(b.anchor, a.anchor), cmp.Compare(b.stored, a.stored),
			cmp.Compare(y.row, x.row))
	})
	return nil
}

// estimateChanges estimates when memories whose times are in the future changed: no earlier than the last memory stored
// before them, since rows are numbered in the order of storing, and no earlier than their last revision with a
// plausible time. Each look-up ends at the row of the previous one, so together they read each row once.
func estimateChanges(tx db.Tx, rows []int64, now int64) (map[int64]estimate, error) {
	estimates := make(map[int64]estimate, len(rows))
	anchored := map[int64][]int64{} // memories that use the time of another one
	last := int64(0)
	err := tx.Each(func(row db.Rows) error {
		var id, anchor, created, revised int64
		if err := row.Scan(&id, &anchor, &created, &revised); err != nil {
			return err
		}
		if anchor > 0 {
			last = anchor
		}
		e := estimate{anchor: last, at: revised}
		if last == id {
			e.at = max(created, revised)
		} else {
			anchored[last] = append(anchored[last], id)
		}
		estimates[id] = e
		return nil
	}, `SELECT f.id, coalesce((SELECT x.id FROM memory x WHERE x.id > f.before AND x.id <= f.id AND x.created_at <= ?2
		ORDER BY x.id DESC LIMIT 1), 0),
			coalesce((SELECT created_at FROM memory WHERE id = f.id), 0),
			coalesce((SELECT max(r.created_at) FROM memory_revision r WHERE r.memory_id = f.id AND r.created_at <= ?2), 0)
		FROM (SELECT r.value AS id, lag(r.value, 1, 0) OVER (ORDER BY r.value) AS before FROM `+db.Numbered1+
		` r) f ORDER BY f.id`, db.List(rows), now)
	if err != nil {
		return nil, err
	}
	anchors := make([]int64, 0, len(anchored))
	for anchor := range anchored {
		anchors = append(anchors, anchor)
	}
	// Takes the latest of several: a memory restored from the trash or imported has a time long before it got its row.
	return estimates, tx.Each(func(row db.Rows) error {
		var anchor, at int64
		err := row.Scan(&anchor, &at)
		for _, id := range anchored[anchor] {
			e := estimates[id]
			e.at = max(e.at, at)
			estimates[id] = e
		}
		return err
	}, `SELECT a.value, coalesce((SELECT max(b.created_at) FROM
			(SELECT x.created_at FROM memory x WHERE x.id <= a.value AND x.created_at <= ?2 ORDER BY x.id DESC LIMIT 20) b), 0)
		FROM `+db.Numbered1+` a`, db.List(anchors), now)
}

// newestQuery reads memories and the time of their last change. Both queries take the same arguments, then the earliest
// time, the latest time, and the limit.
type newestQuery struct {
	byTime string // most recently changed first
	byRow  string // most recently stored first
}

// newest returns the rows of the memories of a query that changed last. Only if one has a time in the future does it
// read more: some memories with such a time, which may be the newest, and as many without.
func (s *shared) newest(tx db.Tx, limit int, q newestQuery, args ...any) ([]int64, error) {
	horizon := s.horizon()
	rows, err := readChanged(tx, q.byTime, append(slices.Clone(args), 0, math.MaxInt64, limit)...)
	if err == nil && len(rows) > 0 && rows[0].at > horizon {
		rows, err = readChanged(tx, q.byTime, append(slices.Clone(args), 0, horizon, limit)...)
		for _, query := range []string{q.byTime, q.byRow} {
			var ahead []changedRow
			if err == nil {
				ahead, err = readChanged(tx, query, append(slices.Clone(args), horizon+1, math.MaxInt64, max(limit, mostAhead))...)
			}
			rows = append(rows, ahead...)
		}
		slices.SortFunc(rows, func(a, b changedRow) int { return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(b.row, a.row)) })
		rows = slices.Compact(rows)
	}
	if err != nil {
		return nil, err
	}
	if err := s.newestFirst(tx, rows); err != nil {
		return nil, err
	}
	return onlyRows(rows[:min(limit, len(rows))]), nil
}

func readChanged(tx db.Tx, query string, args ...any) (rows []changedRow, err error) {
	err = tx.Each(func(row db.Rows) error {
		var r changedRow
		err := row.Scan(&r.row, &r.at)
		rows = append(rows, r)
		return err
	}, query, args...)
	return rows, err
}

func onlyRows(changes []changedRow) []int64 {
	rows := make([]int64, len(changes))
	for i, r := range changes {
		rows[i] = r.row
	}
	return rows
}

// timeOfChange returns the time of a change to a memory or file that changed last at another time. It is not before the
// last change, unless that is in the future and the clock is likely to be right now: past the time of some memory.
func (s *shared) timeOfChange(tx db.Tx, before time.Time) (int64, error) {
	now, last := s.now(), before.UnixMicro()
	if last <= s.horizon() {
		return max(now, last), nil
	}
	var right bool
	err := tx.QueryRow(`SELECT EXISTS (SELECT 1 FROM partition p `+db.InOrder+` memory m `+db.ByCreated+
		` ON m.partition_id = p.id
		WHERE m.created_at <= ?)`, now).Scan(&right)
	if right {
		return now, err
	}
	return last, err
}
