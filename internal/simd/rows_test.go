package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestDotRowsAgreesWithTheFormula compares both ways with the plain sum, up to the ends of the ranges.
func TestDotRowsAgreesWithTheFormula(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, width := range []int{Width, 2 * Width, 8 * Width, 11 * Width} {
		for _, count := range []int{0, 1, 2, 7} {
			rows, vector := make([]int8, width*count), make([]int16, width)
			for i := range rows {
				rows[i] = int8(random.IntN(256) - 128)
			}
			for i := range vector {
				vector[i] = int16(random.IntN(1<<13) - 1<<12)
			}
			if count > 0 && width == Width {
				for i := range vector {
					rows[i], vector[i] = math.MinInt8, math.MinInt16
				}
			}
			want := make([]int32, count)
			for i := range want {
				for j, x := range vector {
					want[i] += int32(rows[i*width+j]) * int32(x)
				}
			}
			got, plain := make([]int32, count), make([]int32, count)
			DotRows(rows, vector, got)
			DotRowsPlain(rows, vector, plain)
			if !slices.Equal(got, want) || !slices.Equal(plain, want) {
				t.Errorf("%d rows of %d: %v and %v, want %v", count, width, got, plain, want)
			}
		}
	}
}

// TestDotVectorsAgreesWithTheFormula does so for one row and several vectors.
func TestDotVectorsAgreesWithTheFormula(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, width := range []int{Width, 2 * Width, 8 * Width, 11 * Width} {
		for _, count := range []int{0, Together, 2 * Together, 5 * Together} {
			row, vectors := make([]int8, width), make([]int16, width*count)
			for i := range row {
				row[i] = int8(random.IntN(256) - 128)
			}
			for i := range vectors {
				vectors[i] = int16(random.IntN(256) - 128)
			}
			want := make([]int32, count)
			for i := range want {
				for j, x := range row {
					want[i] += int32(x) * int32(vectors[i*width+j])
				}
			}
			got, plain := make([]int32, count), make([]int32, count)
			DotVectors(row, vectors, got)
			DotVectorsPlain(row, vectors, plain)
			if !slices.Equal(got, want) || !slices.Equal(plain, want) {
				t.Errorf("%d vectors of %d: %v and %v, want %v", count, width, got, plain, want)
			}
		}
	}
}

func TestPrefetchChangesNothing(t *testing.T) {
	row := slices.Repeat([]byte{1, 254}, 100)
	Prefetch(row)
	Prefetch(row[:1])
	Prefetch(nil)
	if !slices.Equal(row, slices.Repeat([]byte{1, 254}, 100)) {
		t.Errorf("a row has changed: got %v, want 1 and 254 in turn", row)
	}
}

func BenchmarkDotVectors(b *testing.B) {
	row, vectors, products := make([]int8, 256), make([]int16, 256*8), make([]int32, 8)
	for b.Loop() {
		DotVectors(row, vectors, products)
	}
}

func BenchmarkDotRows(b *testing.B) {
	rows, vector, products := make([]int8, 256*8), make([]int16, 256), make([]int32, 8)
	for name, dots := range map[string]func([]int8, []int16, []int32){"fastest": DotRows, "plain": DotRowsPlain} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				dots(rows, vector, products)
			}
		})
	}
}

// TestDotFloatsAgreesForAllSizes covers every remainder of the loops' blocks, on slices that begin and end anywhere.
func TestDotFloatsAgreesForAllSizes(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for size := range 200 {
		a, b := make([]float32, size+4)[1:size+1], make([]float32, size+8)[3:size+3]
		want := 0.0
		for i := range a {
			a[i], b[i] = random.Float32()-0.5, random.Float32()-0.5
			want += float64(a[i]) * float64(b[i])
		}
		for name, got := range map[string]float32{"fast": DotFloats(a, b), "plain": DotFloatsPlain(a, b)} {
			if math.Abs(float64(got)-want) > 1e-5 {
				t.Errorf("%s, %d numbers: got %v, want %v", name, size, got, want)
			}
		}
	}
}
