package index

import (
	"cmp"
	"math"
	"slices"
)

// Rerank ranks the best memories of a query once more, with evidence that would cost too much for all memories.
type Rerank struct {
	Depth int // how many memories, the best by Query.Fuse, are ranked again
	Reach int // how many places of its conversation are shown before and after each

	// Members farther than Bounds places from all of these may have an upper bound of their cosine instead of the cosine
	// itself, until [Found.Compare] is called; 0 = none may.
	Bounds int

	// Rank gets the candidates, and returns the hits in their final order: the ones found, and members of
	// the neighbourhoods that may be ranked. It must return them in the same order for a lower limit, as far as they go.
	// It must not keep the neighbourhoods.
	Rank func(Found) []Hit
}

// Found is the result of a query.
type Found struct {
	Stats
	Weights        []float32 // by term of the query: its weight * idf; 0 for a term that is ignored
	Hits           []Hit     // from best to worst: at least Depth if there are as many
	Neighbourhoods [][]Member
	Ranked         []Place // of the first Depth hits among the members, in their order

	// Compare makes a member with a bound exact; nil if there are none.
	Compare func(*Member)
}

// Place is the place of a member: the number of its neighbourhood, and its own in there.
type Place struct{ Neighbourhood, Member int }

// Member is a memory near one of the best: that one itself, or one of the same conversation. The members of a
// neighbourhood follow one another in their conversation without a gap; a memory without a conversation has a
// neighbourhood of its own. No memory is a member of two.
type Member struct {
	Hit              // with its best passage; the score is Query.Fuse's
	Turn  *Turn      // nil = it belongs to no conversation
	Known bool       // whether it contains a term of the query or has a vector to compare
	Kept  bool       // whether it may be a hit: Known, and selected by Query.Keep
	Bound bool       // whether its cosine is an upper bound, and its score that of the bound: see Rerank.Bounds
	Words [][]uint16 // by passage: Entry.Words
}

// span is the places of a list from one up to another.
type span struct{ from, to int }

// stretch is a part of a conversation that is one neighbourhood.
type stretch struct {
	span
	neighbourhood int
}

// joined sorts the ranges of one list, and joins ranges that overlap or touch.
func joined(ranges []stretch) []stretch {
	slices.SortFunc(ranges, func(a, b stretch) int { return cmp.Compare(a.from, b.from) })
	kept := ranges[:0]
	for _, r := range ranges {
		if n := len(kept); n > 0 && r.from <= kept[n-1].to {
			kept[n-1].to = max(kept[n-1].to, r.to)
			continue
		}
		kept = append(kept, r)
	}
	return kept
}

