package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestMostAgreesWithTheFormula(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, width := range []int{Together, 2 * Together, 3 * Together, 8 * Together} {
		for _, count := range []int{0, 1, 2, 25, 200} {
			table := make([]float32, 40*width)
			for i := range table {
				table[i] = random.Float32()*2 - 1
				if random.IntN(50) == 0 {
					table[i] = float32(math.NaN())
				}
			}
			places := make([]uint32, count)
			for i := range places {
				places[i] = uint32(random.IntN(40))
			}
			start := make([]float32, width)
			for i := range start {
				start[i] = random.Float32()*2 - 1
			}
			want := slices.Clone(start)
			for i := range want {
				for _, place := range places {
					if x := table[int(place)*width+i]; x == x {
						want[i] = max(want[i], x)
					}
				}
			}
			got, plain := slices.Clone(start), slices.Clone(start)
			Most(table, places, got)
			MostPlain(table, places, plain)
			if !slices.Equal(got, want) || !slices.Equal(plain, want) {
				t.Errorf("%d rows of %d: %v and %v, want %v", count, width, got, plain, want)
			}
		}
	}
}
