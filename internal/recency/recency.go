// Package recency orders memories by their last change, even if some times come from a clock that was ahead.
package recency

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// maxAhead is how far a stored time may be in the future before its clock counts as wrong.
const maxAhead = 10 * time.Minute

// mostAhead is the maximum number of memories with a time in the future that are candidates for the newest.
const mostAhead = 1000

// Row is a memory and the time of its last change, for orders with the newest change first.
type Row struct {
	Row, At int64 // At: in microseconds since 1970
}

// estimate is the estimated time of a change: its own time, or if that is in the future, after the memory stored before
// it.
type estimate struct {
	at     int64
	anchor int64 // the row whose time it uses: its own, or the memory stored before it
	stored int64 // its own time, even if wrong
}

// Horizon returns the latest time that counts as right.
func Horizon(now int64) int64 { return now + maxAhead.Microseconds() }

// Sort sorts memories by their last change if any of their times is in the future. By their stored times alone, these
// would stay the newest for as long as the clock was ahead. Otherwise it keeps their order.
func Sort(tx db.Tx, now int64, rows []Row) error {
	horizon := Horizon(now)
	var ahead []int64
	for _, r := range rows {
		if r.At > horizon {
			ahead = append(ahead, r.Row)
		}
	}
	if len(ahead) == 0 {
		return nil
	}
	estimates, err := estimateChanges(tx, ahead, now)
	if err != nil {
		return err
	}
	of := func(r Row) estimate {
		e, ok := estimates[r.Row]
		if !ok {
			e = estimate{at: r.At, anchor: r.Row}
		}
		e.stored = r.At
		return e
	}
	slices.SortFunc(rows, func(x, y Row) int {
		a, b := of(x), of(y)
		return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(b.anchor, a.anchor), cmp.Compare(b.stored, a.stored),
			cmp.Compare(y.Row, x.Row))
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
	// Take the latest of several: the time of an imported or restored memory may be long before it got its row.
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

// Query reads memories and the time of their last change. Both queries take the same arguments, then the earliest
// time, the latest time, and the limit.
type Query struct {
	ByTime string // most recently changed first
	ByRow  string // most recently stored first
}

// Newest returns the rows of the memories of a query that changed last. Only if one has a time in the future does it
// read more: some memories with such a time, which may be the newest, and as many without.
func Newest(tx db.Tx, now int64, limit int, q Query, args ...any) ([]int64, error) {
	horizon := Horizon(now)
	rows, err := read(tx, q.ByTime, anyTime(limit, args)...)
	if err == nil && len(rows) > 0 && rows[0].At > horizon {
		rows, err = read(tx, q.ByTime, append(slices.Clone(args), 0, horizon, limit)...)
		for _, query := range []string{q.ByTime, q.ByRow} {
			var ahead []Row
			if err == nil {
				ahead, err = read(tx, query, append(slices.Clone(args), horizon+1, math.MaxInt64, max(limit, mostAhead))...)
			}
			rows = append(rows, ahead...)
		}
		slices.SortFunc(rows, func(a, b Row) int { return cmp.Or(cmp.Compare(b.At, a.At), cmp.Compare(b.Row, a.Row)) })
		rows = slices.Compact(rows)
	}
	if err != nil {
		return nil, err
	}
	if err := Sort(tx, now, rows); err != nil {
		return nil, err
	}
	return Rows(rows[:min(limit, len(rows))]), nil
}

// Ahead announces a call of Newest; see [db.Ahead].
func Ahead(tx db.Tx, limit int, q Query, args ...any) {
	db.Ahead(tx, q.ByTime, anyTime(limit, args)...)
}

func anyTime(limit int, args []any) []any { return append(slices.Clone(args), 0, math.MaxInt64, limit) }

func read(tx db.Tx, query string, args ...any) (rows []Row, err error) {
	err = tx.Each(func(row db.Rows) error {
		var r Row
		err := row.Scan(&r.Row, &r.At)
		rows = append(rows, r)
		return err
	}, query, args...)
	return rows, err
}

// Rows returns the rows of memories, in their order.
func Rows(changes []Row) []int64 {
	rows := make([]int64, len(changes))
	for i, r := range changes {
		rows[i] = r.Row
	}
	return rows
}

// OfChange returns the time to store for a change now, given the time of the last change. It is not before the last
// change, unless that is in the future and the clock is probably right now, since some memory has an earlier time.
func OfChange(tx db.Tx, now int64, before time.Time) (int64, error) {
	last := before.UnixMicro()
	if last <= Horizon(now) {
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
