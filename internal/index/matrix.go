package index

// blockRows is how many vectors one block of a matrix holds: half a mebibyte at 256 dimensions.
const blockRows = 512

// matrix holds the vectors of one size in a partition, row after row in the order of their slots.
// It grows by blocks, so that adding a row never copies more than one block.
type matrix struct {
	size   int         // floats per vector, at least 1
	slots  []uint32    // the slot of each row, ascending
	blocks [][]float32 // blockRows*size floats each; the last one is partly filled
}

// add appends a copy of v, whose slot must be above those of all rows.
func (m *matrix) add(slot uint32, v []float32) {
	if len(m.slots) == len(m.blocks)*blockRows {
		rows := blockRows
		if len(m.blocks) == 0 {
			rows = 1 // there may be very many partitions of a few passages
		}
		m.blocks = append(m.blocks, make([]float32, 0, rows*m.size))
	}
	last := &m.blocks[len(m.blocks)-1]
	if len(*last) == cap(*last) {
		rows := min(2*cap(*last)/m.size, blockRows)
		*last = append(make([]float32, 0, rows*m.size), *last...)
	}
	*last = append(*last, v...)
	m.slots = append(m.slots, slot)
}

// row is the vector of the i-th row.
func (m *matrix) row(i int) []float32 {
	from := i % blockRows * m.size
	return m.blocks[i/blockRows][from : from+m.size : from+m.size]
}

// compact drops the rows whose slot has gone and renumbers the others.
func (m *matrix) compact(moved []uint32) {
	rows := 0
	for i, slot := range m.slots {
		if moved[slot] == gone {
			continue
		}
		if rows != i {
			copy(m.row(rows), m.row(i)) // rows only move towards the front
		}
		m.slots[rows] = moved[slot]
		rows++
	}
	m.slots = shrink(m.slots[:rows])
	blocks := (rows + blockRows - 1) / blockRows
	clear(m.blocks[blocks:])
	m.blocks = m.blocks[:blocks]
	if blocks > 0 {
		last := &m.blocks[blocks-1]
		*last = (*last)[:(rows-(blocks-1)*blockRows)*m.size]
		if blocks == 1 {
			*last = shrink(*last)
		}
	}
}

func (m *matrix) bytes() int {
	floats := 0
	if len(m.blocks) > 0 {
		floats = cap(m.blocks[0]) + (len(m.blocks)-1)*blockRows*m.size
	}
	return matrixBytes + 4*floats + 4*cap(m.slots) + 24*cap(m.blocks)
}
