package souvenir

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir/internal/alike"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/index"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/shorten"
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

// GraphQuery says which memories a graph shows, and which of them it connects.
type GraphQuery struct {
	List // if more than Limit match, the first ones in its order; an empty Sort means SortUpdatedDesc

	Limit int // nodes, 1 to 5,000; zero means 1,000

	// Neighbours is how many similar memories each memory is connected to: 1 to 10; zero means 3, a negative number none.
	Neighbours int

	// Similar is the minimum cosine similarity of similar memories: up to 1; zero means 0.6.
	Similar float64

	// Duplicates, above 0, connects near duplicates instead: memories that say the same with at least this probability.
	Duplicates float64
}

// Graph is memories and their connections.
type Graph struct {
	Nodes    []Node   `json:"nodes"`              // never nil
	Edges    []Edge   `json:"edges"`              // never nil
	Total    int      `json:"total"`              // matching memories, including any beyond the limit
	Warnings []string `json:"warnings,omitempty"` // what a caller should know
}

// Edge connects two nodes of a graph.
type Edge struct {
	From int      `json:"from"` // index in Nodes; for EdgeSimilar the lower one
	To   int      `json:"to"`
	Kind EdgeKind `json:"kind"`
	// for EdgeSimilar: cosine similarity or, for duplicates, the probability that they say the same
	Score float64 `json:"score,omitempty"`
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
		return invalid("limit", "{} is %d; 1 to %d are allowed", q.Limit, MaxNodes)
	case q.Neighbours > maxNeighbours:
		return invalid("neighbours", "{} is %d; at most %d are allowed, and a negative number for none", q.Neighbours,
			maxNeighbours)
	case !(q.Similar >= -1 && q.Similar <= 1):
		return invalid("similar", "{} is %v; a cosine similarity up to 1 is expected", q.Similar)
	case !(q.Duplicates >= 0 && q.Duplicates <= 1):
		return invalid("duplicates", "{} is %v; a likelihood from 0 to 1 is expected", q.Duplicates)
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
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		p, err := s.picture(tx, v, q.List, q.Limit)
		if err != nil {
			return err
		}
		g = Graph{Nodes: p.nodes, Edges: []Edge{}, Total: p.total, Warnings: p.warnings}
		if g.Edges, err = p.links(tx); err != nil || q.Neighbours < 0 {
			return err
		}
		means, places, err := p.means(tx)
		if err != nil {
			return err
		}
		if q.Duplicates > 0 {
			q.Neighbours, q.Similar = maxNeighbours, alike.Candidate
		}
		pairs, err := index.Pairs(tx.Context(), means, s.embedder.Dimensions(), q.Neighbours, float32(q.Similar))
		if err == nil && q.Duplicates > 0 {
			pairs, err = s.duplicates(tx, p.nodes, places, pairs, q.Duplicates)
		}
		for _, pair := range pairs {
			g.Edges = append(g.Edges, Edge{From: places[pair.A], To: places[pair.B], Kind: EdgeSimilar,
				Score: float64(pair.Cosine)})
		}
		g.Warnings = p.warnings
		return err
	})
	return g, err
}

// duplicates keeps the pairs of memories that say the same, and replaces the cosine with that probability.
func (s *Store) duplicates(tx db.Tx, nodes []Node, places []int, pairs []index.Pair, least float64) ([]index.Pair,
	error) {
	var rows []int64
	for _, pair := range pairs {
		rows = append(rows, nodes[places[pair.A]].row, nodes[places[pair.B]].row)
	}
	slices.Sort(rows)
	texts, err := beginnings(tx, slices.Compact(rows))
	if err != nil {
		return nil, err
	}
	var same []index.Pair
	for i, pair := range pairs {
		if i%checkEvery == 0 && tx.Context().Err() != nil {
			return nil, tx.Context().Err()
		}
		likeness := s.likeness(least, texts[nodes[places[pair.A]].row], texts[nodes[places[pair.B]].row],
			float64(pair.Cosine))
		if likeness >= least {
			pair.Cosine = float32(likeness)
			same = append(same, pair)
		}
	}
	return same, nil
}

// checkEvery is the number of comparisons between two checks of the context.
const checkEvery = 256