// rerank ranks the best of the hits again.
func (s *search) rerank(score func(Parts) float32, hits []Hit) []Hit {
	a := s.q.Rerank
	found := Found{Stats: s.stats, Weights: s.weights, Hits: hits}
	ranges := map[*conversation][]stretch{}
	var order []*conversation // as first found, so that the outcome does not depend on a map's order
	best := make([]placed, min(a.Depth, len(hits)))
	room := 0 // for members
	for i := range best {
		m := s.byRow(hits[i].Row)
		best[i].memory = m
		t := m.turn
		if t == nil {
			room++
			continue
		}
		if ranges[t.conversation] == nil {
			order = append(order, t.conversation)
		}
		at, _ := t.place(m)
		best[i].at = at
		ranges[t.conversation] = append(ranges[t.conversation],
			stretch{span: span{max(0, at-a.Reach), min(len(t.turns), at+a.Reach+1)}})
	}
	for _, c := range order {
		ranges[c] = joined(ranges[c])
		for _, r := range ranges[c] {
			room += r.to - r.from
		}
	}
	members := slices.Grow(s.members[:0], room) // what has been given out must stay where it is
	defer func() { s.members = members }()
	found.Neighbourhoods = make([][]Member, 0, len(best))
	found.Ranked = make([]Place, 0, len(best))
	for _, c := range order {
		for k := range ranges[c] {
			part := &ranges[c][k]
			part.neighbourhood = len(found.Neighbourhoods)
			first := len(members)
			for range part.to - part.from {
				members = append(members, Member{Bound: a.Bounds > 0})
			}
			found.Neighbourhoods = append(found.Neighbourhoods, members[first:len(members):len(members)])
		}
	}
	for _, b := range best {
		if b.turn == nil {
			members = append(members, Member{})
			one := members[len(members)-1 : len(members) : len(members)]
			s.describe(&one[0], s.regionOf(b.partition.id), b.memory, score)
			found.Ranked = append(found.Ranked, Place{len(found.Neighbourhoods), 0})
			found.Neighbourhoods = append(found.Neighbourhoods, one)
			continue
		}
		parts := ranges[b.turn.conversation]
		part := parts[slices.IndexFunc(parts, func(p stretch) bool { return p.from <= b.at && b.at < p.to })]
		at, of := b.at-part.from, found.Neighbourhoods[part.neighbourhood]
		found.Ranked = append(found.Ranked, Place{part.neighbourhood, at})
		for j := max(0, at-a.Bounds); j <= min(len(of)-1, at+a.Bounds); j++ {
			of[j].Bound = false
		}
	}
	for _, c := range order {
		r := s.regionOf(c.turns[0].partition.id)
		for _, part := range ranges[c] {
			of := found.Neighbourhoods[part.neighbourhood]
			for i, m := range c.turns[part.from:part.to] {
				s.describe(&of[i], r, m, score)
			}
		}
	}
	found.Compare = func(one *Member) {
		m := s.byRow(one.Row)
		one.Parts = s.parts(s.regionOf(m.partition.id), int(m.first))
		one.Score, one.Bound = number(score(one.Parts)), false
	}
	return a.Rank(found)
}

// placed is one of the best memories, with its place in its conversation.
type placed struct {
	*memory
	at int
}

// regionOf returns the region of a searched partition.
func (s *search) regionOf(partition int64) *region {
	r, _ := s.findRegion(partition)
	return r
}

// describe fills in a member: a living memory. Only its Bound is set before: whether a bound of its cosine is enough.
func (s *search) describe(one *Member, r *region, m *memory, score func(Parts) float32) {
	one.Row, one.ID = m.row, m.id
	if m.turn != nil {
		one.Turn = &m.turn.Turn
	}
	// The best of several passages by their bounds may be another one than by their cosines.
	one.Bound = one.Bound && m.count == 1 && r.vectors != nil && !s.isExact(r.vectors)
	parts := s.parts
	if one.Bound {
		parts = s.bounded
	}
	first := len(s.words)
	for slot := m.first; slot < m.first+m.count; slot++ {
		parts := parts(r, int(slot))
		one.Known = one.Known || parts.BM25 > 0 || parts.HasVector
		if high := number(score(parts)); slot == m.first || high > one.Score ||
			high == one.Score && r.passages[slot] < one.Passage {
			one.Passage, one.Span, one.Parts, one.Score = r.passages[slot], r.spans[slot], parts, high
		}
		s.words = append(s.words, r.words.of(slot))
	}
	one.Words = s.words[first:len(s.words):len(s.words)]
	one.Kept = one.Known && (s.q.Keep == nil || s.q.Keep(m.row))
}

// bounded is parts with an upper bound of the cosine.
func (s *search) bounded(r *region, slot int) Parts {
	p := Parts{BM25: float32(math.Abs(float64(s.bm25[r.from+slot])))}
	if row, ok := r.vectors.find(uint32(slot)); ok {
		p.Cosine, p.HasVector = s.rowBound(r.vectors, row), true
	}
	return p
}

// HasExact reports whether a passage contains an exact term of the query.
func (s Stats) HasExact(p Parts) bool { return s.Exact > 0 && p.BM25 >= s.Exact }
