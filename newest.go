package souvenir

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// maxAhead is how far a stored time may lie in the future before the clock that gave it counts as wrong.
const maxAhead = 10 * time.Minute

// mostAhead is how many memories with a time in the future compete for being the newest.
const mostAhead = 1000

// changedRow is a memory and when it changed last, for orders in which the newest change comes first.
type changedRow struct {
	row, at int64
}

// estimate places a change in time: by its own time, or where that is in the future, behind the memory stored before it.
type estimate struct {
	at     int64
	anchor int64 // the row whose time it has: its own, or that of the memory stored before it
	stored int64 // its own time, whatever it says
}

// horizon is the latest time that counts as right.
func (s *shared) horizon() int64 { return s.now() + maxAhead.Microseconds() }

// newestFirst sorts memories by their last change, if any of their times is in the future: as they are stored, those would
// be the newest for as long as the clock was ahead. Otherwise it leaves them in the order that they have.
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
		return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(b.anchor, a.anchor), cmp.Compare(b.stored, a.stored), cmp.Compare(y.row, x.row))
	})
	return nil
}

// estimateChanges returns when memories whose times are in the future changed, as far as the store can tell: no earlier than
// the last memory stored before them, since rows are numbered in the order of storing, and no earlier than their last
// revision with a time that can be right. Each lookup ends at the row of the one before, so all together read a row once.
func estimateChanges(tx db.Tx, rows []int64, now int64) (map[int64]estimate, error) {
	estimates := make(map[int64]estimate, len(rows))
	anchored := map[int64][]int64{} // the memories that take the time of another one
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
	}, `SELECT f.id, coalesce((SELECT x.id FROM memory x WHERE x.id > f.before AND x.id <= f.id AND x.created_at <= ?2 ORDER BY x.id DESC LIMIT 1), 0),
			coalesce((SELECT created_at FROM memory WHERE id = f.id), 0),
			coalesce((SELECT max(r.created_at) FROM memory_revision r WHERE r.memory_id = f.id AND r.created_at <= ?2), 0)
		FROM (SELECT r.value AS id, lag(r.value, 1, 0) OVER (ORDER BY r.value) AS before FROM `+db.Numbered1+` r) f ORDER BY f.id`, jsonList(rows), now)
	if err != nil {
		return nil, err
	}
	anchors := make([]int64, 0, len(anchored))
	for anchor := range anchored {
		anchors = append(anchors, anchor)
	}
	// The latest of some: a memory restored from the trash or imported has a time long before it got its row.
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
		FROM `+db.Numbered1+` a`, jsonList(anchors), now)
}

// newestQuery reads memories and the time of their last change. Both take the same arguments, then the earliest time, the
// latest one, and how many at most.
type newestQuery struct {
	byTime string // the last changed ones first
	byRow  string // the last stored ones first
}

// newest returns the rows of the memories of a query that changed last. Only where one has a time in the future is there more
// to read than these: some that have such a time, which may be the newest, and as many that have not.
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

// timeOfChange returns the time of a change to a memory or file that changed last at another time. It is not before that one,
// unless that one is in the future, and the clock is likely to be right now: it is past the time of some memory.
func (s *shared) timeOfChange(tx db.Tx, before time.Time) (int64, error) {
	now, last := s.now(), before.UnixMicro()
	if last <= s.horizon() {
		return max(now, last), nil
	}
	var right bool
	err := tx.QueryRow(`SELECT EXISTS (SELECT 1 FROM partition p `+db.InOrder+` memory m `+db.ByCreated+` ON m.partition_id = p.id
		WHERE m.created_at <= ?)`, now).Scan(&right)
	if right {
		return now, err
	}
	return last, err
}
