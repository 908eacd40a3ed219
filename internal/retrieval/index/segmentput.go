package index

import (
	"bytes"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/retrieval/similarity"
)

// PutSegment adds the memories of a segment to a partition, except the rows that skip selects; nil = skips none. The
// added memories replace everything that the index holds for the same rows. The index copies what it needs. It returns
// ErrSegment, and adds nothing, if this index holds vectors in another way than the one that made the segment.
func (ix *Index) PutSegment(partition int64, s *Segment, skip func(row int64) bool) error {
	for _, m := range s.matrices {
		if (m.width != 0) != ix.codes(m.size) {
			return ErrSegment
		}
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	skipped := make([]bool, len(s.rows))
	living, highest := 0, ix.highest
	for i, row := range s.rows {
		if skip != nil && skip(row) {
			skipped[i] = true
			continue
		}
		if row <= highest {
			ix.remove(row)
		}
		ix.highest = max(ix.highest, row)
		living += int(s.counts[i])
	}
	if living == 0 {
		return nil
	}
	p := ix.open(partition)
	p.settle()
	p.changes++
	base := uint32(len(p.owners))
	room := ix.expected.room(p, len(s.passages))
	p.grow(room)
	ix.memories.reserve(ix.memories.count + room - int(base))
	held := p.addMemories(s, skipped)
	for i := range held {
		if !skipped[i] {
			ix.memories.put(&held[i])
		}
	}
	p.addVectors(s, base, ix.codes, room)
	if len(s.postings.groups) > 0 {
		from := &s.postings
		p.frozen = append(p.frozen, frozen{base, uint32(len(p.owners)) - base, bytes.Clone(from.groups),
			bytes.Clone(from.terms), bytes.Clone(from.lists)})
	}
	p.settled = uint32(len(p.owners))
	ix.passages += living
	if p.wasteful() {
		p.compact()
	}
	ix.account(p)
	return nil
}

// Expect announces about how many passages a partition will have once all of its segments are put. So putting one need
// not copy the earlier ones.
func (ix *Index) Expect(partition int64, passages int) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.expected = expected{partition, passages}
}

// expected holds the arguments of the last Expect.
type expected struct {
	partition int64
	passages  int
}

// mostAhead limits how far expected passages count, as a multiple of the present ones.
const mostAhead = 16

// room returns how many passages a partition should have room for when it gets more.
func (e expected) room(p *partition, more int) int {
	n := len(p.owners) + more
	if p.id != e.partition || n <= cap(p.owners) {
		return n
	}
	return max(n, min(e.passages, mostAhead*n))
}

// grow makes room for passages.
func (p *partition) grow(room int) {
	more := room - len(p.owners)
	p.owners, p.passages = slices.Grow(p.owners, more), slices.Grow(p.passages, more)
	p.spans, p.lengths = slices.Grow(p.spans, more), slices.Grow(p.lengths, more)
	p.sketches = slices.Grow(p.sketches, more)
}

// addMemories assigns the next slots to the passages of a segment. Those of skipped memories are dead.
func (p *partition) addMemories(s *Segment, skipped []bool) []memory {
	held := make([]memory, len(s.rows))
	turns := s.turns
	p.lengths = append(p.lengths, s.lengths...)
	for i, row := range s.rows {
		var t *Turn
		if len(turns) > 0 && turns[0].memory == i {
			t, turns = &turns[0].Turn, turns[1:]
		}
		m := &held[i]
		*m = memory{row: row, id: s.ids[i], partition: p, first: uint32(len(p.owners)), count: s.counts[i]}
		owner := m
		if skipped[i] {
			owner = nil
			p.dead += int(m.count)
		} else {
			p.memories++
			p.idChars += len(m.id)
			p.join(m, t)
		}
		for range m.count {
			if owner == nil {
				p.lengths[len(p.owners)] = gone
			}
			p.owners = append(p.owners, owner)
			p.sketches = append(p.sketches, similarity.Sketch{})
		}
		p.sketches[m.first] = similarity.DecodeSketch(s.sketches[similarity.SketchBytes*i:])
	}
	p.passages = append(p.passages, s.passages...)
	p.spans = append(p.spans, s.spans...)
	p.words.append(s.wordEnds, s.words)
	return held
}

func (p *partition) addVectors(s *Segment, base uint32, codes func(size int) bool, room int) {
	for i := range s.matrices {
		from := &s.matrices[i]
		to := p.matrix(from.size, codes)
		to.longest = max(to.longest, from.longest)
		if len(from.slots) == len(s.passages) { // as nearly always
			to.slots = slices.Grow(to.slots, room-int(base))
			if from.width > 0 {
				to.coarse = slices.Grow(to.coarse, len(from.coarse)*(room-int(base))/len(from.slots))
			}
		}
		for _, slot := range from.slots {
			to.slots = append(to.slots, base+slot)
		}
		if from.width == 0 {
			appendRows(&to.rows, from.rows)
			continue
		}
		to.coarse = append(to.coarse, from.coarse...)
		appendRows(&to.upper, from.upper)
		appendRows(&to.lower, from.lower)
		appendRows(&to.fine, from.fine)
	}
}
