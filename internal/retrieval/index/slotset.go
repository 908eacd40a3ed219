package index

import (
	"math/bits"
	"slices"
	"sync"
)

// slotSet is the set of living passages in a partition that belong to the memories in a set of rows.
type slotSet struct {
	rows     *RowSet
	changes  uint64   // of the partition, when it was made
	slots    []uint64 // one bit each
	memories int
}

// slotSets has the sets that the latest searches of a partition used, the latest first.
type slotSets struct {
	mu   sync.Mutex // searches run side by side
	list []slotSet
}

// mostSlotSets is how many sets a partition keeps; one takes a bit for each passage.
const mostSlotSets = 4

// get returns a set that is kept for some rows, in the same state of the partition.
func (s *slotSets) get(rows *RowSet, changes uint64) (set slotSet, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.list, func(one slotSet) bool { return one.rows == rows && one.changes == changes })
	if i < 0 {
		return slotSet{}, false
	}
	set = s.list[i]
	copy(s.list[1:i+1], s.list[:i])
	s.list[0] = set
	return set, true
}

func (s *slotSets) put(set slotSet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.DeleteFunc(s.list, func(one slotSet) bool { return one.changes != set.changes })
	s.list = slices.Insert(s.list[:min(len(s.list), mostSlotSets-1)], 0, set)
}

// slotsOf returns the passages of the query's rows in a region.
func (s *search) slotsOf(r *region) slotSet {
	rows := s.q.Rows
	set, found := r.sets.get(rows, r.changes)
	if found {
		return set
	}
	set = slotSet{rows: rows, changes: r.changes, slots: make([]uint64, (r.to-r.from)/64)}
	if fewRows*rows.Len() <= len(r.owners) {
		for row := range rows.All() {
			if m := s.byRow(row); m != nil && m.partition == r.partition {
				set.memories++
				for slot := m.first; slot < m.first+m.count; slot++ {
					set.slots[slot/64] |= 1 << (slot % 64)
				}
			}
		}
	} else {
		var current *memory
		has := false
		for slot, m := range r.owners {
			if m != current && m != nil {
				if has = rows.Has(m.row); has {
					set.memories++
				}
				current = m
			}
			if m != nil && has {
				set.slots[slot/64] |= 1 << (slot % 64)
			}
		}
	}
	r.sets.put(set)
	return set
}

// keepExactly makes the passages to rank of the query's rows the only candidates, and returns how many memories they
// belong to.
func (s *search) keepExactly() (memories int, err error) {
	s.narrow = fewRows*s.q.Rows.Len() <= s.stats.Passages
	for i := range s.regions {
		if err := s.ctx.Err(); err != nil {
			return 0, err
		}
		r := &s.regions[i]
		set := s.slotsOf(r)
		scores, candidates := s.bm25[r.from:r.to], s.candidates[r.from/64:r.to/64]
		whole := r.vectors != nil && len(r.vectors.slots) == len(r.owners) // each passage has a vector
		if !whole {
			s.addVectors(r)
		}
		r.complete = true
		for w, word := range candidates {
			for refused := word &^ set.slots[w]; refused != 0 && !s.narrow; refused &= refused - 1 {
				slot := w*64 + bits.TrailingZeros64(refused)
				scores[slot] = -scores[slot] // see keep
			}
			if candidates[w] = word & set.slots[w]; whole {
				candidates[w] = set.slots[w]
			}
		}
		if whole {
			memories += set.memories
			continue
		}
		var last *memory
		err = s.walk(r, func(slot int) {
			if r.owners[slot] != last {
				last = r.owners[slot]
				memories++
			}
		})
		if err != nil {
			return 0, err
		}
	}
	return memories, nil
}
