package index

// PutSegment adds the memories of a segment to a partition, but for those whose rows skip selects; nil = none. What it
// adds replaces everything that the index holds for the same rows. It returns ErrSegment, and adds nothing, if this
// index holds vectors in another way than the one that made the segment.
func (ix *Index) PutSegment(partition int64, s *Segment, skip func(row int64) bool) error {
	for _, m := range s.matrices {
		if (m.width != 0) != ix.codes(m.size) {
			return ErrSegment
		}
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	skipped := make([]bool, len(s.rows))
	living := 0
	for i, row := range s.rows {
		if skip != nil && skip(row) {
			skipped[i] = true
			continue
		}
		ix.remove(row)
		living += int(s.counts[i])
	}
	if living == 0 {
		return nil
	}
	p := ix.open(partition)
	base := uint32(len(p.owners))
	held := p.addMemories(s, skipped)
	for i := range held {
		if !skipped[i] {
			ix.memories[held[i].row] = &held[i]
		}
	}
	p.addVectors(s, base, ix.codes)
	p.addPostings(s, base)
	ix.peak = max(ix.peak, len(ix.memories))
	ix.passages += living
	if p.wasteful() {
		p.compact()
	}
	ix.account(p)
	return nil
}

// addMemories assigns the next slots to the passages of a segment. Those of skipped memories are dead.
func (p *partition) addMemories(s *Segment, skipped []bool) []memory {
	held := make([]memory, len(s.rows))
	turns := s.turns
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
			p.owners = append(p.owners, owner)
		}
	}
	p.passages = append(p.passages, s.passages...)
	p.spans = append(p.spans, s.spans...)
	p.lengths = append(p.lengths, s.lengths...)
	from := uint32(0)
	for _, end := range s.wordEnds {
		p.words.add(s.words[from:end])
		from = end
	}
	return held
}

func (p *partition) addVectors(s *Segment, base uint32, codes func(size int) bool) {
	for i := range s.matrices {
		from := &s.matrices[i]
		to := p.matrix(from.size, codes)
		to.longest = max(to.longest, from.longest)
		for _, slot := range from.slots {
			to.slots = append(to.slots, base+slot)
		}
		if from.width == 0 {
			to.rows.append(from.rows)
			continue
		}
		to.coarse = append(to.coarse, from.coarse...)
		to.upper.append(from.upper)
		to.lower.append(from.lower)
		to.fine.append(from.fine)
	}
}

// append appends rows that lie one after another.
func (b *blocks[T]) append(rows []T) {
	for len(rows) > 0 {
		copy(b.grow(), rows[:b.width])
		rows = rows[b.width:]
	}
}

func (p *partition) addPostings(s *Segment, base uint32) {
	term, from := uint32(0), uint32(0)
	for i, termEnd := range s.termEnds {
		list := s.postings[from:s.postEnds[i]]
		from = s.postEnds[i]
		text := s.terms[term:termEnd]
		term = termEnd
		at, ok := p.lists[string(text)]
		if !ok {
			at = uint32(len(p.postings))
			p.lists[string(text)] = at
			p.postings = append(p.postings, nil)
			p.letters += roundUp(len(text), 8)
		}
		to := p.postings[at]
		before := cap(to)
		if to == nil {
			to = make([]posting, 0, len(list))
		}
		for _, e := range list {
			to = append(to, posting{base + e.slot, e.frequency})
		}
		p.capacity += cap(to) - before
		p.postings[at] = to
	}
}
