package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestMarkAgreesWithTheFormula compares both ways on numbers that are often equal to the bound, or none.
func TestMarkAgreesWithTheFormula(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	marked, all := 0, 0
	for n := range 60 {
		numbers := make([]float32, 64*n)
		for i := range numbers {
			numbers[i] = float32(random.IntN(7) - 3)
			if random.IntN(10) == 0 {
				numbers[i] = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)),
					float32(math.Copysign(0, -1)), math.SmallestNonzeroFloat32}[random.IntN(5)]
			}
		}
		bound := []float32{-1, 0, math.SmallestNonzeroFloat32, 2, float32(math.Inf(1))}[n%5]
		got, want := make([]uint64, n), make([]uint64, n)
		highest, right := Mark(numbers, bound, got), MarkPlain(numbers, bound, want)
		if !slices.Equal(got, want) || highest != right {
			t.Fatalf("%v from %v on: got marks %b and highest %v, want %b and %v", numbers, bound, got, highest, want, right)
		}
		for i, x := range numbers {
			if set := want[i/64]>>(i%64)&1 == 1; set != (x >= bound) || x > right {
				t.Fatalf("number %v: marked %v, highest %v; want %v for the bound %v", x, set, right, x >= bound, bound)
			} else if set {
				marked++
			}
		}
		all += len(numbers)
	}
	if marked == 0 || marked == all {
		t.Errorf("%d of %d numbers were marked, want some", marked, all)
	}
}
