package index_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
)

func TestRowSetHasTheRowsItWasMadeOf(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	lists := [][]int64{nil, {7}, {0, math.MaxInt64}, {math.MinInt64, math.MaxInt64}, {-64, -1, 0, 63, 64}, {63, 64, 127}}
	for _, one := range []int{1, 3, 40, 200} { // one of this many rows, as bits and as a list
		var list []int64
		for row := range 20_000 {
			if random.IntN(one) == 0 {
				list = append(list, int64(row)+1_000_000)
			}
		}
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		lists = append(lists, list)
	}
	for _, list := range lists {
		given, has := slices.Sorted(slices.Values(list)), map[int64]bool{}
		set := index.NewRowSet(slices.Clone(list))
		if got := slices.Collect(set.All()); !slices.Equal(got, given) || set.Len() != len(given) {
			t.Fatalf("got %d rows: %v, want %d: %v", set.Len(), got, len(given), given)
		}
		for range set.All() {
			break // it must stop
		}
		asked := []int64{math.MinInt64, -65, -1, 0, 1, 7, 62, 63, 64, 65, 128, 1_000_000, 1_100_000, math.MaxInt64}
		for _, row := range given {
			has[row] = true
			asked = append(asked, row-1, row, row+1)
		}
		for _, row := range asked {
			if got := set.Has(row); got != has[row] {
				t.Fatalf("Has(%d) = %t in a set of %d rows, want %t", row, got, len(given), has[row])
			}
		}
		if most := 80 + 16*len(given); set.Bytes() > most+8 {
			t.Fatalf("%d rows take %d bytes, want at most %d", len(given), set.Bytes(), most)
		}
	}
}
