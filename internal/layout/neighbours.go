package layout

import (
	"context"
	"math"
)

// Near is two points that are near each other, named by their numbers.
type Near struct {
	A, B     int
	Distance float32 // the Euclidean one, squared
}

// NearOnes returns the number of nearest points of each of n points for [Neighbours]: all of few points, 90 of many.
// With few points in many directions, pictures can keep more of the distant pairs.
func NearOnes(n int) int { return max(min(n-1, mostNear/max(n, 1)), leastNear) }

// perplexity returns the effective number of neighbours of each of n points.
func perplexity(n int) float64 { return max(min(float64(n)/4, float64(NearOnes(n))/3), leastNear/3) }

const (
	leastNear = 90
	mostNear  = 5000 * leastNear // pairs, for any number of points

	exaggerated  = 120 // rounds in which neighbours pull harder, so that groups find each other
	exaggeration = 12
	placed       = 350 // rounds after that
	placedFew    = 900 // the same for few points, whose rounds are cheap
	fewPoints    = 1000
	refined      = 120 // rounds in all, if most places are known
)

// Neighbours returns x and y of n points, point after point, around 0, so that points that are near each other stay
// neighbours. It is t-SNE (L. van der Maaten, G. Hinton, Visualizing data using t-SNE, 2008) with forces from a tree
// (L. van der Maaten, Accelerating t-SNE using tree-based algorithms, 2014) and the learning rate of A. Belkina et al.
// (Automated optimized parameters for t-distributed stochastic neighbor embedding, 2019). Up to 1,000 points are
// sharpened at the end, so that fewer strangers are close together. The start decides how groups are placed relative to
// each other (D. Kobak, P. Berens, The art of using t-SNE for single-cell transcriptomics, 2019). It has a place for
// each point, such as its projection onto a plane. With known, the start is an earlier result that only needs to
// settle.
//
// Pass each point's [NearOnes] nearest points, each pair once; fewer are fine. The same arguments always give the same
// places. It uses one processor, and checks the context in each round.
func Neighbours(ctx context.Context, n int, near []Near, start []float32, known bool) ([]float32, error) {
	if n < 3 {
		places := []float32{-1, 0, 1, 0}
		if n == 1 {
			places = []float32{0, 0}
		}
		return places[:2*n], ctx.Err()
	}
	s := newAffinities(n, near, perplexity(n))
	places := make([]float32, 2*n)
	copy(places, start)
	rounds, early := exaggerated+placed, exaggerated
	if n <= fewPoints {
		rounds = exaggerated + placedFew
	}
	if known {
		rounds, early = refined, 0
	} else {
		shrink(places, 1e-2)
	}
	if err := s.descend(ctx, places, rounds, early); err != nil {
		return nil, err
	}
	if n <= fewPoints {
		if err := sharpen(ctx, n, near, places); err != nil {
			return nil, err
		}
	}
	all := make([]int32, n)
	return newIsland(all, places).places, nil
}

// Place is a place in a picture that spans 2 in its longer direction, with 0 in the middle.
type Place struct{ X, Y float64 }

// Begin returns a start for [Neighbours] from the previous places of points. A point without a place, nil, starts
// beside the nearest point with one. It returns false if fewer than half have a place.
func Begin(was []*Place, near []Near) (start []float32, known bool) {
	n := len(was)
	unit := 2.5 * math.Sqrt(float64(n)) // about half the width of the result of Neighbours
	start = make([]float32, 2*n)
	nearest, found := make([]float32, n), 0
	for i, place := range was {
		nearest[i] = math.MaxFloat32
		if place != nil {
			start[2*i], start[2*i+1] = float32(place.X*unit), float32(place.Y*unit)
			found++
		}
	}
	for _, pair := range near {
		for _, way := range [2][2]int{{pair.A, pair.B}, {pair.B, pair.A}} {
			from, to := way[0], way[1]
			if was[from] != nil && was[to] == nil && pair.Distance < nearest[to] {
				nearest[to] = pair.Distance
				start[2*to], start[2*to+1] = start[2*from]+0.1, start[2*from+1]+0.1
			}
		}
	}
	return start, 2*found >= n
}

// shrink scales places to a standard deviation, and moves coinciding ones a little apart.
func shrink(places []float32, deviation float64) {
	const golden = 2.399963
	square := 0.0
	for _, v := range places {
		square += float64(v) * float64(v)
	}
	scale := 1.0
	if square > 0 {
		scale = deviation / math.Sqrt(square/float64(len(places)))
	}
	for i := 0; i < len(places); i += 2 {
		sin, cos := math.Sincos(golden * float64(i/2))
		places[i] = float32(float64(places[i])*scale + deviation*cos/20)
		places[i+1] = float32(float64(places[i+1])*scale + deviation*sin/20)
	}
}

// affinities are the attractions between points and their neighbours: the neighbours of i are to[first[i]:first[i+1]].
// They sum to 1.
type affinities struct {
	first  []int32
	to     []int32
	weight []float32
}

