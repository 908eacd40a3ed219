package index

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// coarseDotsPlain is the simplest implementation of coarseDots.
func coarseDotsPlain(codes []int8, vector []int16, products []int32) {
	for i := range products {
		row := codes[i*len(vector) : (i+1)*len(vector)]
		sum := int32(0)
		for j, x := range vector {
			sum += int32(row[j]) * int32(x)
		}
		products[i] = sum
	}
}

// odd makes vectors that are difficult for 8 bits: with one number far larger than the others, of zeros, far too long
// or too short, and ordinary ones.
func (g *generator) odd(size int) []float32 {
	v := g.unit(size)
	factor := float32(1)
	switch g.IntN(8) {
	case 0:
		v[g.IntN(size)] = 50
	case 1:
		clear(v)
	case 2:
		factor = 1e15
	case 3:
		factor = 1e-20
	case 4:
		factor = 1e-40 // where float32 has few bits left
	case 5:
		for i := range v {
			v[i] = 1 / float32(math.Sqrt(float64(size)))
		}
	}
	for i := range v {
		v[i] *= factor
	}
	return v
}

// coarses are the ways in which a machine may compare codes; nil means without codes.
func coarses() map[string]coarseDots {
	return map[string]coarseDots{"fastest": fastestCoarse(), "plain": coarseDotsPlain, "none": nil}
}

func TestCoarseComparisonsAgree(t *testing.T) {
	fastest := fastestCoarse()
	if fastest == nil {
		t.Log("this machine has one way only")
		return
	}
	g := newGenerator(1)
	for width := 32; width <= 320; width += 32 {
		for rows := range 9 {
			codes, vector := make([]int8, rows*width), make([]int16, width)
			most := min(math.MaxInt16, math.MaxInt32/(-math.MinInt8*width))
			for i := range codes {
				codes[i] = int8(g.IntN(255) - 127)
			}
			for i := range vector {
				vector[i] = int16(g.IntN(2*most+1) - most)
			}
			if rows == 8 { // the largest sums
				for i := range codes {
					codes[i] = math.MaxInt8
				}
				for i := range vector {
					vector[i] = int16(most)
				}
			}
			got, want := make([]int32, rows+1), make([]int32, rows+1)
			got[rows], want[rows] = 99, 99 // must stay unchanged
			fastest(codes, vector, got[:rows])
			coarseDotsPlain(codes, vector, want[:rows])
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("width %d, row %d of %d: %d, want %d", width, i, rows, got[i], want[i])
				}
			}
		}
	}
}

// TestBoundsHold compares the upper bounds of a block with the products themselves, and checks that they are useful.
func TestBoundsHold(t *testing.T) {
	for name, coarse := range coarses() {
		for i, size := range []int{1, 2, 31, 33, 256, 1000} {
			if !longtest.Part(i, 1, 3) {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", name, size), func(t *testing.T) {
				g := newGenerator(uint64(size))
				ix := New()
				ix.coarse = coarse
				odd, unit := newMatrix(size, coarse != nil), newMatrix(size, coarse != nil)
				for i := range uint32(blockRows + 100) {
					odd.add(i, g.odd(size))
					unit.add(i, g.unit(size))
				}
				var c comparison
				var bounds [blockRows]float32
				for range longtest.Size(20, 2) {
					for _, vector := range [][]float32{g.odd(size), g.unit(size), odd.row(g.IntN(600))} {
						c.begin(ix, vector)
						for _, m := range []*matrix{odd, unit} {
							most := c.most(m)
							for block := range m.blocks() {
								c.block(m, block, bounds[:])
								for i := block * blockRows; i < min((block+1)*blockRows, len(m.slots)); i++ {
									product, bound := c.exact(m, i), bounds[i%blockRows]
									if !(product <= bound && product <= most) {
										t.Fatalf("row %d: %v, but at most %v, and %v for all; want it below both bounds", i, product,
											bound, most)
									}
									closer := c.rowBound(m, i)
									if rough := c.roughRow(m, i); rough != bound || !(product <= closer) {
										t.Fatalf("row %d: %v, but at most %v; alone at most %v, in a block %v; want it below the "+
											"bounds", i, product, closer, rough, bound)
									}
									if m == unit && math.Abs(c.length-1) < 1e-3 && (bound-product > 0.4 || closer-product > 0.03) {
										t.Fatalf("row %d: %v is said to be at most %v and %v, want closer bounds", i, product, bound,
											closer)
									}
								}
							}
						}
					}
				}
			})
		}
	}
}

