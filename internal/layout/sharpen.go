package layout

import (
	"context"
	"math"
)

const (
	sharpened  = 75  // rounds
	missed     = 0.2 // the weight of separated neighbours, against 0.8 for strangers close together
	closeOnes  = 30  // the perplexity of a point's neighbours
	unlikeness = 1e-9
)

// sharpen moves the points of a small picture so that fewer strangers are close together, an error that t-SNE weighs
// less than separated neighbours. It is NeRV (J. Venna et al., Information retrieval perspective to nonlinear
// dimensionality reduction for data visualization, 2010) with the heavy-tailed likeness of t-SNE: the cost is missed
// KL(P||Q) + (1 - missed) KL(Q||P), with P the affinity of points, and Q their closeness. It compares all pairs in each
// round.
func sharpen(ctx context.Context, n int, near []Near, places []float32) error {
	wanted := newAffinities(n, near, min(perplexity(n), closeOnes)).dense(n)
	likeness, surprise := make([]float32, len(wanted)), make([]float32, len(wanted))
	force, speed, gain := make([]float32, 2*n), make([]float32, 2*n), make([]float32, 2*n)
	for i := range gain {
		gain[i] = 1
	}
	for range sharpened {
		if err := ctx.Err(); err != nil {
			return err
		}
		total := 0.0
		eachPair(n, places, func(pair, _, _ int, dx, dy float32) {
			likeness[pair] = 1 / (1 + dx*dx + dy*dy)
			total += 2 * float64(likeness[pair])
		})
		apart := float32(1 / max(total, 1e-12))
		mean := 0.0 // KL(Q||P)
		for pair, close := range likeness {
			q := float64(close * apart)
			surprise[pair] = float32(math.Log(q / float64(wanted[pair])))
			mean += 2 * q * float64(surprise[pair])
		}
		clear(force)
		eachPair(n, places, func(pair, i, j int, dx, dy float32) {
			q := likeness[pair] * apart
			f := likeness[pair] * (missed*(wanted[pair]-q) - (1-missed)*q*(surprise[pair]-float32(mean)))
			force[2*i] += f * dx
			force[2*i+1] += f * dy
			force[2*j] -= f * dx
			force[2*j+1] -= f * dy
		})
		step(places, force, speed, gain, 0.8)
		centre(places)
	}
	return nil
}

// eachPair visits each pair of points once, in order, with its number and the vector from the second to the first.
func eachPair(n int, places []float32, visit func(pair, i, j int, dx, dy float32)) {
	pair := 0
	for i := range n {
		x, y := places[2*i], places[2*i+1]
		for j := i + 1; j < n; j++ {
			visit(pair, i, j, x-places[2*j], y-places[2*j+1])
			pair++
		}
	}
}

// dense returns the weights of all pairs, in the order of eachPair. Points that are not neighbours have hardly any.
func (s *affinities) dense(n int) []float32 {
	all := make([]float32, n*(n-1)/2)
	for i := range all {
		all[i] = unlikeness
	}
	for i := range n {
		for k := s.first[i]; k < s.first[i+1]; k++ {
			if j := int(s.to[k]); j > i {
				all[i*n-i*(i+1)/2+j-i-1] = max(s.weight[k], unlikeness)
			}
		}
	}
	return all
}

// step moves points against their forces, with momentum: faster while it goes downhill.
func step(places, force, speed, gain []float32, momentum float32) {
	rate := max(float32(len(places)/2)/exaggeration, 40)
	for at, f := range force {
		if (f > 0) == (speed[at] < 0) {
			gain[at] += 0.2 // it still goes downhill: the force is the gradient, which it moves against
		} else {
			gain[at] = max(gain[at]*0.8, 0.01)
		}
		speed[at] = momentum*speed[at] - rate*gain[at]*4*f
		places[at] += speed[at]
	}
}