func newAffinities(n int, near []Near, perplexity float64) *affinities {
	edges := make([]Edge, 0, len(near))
	for _, e := range near {
		// Edges have positive weights. Equal points have the distance 0.
		edges = append(edges, Edge{e.A, e.B, max(e.Distance, 0) + 1})
	}
	g := &graph{mass: make([]float32, n)}
	g.connect(edges)
	s := &affinities{first: g.first, to: g.to, weight: make([]float32, len(g.to))}
	for i := range n {
		weigh(g.weight[g.first[i]:g.first[i+1]], s.weight[g.first[i]:g.first[i+1]], perplexity)
	}
	s.balance(n)
	return s
}

// weigh turns the distances of a point's neighbours into weights with the sum 1 and a perplexity, or a third of the
// neighbours if there are few.
func weigh(distances, weights []float32, perplexity float64) {
	if len(distances) == 0 {
		return
	}
	want := math.Log(min(perplexity, max(float64(len(distances))/3, 1)))
	least := distances[0]
	for _, d := range distances {
		least = min(least, d)
	}
	low, high, beta := 0.0, math.Inf(1), 1.0
	for range 50 {
		sum, moment := 0.0, 0.0
		for i, d := range distances {
			w := math.Exp(-beta * float64(d-least))
			weights[i] = float32(w)
			sum, moment = sum+w, moment+w*beta*float64(d-least)
		}
		for i := range weights {
			weights[i] /= float32(sum)
		}
		off := math.Log(sum) + moment/sum - want
		if math.Abs(off) < 1e-4 {
			return
		}
		if off > 0 {
			low = beta
			beta *= 2
			if !math.IsInf(high, 1) {
				beta = (low + high) / 2
			}
		} else {
			high = beta
			beta = (low + high) / 2
		}
	}
}

// balance makes the weights of both directions equal, and their sum 1.
func (s *affinities) balance(n int) {
	at := make([]int32, n) // the next lower neighbour of each point; they come in order
	copy(at, s.first)
	sum := 0.0
	for i := range n {
		for k := s.first[i]; k < s.first[i+1]; k++ {
			j := s.to[k]
			if int(j) < i {
				continue
			}
			back := at[j]
			at[j]++
			both := (s.weight[k] + s.weight[back]) / 2
			s.weight[k], s.weight[back] = both, both
			sum += 2 * float64(both)
		}
	}
	if sum > 0 {
		for k := range s.weight {
			s.weight[k] /= float32(sum)
		}
	}
}

// descend moves the points along the gradient, with momentum.
func (s *affinities) descend(ctx context.Context, places []float32, rounds, early int) error {
	const far = 0.8
	n := len(places) / 2
	var cells []int32
	speed, gain := make([]float32, 2*n), make([]float32, 2*n)
	push, force := make([]float32, 2*n), make([]float32, 2*n)
	for i := range gain {
		gain[i] = 1
	}
	mass := make([]float32, n)
	for i := range mass {
		mass[i] = 1
	}
	var t tree
	for round := range rounds {
		if err := ctx.Err(); err != nil {
			return err
		}
		t.build(places, mass)
		total := 0.0
		for i := range n {
			cells = t.walk(int32(i), far, cells)
			x, y, z := t.repel(int32(i), cells)
			push[2*i], push[2*i+1] = x, y
			total += z
		}
		pull, momentum := float32(1), float32(0.8)
		if round < early {
			pull, momentum = exaggeration, 0.5
		}
		apart := float32(1 / max(total, 1e-12))
		for i := range n {
			x, y := s.attract(i, places)
			force[2*i], force[2*i+1] = pull*x-push[2*i]*apart, pull*y-push[2*i+1]*apart
		}
		step(places, force, speed, gain, momentum)
		centre(places)
	}
	return nil
}

// attract returns the part of a point's gradient that is due to its neighbours.
func (s *affinities) attract(i int, places []float32) (x, y float32) {
	px, py := places[2*i], places[2*i+1]
	for k := s.first[i]; k < s.first[i+1]; k++ {
		j := s.to[k]
		dx, dy := px-places[2*j], py-places[2*j+1]
		f := s.weight[k] / (1 + dx*dx + dy*dy)
		x, y = x+f*dx, y+f*dy
	}
	return x, y
}

func centre(places []float32) {
	var x, y float64
	for i := 0; i < len(places); i += 2 {
		x, y = x+float64(places[i]), y+float64(places[i+1])
	}
	n := float64(len(places) / 2)
	for i := 0; i < len(places); i += 2 {
		places[i] -= float32(x / n)
		places[i+1] -= float32(y / n)
	}
}

// repel returns the part of a point's gradient that is due to the cells of a walk, before it is divided by the sum of z
// of all points.
func (t *tree) repel(node int32, cells []int32) (x, y float32, z float64) {
	px, py := t.places[2*node], t.places[2*node+1]
	for _, at := range cells {
		c := &t.cells[at]
		dx, dy := px-c.x, py-c.y
		q := 1 / (1 + dx*dx + dy*dy)
		z += float64(c.mass * q)
		f := c.mass * q * q
		x, y = x+f*dx, y+f*dy
	}
	return x, y, z
}
