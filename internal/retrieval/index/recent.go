package index

import "strings"

// posting says that the passage at slot contains a term frequency times.
type posting struct{ slot, frequency uint32 }

// recent holds the postings of the newest passages of a partition.
type recent struct {
	settled  uint32            // the first slot of the passages; the postings of those before are frozen
	lists    map[string]uint32 // term -> its position in postings; nil = there are none
	postings [][]posting       // each sorted by slot; may name dead slots until compaction
	letters  int               // bytes of the terms
	capacity int               // postings that fit in all lists
	held     int               // postings in all lists
}

// freezeAt is how many recent postings there are before they are frozen, while searches wait.
const freezeAt = 1 << 17

// count records one occurrence of a term in the passage at slot, the newest one.
func (r *recent) count(term string, slot uint32) {
	at, ok := r.lists[term]
	if !ok {
		term = strings.Clone(term) // it is often cut out of a long text, which it must not keep alive
		at = uint32(len(r.postings))
		if r.lists == nil {
			r.lists = make(map[string]uint32)
		}
		r.lists[term] = at
		r.postings = append(r.postings, nil)
		r.letters += roundUp(len(term), 8)
	}
	list := r.postings[at]
	if n := len(list); n > 0 && list[n-1].slot == slot {
		list[n-1].frequency++
		return
	}
	before := cap(list)
	list = append(list, posting{slot, 1})
	r.capacity += cap(list) - before
	r.held++
	r.postings[at] = list
}

// list returns the recent postings of a term, sorted by slot; they may include dead slots.
func (r *recent) list(term string) []posting {
	if at, ok := r.lists[term]; ok {
		return r.postings[at]
	}
	return nil
}

// compact gives the postings the new slots of their passages, and drops those whose passages are gone.
func (r *recent) compact(moved []uint32) {
	before := *r
	*r = recent{settled: r.settled}
	if len(before.lists) == 0 {
		return
	}
	r.lists = make(map[string]uint32)
	for term, at := range before.lists {
		kept := relocated(before.postings[at], moved)
		if len(kept) == 0 {
			continue
		}
		kept = shrink(kept)
		r.capacity += cap(kept)
		r.held += len(kept)
		r.letters += roundUp(len(term), 8)
		r.lists[term] = uint32(len(r.postings))
		r.postings = append(r.postings, kept)
	}
	r.postings = shrink(r.postings)
}

func (r *recent) bytes() int {
	return postingBytes*r.capacity + 24*cap(r.postings) + mapBytes(len(r.postings), 20) + r.letters
}

// termLists is the postings of a term in a partition: the lists together are sorted by slot, and may include dead
// slots.
type termLists struct {
	frozen []frozenList
	recent []posting
}

// find returns the postings of a term.
func (p *partition) find(term string) termLists {
	lists := termLists{recent: p.recent.list(term)}
	for i := range p.frozen {
		if list, found := p.frozen[i].find(term); found {
			lists.frozen = append(lists.frozen, list)
		}
	}
	return lists
}

// postingsAtOnce is how many postings are decoded at once.
const postingsAtOnce = 512

// each visits the postings, some at a time, until visit reports false. Those of one call are in room, or elsewhere.
func (l termLists) each(room *[postingsAtOnce]posting, visit func([]posting) bool) {
	for _, list := range l.frozen {
		for {
			n := list.read(room[:])
			if n == 0 {
				break
			}
			if !visit(room[:n]) {
				return
			}
		}
	}
	for rest := l.recent; len(rest) > 0; {
		n := min(len(rest), postingsAtOnce)
		if !visit(rest[:n]) {
			return
		}
		rest = rest[n:]
	}
}

// settle freezes the recent postings.
func (p *partition) settle() {
	end := uint32(len(p.owners))
	if len(p.recent.lists) > 0 {
		p.frozen = append(p.frozen, freeze(p.settled, end, nil, &p.recent, nil))
	}
	p.recent = recent{settled: end}
}

// mostFrozen is how many passages neighbouring frozen postings may have at most to be frozen as one.
const mostFrozen = 1 << 14

// compactFrozen freezes the frozen postings again, with the new slots of the passages, and joins small ones.
func (p *partition) compactFrozen(moved []uint32) {
	slot, living := uint32(0), uint32(0)
	upTo := func(end uint32) uint32 { // counts the living before a slot, which is not below that of the last call
		for ; slot < end; slot++ {
			if moved[slot] != gone {
				living++
			}
		}
		return living
	}
	before, ranges := p.frozen, make([]span32, len(p.frozen))
	for i := range before {
		ranges[i].from = upTo(before[i].base)
		ranges[i].to = upTo(before[i].base + before[i].slots)
	}
	p.settled = upTo(p.settled)
	p.frozen = nil
	for len(before) > 0 {
		n, all := 1, ranges[0]
		for n < len(before) && ranges[n].to-all.from <= mostFrozen {
			all.to = ranges[n].to
			n++
		}
		if all.to > all.from {
			p.frozen = append(p.frozen, freeze(all.from, all.to, before[:n], &recent{}, moved))
		}
		clear(before[:n]) // what it refers to is free then
		before, ranges = before[n:], ranges[n:]
	}
}

// span32 is the slots from one up to another.
type span32 struct{ from, to uint32 }
