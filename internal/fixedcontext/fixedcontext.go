// Package fixedcontext finds the memories that are included regardless of the query: the identity, the conversation to
// continue, rules, dos and don'ts, and the newest memories.
package fixedcontext

import (
	"cmp"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/lru"
	"github.com/souvenir-ai/souvenir/internal/recency"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
)

const eventProjectRule = "project-rule"

// Active is the condition that a memory of some event types is active. Its argument is a db.LowerList of the types. Its
// form allows use of the index memory_active.
const Active = `coalesce(lower(m.state), 'active') = 'active' AND length(m.event_type) > 0
	AND lower(m.event_type) IN ` + db.Texts

// Place is a visible partition, with the properties that decide its part in a context.
type Place struct {
	retrieval.Partition
	Project  int64   // 0: none
	Own      bool    // in a collection of the caller
	Shared   bool    // in a project that has members
	Writable bool    // the caller has write access
	Hidden   []int64 // rows of memories that are counted but have expired or are not valid now
}

func selectPlaces(v kernel.Viewer) (query string, args []any) {
	visible, visibleArgs := v.VisibleOfAll()
	writable, writableArgs := v.Writable()
	return `SELECT p.id, p.memories, coalesce(f.dimensions, 0), coalesce(p.project_id, 0), c.owner_id = ?,
			EXISTS (SELECT 1 FROM project_member b WHERE b.project_id = p.project_id), ` + writable + `
		FROM partition p JOIN collection c ON c.id = p.collection_id LEFT JOIN profile f ON f.id = c.own_profile
		WHERE p.memories > 0 AND ` + visible + ` ORDER BY p.id`, slices.Concat([]any{v.User}, writableArgs, visibleArgs)
}

// PlacesAhead announces a call of [Places]; see [db.Ahead].
func PlacesAhead(tx db.Tx, v kernel.Viewer) {
	query, args := selectPlaces(v)
	db.Ahead(tx, query, args...)
}

// Places lists the visible partitions that hold memories.
func Places(tx db.Tx, v kernel.Viewer) ([]Place, error) {
	query, args := selectPlaces(v)
	var places []Place
	err := tx.Each(func(row db.Rows) error {
		var p Place
		err := row.Scan(&p.ID, &p.Memories, &p.OwnSize, &p.Project, &p.Own, &p.Shared, &p.Writable)
		places = append(places, p)
		return err
	}, query, args...)
	if err != nil {
		return nil, err
	}
	var all retrieval.Selection
	for _, p := range places {
		all.Partitions = append(all.Partitions, p.Partition)
	}
	hidden, err := v.Hidden(tx, all.PartitionList(), false)
	for i := range places {
		places[i].Hidden = hidden[places[i].ID]
	}
	return places, err
}

// Select returns a selection of the places that fit.
func Select(v kernel.Viewer, places []Place, fits func(Place) bool) (sel retrieval.Selection) {
	sel.Current = v.Current()
	for _, p := range places {
		if fits(p) {
			sel.Add(p.Partition, p.Hidden)
		}
	}
	return sel
}

// InOwn reports whether a place is in a collection of the caller.
func InOwn(p Place) bool { return p.Own }

// InGeneral reports whether a place is in a collection of the caller, outside any project.
func InGeneral(p Place) bool { return p.Own && p.Project == 0 }

// activeOf is the condition that a memory of an event type, in lower case, is active.
const activeOf = `coalesce(lower(m.state), 'active') = 'active' AND length(m.event_type) > 0
	AND lower(m.event_type) = ?2`

// NewestActive selects the newest active memories of an event type, in each partition from the end of an index. The
// condition on m has the form that follows another one.
func NewestActive(live string) recency.Query {
	return recency.Query{ByTime: `SELECT n.id, n.updated_at FROM ` + db.Numbered1 +
		` e JOIN memory n ON n.id IN (
		SELECT m.id FROM memory m WHERE m.partition_id = e.value AND ` + activeOf + `
		AND m.updated_at BETWEEN ?3 AND ?4` + live + ` ORDER BY m.updated_at DESC, m.id DESC LIMIT ?5)
	ORDER BY n.updated_at DESC, n.id DESC LIMIT ?5`,
		ByRow: `SELECT m.id, m.updated_at FROM ` + db.Numbered1 + ` e ` + db.InOrder + ` memory m
		ON m.partition_id = e.value
		WHERE ` + activeOf + ` AND m.updated_at BETWEEN ?3 AND ?4` + live + ` ORDER BY m.id DESC LIMIT ?5`}
}

