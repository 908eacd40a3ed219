package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// pack returns the layout described in packed.go.
func pack(codes []byte) []byte {
	packed := make([]byte, len(codes)/2)
	for i, c := range codes {
		block, place := i/Width, i%Width
		at := block*Width/2 + place%(Width/2)
		if place < Width/2 {
			packed[at] |= c
		} else {
			packed[at] |= c << 4
		}
	}
	return packed
}

// TestPackedRowsAgreeWithTheLayout compares both ways with the packed numbers, up to the ends of the range.
func TestPackedRowsAgreeWithTheLayout(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, width := range []int{0, Width, 2 * Width, 8 * Width, 11 * Width} {
		var values Values
		for i := range values {
			values[i] = int8(random.IntN(256) - 128)
		}
		values[3], values[12] = math.MinInt8, math.MaxInt8
		codes, want := make([]byte, width), make([]int8, width)
		sums, plainSums, wantSums := make([]float32, width), make([]float32, width), make([]float32, width)
		scale := float32(random.NormFloat64())
		for i := range codes {
			codes[i] = byte(random.IntN(16))
			want[i] = values[codes[i]]
			sums[i] = float32(random.NormFloat64())
			plainSums[i] = sums[i]
			product := scale * float32(want[i])
			wantSums[i] = sums[i] + float32(product)
		}
		packed := pack(codes)
		got, plain := make([]int8, width), make([]int8, width)
		Unpack(got, packed, &values)
		UnpackPlain(plain, packed, &values)
		if !slices.Equal(got, want) || !slices.Equal(plain, want) {
			t.Errorf("%d numbers: %v and %v, want %v", width, got, plain, want)
		}
		AddPacked(sums, packed, &values, scale)
		AddPackedPlain(plainSums, packed, &values, scale)
		if !slices.Equal(sums, wantSums) || !slices.Equal(plainSums, wantSums) {
			t.Errorf("sums of %d numbers: %v and %v, want %v", width, sums, plainSums, wantSums)
		}
	}
}

func BenchmarkPacked(b *testing.B) {
	row, sum, packed, values := make([]int8, 256), make([]float32, 256), make([]byte, 128), &Values{1, 2, 3}
	for name, unpack := range map[string]func([]int8, []byte, *Values){"fastest": Unpack, "plain": UnpackPlain} {
		b.Run("unpack/"+name, func(b *testing.B) {
			for b.Loop() {
				unpack(row, packed, values)
			}
		})
	}
	for name, add := range map[string]func([]float32, []byte, *Values, float32){"fastest": AddPacked,
		"plain": AddPackedPlain} {
		b.Run("add/"+name, func(b *testing.B) {
			for b.Loop() {
				add(sum, packed, values, 0.5)
			}
		})
	}
}
