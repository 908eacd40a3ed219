package souvenir

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/index"
	"github.com/souvenir-ai/souvenir/internal/naming"
	"github.com/souvenir-ai/souvenir/internal/recency"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// The event types that mean something to the store, besides [EventProjectRule]. They are compared without regard to
// case.
const (
	EventIdentity     = "IDENTITY"     // who the agent is, and how it addresses the user
	EventConversation = "conversation" // an ongoing conversation
	EventCase         = "case"         // the same for a case in progress
	EventProjectMain  = "project-main" // what a project is about
)

// The states that mean something to the store. They are compared without regard to case; no state means active.
const (
	StateActive    = "active"
	StateCompleted = "completed"
	StateArchived  = "archived"
)

// active is the condition that a memory of some event types is active; one argument, a [wordList] of the types. It is
// written so that the index memory_active serves it.
const active = `coalesce(lower(m.state), 'active') = 'active' AND length(m.event_type) > 0
	AND lower(m.event_type) IN ` + db.Texts

// wordList is a list of words for comparison without regard to case, folded as lower does.
func wordList(words ...string) string {
	folded := make([]string, len(words))
	for i, word := range words {
		folded[i] = asciiLower(word)
	}
	return db.List(folded)
}

// visiblePlace is a visible partition, with the properties that decide its part in a context.
type visiblePlace struct {
	retrieval.Partition
	project  int64 // 0: none
	own      bool  // it lies in a collection of the caller
	shared   bool  // in a project that has members
	writable bool  // the caller may change what lies in it
}

// visiblePlaces lists the visible partitions that hold memories.
func visiblePlaces(tx db.Tx, v viewer) ([]visiblePlace, error) {
	visible, visibleArgs := v.Visible()
	writable, writableArgs := v.Writable()
	var places []visiblePlace
	err := tx.Each(func(row db.Rows) error {
		var p visiblePlace
		err := row.Scan(&p.ID, &p.Memories, &p.OwnSize, &p.project, &p.own, &p.shared, &p.writable)
		places = append(places, p)
		return err
	}, `SELECT p.id, p.memories, coalesce(f.dimensions, 0), coalesce(p.project_id, 0), c.owner_id = ?,
			EXISTS (SELECT 1 FROM project_member b WHERE b.project_id = p.project_id), `+writable+`
		FROM partition p JOIN collection c ON c.id = p.collection_id LEFT JOIN profile f ON f.id = c.own_profile
		WHERE p.memories > 0 AND `+visible, slices.Concat([]any{v.User}, writableArgs, visibleArgs)...)
	return places, err
}

// selectPlaces returns a selection of the matching places.
func selectPlaces(places []visiblePlace, fits func(visiblePlace) bool) selection {
	var sel selection
	for _, p := range places {
		if fits(p) {
			sel.Partitions = append(sel.Partitions, p.Partition)
		}
	}
	return sel
}

func ownPlace(p visiblePlace) bool     { return p.own }
func generalPlace(p visiblePlace) bool { return p.own && p.project == 0 }

const activeRows = `SELECT m.id, m.updated_at FROM memory m WHERE m.partition_id IN ` + db.Integers + ` AND ` + active +
	`
	AND m.updated_at BETWEEN ? AND ? `

var newestActive = recency.Query{
	ByTime: activeRows + `ORDER BY m.updated_at DESC, m.id DESC LIMIT ?`,
	ByRow:  activeRows + `ORDER BY m.id DESC LIMIT ?`}

// newestActive returns the row of the newest active memory of some event types in a selection, 0 if there is none.
func (s *shared) newestActive(tx db.Tx, sel selection, types ...string) (int64, error) {
	rows, err := recency.Newest(tx, s.now(), 1, newestActive, sel.PartitionList(), wordList(types...))
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return rows[0], nil
}