// MapQuery says which memories a map shows.
type MapQuery struct {
	List // if more than Limit match, the first ones in its order; an empty Sort means SortUpdatedDesc

	Limit int // points, 1 to 5,000; zero means 5,000
}

// Map is memories laid out by meaning: similar ones lie close together.
type Map struct {
	Points []Point `json:"points"` // never nil
	Total  int     `json:"total"`  // matching memories, including any beyond the limit

	// Unplaced is how many memories within the limit have no place: they wait to be embedded, or have callers' own
	// vectors.
	Unplaced int `json:"unplaced"`

	// Explained is the share of the memories' variance that the directions x and y show: 0 to 1.
	Explained [2]float64 `json:"explained"`

	Warnings []string `json:"warnings,omitempty"` // what a caller should know
}

// Point is a memory on a map.
type Point struct {
	Node
	X float64 `json:"x"` // -1 to 1, in the same unit as Y
	Y float64 `json:"y"`
}

// Map lays memories out by the first two principal components of their vectors. The same memories always get the same
// positions.
func (h *Insights) Map(ctx context.Context, q MapQuery) (_ Map, err error) {
	defer inGo[MapQuery](&err)
	s := h.s
	q.Limit = cmp.Or(q.Limit, MaxNodes)
	if q.Limit < 1 || q.Limit > MaxNodes {
		return Map{}, invalid("limit", "{} is %d; 1 to %d are allowed", q.Limit, MaxNodes)
	}
	var m Map
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		p, err := s.picture(tx, v, q.List, q.Limit)
		if err != nil {
			return err
		}
		means, places, err := p.means(tx)
		if err != nil {
			return err
		}
		m = Map{Points: []Point{}, Total: p.total, Unplaced: len(p.nodes) - len(places), Warnings: p.warnings}
		flat, explained, err := index.Plane(tx.Context(), means, s.embedder.Dimensions())
		if err != nil {
			return err
		}
		most := float32(0)
		for _, x := range flat {
			most = max(most, x, -x)
		}
		most = cmp.Or(most, 1)
		for i, place := range places {
			m.Points = append(m.Points, Point{p.nodes[place], float64(flat[2*i] / most), float64(flat[2*i+1] / most)})
		}
		m.Explained = explained
		return nil
	})
	return m, err
}

// picture is a set of memories to show together.
type picture struct {
	s        *Store
	nodes    []Node
	total    int
	ours     map[int64]bool // partitions whose vectors the store makes
	warnings []string
}

// picture selects the memories of a listing, up to a limit.
func (s *Store) picture(tx db.Tx, v viewer, l List, limit int) (*picture, error) {
	order := cmp.Or(l.Sort, SortUpdatedDesc)
	if !slices.Contains(sortOrders[1:], order) {
		return nil, invalid("sort_order", "{} is %s; lists are sorted by time: allowed are %s", show(string(order)),
			oneOf(sortOrders[1:]))
	}
	sel, err := s.selection(tx, v,
		Query{Collections: l.Collections, ProjectID: l.ProjectID, ProjectName: l.ProjectName, Tags: l.Tags, Filter: l.Filter,
			AsOf: l.AsOf})
	if err != nil {
		return nil, err
	}
	p := &picture{s: s, ours: map[int64]bool{}, warnings: sel.warnings}
	for _, each := range sel.Partitions {
		p.ours[each.ID] = each.OwnSize == 0
	}
	if p.total, err = sel.Count(tx); err != nil {
		return nil, err
	}
	rows, err := sel.Page(tx, order.byTime(), limit, 0)
	if err != nil {
		return nil, err
	}
	p.nodes, err = loadNodes(tx, rows)
	return p, err
}

