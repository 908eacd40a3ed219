package souvenir

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/layout"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
	"github.com/souvenir-ai/souvenir/internal/retrieval/pictures"
	"github.com/souvenir-ai/souvenir/internal/retrieval/similarity"
	"github.com/souvenir-ai/souvenir/internal/topic"
)

// What connects memories, links and likeness: the memories related to one, its near duplicates, and a graph of many.

// Direction is the direction of a link, seen from the start of a walk.
type Direction string

// The values of [Direction].
const (
	Outgoing Direction = "outgoing" // it links to the other one
	Incoming Direction = "incoming" // the other one links to it
)

// RelatedMemory is a memory reached over links.
type RelatedMemory struct {
	Memory
	Depth     int       // 1: linked directly
	Direction Direction // of the link over which it was reached
	Path      []string  // ids from the start of the walk to this memory, both included
	Truncated bool      // shortened; see [MainMemory.Within]
}

// MarshalJSON returns the memory's form with depth, direction and path.
func (r RelatedMemory) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		writtenMemory
		relatedJSON
	}{written(r.Memory), relatedJSON{r.Depth, r.Direction, r.Path, r.Truncated}})
}

// UnmarshalJSON reads the output of MarshalJSON.
func (r *RelatedMemory) UnmarshalJSON(data []byte) error {
	var beside relatedJSON
	var m Memory
	if err := withMemory(data, &m, &beside); err != nil {
		return err
	}
	*r = RelatedMemory{Memory: m, Depth: beside.Depth, Direction: beside.Direction, Path: beside.Path,
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

const (
	// maxWalk bounds how far a walk over links may go.
	maxWalk = 10
	// walkPortion is how many memories a walk reads at once.
	walkPortion = 1000
)

// RelatedMemories follows the links of a memory in both directions, up to depth links away (1 to 10), nearest first.
// Each memory appears once, on one of its shortest paths; a memory that this view may not see ends a path.
func (s *Store) RelatedMemories(ctx context.Context, id string, depth int) (_ []RelatedMemory, err error) {
	defer setGoNames[struct{}](&err, "id", "id", "depth", "depth")
	if err := checkRange("depth", depth, 1, maxWalk); err != nil {
		return nil, err
	}
	var all []RelatedMemory
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

// walk follows links, up to depth links and most visible memories (0: any number), and reports whether there are more.
func (s *Store) walk(tx db.Tx, v viewer, start kernel.Memory, depth, most int) (
	all []RelatedMemory, more bool, err error) {
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
		level = level[:0]
		for portion := range slices.Chunk(next, walkPortion) {
			found, err := kernel.LoadRows(tx, v, kernel.WholeContent, portion)
			if err != nil {
				return nil, false, err
			}
			for _, m := range found {
				if most > 0 && len(all) == most {
					return all, true, nil
				}
				from := reached[m.Row]
				path := append(append([]string{}, paths[from.from]...), m.ID)
				paths[m.Row] = path
				level = append(level, m.Row)
				all = append(all, RelatedMemory{Memory: memoryOf(m), Depth: d, Direction: from.direction, Path: path})
			}
		}
	}
	return all, false, nil
}

// SimilarMemory is a near duplicate of a memory.
type SimilarMemory struct {
	ID         string  `json:"id"`
	Score      float64 `json:"score"` // as by [Likeness]; for own vectors, the cosine similarity, 0.9 to 1
	Content    string  `json:"content"`
	Collection string  `json:"collection_name"`
	SharedBy   string  `json:"shared_by,omitempty"` // as in [Memory]
}

// Likeness returns how likely it is that two texts say the same, 0 to 1, by the built-in model and by their words,
// numbers, names and negations. It is also the score of [SimilarMemory].
func Likeness(a, b string) float64 {
	x, y := similarity.Read(a), similarity.Read(b)
	return similarity.Score(x, y, similarity.CosineOf(x, y))
}

// ownDuplicate is the cosine similarity at which callers' own vectors count as near duplicates: their model is unknown.
const ownDuplicate = 0.9

// maxCompared is the most memories whose texts are compared with one.
const maxCompared = 16

// similarTo finds, for each draft that asks for it, the visible memories that say almost the same. It runs before the
// drafts are stored, so none finds itself.
func (s *Store) similarTo(ctx context.Context, drafts []kernel.Draft) ([][]SimilarMemory, error) {
	all := make([][]SimilarMemory, len(drafts))
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

func (s *Store) similar(tx db.Tx, v viewer, d *kernel.Draft) ([]SimilarMemory, error) {
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
	limit := d.Similar + 1 // one may be the memory that the draft is written over
	n := index.Near{Vector: pq.vector, Partitions: partitions, Limit: max(maxCompared, limit)}
	if len(sel.Hidden) > 0 {
		n.Keep = func(row int64) bool { return !sel.Hidden[row] }
	}
	var hits []index.Hit
	if pq.own {
		n.Least, n.Limit = ownDuplicate, limit
		hits, err = s.comparison().Near(tx, n)
	} else {
		hits, err = s.comparison().Duplicates(tx, n, similarity.Read(d.Content))
	}
	if err != nil {
		return nil, err
	}
	hits = hits[:min(len(hits), limit)]
	var rows []int64
	scores := map[int64]float64{}
	for _, h := range hits {
		rows = append(rows, h.Row)
		scores[h.Row] = min(1, float64(h.Score))
	}
	found, err := kernel.LoadRows(tx, v, kernel.WholeContent, rows)
	var similar []SimilarMemory
	for _, m := range found {
		similar = append(similar, SimilarMemory{ID: m.ID, Score: scores[m.Row], Content: m.Content, Collection: m.Collection,
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

	// Stale accepts the similarities and clusters of an earlier graph of the same query, if the store still has one, and
	// most of its memories are as they were. It takes milliseconds; a memory that is new or has changed has links only.
	Stale bool
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

	Stale    bool     `json:"stale,omitempty"`    // similarities and clusters are those of an earlier graph
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
	defer setGoNames[GraphQuery](&err)
	s := h.s
	if err := q.check(); err != nil {
		return Graph{}, err
	}
	var g Graph
	var p *pictures.Picture
	var v retrieval.Directions
	var known bool
	var making retrieval.Making
	err = s.read(ctx, func(tx db.Tx, viewer viewer) (err error) {
		if p, err = s.pictureOf(tx, viewer, q.MemoryList); err != nil {
			return err
		}
		about := fmt.Sprint(q.Limit, q.Neighbours, q.Similar, q.Duplicates, p.Order)
		if g, known, making, err = pictures.Kept[Graph](tx, p, &s.graphs, about); err != nil || known {
			return err
		}
		if err := p.Load(tx, q.Limit, false); err != nil {
			return err
		}
		before := g
		g, v = Graph{Nodes: nodesOf(p.Nodes), Edges: []Edge{}, Total: p.Total}, retrieval.Directions{}
		links, err := p.Links(tx)
		for _, link := range links {
			g.Edges = append(g.Edges, Edge{From: link[0], To: link[1], Kind: EdgeRelated})
		}
		if err != nil || q.Neighbours < 0 || q.Stale && q.Duplicates == 0 && g.keep(before, p) {
			return err
		}
		if v, err = p.Directions(tx, p.Nodes); err != nil || q.Duplicates == 0 {
			return err
		}
		pairs, err := index.Pairs(tx.Context(), v.Means, v.Size, maxNeighbours, float32(similarity.Candidate))
		if err != nil {
			return err
		}
		pairs, err = p.Duplicates(tx, v.Places, pairs, q.Duplicates)
		for _, pair := range pairs {
			g.Edges = append(g.Edges, Edge{From: v.Places[pair.A], To: v.Places[pair.B], Kind: EdgeSimilar,
				Score: float64(pair.Cosine)})
		}
		return err
	})
	if err == nil && q.Duplicates == 0 && !known && !g.Stale {
		err = g.connect(ctx, p, v, q) // needs no snapshot
	}
	if err == nil && !known && !g.Stale && !p.Changing {
		s.graphs.Keep(making, g, pictures.NodeBytes*len(g.Nodes)+pictures.EdgeBytes*(len(g.Edges)+len(g.Nearest)))
	}
	if err != nil {
		return Graph{}, err
	}
	g.Nodes, g.Edges, g.Clusters = slices.Clone(g.Nodes), slices.Clone(g.Edges), cloned(g.Clusters)
	g.Nearest, g.Warnings = slices.Clone(g.Nearest), p.Warnings
	return g, nil
}

// connect adds edges of similarity, and the clusters.
func (g *Graph) connect(ctx context.Context, p *pictures.Picture, v retrieval.Directions, q GraphQuery) error {
	read := topic.Read(pictures.Begins(p.Nodes))
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

// keep takes the similarities and clusters of an earlier graph for memories that are as they were. It reports false,
// and takes none, if most are not.
func (g *Graph) keep(before Graph, p *pictures.Picture) bool {
	was := make(map[string]int, len(before.Nodes))
	for i, node := range before.Nodes {
		was[node.ID] = i
	}
	kept, groups := 0, slices.Repeat([]int{-1}, len(g.Nodes))
	now, all := slices.Repeat([]int{-1}, len(before.Nodes)), make([]int, len(g.Nodes))
	for i, node := range g.Nodes {
		all[i] = i
		if at, found := was[node.ID]; found && before.Nodes[at].UpdatedAt.Equal(node.UpdatedAt) {
			now[at] = i
			kept++
		}
	}
	if kept == 0 || 2*kept < len(g.Nodes) {
		return false
	}
	shared := map[[2]int]string{} // of links
	for _, edge := range before.Edges {
		from, to := now[edge.From], now[edge.To]
		switch {
		case from < 0 || to < 0:
		case edge.Kind == EdgeRelated:
			shared[[2]int{from, to}] = edge.Shared
		default:
			g.Edges = append(g.Edges, Edge{min(from, to), max(from, to), edge.Kind, edge.Score, edge.Shared})
		}
	}
	for i, edge := range g.Edges {
		if edge.Kind == EdgeRelated {
			g.Edges[i].Shared = shared[[2]int{edge.From, edge.To}]
		}
	}
	for _, edge := range before.Nearest {
		if from, to := now[edge.From], now[edge.To]; from >= 0 && to >= 0 {
			g.Nearest = append(g.Nearest, Edge{min(from, to), max(from, to), edge.Kind, edge.Score, ""})
		}
	}
	for number, cluster := range before.Clusters {
		for _, at := range cluster.Nodes {
			if now[at] >= 0 {
				groups[now[at]] = number
			}
		}
	}
	g.Clusters, g.Stale = keptClusters(before.Clusters, p, all, groups), true
	return true
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

// pictureOf selects the memories of a listing.
func (s *Store) pictureOf(tx db.Tx, v viewer, l MemoryList) (*pictures.Picture, error) {
	order := cmp.Or(l.Sort, SortUpdatedDesc)
	if !slices.Contains(sortOrders[1:], order) {
		return nil, invalid("sort_order", "{} is %s; lists are sorted by time; expected %s", show(string(order)),
			oneOf(sortOrders[1:]))
	}
	sel, err := s.selection(tx, v, l.query())
	if err != nil {
		return nil, err
	}
	from := pictures.Source{Ready: s.vectors.Ready, Comparison: s.comparison(), Scores: &s.pairScores, Lists: &s.shown,
		Dimensions: s.embedder.Dimensions(), Sealed: s.ring != nil}
	return pictures.New(from, sel.Selection, order.byTime(), sel.warnings), nil
}

// nodesOf returns the memories of a picture.
func nodesOf(all []pictures.Node) []Node {
	nodes := make([]Node, len(all))
	for i, n := range all {
		nodes[i] = nodeOf(n)
	}
	return nodes
}

func nodeOf(n pictures.Node) Node {
	return Node{ID: n.ID, Label: n.Label, Collection: n.Collection, Owner: n.Owner,
		ProjectID: n.ProjectID, ProjectOwner: n.ProjectOwner, EventType: n.EventType, State: n.State,
		Importance: Importance(n.Importance), Classification: Classification(n.Classification),
		CreatedAt: n.CreatedAt, UpdatedAt: n.UpdatedAt}
}
