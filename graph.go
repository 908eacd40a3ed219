package souvenir

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/layout"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
	"github.com/souvenir-ai/souvenir/internal/retrieval/similarity"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/shorten"
	"github.com/souvenir-ai/souvenir/internal/topic"
)

// Node is a memory as a graph or map shows it.
type Node struct {
	ID         string `json:"id"`
	Label      string `json:"label"` // the first line of its content, or the beginning of that line
	Collection string `json:"collection_name"`
	Owner      string `json:"owner"`                // user id of the collection's owner
	ProjectID  string `json:"project_id,omitempty"` // empty: none
	// user id; project ids are unique per owner only
	ProjectOwner   string         `json:"project_owner,omitempty"`
	EventType      string         `json:"event_type,omitempty"`
	State          string         `json:"state,omitempty"`
	Importance     Importance     `json:"importance,omitempty"`
	Classification Classification `json:"classification,omitempty"`
	CreatedAt      time.Time      `json:"created_at"`
	UpdatedAt      time.Time      `json:"updated_at"`

	begins         string // of its content
	row, partition int64
}

// MaxNodes is the most memories that [Insights.Graph] and [Insights.Map] show at once.
const MaxNodes = 5000

// Cluster is a group of memories of a graph or a map that belong together.
type Cluster struct {
	// Name holds the words typical of it, such as "deploy, tests". It is empty if its memories share none.
	Name  string `json:"name"`
	Nodes []int  `json:"nodes"` // indexes, ascending
}

// GraphQuery says which memories a graph shows, and which of them it connects.
type GraphQuery struct {
	MemoryList // if more than Limit match, the first ones in its order; an empty Sort means SortUpdatedDesc

	Limit int // nodes, 1 to 5,000; zero means 1,000

	// Neighbours is how many similar memories each memory is connected to: 1 to 10; zero means 3, a negative number none.
	Neighbours int

	// Similar is the minimum similarity of similar memories, as in [Edge]: up to 1; zero means 0.6.
	Similar float64

	// Duplicates, above 0, connects near duplicates instead: memories that say the same with at least this probability.
	Duplicates float64
}

// Graph holds memories and their connections.
type Graph struct {
	Nodes []Node `json:"nodes"` // never nil
	Edges []Edge `json:"edges"` // never nil

	// Clusters are groups of memories that are more connected with each other than with others, the largest first. A
	// memory without edges is in the cluster of the most similar memory that has edges, or in none. Graphs of duplicates
	// have no clusters.
	Clusters []Cluster `json:"clusters,omitempty"`

	// Nearest are the most similar pairs that are not similar enough for an edge. They say which clusters belong side by
	// side.
	Nearest []Edge `json:"-"`

	Total    int      `json:"total"`              // matching memories, including any beyond the limit
	Warnings []string `json:"warnings,omitempty"` // notes for the caller
}

// Edge connects two nodes of a graph.
type Edge struct {
	From int      `json:"from"` // index in Nodes; for EdgeSimilar the lower one
	To   int      `json:"to"`
	Kind EdgeKind `json:"kind"`

	// Score of an EdgeSimilar is the similarity: 0 is that of any two memories in their languages, 0.5 is four standard
	// deviations more, and 1 is the same text. For duplicates it is the probability that they say the same.
	Score float64 `json:"score,omitempty"`

	// Shared holds up to three words that the beginnings of both memories have, the rarest first, such as "deploy,
	// tests". Empty: none. It is not set for duplicates.
	Shared string `json:"shared,omitempty"`
}

// EdgeKind is the reason why two memories are connected.
type EdgeKind string

// The values of [EdgeKind].
const (
	EdgeRelated EdgeKind = "related" // From links to To
	EdgeSimilar EdgeKind = "similar" // they are similar in meaning
)

const (
	defaultNodes      = 1000
	defaultNeighbours = 3
	maxNeighbours     = 10
	defaultSimilar    = 0.6
)

func (q *GraphQuery) check() error {
	q.Limit, q.Neighbours, q.Similar = cmp.Or(q.Limit, defaultNodes), cmp.Or(q.Neighbours, defaultNeighbours),
		cmp.Or(q.Similar, defaultSimilar)
	switch {
	case q.Limit < 1 || q.Limit > MaxNodes:
		return invalid("limit", "{} is %d; expected 1 to %d", q.Limit, MaxNodes)
	case q.Neighbours > maxNeighbours:
		return invalid("neighbours", "{} is %d; expected at most %d, or a negative number for none", q.Neighbours,
			maxNeighbours)
	case !(q.Similar >= -1 && q.Similar <= 1):
		return invalid("similar", "{} is %v; expected a similarity up to 1", q.Similar)
	case !(q.Duplicates >= 0 && q.Duplicates <= 1):
		return invalid("duplicates", "{} is %v; expected a likelihood from 0 to 1", q.Duplicates)
	}
	return nil
}

