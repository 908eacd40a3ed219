package index

// scratch is the working space of one search, reused by later ones. The searched partitions follow one another,
// each starting at a multiple of 64, so that no word of candidates spans two.
type scratch struct {
	bm25       []float32  // score by slot; all 0 between searches
	candidates []uint64   // one bit per slot to rank; not cleared between searches
	highest    []float32  // by group of markAtOnce slots: no BM25 is above it; not cleared between searches
	members    []Member   // see Rerank; empty between searches
	words      [][]uint16 // of the members
	cosines    []float32  // by slot: upper bound of its cosine; not cleared between searches
	likely     []likely
	places     []int32 // see Like
	postings   [postingsAtOnce]posting
	saturations
	comparison
}

// resize makes room for slots, a multiple of 64.
func (s *scratch) resize(slots int, vectors bool) {
	room := roundUp(slots+slots/4, 64) // a growing index must not need new space for each search
	if cap(s.bm25) < slots {
		s.bm25 = make([]float32, room)
		s.candidates = make([]uint64, room/64)
		s.highest = make([]float32, roundUp(room, markAtOnce)/markAtOnce)
	}
	s.bm25, s.candidates = s.bm25[:slots], s.candidates[:slots/64]
	s.highest = s.highest[:roundUp(slots, markAtOnce)/markAtOnce]
	if vectors && cap(s.cosines) < slots {
		s.cosines = make([]float32, room)
	}
	if vectors {
		s.cosines = s.cosines[:slots]
	}
}

// clear restores the state required between searches.
func (s *scratch) clear() {
	clear(s.bm25)
	clear(s.members)
	clear(s.words)
	s.members, s.words = s.members[:0], s.words[:0]
}
