package simd

import (
	"encoding/binary"
	"math/bits"
)

// Sieve selects the rows of 24 bytes that need a closer look: rows with its number, and rows with enough bits in common
// with it. The number of bits that is enough depends on the row.
//
// A row has two words of 64 bits, a number of 32 bits, a size of 16 bits below 512, a count of 8 bits, and a mark of 8
// bits, 0 or 1, in little-endian order.
type Sieve struct {
	First, Second uint64 // bits of the words
	Number        uint64 // of 32 bits
	More          int64  // added to the number of bits in common
	Count         int64  // the minimum count that a row counts as having

	// Needs is the number of bits that is enough for a row, by its count (at most SieveCounts - 1), its mark, and its
	// size.
	Needs [SieveCounts * 2 * SieveSizes]int32
}

// The numbers of counts and sizes that a [Sieve] distinguishes.
const (
	SieveCounts = 8
	SieveSizes  = 512
)

// sieveRow is the length of a row in bytes.
const sieveRow = 24

// SiftPlain writes a bit for each row, eight to a byte of marks, the first one in the lowest: 1 if it needs a closer
// look. The number of rows is a multiple of 8.
func (s *Sieve) SiftPlain(rows, marks []byte) {
	clear(marks)
	for i := range len(rows) / sieveRow {
		row := rows[i*sieveRow : (i+1)*sieveRow]
		third := binary.LittleEndian.Uint64(row[16:])
		common := bits.OnesCount64(binary.LittleEndian.Uint64(row)&s.First) +
			bits.OnesCount64(binary.LittleEndian.Uint64(row[8:])&s.Second)
		count := min(max(int64(third>>48&0xff), s.Count), SieveCounts-1)
		need := s.Needs[(uint64(count)*2+third>>56&1)*SieveSizes+third>>32&(SieveSizes-1)]
		if int64(common)+s.More >= int64(need) || third&0xffffffff == s.Number {
			marks[i/8] |= 1 << (i % 8)
		}
	}
}
