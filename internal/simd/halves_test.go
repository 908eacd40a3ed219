package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestHalvesAgreeWithTheFormula splits rows and joins them again, and compares both ways of multiplying the upper
// halves with the plain sum, up to the ends of the ranges.
func TestHalvesAgreeWithTheFormula(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, width := range []int{HalvesWidth, 2 * HalvesWidth, 4 * HalvesWidth, 17 * HalvesWidth} {
		for _, count := range []int{0, 1, 2, 7} {
			rows, vector := make([]int8, width*count), make([]int8, width)
			for i := range rows {
				rows[i] = int8(random.IntN(256) - 128)
			}
			for i := range vector {
				vector[i] = int8(random.IntN(255) - 127)
			}
			if count == 7 { // the largest sums, of either sign
				for i := range rows {
					rows[i] = math.MaxInt8
				}
				for i := range vector {
					vector[i] = int8(127 * (1 - 2*(width/HalvesWidth%2)))
				}
			}
			upper, lower := make([]byte, len(rows)/2), make([]byte, len(rows)/2)
			want := make([]int32, count)
			for i := range want {
				row := rows[i*width : (i+1)*width]
				Split(row, upper[i*width/2:], lower[i*width/2:])
				for j, x := range row {
					want[i] += (int32(x) + 128) / 16 * int32(vector[j])
				}
			}
			joined, plain := make([]int8, len(rows)), make([]int8, len(rows))
			Join(joined, upper, lower)
			JoinPlain(plain, upper, lower)
			if !slices.Equal(joined, rows) || !slices.Equal(plain, rows) {
				t.Errorf("%d rows of %d: %v and %v, want %v", count, width, joined, plain, rows)
			}
			got, also := make([]int32, count), make([]int32, count)
			DotHalves(upper, vector, got)
			DotHalvesPlain(upper, vector, also)
			if !slices.Equal(got, want) || !slices.Equal(also, want) {
				t.Errorf("%d rows of %d: %v and %v, want %v", count, width, got, also, want)
			}
		}
	}
}

// BenchmarkFirstLook compares what a search first reads of each vector with what it read before there were halves.
func BenchmarkFirstLook(b *testing.B) {
	const rows, width = 100_000, 256
	codes, vector, products := make([]int8, rows*width), make([]int16, width), make([]int32, rows)
	halves, short := make([]byte, rows*width/2), make([]int8, width)
	for i := range codes { // unwritten pages would all be the same one
		codes[i] = int8(i)
	}
	for i := range halves {
		halves[i] = byte(i)
	}
	b.Run("codes", func(b *testing.B) {
		for b.Loop() {
			DotRows(codes, vector, products)
		}
	})
	b.Run("halves", func(b *testing.B) {
		for b.Loop() {
			DotHalves(halves, short, products)
		}
	})
}
