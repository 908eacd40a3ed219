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
		if v, err = p.means(tx); err != nil || q.Duplicates == 0 {
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
	read := topic.Read(p.texts)
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

func clusters(found []topic.Cluster) []Cluster {
	var all []Cluster
	for _, c := range found {
		all = append(all, Cluster(c))
	}
	return all
}

// MapQuery says which memories a map shows.
type MapQuery struct {
	MemoryList // if more than Limit match, the first ones in its order; an empty Sort means SortUpdatedDesc

	Limit int // points, 1 to 5,000; zero means 5,000

	// Sample, if more than Limit match, shows an even sample of almost Limit memories. It stays the same as memories are
	// added.
	Sample bool

	// Layout is how the memories are placed; empty means LayoutAxes.
	Layout MapLayout

	// Start is an earlier map with LayoutNeighbours: its memories stay roughly in place, and the others join them, in a
	// third of the time.
	Start *Map
}

// MapLayout is a way to place memories on a map.
type MapLayout string

// The values of [MapLayout].
const (
	// LayoutAxes shows the first two principal components. It is fast, but most memories are surrounded by unrelated
	// ones.
	LayoutAxes MapLayout = "axes"

	// LayoutNeighbours keeps neighbours together (t-SNE), and finds groups. It takes seconds of one processor for 5,000
	// memories, without holding up other calls.
	LayoutNeighbours MapLayout = "neighbours"
)

var mapLayouts = []MapLayout{LayoutAxes, LayoutNeighbours}

// Map holds memories laid out by meaning: similar ones are close together.
type Map struct {
	Points []Point `json:"points"` // never nil
	Total  int     `json:"total"`  // matching memories, including any beyond the limit

	// Unplaced is how many memories within the limit have no place: they wait to be embedded, or have callers' own
	// vectors.
	Unplaced int `json:"unplaced"`

	// Clusters are set with LayoutNeighbours: groups of memories whose neighbours are mostly in the same group, the
	// largest first. Nodes are indexes of Points.
	Clusters []Cluster `json:"clusters,omitempty"`

	// Version changes when other memories are on the map, or the meaning of one changes. Empty: there are none.
	Version string `json:"version,omitempty"`

	// Explained is the share of the memories' variance that the directions x and y of LayoutAxes show: 0 to 1.
	Explained [2]float64 `json:"explained"`

	Warnings []string `json:"warnings,omitempty"` // notes for the caller
}

// Point is a memory on a map.
type Point struct {
	Node
	X float64 `json:"x"` // -1 to 1, in the same unit as Y
	Y float64 `json:"y"`
}

// Map lays memories out by their vectors. The same memories always get the same positions, if Start is the same.
func (h *Insights) Map(ctx context.Context, q MapQuery) (_ Map, err error) {
	defer inGo[MapQuery](&err)
	s := h.s
	q.Limit, q.Layout = cmp.Or(q.Limit, MaxNodes), cmp.Or(q.Layout, LayoutAxes)
	switch {
	case q.Limit < 1 || q.Limit > MaxNodes:
		return Map{}, invalid("limit", "{} is %d; expected 1 to %d", q.Limit, MaxNodes)
	case !slices.Contains(mapLayouts, q.Layout):
		return Map{}, invalid("layout", "{} is %s; expected %s", show(string(q.Layout)), oneOf(mapLayouts))
	}
	var m Map
	var p *picture
	var v retrieval.Directions
	var known bool
	var making retrieval.Making
	err = s.read(ctx, func(tx db.Tx, viewer viewer) (err error) {
		if p, err = s.pictureOf(tx, viewer, q.MemoryList); err != nil {
			return err
		}
		if q.Layout == LayoutAxes {
			m, known, making, err = keptPicture[Map](tx, p, &s.maps, fmt.Sprint(q.Limit, q.Sample, p.order))
			if err == nil && !known && q.Sample {
				m, known, err = p.sameSample(tx, making, q.Limit)
			}
			if err != nil || known {
				return err
			}
		}
		if err = p.load(tx, q.Limit, q.Sample); err == nil {
			v, err = p.means(tx)
		}
		return err
	})
	if err != nil {
		return Map{}, err
	}
	if known {
		s.maps.Keep(making, m, nodeBytes*len(m.Points))
		m.Points, m.Warnings = slices.Clone(m.Points), p.warnings
		return m, nil
	}
	m = Map{Points: []Point{}, Total: p.total, Unplaced: len(p.nodes) - len(v.Places), Warnings: p.warnings}
	m.Version = v.Version(p.s.profile, func(i int) (id string, updated int64) {
		return p.nodes[i].ID, p.nodes[i].UpdatedAt.UnixMicro()
	})
	flat, err := m.lay(ctx, p, v, q)
	if err != nil {
		return Map{}, err
	}
	most := float32(1e-9)
	for _, x := range flat {
		most = max(most, x, -x)
	}
	for i, place := range v.Places {
		m.Points = append(m.Points, Point{p.nodes[place], float64(flat[2*i] / most), float64(flat[2*i+1] / most)})
	}
	if q.Layout == LayoutAxes && !p.changing {
		kept := m
		kept.Points = slices.Clone(m.Points)
		s.maps.Keep(making, kept, nodeBytes*len(kept.Points))
	}
	return m, nil
}

// sameSample returns the map that was kept before the latest changes, if it shows a sample that they do not touch.
func (p *picture) sameSample(tx db.Tx, making retrieval.Making, limit int) (m Map, same bool, err error) {
	before, changed, known, err := p.s.maps.Before(tx, making)
	m, _ = before.(Map)
	if err != nil || !known || p.sel.Condition != "" || m.Unplaced > 0 || m.Total <= limit {
		return Map{}, false, err
	}
	share := retrieval.Share(limit, m.Total)
	if m.Total, err = p.sel.Count(tx); err != nil || m.Total <= limit || retrieval.Share(limit, m.Total) != share {
		return Map{}, false, err
	}
	for _, point := range m.Points {
		if slices.Contains(changed, point.row) {
			return Map{}, false, nil
		}
	}
	touched, err := retrieval.InSample(tx, share, changed)
	return m, !touched && err == nil, err
}

// lay returns x and y of each memory with a vector. It changes the vectors.
func (m *Map) lay(ctx context.Context, p *picture, v retrieval.Directions, q MapQuery) (flat []float32, err error) {
	if q.Layout == LayoutAxes {
		flat, m.Explained, err = index.Plane(ctx, v.Means, v.Size)
		return flat, err
	}
	pairs, err := index.Pairs(ctx, v.Means, v.Size, layout.NearOnes(len(v.Places)), -1)
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(v.Places))
	for i, place := range v.Places {
		texts[i] = p.texts[place]
	}
	read := topic.Read(texts)
	similar := read.Scale(v.Means, v.Size, nil)
	near, edges := make([]layout.Near, len(pairs)), make([]layout.Edge, len(pairs))
	for i, pair := range pairs {
		near[i] = layout.Near{A: pair.A, B: pair.B, Distance: 2 - 2*pair.Cosine}
		weight := max(similar.Of(pair.A, pair.B, pair.Cosine), 0.01)
		edges[i] = layout.Edge{A: pair.A, B: pair.B, Weight: weight * weight}
	}
	const close = 6 // the neighbours that decide what belongs together
	groups, err := layout.Communities(ctx, len(v.Places), topic.Strongest(len(v.Places), close, edges))
	if err != nil {
		return nil, err
	}
	m.Clusters = clusters(read.Clusters(groups))
	start, known := layout.Begin(q.Start.places(p.nodes, v.Places), near)
	if !known {
		if start, _, err = index.Plane(ctx, v.Means, v.Size); err != nil {
			return nil, err
		}
	}
	return layout.Neighbours(ctx, len(v.Places), near, start, known)
}