// NewestAhead announces a call of [Newest]; see [db.Ahead].
func NewestAhead(tx db.Tx, sel retrieval.Selection, types ...string) {
	for _, t := range types {
		recency.Ahead(tx, 1, NewestActive(sel.Current), sel.PartitionList(), db.Lower(t))
	}
}

// Newest returns the row of the newest active memory of some event types in a selection, 0 if there is none.
func Newest(tx db.Tx, now int64, sel retrieval.Selection, types ...string) (int64, error) {
	var newest []int64
	NewestAhead(tx, sel, types...)
	for _, t := range types {
		rows, err := recency.Newest(tx, now, 1, NewestActive(sel.Current), sel.PartitionList(), db.Lower(t))
		if err != nil {
			return 0, err
		}
		newest = append(newest, rows...)
	}
	if len(newest) < 2 {
		return slices.Max(append(newest, 0)), nil
	}
	var all []recency.Row
	err := tx.Each(func(row db.Rows) error {
		var r recency.Row
		err := row.Scan(&r.Row, &r.At)
		all = append(all, r)
		return err
	}, `SELECT id, updated_at FROM memory WHERE id IN `+db.Integers+` ORDER BY updated_at DESC, id DESC`, db.List(newest))
	if err == nil {
		err = recency.Sort(tx, now, all)
	}
	if err != nil || len(all) == 0 {
		return 0, err
	}
	return all[0].Row, nil
}

// RuleQuery selects the rules of some partitions.
const RuleQuery = `SELECT m.id, m.updated_at, m.rule_type FROM memory m ` + db.ByEvent + ` WHERE m.partition_id IN ` +
	db.Integers + `
	AND m.event_type = '` + eventProjectRule + `' AND m.rule_type IS NOT NULL ORDER BY m.updated_at DESC, m.id DESC`

// RulesAhead announces a call of [Rules]; see [db.Ahead].
func RulesAhead(tx db.Tx, sel retrieval.Selection) {
	if len(sel.Partitions) > 0 {
		db.Ahead(tx, RuleQuery, sel.PartitionList())
	}
}

// Rules returns the rows of the rules in a selection by their type. If an older file holds several of one type, the
// newest counts.
func Rules[T ~string](tx db.Tx, now int64, sel retrieval.Selection) (map[T]int64, error) {
	rules := map[T]int64{}
	if len(sel.Partitions) == 0 {
		return rules, nil
	}
	var rows []recency.Row
	types := map[int64]T{}
	err := tx.Each(func(row db.Rows) error {
		var r recency.Row
		var t T
		err := row.Scan(&r.Row, &r.At, &t)
		rows, types[r.Row] = append(rows, r), t
		return err
	}, RuleQuery, sel.PartitionList())
	if err == nil {
		err = recency.Sort(tx, now, rows)
	}
	for _, r := range rows {
		if t := types[r.Row]; rules[t] == 0 {
			rules[t] = r.Row
		}
	}
	return rules, err
}

// urgency orders memories by their importance.
const urgency = `CASE m.importance WHEN 'critical' THEN 0 WHEN 'high' THEN 1 WHEN 'low' THEN 3 ELSE 2 END`

// DoDontQuery selects the dos and don'ts of some partitions that are neither rules nor archived. A further condition on
// m is in the form that follows another one.
func DoDontQuery(further string) string {
	return `SELECT m.id, m.updated_at, ` + urgency + ` FROM memory m ` + db.ByDoDont +
		` WHERE m.partition_id IN ` + db.Integers + `
	AND m.classification IN ('do', 'dont') AND coalesce(m.event_type, '') <> '` + eventProjectRule + `'
	AND coalesce(lower(m.state), '') <> '` + kernel.StateArchived + `'` + further + `
	ORDER BY ` + urgency + `, m.updated_at DESC, m.id DESC`
}

// DoDonts caches the dos and don'ts of recent selections. It follows the log of changes, so that only changed memories
// are read again. The zero value is ready.
type DoDonts struct{ kept lru.Cache } // of doDonts

// doDonts are dos and don'ts by importance, then the newest first.
type doDonts struct {
	mark db.Mark // the position in the log of changes at which they are right
	all  []doDont
}

type doDont struct {
	recency.Row
	urgency int
}

const (
	mostDoDonts = 4 << 20 // bytes in all that DoDonts keeps
	mostReread  = 1_000   // changed memories that are read again; with more, all are
)

