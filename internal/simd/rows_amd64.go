package simd

import "golang.org/x/sys/cpu"

var fast = cpu.X86.HasAVX2 && cpu.X86.HasFMA

// Fast reports whether the functions here use AVX2 and FMA, and are many times as fast as loops.
func Fast() bool { return fast }

func dotRowsFast(rows []int8, vector []int16, products []int32) {
	if len(products) == 0 || len(vector) == 0 {
		return
	}
	_ = rows[len(products)*len(vector)-1]
	dotRows(&rows[0], &vector[0], &products[0], len(products), len(vector))
}

// dotRows writes the inner products of a vector with rows of the same width, a multiple of 32. It needs AVX2.
//
//go:noescape
func dotRows(codes *int8, vector *int16, products *int32, rows, width int)

func dotVectorsFast(row []int8, vectors []int16, products []int32) {
	if len(products) == 0 || len(row) == 0 {
		return
	}
	_ = vectors[len(products)*len(row)-1]
	dotVectors(&row[0], &vectors[0], &products[0], len(products)/Together, len(row))
}

// dotVectors writes the inner products of a row with vectors of the same width, a multiple of 32, in groups of four. It
// needs AVX2.
//
//go:noescape
func dotVectors(row *int8, vectors *int16, products *int32, groups, width int)

func unpackFast(row []int8, packed []byte, values *Values) {
	if len(row) == 0 {
		return
	}
	_ = packed[len(row)/2-1]
	unpack(&row[0], &packed[0], values, len(row))
}

// unpack writes the numbers of a packed row; their count is a multiple of 32. It needs AVX2.
//
//go:noescape
func unpack(row *int8, packed *byte, values *Values, width int)

func addPackedFast(sum []float32, packed []byte, values *Values, scale float32) {
	if len(sum) == 0 {
		return
	}
	_ = packed[len(sum)/2-1]
	addPacked(&sum[0], &packed[0], values, scale, len(sum))
}

// addPacked adds the numbers of a packed row; their count is a multiple of 32. It needs AVX2.
//
//go:noescape
func addPacked(sum *float32, packed *byte, values *Values, scale float32, width int)

// Prefetch tells the processor that some bytes will be read soon, so that several rows are on their way at once.
func Prefetch(data []byte) {
	if len(data) > 0 {
		prefetch(&data[0], len(data))
	}
}

// prefetch fetches cache lines.
//
//go:noescape
func prefetch(data *byte, size int)

func joinFast(row []int8, upper, lower []byte) {
	if len(row) == 0 {
		return
	}
	_, _ = upper[len(row)/2-1], lower[len(row)/2-1]
	join(&row[0], &upper[0], &lower[0], len(row))
}

// join writes the numbers of a row from their halves; their count is a multiple of 64. It needs AVX2.
//
//go:noescape
func join(row *int8, upper, lower *byte, width int)

func dotHalvesFast(rows []byte, vector []int8, products []int32) {
	if len(products) == 0 || len(vector) == 0 {
		return
	}
	_ = rows[len(products)*len(vector)/2-1]
	dotHalves(&rows[0], &vector[0], &products[0], len(products), len(vector))
}

// dotHalves writes the inner products of a vector with rows of halves; its width is a multiple of 64. It needs AVX2.
//
//go:noescape
func dotHalves(halves *byte, vector *int8, products *int32, rows, width int)

func dotFloatsFast(a, b []float32) float32 {
	if len(a) == 0 {
		return 0
	}
	_ = b[len(a)-1]
	return dotFloats(&a[0], &b[0], len(a))
}

// dotFloats returns the inner product of n numbers. It needs AVX2 and FMA.
//
//go:noescape
func dotFloats(a, b *float32, n int) float32
