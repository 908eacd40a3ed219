//go:build !amd64

package simd

// Fast reports whether the functions here use AVX2 and FMA, and are many times as fast as loops.
func Fast() bool { return false }

func dotRowsFast(rows []int8, vector []int16, products []int32) { DotRowsPlain(rows, vector, products) }

func dotVectorsFast(row []int8, vectors []int16, products []int32) {
	DotVectorsPlain(row, vectors, products)
}

func unpackFast(row []int8, packed []byte, values *Values) { UnpackPlain(row, packed, values) }

func addPackedFast(sum []float32, packed []byte, values *Values, scale float32) {
	AddPackedPlain(sum, packed, values, scale)
}

func joinFast(row []int8, upper, lower []byte) { JoinPlain(row, upper, lower) }

func dotHalvesFast(rows []byte, vector []int8, products []int32) {
	DotHalvesPlain(rows, vector, products)
}

func dotFloatsFast(a, b []float32) float32 { return DotFloatsPlain(a, b) }

// Prefetch asks the processor to load bytes that will be read soon, if it can.
func Prefetch([]byte) {}