// First returns the first rows, and the number, of the dos and don'ts in a selection that are neither rules nor
// archived: by importance, then the newest first. A memory without importance counts as medium. The kept list also has
// the hidden rows, since a memory may be superseded without a change of its own.
func (d *DoDonts) First(tx db.Tx, now int64, sel retrieval.Selection, most int) (rows []int64, total int, err error) {
	all, err := d.list(tx, sel)
	if err != nil {
		return nil, 0, err
	}
	if len(sel.Hidden) > 0 {
		all = slices.DeleteFunc(slices.Clone(all), func(m doDont) bool { return sel.Hidden[m.Row.Row] })
	}
	if slices.ContainsFunc(all, func(m doDont) bool { return m.At > recency.Horizon(now) }) {
		if all, err = agreedOrder(tx, now, all); err != nil {
			return nil, 0, err
		}
	}
	for _, m := range all[:min(len(all), most)] {
		rows = append(rows, m.Row.Row)
	}
	return rows, len(all), nil
}

// agreedOrder sorts dos and don'ts with times in the future.
func agreedOrder(tx db.Tx, now int64, all []doDont) ([]doDont, error) {
	times, urgency := make([]recency.Row, len(all)), make(map[int64]int, len(all))
	for i, m := range all {
		times[i], urgency[m.Row.Row] = m.Row, m.urgency
	}
	if err := recency.Sort(tx, now, times); err != nil {
		return nil, err
	}
	sorted := make([]doDont, len(all))
	for i, t := range times {
		sorted[i] = doDont{t, urgency[t.Row]}
	}
	slices.SortStableFunc(sorted, func(a, b doDont) int { return cmp.Compare(a.urgency, b.urgency) })
	return sorted, nil
}

// list returns the dos and don'ts of a selection, current or not. They must not be changed.
func (d *DoDonts) list(tx db.Tx, sel retrieval.Selection) ([]doDont, error) {
	if tx.Writable() { // a write transaction may be rolled back
		return readDoDonts(tx, sel, ``)
	}
	now, err := tx.Changes().Mark()
	if err != nil {
		return nil, err
	}
	key := sel.PartitionList()
	old, known := lru.Get[doDonts](&d.kept, key)
	if known && old.mark == now {
		return old.all, nil
	}
	var changed []int64
	if known {
		var next db.Mark
		if changed, next, known, err = tx.Changes().Since(old.mark, mostReread); err != nil {
			return nil, err
		}
		if known && next != now { // another reader saw newer changes than this snapshot has
			return readDoDonts(tx, sel, ``)
		}
	}
	var all []doDont
	if known {
		all, err = readDoDonts(tx, sel, ` AND m.id IN `+db.Integers, db.List(changed))
		gone := index.NewRowSet(changed)
		for _, m := range old.all {
			if !gone.Has(m.Row.Row) {
				all = append(all, m)
			}
		}
		slices.SortFunc(all, func(a, b doDont) int {
			return cmp.Or(cmp.Compare(a.urgency, b.urgency), cmp.Compare(b.At, a.At), cmp.Compare(b.Row.Row, a.Row.Row))
		})
	} else {
		all, err = readDoDonts(tx, sel, ``)
	}
	if err != nil {
		return nil, err
	}
	d.kept.Put(key, doDonts{now, all}, len(key)+24*cap(all)+200, mostDoDonts)
	return all, nil
}

// readDoDonts reads the dos and don'ts of a selection for which a further condition holds.
func readDoDonts(tx db.Tx, sel retrieval.Selection, further string, args ...any) (all []doDont, err error) {
	err = tx.Each(func(row db.Rows) error {
		var m doDont
		err := row.Scan(&m.Row.Row, &m.At, &m.urgency)
		all = append(all, m)
		return err
	}, DoDontQuery(further), append([]any{sel.PartitionList()}, args...)...)
	return all, err
}

// NewestOfAll selects the newest memories of each partition from its index, without a full scan. The condition on m has
// the form that follows another one.
func NewestOfAll(live string) recency.Query {
	return recency.Query{ByTime: `SELECT n.id, n.updated_at FROM ` + db.Numbered1 +
		` e JOIN memory n ON n.id IN (
		SELECT m.id FROM memory m WHERE m.partition_id = e.value AND m.updated_at BETWEEN ?2 AND ?3` + live + `
		ORDER BY m.updated_at DESC LIMIT ?4)
	ORDER BY n.updated_at DESC, n.id DESC LIMIT ?4`,
		ByRow: `SELECT m.id, m.updated_at FROM ` + db.Numbered1 + ` e ` + db.InOrder + ` memory m ` + db.ByUpdated +
			` ON m.partition_id = e.value
		WHERE m.updated_at BETWEEN ?2 AND ?3` + live + ` ORDER BY m.id DESC LIMIT ?4`}
}
