package souvenir

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/layout"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
	"github.com/souvenir-ai/souvenir/internal/retrieval/pictures"
	"github.com/souvenir-ai/souvenir/internal/topic"
)

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
	// third of the time. LayoutKept needs one.
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

	// LayoutKept keeps the places and clusters of Start. A memory that is new or has changed since is put beside the most
	// similar one. That takes milliseconds. If these are most memories, the layout is LayoutAxes.
	LayoutKept MapLayout = "kept"
)

var mapLayouts = []MapLayout{LayoutAxes, LayoutNeighbours, LayoutKept}

// Map holds memories laid out by meaning: similar ones are close together.
type Map struct {
	Points []Point `json:"points"` // never nil
	Total  int     `json:"total"`  // matching memories, including any beyond the limit

	// Unplaced is how many memories within the limit have no place: they wait to be embedded, or have callers' own
	// vectors.
	Unplaced int `json:"unplaced"`

	// Clusters are set with LayoutNeighbours and LayoutKept: groups of memories whose neighbours are mostly in the same
	// group, the largest first. Nodes are indexes of Points.
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
	defer setGoNames[MapQuery](&err)
	s := h.s
	q.Limit, q.Layout = cmp.Or(q.Limit, MaxNodes), cmp.Or(q.Layout, LayoutAxes)
	switch {
	case q.Limit < 1 || q.Limit > MaxNodes:
		return Map{}, invalid("limit", "{} is %d; expected 1 to %d", q.Limit, MaxNodes)
	case !slices.Contains(mapLayouts, q.Layout):
		return Map{}, invalid("layout", "{} is %s; expected %s", show(string(q.Layout)), oneOf(mapLayouts))
	case q.Layout == LayoutKept && q.Start == nil:
		return Map{}, invalid("start", "{} is missing; the layout %s needs an earlier map", LayoutKept)
	}
	if q.Start != nil {
		for i, p := range q.Start.Points {
			if far := max(math.Abs(p.X), math.Abs(p.Y)); !(far < 1e6) { // NaN, or too large to place others around it
				return Map{}, invalid("start", "{} has point %d at (%g, %g); expected places near -1 to 1", i, p.X, p.Y)
			}
		}
	}
	var m Map
	var p *pictures.Picture
	var v vectors
	var known bool
	var making retrieval.Making
	err = s.read(ctx, func(tx db.Tx, viewer viewer) (err error) {
		if p, err = s.pictureOf(tx, viewer, q.MemoryList); err != nil {
			return err
		}
		if q.Layout == LayoutAxes {
			m, known, making, err = pictures.Kept[Map](tx, p, &s.maps, fmt.Sprint(q.Limit, q.Sample, p.Order))
			if err != nil || known {
				return err
			}
			q.Start = &m
		}
		if err := p.Load(tx, q.Limit, q.Sample); err != nil {
			return err
		}
		if q.Layout == LayoutNeighbours {
			v.Directions, err = p.Directions(tx, p.Nodes)
		} else {
			v, err = q.Start.since(tx, p, q.Layout == LayoutAxes)
		}
		return err
	})
	if err != nil {
		return Map{}, err
	}
	if !known {
		if m, err = s.mapOf(ctx, p, v, q); err != nil {
			return Map{}, err
		}
		if q.Layout == LayoutAxes && !p.Changing {
			s.maps.Keep(making, m, pictures.NodeBytes*len(m.Points))
		}
	}
	m.Points, m.Warnings = slices.Clone(m.Points), p.Warnings
	return m, nil
}

// mapOf lays out the nodes that have a direction.
func (s *Store) mapOf(ctx context.Context, p *pictures.Picture, v vectors, q MapQuery) (Map, error) {
	m := Map{Points: []Point{}, Total: p.Total, Unplaced: len(p.Nodes) - len(v.Places)}
	m.Version = v.Version(s.profile, func(i int) (id string, updated int64) {
		return p.Nodes[i].ID, p.Nodes[i].UpdatedAt.UnixMicro()
	})
	if q.Layout == LayoutKept && 2*v.known() < len(v.Places) {
		q.Layout = LayoutAxes
	}
	var flat []float32
	var places []layout.Place
	var err error
	switch {
	case q.Layout == LayoutNeighbours:
		flat, err = m.neighbours(ctx, p, v, q)
	case q.Layout == LayoutAxes && v.Means != nil:
		flat, m.Explained, err = index.Plane(ctx, v.Means, v.Size)
	default:
		m.Explained = q.Start.Explained
		places = m.placeNew(p, v, q.Start)
	}
	if err != nil {
		return Map{}, err
	}
	most := float32(1e-9)
	for _, x := range flat {
		most = max(most, x, -x)
	}
	for i := range len(flat) / 2 {
		places = append(places, layout.Place{X: float64(flat[2*i] / most), Y: float64(flat[2*i+1] / most)})
	}
	for i, place := range v.Places {
		m.Points = append(m.Points, Point{nodeOf(p.Nodes[place]), places[i].X, places[i].Y})
	}
	return m, nil
}

