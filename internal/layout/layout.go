// Package layout places the nodes of a graph in the plane, so that connected nodes are close together.
package layout

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// Edge connects two nodes, named by their numbers.
type Edge struct {
	A, B   int
	Weight float32 // how strongly; positive
}

// Places returns x and y of n nodes, node after node, around 0. Edges become one to a few units long. The same
// graph always gets the same places, for any number of processors. Unconnected parts are placed side by side, the
// largest in the middle. Edges from a node to itself, or to a node that does not exist, are ignored.
func Places(ctx context.Context, n int, edges []Edge) ([]float32, error) {
	whole := newGraph(n, edges)
	places := make([]float32, 2*n)
	var islands []island
	for _, members := range whole.components() {
		own, err := settle(ctx, whole.only(members))
		if err != nil {
			return nil, err
		}
		islands = append(islands, newIsland(members, own))
	}
	arrange(islands)
	for _, is := range islands {
		for i, node := range is.members {
			places[2*node], places[2*node+1] = is.places[2*i]+is.x, is.places[2*i+1]+is.y
		}
	}
	return places, ctx.Err()
}

// graph is an undirected graph: of the node i, the neighbours are to[first[i]:first[i+1]], in ascending order.
type graph struct {
	first  []int32
	to     []int32
	weight []float32
	mass   []float32 // how many nodes of the original graph each one stands for
}

func (g *graph) size() int { return len(g.mass) }

func newGraph(n int, edges []Edge) *graph {
	g := &graph{mass: make([]float32, n)}
	for i := range g.mass {
		g.mass[i] = 1
	}
	g.connect(edges)
	return g
}

// connect fills in the edges. Several edges between the same nodes become one with the sum of their weights.
func (g *graph) connect(edges []Edge) {
	n := g.size()
	type half struct {
		from, to int32
		weight   float32
	}
	halves := make([]half, 0, 2*len(edges))
	for _, e := range edges {
		if e.A == e.B || e.A < 0 || e.B < 0 || e.A >= n || e.B >= n || !(e.Weight > 0) {
			continue
		}
		halves = append(halves, half{int32(e.A), int32(e.B), e.Weight}, half{int32(e.B), int32(e.A), e.Weight})
	}
	slices.SortStableFunc(halves,
		func(a, b half) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	g.first = make([]int32, n+1)
	for i, h := range halves {
		if i > 0 && halves[i-1].from == h.from && halves[i-1].to == h.to {
			g.weight[len(g.weight)-1] += h.weight
			continue
		}
		g.to, g.weight = append(g.to, h.to), append(g.weight, h.weight)
		g.first[h.from+1] = int32(len(g.to))
	}
	for i := range n {
		g.first[i+1] = max(g.first[i+1], g.first[i])
	}
}

// components returns the connected components, the largest first, each in ascending order.
func (g *graph) components() [][]int32 {
	var all [][]int32
	seen := make([]bool, g.size())
	for start := range g.size() {
		if seen[start] {
			continue
		}
		seen[start] = true
		members := []int32{int32(start)}
		for at := 0; at < len(members); at++ {
			node := members[at]
			for _, next := range g.to[g.first[node]:g.first[node+1]] {
				if !seen[next] {
					seen[next] = true
					members = append(members, next)
				}
			}
		}
		slices.Sort(members)
		all = append(all, members)
	}
	slices.SortStableFunc(all, func(a, b []int32) int { return len(b) - len(a) })
	return all
}

// only returns the part of the graph with the given nodes, which have no edges to others.
func (g *graph) only(members []int32) *graph {
	if len(members) == g.size() {
		return g
	}
	var edges []Edge
	for i, node := range members {
		for at := g.first[node]; at < g.first[node+1]; at++ {
			if g.to[at] > node {
				other, _ := slices.BinarySearch(members, g.to[at])
				edges = append(edges, Edge{i, other, g.weight[at]})
			}
		}
	}
	return newGraph(len(members), edges)
}

// island is a component with places of its own, around its middle.
type island struct {
	members []int32
	places  []float32
	radius  float64
	x, y    float32 // where its middle is
}

// newIsland moves the middle of the places to 0, and turns them so that they are wider than high.
func newIsland(members []int32, places []float32) island {
	n := len(members)
	var x, y float64
	for i := range n {
		x, y = x+float64(places[2*i]), y+float64(places[2*i+1])
	}
	x, y = x/float64(n), y/float64(n)
	var xx, yy, xy float64
	for i := range n {
		dx, dy := float64(places[2*i])-x, float64(places[2*i+1])-y
		xx, yy, xy = xx+dx*dx, yy+dy*dy, xy+dx*dy
	}
	sin, cos := math.Sincos(-math.Atan2(2*xy, xx-yy) / 2)
	is := island{members: members, places: places}
	for i := range n {
		dx, dy := float64(places[2*i])-x, float64(places[2*i+1])-y
		places[2*i], places[2*i+1] = float32(dx*cos-dy*sin), float32(dx*sin+dy*cos)
		is.radius = max(is.radius, math.Hypot(dx, dy))
	}
	return is
}

// arrange puts the first island, the largest, in the middle and the others on rings around it.
func arrange(islands []island) {
	if len(islands) < 2 {
		return
	}
	const gap = 0.8
	inner := islands[0].radius
	for rest := islands[1:]; len(rest) > 0; {
		// Islands get smaller: the first one of a ring nearly always sets its width.
		widest := rest[0].radius
		for _, is := range rest[:min(len(rest), 64)] {
			widest = max(widest, is.radius)
		}
		ring := max(inner+widest+2*gap, 1)
		angle, fit := 0.0, 0
		for fit < len(rest) {
			share := 2 * math.Asin(min((rest[fit].radius+gap)/ring, 1))
			if fit > 0 && angle+share > 2*math.Pi {
				break
			}
			angle += share
			fit++
		}
		stretch := max(2*math.Pi/angle, 1) // to spread the rest of the ring evenly
		at := -math.Pi / 2
		for i := range rest[:fit] {
			half := math.Asin(min((rest[i].radius+gap)/ring, 1)) * stretch
			sin, cos := math.Sincos(at + half)
			rest[i].x, rest[i].y = float32(ring*cos), float32(ring*sin)
			at += 2 * half
			widest = max(widest, rest[i].radius)
		}
		inner, rest = ring+widest, rest[fit:]
	}
}
