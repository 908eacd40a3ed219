package index

import "slices"

// wordRows holds the rows of the words of passages (Entry.Words), by slot. They are in blocks, so that adding a
// passage never copies more than one.
type wordRows struct{ list []rowBlock }

type rowBlock struct {
	ends []uint32 // by slot of the block: where its rows end
	rows []uint16
}

// add appends the rows of the next slot.
func (w *wordRows) add(rows []uint16) {
	if n := len(w.list); n == 0 || len(w.list[n-1].ends) == blockRows {
		w.list = append(w.list, rowBlock{})
	}
	b := &w.list[len(w.list)-1]
	b.rows = append(b.rows, rows...)
	b.ends = append(b.ends, uint32(len(b.rows)))
}

// append appends the rows of several slots, which lie one after another and end at given places.
func (w *wordRows) append(ends []uint32, rows []uint16) {
	from := uint32(0)
	for len(ends) > 0 {
		if n := len(w.list); n == 0 || len(w.list[n-1].ends) == blockRows {
			w.list = append(w.list, rowBlock{})
		}
		b := &w.list[len(w.list)-1]
		n := min(len(ends), blockRows-len(b.ends))
		before, to := uint32(len(b.rows)), ends[n-1]
		b.ends, b.rows = slices.Grow(b.ends, n), append(slices.Grow(b.rows, int(to-from)), rows[from:to]...)
		for _, end := range ends[:n] {
			b.ends = append(b.ends, before+end-from)
		}
		from, ends = to, ends[n:]
	}
}

// of returns the rows of a slot.
func (w *wordRows) of(slot uint32) []uint16 {
	b, at := &w.list[slot/blockRows], slot%blockRows
	from := uint32(0)
	if at > 0 {
		from = b.ends[at-1]
	}
	return b.rows[from:b.ends[at]:b.ends[at]]
}

// compact keeps the rows of the slots that are not dropped, in their order.
func (w *wordRows) compact(moved []uint32) {
	var kept wordRows
	for slot, to := range moved {
		if to != gone {
			kept.add(w.of(uint32(slot)))
		}
	}
	for i := range kept.list {
		b := &kept.list[i]
		b.rows, b.ends = slices.Clip(b.rows), slices.Clip(b.ends)
	}
	*w = kept
}

func (w *wordRows) bytes() int {
	n := 48 * cap(w.list)
	for _, b := range w.list {
		n += 4*cap(b.ends) + 2*cap(b.rows)
	}
	return n
}
