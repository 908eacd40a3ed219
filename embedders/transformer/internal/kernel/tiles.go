package kernel

import "unsafe"

// tile is a product of a few rows of a with a panel of b: c = a*b + bias. The assembly reads it by offsets.
type tile struct {
	a       unsafe.Pointer // float32
	strideA uintptr        // bytes from one row to the next; so are the others
	b       unsafe.Pointer // float32: for each number of a row of a, a row of as many numbers as the tile is wide
	strideB uintptr
	c       unsafe.Pointer // float32
	strideC uintptr
	rounds  int            // numbers of a row of a
	bias    unsafe.Pointer // float32: as many as the tile is wide
	rows    int
}

// tile8 is the same of quantised numbers: c = (a*b - shift) * scale of the row * scale of the column + bias.
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

// at returns the numbers at a pointer and some bytes on.
func at[T any](p unsafe.Pointer, bytes uintptr, n int) []T {
	return unsafe.Slice((*T)(unsafe.Add(p, bytes)), n)
}

// multiplyGo multiplies 4 rows, or fewer, by a panel of 8 columns.
func multiplyGo(t *tile) {
	bias := (*[8]float32)(t.bias)
	for row := 0; row < t.rows; row++ {
		a := at[float32](t.a, uintptr(row)*t.strideA, t.rounds)
		s := *bias
		for i, x := range a {
			b := (*[8]float32)(unsafe.Add(t.b, uintptr(i)*t.strideB))
			s[0] += x * b[0]
			s[1] += x * b[1]
			s[2] += x * b[2]
			s[3] += x * b[3]
			s[4] += x * b[4]
			s[5] += x * b[5]
			s[6] += x * b[6]
			s[7] += x * b[7]
		}
		*(*[8]float32)(unsafe.Add(t.c, uintptr(row)*t.strideC)) = s
	}
}

// multiply8Go does so with words and int8 weights, two numbers a round.
func multiply8Go(t *tile8) {
	bias, columns := (*[8]float32)(t.bias), (*[8]float32)(t.columns)
	scales := at[float32](t.scales, 0, t.rows)
	for row := 0; row < t.rows; row++ {
		a := at[int16](t.a, uintptr(row)*t.strideA, 2*t.rounds)
		var sums [8]int32
		for i := 0; i < t.rounds; i++ {
			b := (*[16]int8)(unsafe.Add(t.b, uintptr(i)*t.strideB))
			x, y := int32(a[2*i]), int32(a[2*i+1])
			for j := range sums {
				sums[j] += x*int32(b[2*j]) + y*int32(b[2*j+1])
			}
		}
		c := (*[8]float32)(unsafe.Add(t.c, uintptr(row)*t.strideC))
		for j, sum := range sums {
			c[j] = float32(sum)*(scales[row]*columns[j]) + bias[j]
		}
	}
}