// loadNodes reads memories that the caller may see, in the order of the rows.
func loadNodes(tx db.Tx, rows []int64) ([]Node, error) {
	const labelled = 600 // characters searched for the first line
	nodes := make([]Node, 0, len(rows))
	err := tx.Each(func(row db.Rows) error {
		var n Node
		var content string
		var created, updated int64
		err := row.Scan(&n.row, &n.partition, &n.ID, &content, &n.Collection, &n.Owner, &n.ProjectID, &n.ProjectOwner,
			&n.EventType, &n.State, &n.Importance, &n.Classification, &created, &updated)
		n.Label, n.CreatedAt, n.UpdatedAt = shorten.FirstLine(content), kernel.ToTime(created), kernel.ToTime(updated)
		nodes = append(nodes, n)
		return err
	}, `SELECT m.id, m.partition_id, m.uid, substr(m.content, 1, ?), c.name, u.uid, coalesce(j.uid, ''), coalesce(v.uid,
		''), coalesce(m.event_type, ''), coalesce(m.state, ''),
			coalesce(m.importance, ''), coalesce(m.classification, ''), m.created_at, m.updated_at
		FROM `+db.Numbered+` r `+db.InOrder+
		` memory m ON m.id = r.value JOIN partition p ON p.id = m.partition_id JOIN collection c ON c.id = p.collection_id
		JOIN users u ON u.id = c.owner_id LEFT JOIN project j ON j.id = p.project_id LEFT JOIN users v ON v.id = j.owner_id
		ORDER BY r.key`, labelled, db.List(rows))
	return nodes, err
}

func (p *picture) rows() []int64 {
	rows := make([]int64, len(p.nodes))
	for i, n := range p.nodes {
		rows[i] = n.row
	}
	return rows
}

// partitions are those of the nodes whose vectors may be compared.
func (p *picture) partitions() []int64 {
	some := map[int64]bool{}
	for _, n := range p.nodes {
		if p.ours[n.partition] {
			some[n.partition] = true
		}
	}
	return slices.Sorted(maps.Keys(some))
}

// links are the links between the nodes, in the order of the nodes.
func (p *picture) links(tx db.Tx) ([]Edge, error) {
	rows := p.rows()
	place := make(map[int64]int, len(rows))
	for i, row := range rows {
		place[row] = i
	}
	edges := []Edge{}
	err := tx.Each(func(row db.Rows) error {
		var from, to int64
		err := row.Scan(&from, &to)
		if at, shown := place[to]; shown {
			edges = append(edges, Edge{From: place[from], To: at, Kind: EdgeRelated})
		}
		return err
	}, `SELECT memory_id, related_id FROM `+db.Numbered+` r `+db.InOrder+
		` memory_link ON memory_id = r.value ORDER BY r.key, position, related_id`, db.List(rows))
	return edges, err
}

// means returns the directions of the nodes that have one, concatenated, and the places of these nodes.
func (p *picture) means(tx db.Tx) (means []float32, places []int, err error) {
	ready, err := p.s.vectors.Ready(tx)
	if err != nil {
		return nil, nil, err
	}
	if !ready {
		p.warnings = append(p.warnings,
			"the store is changing to another embedding model; memories cannot be compared until that is done")
		return nil, nil, nil
	}
	size := p.s.embedder.Dimensions()
	all := make([]float32, len(p.nodes)*size)
	var found []bool
	way, err := p.s.useIndex(tx, p.partitions(), func(ix *index.Index) error {
		found = ix.Means(p.rows(), size, func(partition int64) bool { return p.ours[partition] }, all)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if way == "" {
		defer p.s.index.LoadIfDue()
		if found, err = p.readMeans(tx, size, all); err != nil {
			return nil, nil, err
		}
	}
	for i := range found {
		if found[i] {
			copy(all[len(places)*size:(len(places)+1)*size], all[i*size:(i+1)*size])
			places = append(places, i)
		}
	}
	return all[:len(places)*size], places, nil
}

// readMeans does what [index.Index.Means] does from the file.
func (p *picture) readMeans(tx db.Tx, size int, means []float32) ([]bool, error) {
	found := make([]bool, len(p.nodes))
	err := tx.Each(func(row db.Rows) error {
		var at int
		var blob []byte
		if err := row.Scan(&at, &blob); err != nil {
			return err
		}
		v, err := kernel.DecodeVector(blob)
		if err == nil && len(v) == size && p.ours[p.nodes[at].partition] {
			index.AddTo(means[at*size:(at+1)*size], v)
			found[at] = true
		}
		return err
	}, `SELECT r.key, v.vector FROM `+db.Numbered+` r `+db.InOrder+` passage v ON v.memory_id = r.value
		WHERE v.profile_id = ? AND v.vector IS NOT NULL ORDER BY r.key, v.id`, db.List(p.rows()), p.s.profile)
	for i := range found {
		found[i] = found[i] && index.Unit(means[i*size:(i+1)*size])
	}
	return found, err
}
