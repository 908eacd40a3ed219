package index

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/souvenir-ai/souvenir/internal/simd"
)

// Means computes, for each memory of rows, the common direction of its passages: the sum of their vectors of a
// size, scaled to unit length. It writes it to the same place in means, and reports which memories have one.
// Usable selects the partitions whose vectors may be compared with each other.
func (ix *Index) Means(rows []int64, size int, usable func(partition int64) bool, means []float32) (found []bool) {
	found = make([]bool, len(rows))
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	for i, row := range rows {
		m := ix.memories.get(row)
		if m == nil || !usable(m.partition.id) {
			continue
		}
		vectors := m.partition.findMatrix(size)
		if vectors == nil {
			continue
		}
		mean := means[i*size : (i+1)*size]
		for slot := m.first; slot < m.first+m.count; slot++ {
			if at, ok := vectors.find(slot); ok {
				AddTo(mean, vectors.row(at))
			}
		}
		found[i] = Unit(mean)
	}
	return found
}

// AddTo adds a vector to another one of its size.
func AddTo(sum, v []float32) {
	v = v[:len(sum)]
	for i := range sum {
		sum[i] += v[i]
	}
}

// Unit scales a vector to unit length; it reports false for one that has no direction.
func Unit(v []float32) bool {
	n := length(v)
	if n == 0 || math.IsNaN(n) || math.IsInf(n, 0) {
		return false
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / n)
	}
	return true
}

// Pair is two similar vectors, by their places.
type Pair struct {
	A, B   int // A is the lower one, see Nearest
	Cosine float32
}

// rowsAtOnce and tileRows divide the work of Pairs: a tile of vectors stays in the processor's cache while some
// rows are compared with it.
const (
	rowsAtOnce = 16
	tileRows   = 256
)

// Pairs returns which of some vectors of unit length and one size, stored one after another, are similar: each
// with its most similar others, at most k, of at least a given cosine. They are in the order of their places. The
// error is the context's.
func Pairs(ctx context.Context, vectors []float32, size, k int, least float32) ([]Pair, error) {
	n := len(vectors) / size
	if n < 2 || k <= 0 {
		return nil, ctx.Err()
	}
	near := make([]closest, n)
	for i := range near {
		near[i].floor.Store(math.Float32bits(least))
	}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), (n+rowsAtOnce-1)/rowsAtOnce) {
		workers.Go(func() {
			dot := simd.DotFloats
			for ctx.Err() == nil {
				first := int(next.Add(rowsAtOnce)) - rowsAtOnce
				if first >= n {
					return
				}
				for tile := first; tile < n; tile += tileRows {
					for a := first; a < min(first+rowsAtOnce, n); a++ {
						row := vectors[a*size : (a+1)*size]
						for b := max(tile, a+1); b < min(tile+tileRows, n); b++ {
							cosine := dot(row, vectors[b*size:(b+1)*size])
							near[a].offer(b, cosine, k)
							near[b].offer(a, cosine, k)
						}
					}
				}
			}
		})
	}
	workers.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var pairs []Pair
	for a := range near {
		for _, o := range near[a].list {
			// A pair that is among the closest of both is reported once.
			if o.place > a || !slices.ContainsFunc(near[o.place].list, func(back other) bool { return back.place == a }) {
				pairs = append(pairs, Pair{min(a, o.place), max(a, o.place), min(o.cosine, 1)})
			}
		}
	}
	slices.SortFunc(pairs, func(p, q Pair) int {
		if p.A != q.A {
			return p.A - q.A
		}
		return p.B - q.B
	})
	return pairs, nil
}

// Nearest returns, for each of some of the vectors, the most similar one among others, as the second one of a pair. It
// makes at most about a million comparisons, with every so many of the others.
func Nearest(vectors []float32, size int, some, others []int) []Pair {
	const most = 1 << 20
	pairs, every := make([]Pair, len(some)), 1+len(some)*len(others)/most
	for i, a := range some {
		pairs[i] = Pair{a, -1, -2}
		for at := 0; at < len(others); at += every {
			b := others[at]
			if cosine := simd.DotFloats(vectors[a*size:(a+1)*size], vectors[b*size:(b+1)*size]); cosine > pairs[i].Cosine {
				pairs[i].B, pairs[i].Cosine = b, cosine
			}
		}
	}
	return pairs
}

// closest are the vectors most similar to one, the best first; of equal ones the lower place first.
type closest struct {
	floor atomic.Uint32 // bits of the cosine below which nothing counts
	mu    sync.Mutex
	list  []other
}

type other struct {
	place  int
	cosine float32
}

func (c *closest) offer(place int, cosine float32, k int) {
	if !(cosine >= math.Float32frombits(c.floor.Load())) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at, _ := slices.BinarySearchFunc(c.list, other{place, cosine}, func(a, b other) int {
		switch {
		case a.cosine > b.cosine:
			return -1
		case a.cosine < b.cosine:
			return 1
		}
		return a.place - b.place
	})
	if at >= k {
		return
	}
	c.list = slices.Insert(c.list, at, other{place, cosine})
	if len(c.list) >= k {
		c.list = c.list[:k]
		c.floor.Store(math.Float32bits(c.list[k-1].cosine))
	}
}