// contextReader gathers a context from one snapshot.
type contextReader struct {
	*Store
	tx     db.Tx
	viewer viewer
	query  ContextQuery
	sought bool // there is a search text
	want   want

	places  []visiblePlace
	project *naming.Project // nil: none given, or unknown
	shown   map[int64]bool  // memories already in the context
	found   Results         // collects the warnings of searches

	unrelated bool // memories that are probably about something else were left out
}

func (s *Store) gatherContext(ctx context.Context, q ContextQuery, sought string, w want) (Context, error) {
	var c Context
	err := s.read(ctx, func(tx db.Tx, v viewer) error {
		r := contextReader{Store: s, tx: tx, viewer: v, query: q, want: w, shown: map[int64]bool{}}
		r.sought = (&Query{Text: sought}).sought()
		r.found.Warnings = slices.Clone(w.warnings)
		var err error
		c, err = r.gather()
		return err
	})
	return c, err
}

func (r *contextReader) gather() (c Context, err error) {
	if r.places, err = visiblePlaces(r.tx, r.viewer); err != nil {
		return c, err
	}
	if r.named() {
		if r.project, err = naming.Find(r.tx, r.viewer, r.query.ProjectID, r.query.ProjectName); err != nil {
			return c, err
		}
		r.found.Warnings = append(r.found.Warnings, r.project.Notes()...)
		if r.project == nil {
			r.warn("project %s not found, or you have no access to it, so nothing is found in it",
				show(r.query.ProjectID+r.query.ProjectName))
		}
	}
	c.Guide = guide()
	if err := r.direct(&c); err != nil {
		return c, err
	}
	// A limited view does not know whether an identity exists outside its projects, and one stored inside them would
	// replace it.
	if c.Identity == nil && len(r.query.DetectedIdentity) > 0 && !r.viewer.Limited && !r.access.ReadOnly &&
		!r.db.ReadOnly() {
		c.IdentitySuggestion = suggestIdentity(r.query.DetectedIdentity)
	}
	if c.ConversationID, err = r.conversation(); err != nil {
		return c, err
	}
	if c.Related, err = r.related(); err != nil {
		return c, err
	}
	c.Warnings = valid.Distinct(r.found.Warnings)
	return c, nil
}

// named reports whether the query names a project.
func (r *contextReader) named() bool { return r.query.ProjectID != "" || r.query.ProjectName != "" }

func (r *contextReader) warn(format string, args ...any) {
	r.found.Warnings = append(r.found.Warnings, fmt.Sprintf(format, args...))
}

// inProject reports whether a place lies in the query's project.
func (r *contextReader) inProject(p visiblePlace) bool {
	return r.project != nil && p.project == r.project.Row
}

// direct fills in what filters alone find, regardless of the query.
func (r *contextReader) direct(c *Context) error {
	identity, err := r.newestActive(r.tx, selectPlaces(r.places, ownPlace), EventIdentity)
	if err != nil {
		return err
	}
	rules, err := r.ruleRows(r.tx, selectPlaces(r.places, r.inProject))
	if err != nil {
		return err
	}
	general := selectPlaces(r.places, generalPlace)
	generalRules, err := r.ruleRows(r.tx, general)
	if err != nil {
		return err
	}
	generalRows, err := r.doDont("general_do_dont", general, generalRules[RuleDo], generalRules[RuleDont])
	if err != nil {
		return err
	}
	projectRows, err := r.doDont("project_do_dont", selectPlaces(r.places, r.inProject))
	if err != nil {
		return err
	}
	found, err := r.load(slices.Concat([]int64{identity, rules[RuleDo], rules[RuleDont], rules[RuleTodo]}, generalRows,
		projectRows))
	if err != nil {
		return err
	}
	one := func(row int64) *ContextMemory {
		if m, ok := found[row]; ok {
			return &ContextMemory{Memory: m}
		}
		return nil
	}
	all := func(rows []int64) []ContextMemory {
		list := []ContextMemory{}
		for _, row := range rows {
			if m := one(row); m != nil {
				list = append(list, *m)
			}
		}
		return list
	}
	c.Identity, c.GeneralDoDont = one(identity), all(generalRows)
	if r.named() {
		c.ProjectDoDont = all(projectRows)
		c.ProjectRules = &ContextRules{Do: one(rules[RuleDo]), Dont: one(rules[RuleDont]), Todo: one(rules[RuleTodo])}
	}
	return nil
}

