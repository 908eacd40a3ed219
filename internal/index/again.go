package index

import (
	"cmp"
	"slices"
)

// Again ranks the best memories of a query once more, with more evidence than all memories could be asked for.
type Again struct {
	Depth int // how many memories, the best by Query.Fuse, are ranked again
	Reach int // how many places before and after each its conversation is shown

	// Rank gets the candidates, and returns the hits in their final order: those that were found, and members of
	// the neighbourhoods that may be ranked. It must return them in the same order for a lower limit, as far as they go.
	// It must not keep the neighbourhoods.
	Rank func(Found) []Hit
}

// Found is what a query has found.
type Found struct {
	Stats
	Weights        []float32 // by term of the query: its weight * idf; 0 for a term that is ignored
	Hits           []Hit     // from best to worst: at least Depth if there are as many
	Neighbourhoods [][]Member
	Ranked         []Place // of the first Depth hits among the members, in their order
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
	Words [][]uint16 // by passage: Entry.Words
}

// span is the places of a list from one up to another.
type span struct{ from, to int }

// stretch is a part of a conversation that is one neighbourhood.
type stretch struct {
	span
	neighbourhood int
}

// joined sorts the ranges of one list, and joins those that overlap or touch.
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

// again ranks the best of the hits again.
func (s *search) again(score func(Parts) float32, hits []Hit) []Hit {
	a := s.q.Again
	found := Found{Stats: s.stats, Weights: s.weights, Hits: hits}
	ranges := map[*conversation][]stretch{}
	var order []*conversation // as first found, so that the outcome does not depend on a map's order
	best := hits[:min(a.Depth, len(hits))]
	at := make([]int, len(best)) // their places in their conversations
	for i := range best {
		m := s.byRow(best[i].Row)
		t := m.turn
		if t == nil {
			continue
		}
		if ranges[t.conversation] == nil {
			order = append(order, t.conversation)
		}
		at[i], _ = t.place(m)
		ranges[t.conversation] = append(ranges[t.conversation],
			stretch{span: span{max(0, at[i]-a.Reach), min(len(t.turns), at[i]+a.Reach+1)}})
	}
	members, passages := 0, 0
	for _, c := range order {
		ranges[c] = joined(ranges[c])
		for _, r := range ranges[c] {
			members += r.to - r.from
			for _, m := range c.turns[r.from:r.to] {
				passages += int(m.count)
			}
		}
	}
	for i := range best {
		passages += int(s.byRow(best[i].Row).count)
	}
	s.words = slices.Grow(s.words[:0], passages) // what has been given out must stay where it is
	room := slices.Grow(s.members[:0], members+len(best))
	defer func() { s.members = room }()
	for _, c := range order {
		r := s.regionOf(c.turns[0].partition.id)
		for k := range ranges[c] {
			part := &ranges[c][k]
			part.neighbourhood = len(found.Neighbourhoods)
			first := len(room)
			for _, m := range c.turns[part.from:part.to] {
				room = append(room, s.member(r, m, score))
			}
			found.Neighbourhoods = append(found.Neighbourhoods, room[first:len(room):len(room)])
		}
	}
	for i := range best {
		m := s.byRow(best[i].Row)
		if m.turn == nil {
			first := len(room)
			room = append(room, s.member(s.regionOf(m.partition.id), m, score))
			found.Ranked = append(found.Ranked, Place{len(found.Neighbourhoods), 0})
			found.Neighbourhoods = append(found.Neighbourhoods, room[first:len(room):len(room)])
			continue
		}
		parts := ranges[m.turn.conversation]
		part := parts[slices.IndexFunc(parts, func(p stretch) bool { return p.from <= at[i] && at[i] < p.to })]
		found.Ranked = append(found.Ranked, Place{part.neighbourhood, at[i] - part.from})
	}
	return a.Rank(found)
}

// regionOf returns the region of a searched partition.
func (s *search) regionOf(partition int64) *region {
	at, _ := slices.BinarySearchFunc(s.regions, partition, func(r region, id int64) int { return cmp.Compare(r.id, id) })
	return &s.regions[at]
}

// member describes a living memory.
func (s *search) member(r *region, m *memory, score func(Parts) float32) Member {
	one := Member{Hit: Hit{Row: m.row, ID: m.id}}
	if m.turn != nil {
		one.Turn = &m.turn.Turn
	}
	first := len(s.words)
	for slot := m.first; slot < m.first+m.count; slot++ {
		parts := s.parts(r, int(slot))
		one.Known = one.Known || parts.BM25 > 0 || parts.HasVector
		passage := Hit{Row: m.row, ID: m.id, Passage: r.passages[slot], Span: r.spans[slot], Parts: parts,
			Score: number(score(parts))}
		if slot == m.first || passage.Score > one.Score || passage.Score == one.Score && passage.Passage < one.Passage {
			one.Hit = passage
		}
		s.words = append(s.words, r.words.of(slot))
	}
	one.Words = s.words[first:len(s.words):len(s.words)]
	one.Kept = one.Known && (s.q.Keep == nil || s.q.Keep(m.row))
	return one
}

// HasExact reports whether a passage contains an exact term of the query.
func (s Stats) HasExact(p Parts) bool { return s.Exact > 0 && p.BM25 >= s.Exact }
