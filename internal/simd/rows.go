// Package simd computes inner products of small integers, with SIMD instructions where available.
package simd

// Width divides the width of all rows.
const Width = 32

// DotRows writes the inner products of a vector with consecutive rows of its width to products. It is a pure function
// of the numbers: each machine returns the same. The width is a multiple of [Width].
func DotRows(rows []int8, vector []int16, products []int32) {
	if Fast() {
		dotRowsFast(rows, vector, products)
		return
	}
	DotRowsPlain(rows, vector, products)
}

// DotRowsPlain is [DotRows] in plain Go, for rows of any width.
func DotRowsPlain(rows []int8, vector []int16, products []int32) {
	for i := range products {
		row, v := rows[i*len(vector):(i+1)*len(vector)], vector
		var s0, s1, s2, s3 int32 // independent sums, so that additions overlap
		for len(row) >= 4 && len(v) >= 4 {
			s0 += int32(row[0]) * int32(v[0])
			s1 += int32(row[1]) * int32(v[1])
			s2 += int32(row[2]) * int32(v[2])
			s3 += int32(row[3]) * int32(v[3])
			row, v = row[4:], v[4:]
		}
		for j := range v {
			s0 += int32(row[j]) * int32(v[j])
		}
		products[i] = s0 + s1 + s2 + s3
	}
}

// Together divides the number of vectors of [DotVectors].
const Together = 4

// DotVectors writes the inner products of a row with consecutive vectors of its width to products. The width is a
// multiple of [Width], the number of vectors a multiple of [Together].
func DotVectors(row []int8, vectors []int16, products []int32) {
	if Fast() {
		dotVectorsFast(row, vectors, products)
		return
	}
	DotVectorsPlain(row, vectors, products)
}

// DotVectorsPlain is [DotVectors] in plain Go, for rows of any width and any number of vectors.
func DotVectorsPlain(row []int8, vectors []int16, products []int32) {
	for i := range products {
		DotRowsPlain(row, vectors[i*len(row):(i+1)*len(row)], products[i:i+1])
	}
}
