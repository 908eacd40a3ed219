package index

import (
	"iter"
	"math/bits"
	"slices"
)

// RowSet is a set of memories by row: one bit for each number from the lowest row on or, if a list of the rows takes
// less, a sorted list. It never changes; the zero value is empty.
type RowSet struct {
	list []int64 // ascending; nil with bits
	bits []uint64
	from int64 // the row of the first bit
	n    int
}

// NewRowSet returns the set of some rows, each listed once. It sorts and may keep the list.
func NewRowSet(rows []int64) *RowSet {
	slices.Sort(rows)
	n := len(rows)
	if n == 0 {
		return &RowSet{}
	}
	// The difference of the widest rows does not fit into int64, but into uint64.
	if span := uint64(rows[n-1]) - uint64(rows[0]); span < 64*uint64(n) {
		s := &RowSet{bits: make([]uint64, span/64+1), from: rows[0], n: n}
		for _, row := range rows {
			at := uint64(row - s.from)
			s.bits[at/64] |= 1 << (at % 64)
		}
		return s
	}
	return &RowSet{list: rows, n: n}
}

// Len returns the number of rows.
func (s *RowSet) Len() int { return s.n }

// Bytes returns what the set takes in memory.
func (s *RowSet) Bytes() int { return 80 + 8*(cap(s.list)+cap(s.bits)) }

// Has reports whether the set has a row.
func (s *RowSet) Has(row int64) bool {
	if s.bits == nil {
		_, found := slices.BinarySearch(s.list, row)
		return found
	}
	at := uint64(row) - uint64(s.from) // very high for a row below the first
	return at/64 < uint64(len(s.bits)) && s.bits[at/64]>>(at%64)&1 == 1
}

// All returns the rows, ascending.
func (s *RowSet) All() iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for _, row := range s.list {
			if !yield(row) {
				return
			}
		}
		for w, word := range s.bits {
			for ; word != 0; word &= word - 1 {
				if !yield(s.from + int64(w*64+bits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}