// places returns where some of the nodes are on a map; nil for nodes that are not on it.
func (m *Map) places(nodes []Node, some []int) []*layout.Place {
	was := make([]*layout.Place, len(some))
	if m == nil {
		return was
	}
	known := make(map[string]*layout.Place, len(m.Points))
	for _, point := range m.Points {
		known[point.ID] = &layout.Place{X: point.X, Y: point.Y}
	}
	for i, place := range some {
		was[i] = known[nodes[place].ID]
	}
	return was
}

// picture is a set of memories to show together.
type picture struct {
	s        *Store
	sel      selection
	order    SortOrder
	nodes    []Node
	texts    []string // the beginnings of their contents
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

func cloned(all []Cluster) []Cluster {
	all = slices.Clone(all)
	for i := range all {
		all[i].Nodes = slices.Clone(all[i].Nodes)
	}
	return all
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

// load reads the selected memories, up to a limit: the first ones, or a sample.
func (p *picture) load(tx db.Tx, limit int, sample bool) (err error) {
	sel := p.sel
	if p.total, err = sel.Count(tx); err != nil {
		return err
	}
	if sample && p.total > limit {
		if err := sel.Sample(tx, limit, p.total); err != nil {
			return err
		}
	}
	rows, err := sel.Page(tx, p.order.byTime(), limit, 0)
	if err != nil {
		return err
	}
	p.nodes, p.texts, err = loadNodes(tx, rows)
	return err
}

// loadNodes reads memories that the caller may see, in the order of the rows, and the beginnings of their contents.
func loadNodes(tx db.Tx, rows []int64) (nodes []Node, texts []string, err error) {
	const begins = 600 // characters
	nodes = make([]Node, 0, len(rows))
	err = tx.Each(func(row db.Rows) error {
		var n Node
		var content string
		var created, updated int64
		err := row.Scan(&n.row, &n.partition, &n.ID, &content, &n.Collection, &n.Owner, &n.ProjectID, &n.ProjectOwner,
			&n.EventType, &n.State, &n.Importance, &n.Classification, &created, &updated)
		content = shorten.Characters(content, begins)
		n.Label = strings.Clone(shorten.FirstLine(content)) // kept for longer than the content
		n.CreatedAt, n.UpdatedAt = kernel.ToTime(created), kernel.ToTime(updated)
		nodes, texts = append(nodes, n), append(texts, content)
		return err
	}, `SELECT m.id, m.partition_id, m.uid, substr(m.content, 1, ?), c.name, u.uid, coalesce(j.uid, ''), coalesce(v.uid,
		''), coalesce(m.event_type, ''), coalesce(m.state, ''),
			coalesce(m.importance, ''), coalesce(m.classification, ''), m.created_at, m.updated_at
		FROM `+db.Numbered+` r `+db.InOrder+
		` memory m ON m.id = r.value JOIN partition p ON p.id = m.partition_id JOIN collection c ON c.id = p.collection_id
		JOIN users u ON u.id = c.owner_id LEFT JOIN project j ON j.id = p.project_id LEFT JOIN users v ON v.id = j.owner_id
		ORDER BY r.key`, sealedrows.Characters(tx, begins), db.List(rows))
	return nodes, texts, err
}

func (p *picture) rows() []int64 {
	rows := make([]int64, len(p.nodes))
	for i, n := range p.nodes {
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
	found, err := kernel.LinksAmong(tx, p.rows())
	edges := make([]Edge, len(found))
	for i, link := range found {
		edges[i] = Edge{From: link[0], To: link[1], Kind: EdgeRelated}
	}
	return edges, err
}

// means returns the directions of the nodes that have one.
func (p *picture) means(tx db.Tx) (retrieval.Directions, error) {
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
	list := make([]retrieval.Located, len(p.nodes))
	for i, n := range p.nodes {
		list[i] = retrieval.Located{Row: n.row, Partition: n.partition}
	}
	return p.s.comparison().Directions(tx, size, list, p.partitions())
}
