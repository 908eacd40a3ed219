package layout

import (
	"cmp"
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// settle lays out a connected graph: first a coarse version of it, in which related nodes are one, then finer and
// finer ones that start from there (Y. Hu, Efficient and high quality force-directed graph drawing, 2005).
func settle(ctx context.Context, g *graph) ([]float32, error) {
	n := g.size()
	switch n {
	case 1:
		return []float32{0, 0}, nil
	case 2:
		return []float32{-0.5, 0, 0.5, 0}, nil
	}
	const coarsest = 24
	if n > coarsest {
		if groups, count := g.match(); count < n*9/10 {
			middle, err := settle(ctx, g.merge(groups, count))
			if err != nil {
				return nil, err
			}
			return g.relax(ctx, spread(middle, groups, n, count), rounds(n), 0.6)
		}
	}
	places := make([]float32, 2*n)
	for i := range n {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(n))
		radius := math.Sqrt(float64(n))
		places[2*i], places[2*i+1] = float32(radius*cos), float32(radius*sin)
	}
	return g.relax(ctx, places, 200, 2)
}

// rounds returns how many rounds of forces to compute: 24 for 5,000 nodes. With many nodes the start is good, and
// a round expensive.
func rounds(n int) int { return min(max(int(1700/math.Sqrt(float64(n))), 20), 120) }

// match groups each node with one or two of its most strongly connected neighbours, and returns the number of each
// node's group.
func (g *graph) match() (groups []int32, count int) {
	n := g.size()
	order := make([]int32, n)
	groups = make([]int32, n)
	for i := range order {
		order[i], groups[i] = int32(i), -1
	}
	degree := func(i int32) int32 { return g.first[i+1] - g.first[i] }
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(degree(a), degree(b)) })
	var members []int32 // by group
	for _, node := range order {
		if groups[node] >= 0 {
			continue
		}
		best, strength := int32(-1), float32(0)
		joined, least := int32(-1), float32(0)
		for at := g.first[node]; at < g.first[node+1]; at++ {
			other := g.to[at]
			s := g.weight[at] / (g.mass[other] * g.mass[node])
			if groups[other] < 0 {
				if s > strength {
					best, strength = other, s
				}
			} else if members[groups[other]] < 4 && s > least {
				joined, least = groups[other], s
			}
		}
		switch {
		case best >= 0:
			groups[node], groups[best] = int32(len(members)), int32(len(members))
			members = append(members, 2)
		case joined >= 0: // otherwise the leaves of a star would stay alone
			groups[node] = joined
			members[joined]++
		default:
			groups[node] = int32(len(members))
			members = append(members, 1)
		}
	}
	return groups, len(members)
}

// merge returns the graph of the groups.
func (g *graph) merge(groups []int32, count int) *graph {
	coarse := &graph{mass: make([]float32, count)}
	edges := make([]Edge, 0, len(g.to)/2)
	for i := range g.size() {
		coarse.mass[groups[i]] += g.mass[i]
		for at := g.first[i]; at < g.first[i+1]; at++ {
			if int(g.to[at]) > i {
				edges = append(edges, Edge{int(groups[i]), int(groups[g.to[at]]), g.weight[at]})
			}
		}
	}
	coarse.connect(edges)
	return coarse
}

// spread places each node near the middle of its group, in a layout with room for all.
func spread(middle []float32, groups []int32, n, count int) []float32 {
	const golden = 2.399963 // radians: no two successive directions are alike
	scale := float32(math.Sqrt(float64(n) / float64(count)))
	places := make([]float32, 2*n)
	for i, group := range groups {
		sin, cos := math.Sincos(golden * float64(i))
		places[2*i], places[2*i+1] = middle[2*group]*scale+0.3*float32(cos), middle[2*group+1]*scale+0.3*float32(sin)
	}
	return places
}

// relax moves the nodes by the forces between them: all push each other away, and edges pull. In each round a node
// moves at most by heat, which falls from round to round.
func (g *graph) relax(ctx context.Context, places []float32, rounds int, heat float32) ([]float32, error) {
	const far = 1.2
	n := g.size()
	moves := make([]float32, 2*n)
	var t tree
	for round := range rounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		t.build(places, g.mass)
		inParallel(n, func(begin, end int) {
			var cells []int32
			for i := begin; i < end; i++ {
				cells = t.walk(int32(i), far, cells)
				x, y := t.push(int32(i), cells)
				moves[2*i], moves[2*i+1] = x, y
				g.pull(i, places, moves)
			}
		})
		most := heat * (1 - float32(round)/float32(rounds))
		for i := range n {
			x, y := moves[2*i], moves[2*i+1]
			length := float32(math.Sqrt(float64(x*x + y*y)))
			if length > most {
				x, y = x*most/length, y*most/length
			}
			places[2*i] += x
			places[2*i+1] += y
		}
	}
	return places, nil
}

// strength of the push between nodes; with it, edges become one to a few units long.
const strength = 0.2

// pull adds the forces of a node's edges.
func (g *graph) pull(i int, places, moves []float32) {
	x, y := places[2*i], places[2*i+1]
	var mx, my float32
	for at := g.first[i]; at < g.first[i+1]; at++ {
		other := g.to[at]
		dx, dy := places[2*other]-x, places[2*other+1]-y
		// The pull is like a spring at short distances, which lets groups separate, and stronger at long ones, which keeps
		// the graph together.
		d := float32(math.Sqrt(float64(dx*dx + dy*dy)))
		f := (1 + d/8) * g.weight[at] / g.mass[i]
		mx, my = mx+dx*f, my+dy*f
	}
	// Otherwise a node with many edges would swing from side to side.
	if degree := float32(g.first[i+1] - g.first[i]); degree > 4 {
		damp := 4 / degree
		mx, my = mx*damp, my*damp
		moves[2*i], moves[2*i+1] = moves[2*i]*damp, moves[2*i+1]*damp
	}
	moves[2*i] += mx
	moves[2*i+1] += my
}

// inParallel calls work for 0 to n, in pieces. The result for one number must not depend on others.
func inParallel(n int, work func(begin, end int)) {
	const piece = 256
	workers := min(runtime.GOMAXPROCS(0), (n+piece-1)/piece)
	if workers < 2 {
		work(0, n)
		return
	}
	var next atomic.Int64
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for {
				begin := int(next.Add(piece)) - piece
				if begin >= n {
					return
				}
				work(begin, min(begin+piece, n))
			}
		})
	}
	group.Wait()
}
