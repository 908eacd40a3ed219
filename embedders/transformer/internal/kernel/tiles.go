package kernel

import "unsafe"

// tile is a product of a few rows of a with a panel of b: c = a*b + bias. The assembly reads it by offsets.
type tile struct {
	a       unsafe.Pointer // float32
	strideA uintptr        // bytes from one row to the next, like the other strides
	b       unsafe.Pointer // float32: for each number of a row of a, a row of as many numbers as the tile is wide
	strideB uintptr
	c       unsafe.Pointer // float32
	strideC uintptr
	rounds  int            // numbers of a row of a
	bias    unsafe.Pointer // float32: as many as the tile is wide
	rows    int
}

// tile8 is a tile of quantised numbers: c = (a*b - shift) * scale of the row * scale of the column + bias.
type tile8 struct {
	a       unsafe.Pointer // int8 or int16
	strideA uintptr
	b       unsafe.Pointer // int8, or uint8: weights plus 128
	strideB uintptr
	c       unsafe.Pointer // float32
	strideC uintptr
	rounds  int // groups of numbers of a row of a
	bias    unsafe.Pointer
	rows    int
	columns unsafe.Pointer // float32: the columns' scales
	scales  unsafe.Pointer // float32: the rows' scales
	shifts  unsafe.Pointer // int32
}

// at returns the numbers at a byte offset from a pointer.
func at[T any](p unsafe.Pointer, bytes uintptr, n int) []T {
	return unsafe.Slice((*T)(unsafe.Add(p, bytes)), n)
}

// pairs calls found for each two rows; an odd last row is its own pair, and its results are written twice.
func pairs(rows int, found func(one, other uintptr)) {
	for row := 0; row < rows; row += 2 {
		found(uintptr(row), uintptr(min(row+1, rows-1)))
	}
}

// multiplyGo multiplies rows by a panel of 4 columns, two rows at once, so that the sums stay in registers.
func multiplyGo(t *tile) {
	bias := (*[4]float32)(t.bias)
	pairs(t.rows, func(one, other uintptr) {
		x := at[float32](t.a, one*t.strideA, t.rounds)
		y := at[float32](t.a, other*t.strideA, t.rounds)[:len(x)]
		s0, s1, s2, s3 := bias[0], bias[1], bias[2], bias[3]
		r0, r1, r2, r3 := s0, s1, s2, s3
		for i := range x {
			b := (*[4]float32)(unsafe.Add(t.b, uintptr(i)*t.strideB))
			u, v := x[i], y[i]
			s0 += u * b[0]
			r0 += v * b[0]
			s1 += u * b[1]
			r1 += v * b[1]
			s2 += u * b[2]
			r2 += v * b[2]
			s3 += u * b[3]
			r3 += v * b[3]
		}
		*(*[4]float32)(unsafe.Add(t.c, other*t.strideC)) = [4]float32{r0, r1, r2, r3}
		*(*[4]float32)(unsafe.Add(t.c, one*t.strideC)) = [4]float32{s0, s1, s2, s3}
	})
}

// multiply8Go is multiplyGo for words and int8 weights, two numbers a round.
func multiply8Go(t *tile8) {
	bias, columns := (*[4]float32)(t.bias), (*[4]float32)(t.columns)
	scales := at[float32](t.scales, 0, t.rows)
	pairs(t.rows, func(one, other uintptr) {
		x := at[int16](t.a, one*t.strideA, 2*t.rounds)
		y := at[int16](t.a, other*t.strideA, 2*t.rounds)[:len(x)]
		var s0, s1, s2, s3, r0, r1, r2, r3 int32
		for i := 0; i+1 < len(x); i += 2 {
			b := (*[8]int8)(unsafe.Add(t.b, uintptr(i/2)*t.strideB))
			u, v, p, q := int32(x[i]), int32(x[i+1]), int32(y[i]), int32(y[i+1])
			b0, b1 := int32(b[0]), int32(b[1])
			s0 += u*b0 + v*b1
			r0 += p*b0 + q*b1
			b0, b1 = int32(b[2]), int32(b[3])
			s1 += u*b0 + v*b1
			r1 += p*b0 + q*b1
			b0, b1 = int32(b[4]), int32(b[5])
			s2 += u*b0 + v*b1
			r2 += p*b0 + q*b1
			b0, b1 = int32(b[6]), int32(b[7])
			s3 += u*b0 + v*b1
			r3 += p*b0 + q*b1
		}
		write := func(row uintptr, sums [4]int32) {
			c := (*[4]float32)(unsafe.Add(t.c, row*t.strideC))
			for j, sum := range sums {
				c[j] = float32(sum)*(scales[row]*columns[j]) + bias[j]
			}
		}
		write(other, [4]int32{r0, r1, r2, r3})
		write(one, [4]int32{s0, s1, s2, s3})
	})
}