// Graph returns memories with the links between them, and connects each to the most similar of the others shown. A
// memory of several passages is compared by their common direction. Memories with callers' own vectors are connected by
// links only.
func (h *Insights) Graph(ctx context.Context, q GraphQuery) (_ Graph, err error) {
	defer inGo[GraphQuery](&err)
	s := h.s
	if err := q.check(); err != nil {
		return Graph{}, err
	}
	var g Graph
	var p *picture
	var v retrieval.Directions
	var known bool
	var making retrieval.Making
	err = s.read(ctx, func(tx db.Tx, viewer viewer) (err error) {
		if p, err = s.pictureOf(tx, viewer, q.MemoryList); err != nil {
			return err
		}
		about := fmt.Sprint(q.Limit, q.Neighbours, q.Similar, q.Duplicates, p.order)
		if g, known, making, err = keptPicture[Graph](tx, p, &s.graphs, about); err != nil || known {
			return err
		}
		if err := p.load(tx, q.Limit, false); err != nil {
			return err
		}
		g, v = Graph{Nodes: p.nodes, Edges: []Edge{}, Total: p.total}, retrieval.Directions{}
		if g.Edges, err = p.links(tx); err != nil || q.Neighbours < 0 {
			return err
		}
		if v, err = p.means(tx, p.nodes); err != nil || q.Duplicates == 0 {
			return err
		}
		pairs, err := index.Pairs(tx.Context(), v.Means, v.Size, maxNeighbours, float32(similarity.Candidate))
		if err != nil {
			return err
		}
		pairs, err = p.duplicates(tx, v.Places, pairs, q.Duplicates)
		for _, pair := range pairs {
			g.Edges = append(g.Edges, Edge{From: v.Places[pair.A], To: v.Places[pair.B], Kind: EdgeSimilar,
				Score: float64(pair.Cosine)})
		}
		return err
	})
	if err == nil && q.Duplicates == 0 && !known {
		err = g.connect(ctx, p, v, q) // needs no snapshot
	}
	if !known {
		g.Nodes = slices.Clone(g.Nodes)
		for i := range g.Nodes {
			g.Nodes[i].begins = ""
		}
	}
	if err == nil && !known && !p.changing {
		s.graphs.Keep(making, g, nodeBytes*len(g.Nodes)+edgeBytes*(len(g.Edges)+len(g.Nearest)))
	}
	if err != nil {
		return Graph{}, err
	}
	g.Nodes, g.Edges, g.Clusters = slices.Clone(g.Nodes), slices.Clone(g.Edges), cloned(g.Clusters)
	g.Nearest, g.Warnings = slices.Clone(g.Nearest), p.warnings
	return g, nil
}

// connect adds edges of similarity, and the clusters.
func (g *Graph) connect(ctx context.Context, p *picture, v retrieval.Directions, q GraphQuery) error {
	read := topic.Read(beginsOf(p.nodes))
	var pairs []index.Pair
	if q.Neighbours > 0 {
		var err error
		if pairs, err = index.Pairs(ctx, v.Means, v.Size, q.Neighbours, -1); err != nil {
			return err
		}
	}
	similar := read.Scale(v.Means, v.Size, v.Places)
	for i := range g.Edges {
		g.Edges[i].Shared = read.SharedWords(g.Edges[i].From, g.Edges[i].To)
	}
	for _, pair := range pairs {
		edge := Edge{From: v.Places[pair.A], To: v.Places[pair.B], Kind: EdgeSimilar,
			Score: float64(similar.Of(pair.A, pair.B, pair.Cosine))}
		if edge.Score < q.Similar {
			g.Nearest = append(g.Nearest, edge)
			continue
		}
		edge.Shared = read.SharedWords(edge.From, edge.To)
		g.Edges = append(g.Edges, edge)
	}
	edges, nearest := asLayout(g.Edges), asLayout(g.Nearest)
	groups, err := layout.Communities(ctx, len(g.Nodes), edges)
	if err != nil {
		return err
	}
	linked := make([]bool, len(g.Nodes))
	for _, edge := range g.Edges {
		linked[edge.From], linked[edge.To] = true, true
	}
	topic.Fold(groups, linked, nearest)
	g.Clusters = clusters(read.Clusters(groups))
	return nil
}

// asLayout returns edges with their strengths.
func asLayout(edges []Edge) []layout.Edge {
	list := make([]layout.Edge, len(edges))
	for i, edge := range edges {
		if list[i] = (layout.Edge{A: edge.From, B: edge.To, Weight: 1}); edge.Kind == EdgeSimilar {
			list[i].Weight = float32(max(edge.Score, 0.01))
		}
	}
	return list
}

func cloned(all []Cluster) []Cluster {
	all = slices.Clone(all)
	for i := range all {
		all[i].Nodes = slices.Clone(all[i].Nodes)
	}
	return all
}

func clusters(found []topic.Cluster) []Cluster {
	var all []Cluster
	for _, c := range found {
		all = append(all, Cluster(c))
	}
	return all
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
		Query{Collections: l.Collections, ProjectID: l.ProjectID, ProjectName: l.ProjectName, Tags: l.Tags, Keys: l.Keys,
			Filter: l.Filter, AsOf: l.AsOf})
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