// TestCodesMatchVectorsToAFewMillionths compares the inner products of codes with those of the floats, and the ten
// nearest vectors by each.
func TestCodesMatchVectorsToAFewMillionths(t *testing.T) {
	const queries, nearest = 50, 10
	n := longtest.Size(3000, 300)
	for i, size := range []int{64, 256, 1000} {
		if !longtest.Part(i, 1, 2) {
			continue
		}
		g := newGenerator(uint64(size))
		ix := New()
		ix.coarse = coarseDotsPlain
		m := newMatrix(size, true)
		vectors := make([][]float32, n)
		for i := range vectors {
			vectors[i] = g.unit(size)
			if i%3 == 1 { // near to another one
				for j, x := range vectors[i-1] {
					vectors[i][j] = x + vectors[i][j]/4
				}
				Unit(vectors[i])
			}
			m.add(uint32(i), vectors[i])
		}
		var c comparison
		square, worst, same := 0.0, 0.0, 0
		for range queries {
			q := vectors[g.IntN(n)]
			c.begin(ix, q)
			exact, floats := make([]Hit, n), make([]Hit, n)
			for i, v := range vectors {
				product := 0.0
				for j, x := range v {
					product += float64(x) * float64(q[j])
				}
				exact[i] = Hit{Row: int64(i), Score: c.exact(m, i)}
				floats[i] = Hit{Row: int64(i), Score: float32(product)}
				off := math.Abs(float64(exact[i].Score) - product)
				square, worst = square+off*off, max(worst, off)
			}
			among := map[int64]bool{}
			for _, list := range [][]Hit{exact, floats} {
				slices.SortFunc(list, func(a, b Hit) int { return CompareHits(&a, &b) })
			}
			for _, h := range floats[:nearest] {
				among[h.Row] = true
			}
			for _, h := range exact[:nearest] {
				if among[h.Row] {
					same++
				}
			}
		}
		if mean := math.Sqrt(square / float64(n*queries)); mean > 6e-6 || worst > 6e-5 {
			t.Errorf("size %d: products are off by %.2g, %.2g at most; want 6e-6 and 6e-5", size, mean, worst)
		}
		if recall := float64(same) / (queries * nearest); recall < 0.99 {
			t.Errorf("size %d: %.3f of the nearest ten are found, want at least 0.99", size, recall)
		}
	}
}

// TestShortVectorsAreDistinguished has vectors whose cosines with their neighbours differ from 1 by less than six
// millionths. Codes confuse them.
func TestShortVectorsAreDistinguished(t *testing.T) {
	const n = 300
	for _, size := range []int{2, leastCoded - 1} {
		ix := New()
		ix.coarse = coarseDotsPlain
		angle := func(i int64) []float32 {
			v := make([]float32, size)
			v[0], v[size-1] = float32(math.Cos(float64(i)/n)), float32(math.Sin(float64(i)/n))
			return v
		}
		for i := range int64(n) {
			ix.Put(Memory{Row: i, Partition: 1, Entries: []Entry{entry(i, "", angle(i)...)}})
		}
		for i := range int64(n) {
			hits, _ := mustSearch(t, ix, Query{Partitions: []int64{1}, Vector: angle(i), Limit: 1})
			if got := rows(hits); !slices.Equal(got, []int64{i}) {
				t.Errorf("size %d: nearest to vector %d is %v, want itself", size, i, got)
			}
		}
	}
}

func TestLeastFindsTheEdge(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, edge := range []float32{-inf, -math.MaxFloat32, -1, -math.SmallestNonzeroFloat32, 0,
		math.SmallestNonzeroFloat32, 0.35, 1, math.MaxFloat32, inf} {
		if got := least(func(x float32) bool { return x >= edge }); got != edge {
			t.Errorf("least number from %v on is %v, want the same", edge, got)
		}
	}
	if got := least(func(float32) bool { return false }); got != inf {
		t.Errorf("least number of none is %v, want %v", got, inf)
	}
	if got := least(func(float32) bool { return true }); got != -inf {
		t.Errorf("least number of all is %v, want %v", got, -inf)
	}
}