// placeNew returns the places of the nodes: what an earlier map shows stays, and each other one is beside the most
// similar of these, since the mean of several can be between clusters. It sets the clusters.
func (m *Map) placeNew(p *pictures.Picture, v vectors, start *Map) []layout.Place {
	places, groups := make([]*layout.Place, len(v.Places)), slices.Repeat([]int{-1}, len(v.Places))
	group := make([]int, len(start.Points))
	for i, cluster := range start.Clusters {
		for _, at := range cluster.Nodes {
			if at >= 0 && at < len(group) {
				group[at] = i + 1
			}
		}
	}
	var fresh, known []int
	for i := range v.Places {
		if v.was[i] < 0 {
			fresh = append(fresh, i)
			continue
		}
		known = append(known, i)
		point := start.Points[v.was[i]]
		places[i], groups[i] = &layout.Place{X: point.X, Y: point.Y}, group[v.was[i]]-1
	}
	var edges []layout.Edge
	for _, pair := range index.Nearest(v.Means, v.Size, fresh, known) {
		edges = append(edges, layout.Edge{A: pair.A, B: pair.B, Weight: 1})
		groups[pair.A] = groups[pair.B]
	}
	m.Clusters = keptClusters(start.Clusters, p, v.Places, groups)
	all := make([]layout.Place, len(v.Places))
	for i, place := range layout.PlaceNew(places, edges) {
		all[i] = *place
	}
	return all
}

// keptClusters returns the clusters of a picture for a later one, given which one each of some nodes is in. Their names
// have only words of these nodes: other words may come from memories that were erased, or that their owner no longer
// shares.
func keptClusters(before []Cluster, p *pictures.Picture, some, groups []int) []Cluster {
	all := make([]Cluster, len(before))
	for i, group := range groups {
		if group >= 0 {
			all[group].Nodes = append(all[group].Nodes, i)
		}
	}
	for i := range all {
		said := true
		for word := range strings.SplitSeq(before[i].Name, ", ") {
			said = said && slices.ContainsFunc(all[i].Nodes, func(one int) bool {
				return strings.Contains(strings.ToLower(p.Nodes[some[one]].Begins), strings.ToLower(word))
			})
		}
		if said {
			all[i].Name = before[i].Name
		}
	}
	all = slices.DeleteFunc(all, func(c Cluster) bool { return len(c.Nodes) == 0 })
	return append([]Cluster(nil), all...) // nil for none
}

// neighbours returns x and y of each memory with a vector, and sets the clusters.
func (m *Map) neighbours(ctx context.Context, p *pictures.Picture, v vectors, q MapQuery) ([]float32, error) {
	pairs, err := index.Pairs(ctx, v.Means, v.Size, layout.NearOnes(len(v.Places)), -1)
	if err != nil {
		return nil, err
	}
	some := make([]pictures.Node, len(v.Places))
	for i, place := range v.Places {
		some[i] = p.Nodes[place]
	}
	read := topic.Read(pictures.Begins(some))
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
	was := make([]*layout.Place, len(some))
	for i, at := range q.Start.points(some, false) {
		if at >= 0 {
			was[i] = &layout.Place{X: q.Start.Points[at].X, Y: q.Start.Points[at].Y}
		}
	}
	start, known := layout.Begin(was, near)
	if !known {
		if start, _, err = index.Plane(ctx, v.Means, v.Size); err != nil {
			return nil, err
		}
	}
	return layout.Neighbours(ctx, len(v.Places), near, start, known)
}

// points returns which points of a map are some nodes; -1: it does not show them, or shows them as they were.
func (m *Map) points(nodes []pictures.Node, unchanged bool) []int {
	was := slices.Repeat([]int{-1}, len(nodes))
	if m == nil {
		return was
	}
	known := make(map[string]int, len(m.Points))
	for i, point := range m.Points {
		known[point.ID] = i
	}
	for i, node := range nodes {
		if at, found := known[node.ID]; found && !(unchanged && !m.Points[at].UpdatedAt.Equal(node.UpdatedAt)) {
			was[i] = at
		}
	}
	return was
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

// since returns the directions of the nodes of a later picture; but none if the map shows just the same nodes, or if it
// shows all of them, and all is false.
func (m *Map) since(tx db.Tx, p *pictures.Picture, all bool) (vectors, error) {
	var fresh []pictures.Node
	was, placed := m.points(p.Nodes, true), []int{}
	for i, node := range p.Nodes {
		if was[i] < 0 {
			fresh = append(fresh, node)
		} else {
			placed = append(placed, i)
		}
	}
	some, err := p.Directions(tx, fresh)
	if v := (vectors{Directions: some}); err != nil || p.Changing || len(placed) == 0 {
		return v, err
	}
	v := vectors{Directions: retrieval.Directions{Size: some.Size, Places: placed}}
	if len(some.Places) > 0 || all && len(placed) < len(m.Points) {
		if v.Directions, err = p.Directions(tx, p.Nodes); err != nil {
			return v, err
		}
	}
	for _, place := range v.Places {
		v.was = append(v.was, was[place])
	}
	return v, nil
}