// load reads memories by row and marks them as shown in the context. Row 0 means none.
func (r *contextReader) load(rows []int64) (map[int64]Memory, error) {
	rows = slices.DeleteFunc(rows, func(row int64) bool { return row == 0 })
	stored, err := r.loadRows(r.tx, r.viewer, rows)
	found := make(map[int64]Memory, len(stored))
	for _, m := range stored {
		found[m.row], r.shown[m.row] = m.Memory, true
	}
	return found, err
}

const ruleQuery = `SELECT m.id, m.updated_at, m.rule_type FROM memory m ` + db.ByEvent + ` WHERE m.partition_id IN ` +
	db.Integers + `
	AND m.event_type = '` + EventProjectRule + `' AND m.rule_type IS NOT NULL ORDER BY m.updated_at DESC, m.id DESC`

// ruleRows returns the rows of the rules in a selection by their type. If an older file holds several of one type, the
// newest counts.
func (s *shared) ruleRows(tx db.Tx, sel selection) (map[RuleType]int64, error) {
	rules := map[RuleType]int64{}
	if len(sel.Partitions) == 0 {
		return rules, nil
	}
	var rows []recency.Row
	types := map[int64]RuleType{}
	err := tx.Each(func(row db.Rows) error {
		var r recency.Row
		var t RuleType
		err := row.Scan(&r.Row, &r.At, &t)
		rows, types[r.Row] = append(rows, r), t
		return err
	}, ruleQuery, sel.PartitionList())
	if err == nil {
		err = recency.Sort(tx, s.now(), rows)
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

const doDontQuery = `SELECT m.id, m.updated_at, ` + urgency + ` FROM memory m ` + db.ByDoDont +
	` WHERE m.partition_id IN ` + db.Integers + `
	AND m.classification IN ('do', 'dont') AND coalesce(m.event_type, '') <> '` + EventProjectRule + `'
	AND coalesce(lower(m.state), '') <> '` + StateArchived + `'
	ORDER BY ` + urgency + `, m.updated_at DESC, m.id DESC`

// doDont returns the rows of the dos and don'ts in a selection that are neither rules nor archived, after the rows in
// first: by importance, then the newest first. A memory without importance counts as medium.
func (r *contextReader) doDont(key string, sel selection, first ...int64) ([]int64, error) {
	first = slices.DeleteFunc(first, func(row int64) bool { return row == 0 })
	if len(sel.Partitions) == 0 {
		return first, nil
	}
	var found []recency.Row
	order := map[int64]int{}
	err := r.tx.Each(func(row db.Rows) error {
		var m recency.Row
		var urgency int
		err := row.Scan(&m.Row, &m.At, &urgency)
		found, order[m.Row] = append(found, m), urgency
		return err
	}, doDontQuery, sel.PartitionList())
	if err == nil {
		err = recency.Sort(r.tx, r.now(), found)
	}
	slices.SortStableFunc(found, func(a, b recency.Row) int { return cmp.Compare(order[a.Row], order[b.Row]) })
	rows := slices.Concat(first, recency.Rows(found))
	if len(rows) > maxDoDont {
		r.warn("%s shows %d of %d memories, the most important and newest ones; the others are found by search with "+
			"classification do and dont",
			key, maxDoDont, len(rows))
		rows = rows[:maxDoDont]
	}
	return rows, err
}

// conversation returns the id of the conversation or case to continue, "" for none.
func (r *contextReader) conversation() (string, error) {
	sel := selectPlaces(r.places, func(p visiblePlace) bool {
		if r.named() {
			return p.writable && r.inProject(p)
		}
		// Otherwise the conversation would be stored where other people can read it, and they could choose which one
		// continues.
		return p.own && !p.shared
	})
	row, err := r.newestActive(r.tx, sel, EventConversation, EventCase)
	if err != nil || row == 0 {
		return "", err
	}
	if r.sought {
		sel.Condition, sel.Args = active, []any{wordList(EventConversation, EventCase)}
		hits, _, err := r.search(sel, 1)
		if err != nil {
			return "", err
		}
		if len(hits) > 0 && hits[0].Score > 0 {
			row = hits[0].Row
		}
	}
	var id string
	err = r.tx.QueryRow(`SELECT uid FROM memory WHERE id = ?`, row).Scan(&id)
	return id, err
}

// search ranks a selection by the search text.
func (r *contextReader) search(sel selection, limit int) (hits []index.Hit, ranked *rankedQuery, err error) {
	ranked, err = r.rankedQuery(r.tx, r.want, sel, &r.found)
	if err != nil {
		return nil, nil, err
	}
	ranked.Limit = limit
	hits, _, err = r.rank(r.tx, ranked)
	return hits, ranked, err
}

// related returns previews of the memories that match the query best, or of the newest ones: the project's first, then
// all others, without memories already in the context.
func (r *contextReader) related() ([]ContextMemory, error) {
	var list []ContextMemory
	for _, sel := range []selection{
		selectPlaces(r.places, r.inProject),
		selectPlaces(r.places, func(p visiblePlace) bool { return !r.inProject(p) }),
	} {
		if len(sel.Partitions) == 0 || len(list) == r.query.Related {
			continue
		}
		hits, err := r.hits(sel, r.query.Related-len(list))
		if err != nil {
			return nil, err
		}
		for _, h := range hits {
			m := ContextMemory{Memory: h.Memory, Score: h.Score}
			m.shorten(r.query.Preview)
			list = append(list, m)
		}
	}
	if len(list) == 0 && r.unrelated {
		r.warn("no memory is probably about the query; search shows the nearest ones")
	}
	return list, nil
}

func (r *contextReader) hits(sel selection, limit int) ([]Hit, error) {
	if !r.sought {
		rows, err := recency.Newest(r.tx, r.now(), limit+len(r.shown), newestOfAll, sel.PartitionList())
		if err != nil {
			return nil, err
		}
		rows = slices.DeleteFunc(rows, func(row int64) bool { return r.shown[row] })
		found, err := r.loadRows(r.tx, r.viewer, rows[:min(limit, len(rows))])
		hits := make([]Hit, len(found))
		for i, m := range found {
			hits[i].Memory = m.Memory
		}
		return hits, err
	}
	hits, ranked, err := r.search(sel, limit+len(r.shown))
	if err != nil {
		return nil, err
	}
	hits = slices.DeleteFunc(hits, func(h index.Hit) bool { return r.shown[h.Row] || h.Score <= 0 })
	if !slices.ContainsFunc(hits, func(h index.Hit) bool { return float64(h.Confidence) >= r.query.MinScore }) {
		r.unrelated = r.unrelated || len(hits) > 0
		return nil, nil
	}
	var page Results
	err = r.showHits(r.tx, r.viewer, hits[:min(limit, len(hits))], ranked, &page)
	return page.Hits, err
}

// newestOfAll takes the newest memories of each partition from its index, without a full scan.
var newestOfAll = recency.Query{ByTime: `SELECT m.id, m.updated_at FROM ` + db.Numbered1 + ` e JOIN memory m ON m.id IN (
		SELECT n.id FROM memory n WHERE n.partition_id = e.value AND n.updated_at BETWEEN ?2 AND ?3
		ORDER BY n.updated_at DESC LIMIT ?4)
	ORDER BY m.updated_at DESC, m.id DESC LIMIT ?4`,
	ByRow: `SELECT m.id, m.updated_at FROM ` + db.Numbered1 + ` e ` + db.InOrder + ` memory m ` + db.ByUpdated +
		` ON m.partition_id = e.value
		WHERE m.updated_at BETWEEN ?2 AND ?3 ORDER BY m.id DESC LIMIT ?4`}
