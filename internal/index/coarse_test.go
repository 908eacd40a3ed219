package index

import (
	"fmt"
	"math"
	"testing"
)

// coarseDotsPlain is the plainest of coarseDots.
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

// odd makes vectors on which 8 bits are hard put: with a number far larger than the others, of zeros, far too long or
// too short, besides ordinary ones.
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

// coarses are the ways in which a machine may compare codes; nil is not to.
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
			got[rows], want[rows] = 99, 99 // not to be touched
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

// TestBoundsHold compares what a block says at most with the products themselves, and wants it to say something.
func TestBoundsHold(t *testing.T) {
	for name, coarse := range coarses() {
		for _, size := range []int{1, 2, 31, 33, 256, 1000} {
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
				for range 20 {
					for _, vector := range [][]float32{g.odd(size), g.unit(size), odd.row(g.IntN(600))} {
						c.begin(ix, vector)
						for _, m := range []*matrix{odd, unit} {
							most := c.most(m)
							for block := range m.rows.list {
								c.block(m, block, bounds[:])
								for i := block * blockRows; i < min((block+1)*blockRows, len(m.slots)); i++ {
									product, bound := c.exact(m, i), bounds[i%blockRows]
									if !(product <= bound && product <= most) {
										t.Fatalf("row %d: %v, but at most %v, and %v for all", i, product, bound, most)
									}
									if m == unit && math.Abs(c.length-1) < 1e-3 && bound-product > 0.03 {
										t.Fatalf("row %d: %v is said to be at most %v", i, product, bound)
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

func TestLeastFindsTheEdge(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, edge := range []float32{-inf, -math.MaxFloat32, -1, -math.SmallestNonzeroFloat32, 0,
		math.SmallestNonzeroFloat32, 0.35, 1, math.MaxFloat32, inf} {
		if got := least(func(x float32) bool { return x >= edge }); got != edge {
			t.Errorf("least number from %v on is %v", edge, got)
		}
	}
	if got := least(func(float32) bool { return false }); got != inf {
		t.Errorf("least number of none is %v, want %v", got, inf)
	}
	if got := least(func(float32) bool { return true }); got != -inf {
		t.Errorf("least number of all is %v, want %v", got, -inf)
	}
}
