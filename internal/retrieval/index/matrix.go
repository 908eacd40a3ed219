package index

import (
	"slices"

	"github.com/souvenir-ai/souvenir/internal/simd"
)

// matrix holds the vectors of one size in a partition, in the order of their slots: as codes if these can be compared
// fast and are not short, else as they are.
type matrix struct {
	size  int      // floats per vector, at least 1
	slots []uint32 // the slot of each row, ascending
	rows  blocks[float32]

	upper, lower blocks[byte] // the halves of the coarse codes
	fine         blocks[int8]
	coarse       []coarse // per row, how to read its codes; empty without codes

	longest float64 // upper bound of the length of all vectors, past ones included
}

// newMatrix returns a matrix for vectors of one size, as codes or as they are.
func newMatrix(size int, codes bool) *matrix {
	m := &matrix{size: size}
	if codes {
		m.fine.width = codeWidth(size)
		m.upper.width, m.lower.width = m.fine.width/2, m.fine.width/2
	} else {
		m.rows.width = size
	}
	return m
}

// add appends a copy of v, whose slot must be above those of all rows.
func (m *matrix) add(slot uint32, v []float32) {
	m.slots = append(m.slots, slot)
	if m.fine.width == 0 {
		m.longest = max(m.longest, length(v))
		copy(grow(&m.rows), v)
		return
	}
	codes := make([]int8, m.fine.width)
	meaning, long := encode(codes, grow(&m.fine), v)
	simd.Split(codes, grow(&m.upper), grow(&m.lower))
	m.longest = max(m.longest, long)
	m.coarse = append(m.coarse, meaning)
}

// row returns the vector of the i-th row, which the caller must not change.
func (m *matrix) row(i int) []float32 {
	if m.fine.width == 0 {
		return rowAt(&m.rows, i)
	}
	codes := make([]int8, m.fine.width)
	simd.Join(codes, rowAt(&m.upper, i), rowAt(&m.lower, i))
	return m.coarse[i].decode(codes, rowAt(&m.fine, i), m.size)
}

// blocks returns how many blocks the rows are in.
func (m *matrix) blocks() int { return (len(m.slots) + blockRows - 1) / blockRows }

// find returns the row of a slot.
func (m *matrix) find(slot uint32) (row int, ok bool) {
	if uint64(slot) < uint64(len(m.slots)) && m.slots[slot] == slot { // the common case: all passages have vectors
		return int(slot), true
	}
	return slices.BinarySearch(m.slots, slot)
}

// compact drops the rows of dropped slots and renumbers the others.
func (m *matrix) compact(moved []uint32) {
	var kept []int // rows
	for i, slot := range m.slots {
		if moved[slot] == gone {
			continue
		}
		if len(m.coarse) > 0 {
			m.coarse[len(kept)] = m.coarse[i]
		}
		m.slots[len(kept)] = moved[slot]
		kept = append(kept, i)
	}
	m.slots = shrink(m.slots[:len(kept)])
	if m.fine.width == 0 {
		keepRows(&m.rows, kept)
		return
	}
	m.coarse = shrink(m.coarse[:len(kept)])
	keepRows(&m.upper, kept)
	keepRows(&m.lower, kept)
	keepRows(&m.fine, kept)
}

func (m *matrix) bytes() int {
	return matrixBytes + 4*cap(m.slots) + 4*room(&m.rows) + room(&m.upper) + room(&m.lower) + room(&m.fine) +
		24*(cap(m.rows.list)+cap(m.upper.list)+cap(m.lower.list)+cap(m.fine.list)) + coarseBytes*cap(m.coarse)
}

// blockRows is how many rows one block holds: half a mebibyte of floats of 256 dimensions.
const blockRows = 512

// blocks is a list of rows of one width. It grows by blocks, so that adding a row never copies more than one block.
//
// It has functions instead of methods: indexes are fields of stores, and each package that uses a store would compile
// the methods of a generic type again.
type blocks[T any] struct {
	width int   // numbers per row
	list  [][]T // blockRows*width numbers each; the last one is partly filled
}

// grow appends a row of zeros and returns it.
func grow[T any](b *blocks[T]) []T {
	if n := len(b.list); n == 0 {
		b.list = append(b.list, make([]T, 0, b.width)) // there may be very many partitions of a few passages
	} else if len(b.list[n-1]) == blockRows*b.width {
		b.list = append(b.list, make([]T, 0, blockRows*b.width))
	}
	last := &b.list[len(b.list)-1]
	if len(*last) == cap(*last) {
		rows := min(2*cap(*last)/b.width, blockRows)
		*last = append(make([]T, 0, rows*b.width), *last...)
	}
	from := len(*last)
	*last = (*last)[:from+b.width]
	return (*last)[from:]
}

// rowAt returns the i-th row.
func rowAt[T any](b *blocks[T], i int) []T {
	from := i % blockRows * b.width
	return b.list[i/blockRows][from : from+b.width : from+b.width]
}

// appendRows appends rows that lie one after another.
func appendRows[T any](b *blocks[T], rows []T) {
	whole := blockRows * b.width
	for len(rows) > 0 {
		if n := len(b.list); n == 0 || len(b.list[n-1]) == whole {
			if len(rows) >= whole {
				b.list, rows = append(b.list, slices.Clone(rows[:whole])), rows[whole:]
				continue
			}
			b.list = append(b.list, make([]T, 0, min(whole, max(len(rows), n*whole))))
		}
		last := &b.list[len(b.list)-1]
		n := min(len(rows), whole-len(*last))
		if cap(*last) < len(*last)+n {
			*last = append(make([]T, 0, min(max(2*cap(*last), len(*last)+n), whole)), *last...)
		}
		*last = append(*last, rows[:n]...)
		rows = rows[n:]
	}
}

// keepRows keeps only some rows, ascending, all of them in new blocks.
func keepRows[T any](b *blocks[T], rows []int) {
	kept := blocks[T]{width: b.width}
	block := 0
	for _, row := range rows {
		for ; block < row/blockRows; block++ {
			b.list[block] = nil // nothing more is needed of it
		}
		copy(grow(&kept), rowAt(b, row))
	}
	if len(kept.list) == 1 {
		kept.list[0] = shrink(kept.list[0])
	}
	*b = kept
}

// room returns the capacity in numbers.
func room[T any](b *blocks[T]) int {
	if len(b.list) == 0 {
		return 0
	}
	return cap(b.list[0]) + (len(b.list)-1)*blockRows*b.width
}
