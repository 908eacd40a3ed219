package index

// saturations are those of terms that are a few times in passages that are not long, nearly all there are, by the
// frequency and the length.
type saturations struct {
	of    Saturation
	known [mostFrequent << lengthBits]float32
}

const (
	mostFrequent = 8 // above the frequencies that are known
	lengthBits   = 8 // of the lengths that are known
)

// prepare computes them, unless an earlier search has done so.
func (k *saturations) prepare(of Saturation) {
	if k.of == of {
		return
	}
	k.of = of
	for i := 1 << lengthBits; i < len(k.known); i++ {
		k.known[i] = of.Of(uint32(i>>lengthBits), uint32(i&(1<<lengthBits-1)))
	}
}

// get returns the saturation of a term in a passage of some length.
func (k *saturations) get(frequency, length uint32) float32 {
	if at := frequency<<lengthBits | length; length>>lengthBits == 0 && frequency < mostFrequent {
		return k.known[at%uint32(len(k.known))]
	}
	return k.of.Of(frequency, length)
}

// addTerm adds one term's part to the scores of one partition: factor times the saturation of its frequency.
func (s *search) addTerm(r region, lists termLists, factor float32) error {
	for i := range lists.frozen {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		s.addFrozen(&r, lists.frozen[i], factor)
	}
	for _, e := range lists.recent {
		s.addPosting(&r, e, factor)
	}
	return s.ctx.Err()
}

// addPosting adds a term's part to the score of a passage.
func (s *search) addPosting(r *region, e posting, factor float32) {
	if r.dead > 0 && r.owners[e.slot] == nil {
		return
	}
	at := r.from + int(e.slot)
	// The conversion keeps the product from being fused with the sum.
	s.bm25[at] += float32(factor * s.saturations.get(e.frequency, r.lengths[e.slot]))
}

// addFrozen adds a term's part to the scores of the passages in a list.
func (s *search) addFrozen(r *region, list frozenList, factor float32) {
	for next := s.postings[:1]; ; s.addPosting(r, next[0], factor) {
		s.addShort(r, &list, factor)
		if list.read(next) == 0 {
			return
		}
	}
}

// addShort adds a term's part to the scores of the next passages in a list, as long as their postings take few bytes
// and their saturations are known. Dead passages gain nothing.
func (s *search) addShort(r *region, list *frozenList, factor float32) {
	scores := s.bm25[r.from+int(list.base):][:list.slots]
	lengths := r.lengths[list.base:][:len(scores)]
	known := &s.saturations.known
	next, data, at := uint(list.next), list.data, 0
	for at+3 <= len(data) { // two bytes of a slot, and one of a frequency
		coded, size := uint(data[at]), at+1
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
		length := lengths[slot]
		if length>>lengthBits > 0 && length != gone {
			break
		}
		frequency := uint(1)
		if coded&1 == 0 {
			if frequency = uint(data[size]); frequency >= mostFrequent {
				break
			}
			size++
		}
		next, at = slot+1, size
		if length != gone {
			scores[slot] += float32(factor * known[(frequency<<lengthBits+uint(length))%uint(len(known))])
		}
	}
	list.next, list.data = uint32(next), data[at:]
}

// dead counts the dead passages in the lists.
func (l termLists) dead(lengths []uint32) (n int) {
	for _, e := range l.recent {
		if lengths[e.slot] == gone {
			n++
		}
	}
	for _, list := range l.frozen {
		var next [1]posting
		for n += list.deadShort(lengths); list.read(next[:]) > 0; n += list.deadShort(lengths) {
			if lengths[next[0].slot] == gone {
				n++
			}
		}
	}
	return n
}

// deadShort reads the next passages, as long as their postings take few bytes, and counts the dead ones. It reads them
// like addShort, which a function for both makes slower.
func (l *frozenList) deadShort(lengths []uint32) (n int) {
	lengths = lengths[l.base:][:l.slots]
	next, data, at := uint(l.next), l.data, 0
	for at+3 <= len(data) { // two bytes of a slot, and one of a frequency
		coded, size := uint(data[at]), at+1
		if coded >= 0x80 {
			if data[size] >= 0x80 {
				break
			}
			coded, size = coded&0x7f|uint(data[size])<<7, at+2
		}
		slot := next + coded>>1
		if slot >= uint(len(lengths)) {
			break
		}
		if coded&1 == 0 {
			if data[size] >= 0x80 {
				break
			}
			size++
		}
		next, at = slot+1, size
		if lengths[slot] == gone {
			n++
		}
	}
	l.next, l.data = uint32(next), data[at:]
	return n
}
