package simd

// A row of numbers of 8 bits can be kept as two packed rows: the upper halves of the numbers, and the lower ones. The
// upper halves alone are an approximation of the numbers, and half as many bytes to read.
//
// A half is 0 to 15: a number is 16 * upper + lower - 128. Of each [HalvesWidth] numbers, the halves of the first 32
// are in the low bits of 32 bytes, those of the others in the high bits of the same bytes.

// HalvesWidth divides the number of numbers in rows of halves.
const HalvesWidth = 64

// Split writes the halves of the numbers of a row.
func Split(row []int8, upper, lower []byte) {
	for i, x := range row {
		u := uint8(x) ^ 0x80
		at, shift := i/HalvesWidth*HalvesWidth/2+i%(HalvesWidth/2), i%HalvesWidth/(HalvesWidth/2)*4
		upper[at] = upper[at]&^(15<<shift) | u>>4<<shift
		lower[at] = lower[at]&^(15<<shift) | u&15<<shift
	}
}

// Join writes the numbers of a row whose halves are given.
func Join(row []int8, upper, lower []byte) {
	if Fast() {
		joinFast(row, upper, lower)
		return
	}
	JoinPlain(row, upper, lower)
}

// JoinPlain is [Join] in plain Go.
func JoinPlain(row []int8, upper, lower []byte) {
	for len(row) >= HalvesWidth && len(upper) >= HalvesWidth/2 && len(lower) >= HalvesWidth/2 {
		first, second := row[:HalvesWidth/2], row[HalvesWidth/2:HalvesWidth]
		for i := range first {
			first[i] = int8(upper[i]<<4 | lower[i]&15 ^ 0x80)
			second[i] = int8(upper[i]&0xf0 | lower[i]>>4 ^ 0x80)
		}
		row, upper, lower = row[HalvesWidth:], upper[HalvesWidth/2:], lower[HalvesWidth/2:]
	}
}

// DotHalves writes the inner products of a vector with consecutive rows of halves to products. The width of the vector
// is a multiple of [HalvesWidth], and no number in it is the lowest one.
func DotHalves(rows []byte, vector []int8, products []int32) {
	if Fast() {
		dotHalvesFast(rows, vector, products)
		return
	}
	DotHalvesPlain(rows, vector, products)
}

// DotHalvesPlain is [DotHalves] in plain Go.
func DotHalvesPlain(rows []byte, vector []int8, products []int32) {
	for i := range products {
		row, v, sum := rows[i*len(vector)/2:(i+1)*len(vector)/2], vector, int32(0)
		for len(row) >= HalvesWidth/2 && len(v) >= HalvesWidth {
			first, second := v[:HalvesWidth/2], v[HalvesWidth/2:HalvesWidth]
			for j, both := range row[:HalvesWidth/2] {
				sum += int32(both&15)*int32(first[j]) + int32(both>>4)*int32(second[j])
			}
			row, v = row[HalvesWidth/2:], v[HalvesWidth:]
		}
		products[i] = sum
	}
}
