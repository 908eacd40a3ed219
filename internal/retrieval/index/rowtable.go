package index

import "math/bits"

// rowTable finds memories by their rows. It takes a third of a map's memory, as memories have their rows themselves,
// and less time to fill.
type rowTable struct {
	slots []*memory // a power of two; a memory is in the slot of its row, or in one of the full ones after it
	count int
}

const leastSlots = 8

// home returns the slot of a row.
func (t *rowTable) home(row int64) int {
	return int(uint64(row) * 0x9e3779b97f4a7c15 >> (64 - bits.TrailingZeros(uint(len(t.slots)))))
}

// find returns the slot that has the memory of a row, or else the empty one for it. There must be slots.
func (t *rowTable) find(row int64) int {
	at, mask := t.home(row), len(t.slots)-1
	for t.slots[at] != nil && t.slots[at].row != row {
		at = (at + 1) & mask
	}
	return at
}

// get returns the memory of a row; nil if there is none.
func (t *rowTable) get(row int64) *memory {
	if t.count == 0 {
		return nil
	}
	return t.slots[t.find(row)]
}

// put adds a memory, whose row has none yet.
func (t *rowTable) put(m *memory) {
	t.reserve(t.count + 1)
	t.slots[t.find(m.row)] = m
	t.count++
}

// reserve makes room for a number of memories in all.
func (t *rowTable) reserve(n int) {
	if size := max(len(t.slots), leastSlots); 5*n > 4*size || len(t.slots) == 0 {
		for 5*n > 4*size {
			size *= 2
		}
		t.resize(size)
	}
}

func (t *rowTable) resize(size int) {
	before := t.slots
	t.slots = make([]*memory, size)
	for _, m := range before {
		if m != nil {
			t.slots[t.find(m.row)] = m
		}
	}
}

// drop removes the memory of a row, if there is one.
func (t *rowTable) drop(row int64) {
	if t.count == 0 {
		return
	}
	at, mask := t.find(row), len(t.slots)-1
	if t.slots[at] == nil {
		return
	}
	t.count--
	for next := (at + 1) & mask; t.slots[next] != nil; next = (next + 1) & mask {
		// What was beyond the slot moves into it, unless it would then be before its own.
		if m := t.slots[next]; (next-t.home(m.row))&mask >= (next-at)&mask {
			t.slots[at], at = m, next
		}
	}
	t.slots[at] = nil
	if size := len(t.slots) / 4; size >= leastSlots && 2*t.count < size {
		t.resize(size)
	}
}

// all visits the memories, in no order.
func (t *rowTable) all(yield func(*memory) bool) {
	for _, m := range t.slots {
		if m != nil && !yield(m) {
			return
		}
	}
}

func (t *rowTable) bytes() int { return 8 * len(t.slots) }
