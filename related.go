package souvenir

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
	"github.com/souvenir-ai/souvenir/internal/retrieval/similarity"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/shorten"
)

// Direction is the direction of a link, seen from the start of a walk.
type Direction string

// The values of [Direction].
const (
	Outgoing Direction = "outgoing" // it links to the other one
	Incoming Direction = "incoming" // the other one links to it
)

// Related is a memory reached over links.
type Related struct {
	Memory
	Depth     int       // 1: linked directly
	Direction Direction // of the link over which it was reached
	Path      []string  // ids from the start of the walk to this memory, both included
	Truncated bool      // shortened; see [MainMemory.Within]
}

// MarshalJSON returns the memory's form with depth, direction and path.
func (r Related) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		writtenMemory
		relatedJSON
	}{r.Memory.json(), relatedJSON{r.Depth, r.Direction, r.Path, r.Truncated}})
}

// UnmarshalJSON reads the output of MarshalJSON.
func (r *Related) UnmarshalJSON(data []byte) error {
	var beside relatedJSON
	var m Memory
	if err := withMemory(data, &m, &beside); err != nil {
		return err
	}
	*r = Related{Memory: m, Depth: beside.Depth, Direction: beside.Direction, Path: beside.Path,
		Truncated: beside.Truncated}
	return nil
}

// relatedJSON holds the additional members of a related memory.
type relatedJSON struct {
	Depth     int       `json:"depth"`
	Direction Direction `json:"direction"`
	Path      []string  `json:"path"`
	Truncated bool      `json:"truncated,omitempty"`
}

// maxWalk bounds how far a walk over links may go.
const maxWalk = 10

// RelatedMemories follows the links of a memory in both directions, up to depth links away (1 to 10), nearest first.
// Each memory appears once, on one of its shortest paths; a memory that this view may not see ends a path.
func (s *Store) RelatedMemories(ctx context.Context, id string, depth int) (_ []Related, err error) {
	defer inGo[struct{}](&err, "id", "id", "depth", "depth")
	if err := checkRange("depth", depth, 1, maxWalk); err != nil {
		return nil, err
	}
	var all []Related
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		start, err := kernel.LoadMemory(tx, v, id)
		if err != nil {
			return err
		}
		all, _, err = s.walk(tx, v, start, depth, 0)
		return err
	})
	return all, err
}

// walk follows links, up to depth links and most memories (0: any number), and reports whether there are more.
func (s *Store) walk(tx db.Tx, v viewer, start kernel.Memory, depth, most int) (all []Related, more bool, err error) {
	type step struct {
		from      int64
		direction Direction
	}
	paths := map[int64][]string{start.Row: {start.ID}}
	level := []int64{start.Row}
	for d := 1; d <= depth && len(level) > 0; d++ {
		reached := map[int64]step{}
		var next []int64
		frontier := db.List(level)
		err := tx.Each(func(row db.Rows) error {
			var from, to int64
			var direction Direction
			if err := row.Scan(&from, &to, &direction); err != nil {
				return err
			}
			if _, seen := paths[to]; seen {
				return nil
			}
			if _, seen := reached[to]; !seen {
				reached[to] = step{from, direction}
				next = append(next, to)
			}
			return nil
		}, `WITH level (id) AS `+db.Integers+`
			SELECT memory_id, related_id, way FROM (
				SELECT memory_id, related_id, 'outgoing' AS way, position FROM memory_link WHERE memory_id IN (SELECT id FROM level)
				UNION ALL SELECT related_id, memory_id, 'incoming', position FROM memory_link WHERE related_id IN (SELECT id
				FROM level)) steps
			ORDER BY way DESC, position, related_id`, frontier)
		if err != nil {
			return nil, false, err
		}
		if most > 0 && len(all)+len(next) > most {
			next, more = next[:most-len(all)], true
		}
		found, err := kernel.LoadRows(tx, v, kernel.WholeContent, next)
		if err != nil {
			return nil, false, err
		}
		level = level[:0]
		for _, m := range found {
			from := reached[m.Row]
			path := append(append([]string{}, paths[from.from]...), m.ID)
			paths[m.Row] = path
			level = append(level, m.Row)
			all = append(all, Related{Memory: memoryOf(m), Depth: d, Direction: from.direction, Path: path})
		}
	}
	return all, more, nil
}

// Similar is a near duplicate of a memory.
type Similar struct {
	ID         string  `json:"id"`
	Score      float64 `json:"score"` // as by [Likeness]; for own vectors, the cosine similarity, 0.9 to 1
	Content    string  `json:"content"`
	Collection string  `json:"collection_name"`
	SharedBy   string  `json:"shared_by,omitempty"` // as in [Memory]
}

