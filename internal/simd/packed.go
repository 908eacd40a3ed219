package simd

// A packed row holds four bits a number: the place of the number among sixteen values. Of each [Width] numbers the
// first half are in the low bits of [Width]/2 bytes, the second half in the high bits of the same bytes, so that one
// look-up instruction finds sixteen of them.

// Values are the numbers that the codes of packed rows stand for.
type Values [16]int8

// Unpack writes the numbers of a packed row. Their count is a multiple of [Width], and twice that of the bytes.
func Unpack(row []int8, packed []byte, values *Values) {
	if Fast() {
		unpackFast(row, packed, values)
		return
	}
	UnpackPlain(row, packed, values)
}

// UnpackPlain is [Unpack] in plain Go.
func UnpackPlain(row []int8, packed []byte, values *Values) {
	for len(row) >= Width && len(packed) >= Width/2 {
		low, high, codes := (*[Width / 2]int8)(row), (*[Width / 2]int8)(row[Width/2:]), (*[Width / 2]byte)(packed)
		for i, c := range codes {
			low[i], high[i] = values[c&15], values[c>>4]
		}
		row, packed = row[Width:], packed[Width/2:]
	}
}

// AddPacked adds scale times the numbers of a packed row to sum, which is as long as the row. Each product is rounded
// before it is added, so that each machine returns the same.
func AddPacked(sum []float32, packed []byte, values *Values, scale float32) {
	if Fast() {
		addPackedFast(sum, packed, values, scale)
		return
	}
	AddPackedPlain(sum, packed, values, scale)
}

// AddPackedPlain is [AddPacked] in plain Go.
func AddPackedPlain(sum []float32, packed []byte, values *Values, scale float32) {
	var scaled [len(values)]float32
	for i, x := range values {
		scaled[i] = scale * float32(x)
	}
	for len(sum) >= Width && len(packed) >= Width/2 {
		low, high, codes := (*[Width / 2]float32)(sum), (*[Width / 2]float32)(sum[Width/2:]), (*[Width / 2]byte)(packed)
		for i, c := range codes {
			low[i] += scaled[c&15]
			high[i] += scaled[c>>4]
		}
		sum, packed = sum[Width:], packed[Width/2:]
	}
}
