package index

import (
	"math"

	"github.com/souvenir-ai/souvenir/internal/retrieval/similarity"
)

// gone marks a passage that compaction drops, in place of its new slot. No partition has that many.
const gone = math.MaxUint32

// memory is a memory in the index, without its passages.
type memory struct {
	row       int64
	id        string
	partition *partition
	first     uint32 // its passages hold the slots first to first+count-1
	count     uint32
	turn      *turn // nil = it belongs to no conversation
}

// partition holds the passages that are always searched together. Slots are assigned in ascending order, and
// compaction keeps that order.
type partition struct {
	id       int64
	settleAt int    // see Index
	changes  uint64 // counts what adds, removes or moves passages
	sets     slotSets
	owners   []*memory           // by slot; nil = dead
	passages []int64             // by slot
	spans    []Span              // by slot
	lengths  []uint32            // by slot: number of terms, repetitions counted; gone if dead
	sketches []similarity.Sketch // by slot: that of the memory at its first one, the zero value at the others
	words    wordRows            // by slot
	dead     int                 // dead slots

	matrices []*matrix // one per vector size, nearly always a single one

	frozen []frozen // the postings of all but recent passages, in the order of their slots
	recent          // of the others

	conversations map[int64]*conversation
	turns         int // memories in conversations

	idChars  int // bytes of the ids of living memories
	memories int // living memories
	counted  int // bytes() when the index last added it to its own sum
}

func (p *partition) living() int { return len(p.owners) - p.dead }

// add assigns the next slots to the passages of m. Vectors are kept as codes, or as they are.
func (p *partition) add(m *memory, from *Memory, dot dotFunc, codes func(size int) bool) {
	m.partition, m.first, m.count = p, uint32(len(p.owners)), uint32(len(from.Entries))
	p.memories++
	p.changes++
	p.idChars += len(m.id)
	for i := range from.Entries {
		e := &from.Entries[i]
		slot := uint32(len(p.owners))
		p.owners = append(p.owners, m)
		p.passages = append(p.passages, e.Passage)
		p.spans = append(p.spans, e.Span)
		p.lengths = append(p.lengths, uint32(len(e.Terms)))
		p.sketches = append(p.sketches, similarity.Sketch{})
		p.words.add(e.Words)
		for _, term := range e.Terms {
			p.recent.count(term, slot)
		}
		if dot.accepts(e.Vector) {
			p.matrix(len(e.Vector), codes).add(slot, e.Vector)
		}
	}
	p.sketches[m.first] = from.Sketch
	if p.recent.held >= p.settleAt {
		p.settle()
	}
}

// matrix returns the matrix of vectors of one size, new if need be.
func (p *partition) matrix(size int, codes func(size int) bool) *matrix {
	if m := p.findMatrix(size); m != nil {
		return m
	}
	m := newMatrix(size, codes(size))
	p.matrices = append(p.matrices, m)
	return m
}

func (p *partition) findMatrix(size int) *matrix {
	for _, m := range p.matrices {
		if m.size == size {
			return m
		}
	}
	return nil
}

// remove marks the passages of m as dead.
func (p *partition) remove(m *memory) {
	for slot := m.first; slot < m.first+m.count; slot++ {
		p.owners[slot], p.lengths[slot] = nil, gone
	}
	p.dead += int(m.count)
	p.changes++
	p.idChars -= len(m.id)
	p.memories--
	p.leave(m)
}

// wasteful reports whether compaction is due.
func (p *partition) wasteful() bool { return 3*p.dead > len(p.owners) }

// compact renumbers the living slots from 0 and frees what dead ones held.
func (p *partition) compact() {
	moved := make([]uint32, len(p.owners)) // old slot -> new slot, or gone
	next := uint32(0)
	for slot, m := range p.owners {
		if m == nil {
			moved[slot] = gone
			continue
		}
		moved[slot] = next
		if m.first == uint32(slot) {
			m.first = next // never above slot, so the memory's later slots do not match again
		}
		p.owners[next], p.passages[next], p.spans[next], p.lengths[next] = m, p.passages[slot], p.spans[slot], p.lengths[slot]
		p.sketches[next] = p.sketches[slot]
		next++
	}
	clear(p.owners[next:])
	p.owners = shrink(p.owners[:next])
	p.passages = shrink(p.passages[:next])
	p.spans = shrink(p.spans[:next])
	p.lengths = shrink(p.lengths[:next])
	p.sketches = shrink(p.sketches[:next])
	p.words.compact(moved)
	p.dead = 0
	p.changes++

	matrices := p.matrices[:0]
	for _, m := range p.matrices {
		if m.compact(moved); len(m.slots) > 0 {
			matrices = append(matrices, m)
		}
	}
	clear(p.matrices[len(matrices):])
	p.matrices = matrices
	p.compactFrozen(moved)
	p.recent.compact(moved)
}

func (p *partition) bytes() int {
	n := partitionBytes + (8+8+8+4)*cap(p.owners) + sketchBytes*cap(p.sketches) + 8*cap(p.matrices)
	for _, m := range p.matrices {
		n += m.bytes()
	}
	for i := range p.frozen {
		n += p.frozen[i].bytes()
	}
	n += p.recent.bytes() + p.words.bytes() + turnBytes*p.turns + conversationBytes*len(p.conversations)
	return n + memoryBytes*p.memories + p.idChars
}
