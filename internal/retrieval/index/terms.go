package index

// termParts says what one term adds to the BM25 of a passage: factor times the saturation of its frequency.
type termParts struct {
	saturation Saturation
	factor     float32
	once       [mostOnce]float32 // by the length of the passage, for a term that is there once; empty if known is false
	known      bool
}

const (
	mostOnce  = 256  // above the lengths of nearly all passages
	leastOnce = 1024 // number of passages from which on computing the parts of all lengths first is less work
)

// begin prepares for a term that some passages contain.
func (t *termParts) begin(factor float32, passages int) {
	t.factor, t.known = factor, passages >= leastOnce
	if !t.known {
		return
	}
	for length := range t.once {
		t.once[length] = t.of(1, uint32(length))
	}
}

// of returns the part for a passage.
func (t *termParts) of(frequency, length uint32) float32 {
	// The conversion keeps the product from being fused with the sum to which it is added.
	return float32(t.factor * t.saturation.Of(frequency, length))
}

// addTerm adds one term's part to the scores of one partition.
func (s *search) addTerm(r region, lists termLists, parts *termParts) error {
	for i := range lists.frozen {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		s.addFrozen(&r, lists.frozen[i], parts)
	}
	for _, e := range lists.recent {
		s.addPosting(&r, e, parts)
	}
	return s.ctx.Err()
}

// addPosting adds a term's part to the score of a passage.
func (s *search) addPosting(r *region, e posting, parts *termParts) {
	if r.dead > 0 && r.owners[e.slot] == nil {
		return
	}
	at := r.from + int(e.slot)
	s.bm25[at] += parts.of(e.frequency, r.lengths[e.slot])
}

// addFrozen adds a term's part to the scores of the passages in a list.
func (s *search) addFrozen(r *region, list frozenList, parts *termParts) {
	room := s.postings[:]
	if parts.known {
		room = room[:1]
	}
	for {
		if parts.known {
			s.addShort(r, &list, parts)
		}
		n := list.read(room)
		if n == 0 {
			return
		}
		for _, e := range room[:n] {
			s.addPosting(r, e, parts)
		}
	}
}

// addShort adds a term's part to the scores of the next passages in a list, as long as their postings take few bytes.
// Nearly all of a common term do.
func (s *search) addShort(r *region, list *frozenList, parts *termParts) {
	scores := s.bm25[r.from+int(list.base):][:list.slots]
	lengths, owners := r.lengths[list.base:][:len(scores)], r.owners[list.base:][:len(scores)]
	next, data, at := uint(list.next), list.data, 0
	for at+3 <= len(data) { // two bytes of a slot, and one of a frequency
		coded, size, frequency := uint(data[at]), at+1, uint32(1)
		if coded >= 0x80 {
			if data[size] >= 0x80 {
				break
			}
			coded, size = coded&0x7f|uint(data[size])<<7, at+2
		}
		slot := next + coded>>1
		if slot >= uint(len(scores)) {
			break
		}
		if coded&1 == 0 {
			if frequency = uint32(data[size]); frequency >= 0x80 {
				break
			}
			size++
		}
		next, at = slot+1, size
		if r.dead > 0 && owners[slot] == nil {
			continue
		}
		if length := lengths[slot]; frequency == 1 && length < mostOnce {
			scores[slot] += parts.once[length]
		} else {
			scores[slot] += parts.of(frequency, length)
		}
	}
	list.next, list.data = uint32(next), data[at:]
}
