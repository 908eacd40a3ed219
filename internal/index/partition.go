package index

import (
	"math"
	"strings"
)

// gone marks a passage that compaction drops, in place of its new slot. No partition has that many.
const gone = math.MaxUint32

// memory is what the index holds of a memory besides its passages.
type memory struct {
	row       int64
	id        string
	partition *partition
	first     uint32 // its passages hold the slots first to first+count-1
	count     uint32
	turn      *turn // nil = it belongs to no conversation
}

// posting says that the passage at slot contains a term frequency times.
type posting struct{ slot, frequency uint32 }

// partition holds the passages that are always searched together. Slots are assigned in ascending order, and
// compaction keeps that order.
type partition struct {
	id       int64
	owners   []*memory // by slot; nil = dead
	passages []int64   // by slot
	spans    []Span    // by slot
	lengths  []uint32  // by slot: number of terms, repetitions counted
	words    wordRows  // by slot
	dead     int       // dead slots

	matrices []*matrix // one per vector size, nearly always a single one

	lists    map[string]uint32 // term -> its position in postings
	postings [][]posting       // each sorted by slot; may name dead slots until compaction
	letters  int               // bytes of the terms

	conversations map[int64]*conversation
	turns         int // memories in conversations

	capacity int // postings that fit in all lists
	idChars  int // bytes of the ids of living memories
	memories int // living memories
	counted  int // bytes() when the index last added it to its own sum
}

func (p *partition) living() int { return len(p.owners) - p.dead }

// add assigns the next slots to the entries of m. Vectors are kept as codes, or as they are.
func (p *partition) add(m *memory, entries []Entry, dot dotFunc, codes func(size int) bool) {
	m.partition, m.first, m.count = p, uint32(len(p.owners)), uint32(len(entries))
	p.memories++
	p.idChars += len(m.id)
	for i := range entries {
		e := &entries[i]
		slot := uint32(len(p.owners))
		p.owners = append(p.owners, m)
		p.passages = append(p.passages, e.Passage)
		p.spans = append(p.spans, e.Span)
		p.lengths = append(p.lengths, uint32(len(e.Terms)))
		p.words.add(e.Words)
		for _, term := range e.Terms {
			p.count(term, slot)
		}
		if dot.accepts(e.Vector) {
			p.matrix(len(e.Vector), codes).add(slot, e.Vector)
		}
	}
}

// count records one occurrence of a term in the passage at slot, the newest one.
func (p *partition) count(term string, slot uint32) {
	at, ok := p.lists[term]
	if !ok {
		term = strings.Clone(term) // it is often cut out of a long text, which it must not keep alive
		at = uint32(len(p.postings))
		p.lists[term] = at
		p.postings = append(p.postings, nil)
		p.letters += roundUp(len(term), 8)
	}
	list := p.postings[at]
	if n := len(list); n > 0 && list[n-1].slot == slot {
		list[n-1].frequency++
		return
	}
	before := cap(list)
	list = append(list, posting{slot, 1})
	p.capacity += cap(list) - before
	p.postings[at] = list
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
		p.owners[slot] = nil
	}
	p.dead += int(m.count)
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
		next++
	}
	clear(p.owners[next:])
	p.owners = shrink(p.owners[:next])
	p.passages = shrink(p.passages[:next])
	p.spans = shrink(p.spans[:next])
	p.lengths = shrink(p.lengths[:next])
	p.words.compact(moved)
	p.dead = 0

	matrices := p.matrices[:0]
	for _, m := range p.matrices {
		if m.compact(moved); len(m.slots) > 0 {
			matrices = append(matrices, m)
		}
	}
	clear(p.matrices[len(matrices):])
	p.matrices = matrices
	p.compactPostings(moved)
}

func (p *partition) compactPostings(moved []uint32) {
	lists := make(map[string]uint32)
	postings := make([][]posting, 0, len(p.postings))
	p.capacity, p.letters = 0, 0
	for term, at := range p.lists {
		kept := p.postings[at][:0]
		for _, e := range p.postings[at] {
			if to := moved[e.slot]; to != gone {
				kept = append(kept, posting{to, e.frequency})
			}
		}
		if len(kept) == 0 {
			continue
		}
		kept = shrink(kept)
		p.capacity += cap(kept)
		p.letters += roundUp(len(term), 8)
		lists[term] = uint32(len(postings))
		postings = append(postings, kept)
	}
	p.lists, p.postings = lists, shrink(postings)
}

func (p *partition) bytes() int {
	n := partitionBytes + (8+8+8+4)*cap(p.owners) + 8*cap(p.matrices)
	for _, m := range p.matrices {
		n += m.bytes()
	}
	n += postingBytes*p.capacity + 24*cap(p.postings) + mapBytes(len(p.postings), 20) + p.letters
	n += p.words.bytes() + turnBytes*p.turns + conversationBytes*len(p.conversations)
	return n + memoryBytes*p.memories + p.idChars
}

// list returns the postings of a term, sorted by slot; they may include dead slots.
func (p *partition) list(term string) []posting {
	if at, ok := p.lists[term]; ok {
		return p.postings[at]
	}
	return nil
}