// Likeness returns how likely it is that two texts say the same, 0 to 1, by the built-in model and by their words,
// numbers, names and negations. It is also the score of [Similar].
func Likeness(a, b string) float64 {
	x, y := similarity.Read(a), similarity.Read(b)
	return similarity.Score(x, y, similarity.CosineOf(x, y))
}

// ownDuplicate is the cosine similarity at which callers' own vectors count as near duplicates: their model is unknown.
const ownDuplicate = 0.9

// candidates is the most memories whose texts are compared.
const candidates = 16

// similarTo finds, for each draft that asks for it, the visible memories that say almost the same. It runs before the
// drafts are stored, so none finds itself.
func (s *Store) similarTo(ctx context.Context, drafts []kernel.Draft) ([][]Similar, error) {
	all := make([][]Similar, len(drafts))
	for i := range drafts {
		d := &drafts[i]
		if d.Similar == 0 || d.Vector == nil && d.Passages[0].Vector == nil {
			continue
		}
		err := s.read(ctx, func(tx db.Tx, v viewer) error {
			var err error
			all[i], err = s.similar(tx, v, d)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (s *Store) similar(tx db.Tx, v viewer, d *kernel.Draft) ([]Similar, error) {
	pq := preparedQuery{vector: d.Passages[0].Vector}
	var q Query
	if d.Vector != nil { // comparable only within its collection
		pq, q = preparedQuery{vector: d.Vector, own: true}, Query{Collections: []string{d.Collection}}
	}
	sel, err := s.selection(tx, v, q)
	if err != nil {
		return nil, err
	}
	partitions, err := s.comparedBy(tx, pq, sel)
	if err != nil || len(partitions) == 0 {
		return nil, err
	}
	var hits []index.Hit
	if pq.own {
		hits, err = s.comparison().Near(tx, pq.vector, partitions, ownDuplicate, d.Similar)
	} else {
		hits, err = s.comparison().Duplicates(tx, pq.vector, partitions, similarity.Read(d.Content),
			max(candidates, d.Similar))
	}
	if err != nil {
		return nil, err
	}
	hits = slices.DeleteFunc(hits, func(h index.Hit) bool { return sel.hidden[h.Row] })
	hits = hits[:min(len(hits), d.Similar)]
	var rows []int64
	scores := map[int64]float64{}
	for _, h := range hits {
		rows = append(rows, h.Row)
		scores[h.Row] = min(1, float64(h.Score))
	}
	found, err := kernel.LoadRows(tx, v, kernel.WholeContent, rows)
	var similar []Similar
	for _, m := range found {
		similar = append(similar, Similar{ID: m.ID, Score: scores[m.Row], Content: m.Content, Collection: m.Collection,
			SharedBy: m.SharedBy})
	}
	return similar, err
}

// comparison compares the memories of the store.
func (s *Store) comparison() *retrieval.Comparison {
	return &retrieval.Comparison{Cache: s.index, Use: s.useIndex, Profile: s.profile,
		BuiltIn: s.embedder.Model() == Builtin().Model()}
}

// comparedBy returns the partitions of a selection without filters whose vectors are comparable with a query's.
func (s *Store) comparedBy(tx db.Tx, pq preparedQuery, sel selection) ([]int64, error) {
	ready, err := s.vectors.Ready(tx)
	compare, _ := s.comparable(pq, sel, ready)
	return slices.Collect(maps.Keys(compare)), err
}

// duplicates keeps the pairs of memories that say the same, and replaces the cosine with that probability. places are
// the positions of the memories among the nodes.
func (p *picture) duplicates(tx db.Tx, places []int, pairs []index.Pair, least float64) ([]index.Pair, error) {
	rows, cosines := make([]retrieval.Pair, len(pairs)), make(map[retrieval.Pair]float64, len(pairs))
	for i, pair := range pairs {
		a, b := p.nodes[places[pair.A]].row, p.nodes[places[pair.B]].row
		rows[i] = retrieval.Pair{min(a, b), max(a, b)}
		cosines[rows[i]] = float64(pair.Cosine)
	}
	scores, err := p.s.pairScores.Of(tx, fmt.Sprint(least, p.partitions()), rows,
		func(pairs []retrieval.Pair) ([]float64, error) {
			return p.s.comparison().Scores(tx, pairs, cosines, least)
		})
	var same []index.Pair
	for i, score := range scores {
		if score >= least {
			pairs[i].Cosine = float32(score)
			same = append(same, pairs[i])
		}
	}
	return same, err
}

// picture is a set of memories to show together.
type picture struct {
	s        *Store
	sel      selection
	order    SortOrder
	nodes    []Node
	total    int
	ours     map[int64]bool // partitions whose vectors the store makes
	changing bool           // vectors cannot be compared for now
	warnings []string
}

// nodeBytes and edgeBytes are about how much memory a node and an edge of a kept picture need.
const nodeBytes, edgeBytes = 400, 72

// keptPicture returns a picture that was made since the last change of a memory. Pictures of sealed texts are not kept.
func keptPicture[V any](tx db.Tx, p *picture, kept *retrieval.Derived, about string) (picture V, known bool,
	m retrieval.Making, err error) {
	if ready, err := p.s.vectors.Ready(tx); err != nil || !ready || p.s.ring != nil {
		return picture, false, m, err
	}
	made, known, m, err := kept.Of(tx, p.sel.Selection, about)
	picture, _ = made.(V)
	return picture, known, m, err
}

// pictureOf selects the memories of a listing.
func (s *Store) pictureOf(tx db.Tx, v viewer, l MemoryList) (*picture, error) {
	order := cmp.Or(l.Sort, SortUpdatedDesc)
	if !slices.Contains(sortOrders[1:], order) {
		return nil, invalid("sort_order", "{} is %s; lists are sorted by time; expected %s", show(string(order)),
			oneOf(sortOrders[1:]))
	}
	sel, err := s.selection(tx, v,
		Query{Collections: l.Collections, ProjectID: l.ProjectID, ProjectName: l.ProjectName, Tags: l.Tags, Filter: l.Filter,
			AsOf: l.AsOf})
	if err != nil {
		return nil, err
	}
	p := &picture{s: s, sel: sel, order: order, ours: map[int64]bool{}, warnings: sel.warnings}
	for _, each := range sel.Partitions {
		p.ours[each.ID] = each.OwnSize == 0
	}
	return p, nil
}

// shown is what a picture shows of a selection.
type shown struct {
	nodes []Node
	total int
	share string // of the sample; empty: it is none
}

// load reads the selected memories, up to a limit: the first ones, or a sample. After few changes it reads only the
// changed ones.
func (p *picture) load(tx db.Tx, limit int, sample bool) error {
	now, known, making, err := keptPicture[shown](tx, p, &p.s.shown, fmt.Sprint(limit, sample, p.order))
	if err == nil && !known {
		now, err = p.read(tx, now, making, limit, sample)
	}
	if err != nil {
		return err
	}
	if p.nodes, p.total = now.nodes, now.total; !known {
		bytes := 0
		for _, node := range p.nodes {
			bytes += nodeBytes + len(node.begins)
		}
		p.s.shown.Keep(making, now, bytes)
	}
	return nil
}

// read reads what has changed since an earlier state was kept, or everything.
func (p *picture) read(tx db.Tx, before shown, making retrieval.Making, limit int, sample bool) (now shown, err error) {
	if now.total, err = p.sel.Count(tx); err != nil {
		return now, err
	}
	sel := p.sel.Selection
	if sample && now.total > limit {
		now.share = retrieval.Share(limit, now.total)
		sel.Sample(now.share)
	}
	changed, few, err := making.Changed(tx)
	if err != nil {
		return now, err
	}
	if few && before.share == now.share {
		now.nodes, err = p.changed(tx, sel, before.nodes, changed, limit)
		if err != nil || len(now.nodes) == limit || len(before.nodes) < limit { // else others move up
			return now, err
		}
	}
	if _, err := sel.Count(tx); err != nil {
		return now, err
	}
	rows, err := sel.Page(tx, p.order.byTime(), limit, 0)
	if err == nil {
		now.nodes, err = loadNodes(tx, rows)
	}
	return now, err
}

// changed returns the first nodes of a selection after some memories changed.
func (p *picture) changed(tx db.Tx, sel retrieval.Selection, before []Node, changed []int64, limit int) ([]Node,
	error) {
	rows, err := sel.Among(tx, changed)
	if err != nil {
		return nil, err
	}
	fresh, err := loadNodes(tx, rows)
	if len(before) == limit { // others, which are unknown, come after the last one
		fresh = slices.DeleteFunc(fresh, func(n Node) bool { return p.order.compareNodes(n, before[limit-1]) > 0 })
	}
	for _, node := range before {
		if !slices.Contains(changed, node.row) {
			fresh = append(fresh, node)
		}
	}
	slices.SortFunc(fresh, p.order.compareNodes)
	return fresh[:min(limit, len(fresh))], err
}

// compareNodes compares as the order by a time does.
func (o SortOrder) compareNodes(a, b Node) int {
	order, x, y := o.byTime(), a.UpdatedAt, b.UpdatedAt
	if order.Created {
		x, y = a.CreatedAt, b.CreatedAt
	}
	if !order.Ascending {
		x, y = y, x
	}
	return cmp.Or(x.Compare(y), cmp.Compare(a.ID, b.ID))
}

// vectors are directions of nodes, and their points on an earlier map; -1: they are new or have changed; nil: all are.
type vectors struct {
	retrieval.Directions
	was []int
}

// known is the number of nodes that an earlier map has as they are now.
func (v vectors) known() (n int) {
	for _, at := range v.was {
		if at >= 0 {
			n++
		}
	}
	return n
}

// since is like means, but reads no directions if an earlier map shows just the same nodes; or if it shows all of them,
// and all is false.
func (p *picture) since(tx db.Tx, start *Map, all bool) (vectors, error) {
	var fresh []Node
	was, placed := start.points(p.nodes, true), []int{}
	for i, node := range p.nodes {
		if was[i] < 0 {
			fresh = append(fresh, node)
		} else {
			placed = append(placed, i)
		}
	}
	some, err := p.means(tx, fresh)
	if v := (vectors{Directions: some}); err != nil || p.changing || len(placed) == 0 {
		return v, err
	}
	v := vectors{Directions: retrieval.Directions{Size: some.Size, Places: placed}}
	if len(some.Places) > 0 || all && len(placed) < len(start.Points) {
		if v.Directions, err = p.means(tx, p.nodes); err != nil {
			return v, err
		}
	}
	for _, place := range v.Places {
		v.was = append(v.was, was[place])
	}
	return v, nil
}

// means returns the directions of those nodes that have one.
func (p *picture) means(tx db.Tx, nodes []Node) (retrieval.Directions, error) {
	size := p.s.embedder.Dimensions()
	ready, err := p.s.vectors.Ready(tx)
	if err != nil {
		return retrieval.Directions{}, err
	}
	if p.changing = !ready; p.changing {
		p.warnings = append(p.warnings,
			"the store is changing its embedding model; memories cannot be compared until that is done")
		return retrieval.Directions{Size: size}, nil
	}
	list := make([]retrieval.Located, len(nodes))
	for i, n := range nodes {
		list[i] = retrieval.Located{Row: n.row, Partition: n.partition}
	}
	return p.s.comparison().Directions(tx, size, list, p.partitions())
}

func beginsOf(nodes []Node) []string {
	texts := make([]string, len(nodes))
	for i, node := range nodes {
		texts[i] = node.begins
	}
	return texts
}

// loadNodes reads memories that the caller may see, in the order of the rows.
func loadNodes(tx db.Tx, rows []int64) (nodes []Node, err error) {
	const begins = 600 // characters
	nodes = make([]Node, 0, len(rows))
	err = tx.Each(func(row db.Rows) error {
		var n Node
		var content string
		var created, updated int64
		err := row.Scan(&n.row, &n.partition, &n.ID, &content, &n.Collection, &n.Owner, &n.ProjectID, &n.ProjectOwner,
			&n.EventType, &n.State, &n.Importance, &n.Classification, &created, &updated)
		n.begins = strings.Clone(shorten.Characters(content, begins)) // kept for longer than the content
		n.Label = shorten.FirstLine(n.begins)
		n.CreatedAt, n.UpdatedAt = kernel.ToTime(created), kernel.ToTime(updated)
		nodes = append(nodes, n)
		return err
	}, `SELECT m.id, m.partition_id, m.uid, substr(m.content, 1, ?), c.name, u.uid, coalesce(j.uid, ''), coalesce(v.uid,
		''), coalesce(m.event_type, ''), coalesce(m.state, ''),
			coalesce(m.importance, ''), coalesce(m.classification, ''), m.created_at, m.updated_at
		FROM `+db.Numbered+` r `+db.InOrder+
		` memory m ON m.id = r.value JOIN partition p ON p.id = m.partition_id JOIN collection c ON c.id = p.collection_id
		JOIN users u ON u.id = c.owner_id LEFT JOIN project j ON j.id = p.project_id LEFT JOIN users v ON v.id = j.owner_id
		ORDER BY r.key`, sealedrows.Characters(tx, begins), db.List(rows))
	return nodes, err
}

func rowsOfNodes(nodes []Node) []int64 {
	rows := make([]int64, len(nodes))
	for i, n := range nodes {
		rows[i] = n.row
	}
	return rows
}

// partitions returns the partitions of nodes whose vectors may be compared.
func (p *picture) partitions() []int64 {
	some := map[int64]bool{}
	for _, n := range p.nodes {
		if p.ours[n.partition] {
			some[n.partition] = true
		}
	}
	return slices.Sorted(maps.Keys(some))
}

// links returns the links between the nodes, in the order of the nodes.
func (p *picture) links(tx db.Tx) ([]Edge, error) {
	found, err := kernel.LinksAmong(tx, rowsOfNodes(p.nodes))
	edges := make([]Edge, len(found))
	for i, link := range found {
		edges[i] = Edge{From: link[0], To: link[1], Kind: EdgeRelated}
	}
	return edges, err
}
