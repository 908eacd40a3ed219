package index

import (
	"math"
	"slices"
)

// Exactness of a term: whether a memory either contains it or is not what the query asks for.
type Exactness uint8

// Levels of exactness, from the lowest.
const (
	Ordinary   Exactness = iota // one word among others
	Name                        // counts if a single memory contains it
	Identifier                  // counts if few memories contain it
)

// exactGain is how much a passage with an exact term gains over the best that the words alone could reach. With 4,
// the terms decide a fifth of BM25 / IdealBM25, and containing an exact one four fifths: no vector makes up for
// that where words weigh more than half as much as vectors.
const exactGain = 4

// Exact finds the exact terms of a query: those of the highest exactness that are rare in the searched partitions.
// Each passage that contains any of them gains the same bonus on the sum of BM25, for any length and any number of
// occurrences. So an identifier in one long memory outweighs short memories that are similar.
type Exact struct {
	passages int
	kind     Exactness
	terms    []int
	held     []holding // by place in terms
}

// holding has the chunk that a term is part of, and the number of passages that contain it.
type holding struct{ chunk, passages int }

// NewExact prepares the search among a number of passages.
func NewExact(passages int) Exact { return Exact{passages: passages} }

// most returns how many memories may contain a term that counts.
func (x *Exact) most(kind Exactness) int {
	if kind == Name {
		return 1
	}
	return max(2, int(math.Sqrt(float64(x.passages))))
}

// Consider takes the term at place i of the query, which containing passages contain. Memories counts their memories;
// it may stop above most. Of the terms of one chunk, only the ones in the fewest passages count: in a path, the name of
// the file, not the folders that it shares with others.
func (x *Exact) Consider(i int, t Term, containing int, memories func(most int) int) {
	kind := t.Exact
	if kind == Ordinary || kind < x.kind || containing == 0 {
		return
	}
	if most := x.most(kind); containing > most && memories(most) > most {
		return
	}
	if kind > x.kind {
		x.kind, x.terms, x.held = kind, x.terms[:0], x.held[:0]
	}
	h := holding{t.Chunk, containing}
	for at := len(x.held) - 1; at >= 0 && h.chunk != 0; at-- {
		switch other := x.held[at]; {
		case other.chunk != h.chunk || other.passages == h.passages:
		case other.passages < h.passages:
			return
		default:
			x.terms, x.held = slices.Delete(x.terms, at, at+1), slices.Delete(x.held, at, at+1)
		}
	}
	x.terms, x.held = append(x.terms, i), append(x.held, h)
}

// Terms returns the places of the exact terms in the query, ascending.
func (x *Exact) Terms() []int { return x.terms }

// Bonus returns the gain of a passage that contains an exact term, from the sum of the query's other bounds; it is
// part of IdealBM25 as well. It is 0 without exact terms.
func (x *Exact) Bonus(ideal float32) float32 {
	if len(x.terms) == 0 {
		return 0
	}
	return exactGain * ideal
}

// memories counts the living memories that contain a term, given its postings by region, up to one more than most.
func (s *search) memories(lists []termLists, most int) int {
	n := 0
	for i, r := range s.regions {
		var last *memory
		lists[i].each(&s.postings, func(list []posting) bool {
			for _, e := range list {
				if m := r.owners[e.slot]; m != nil && m != last {
					n, last = n+1, m
				}
			}
			return n <= most
		})
	}
	return min(n, most+1)
}

// addExact adds the bonus to the scores of the passages that contain an exact term.
func (s *search) addExact(x *Exact) {
	bonus := x.Bonus(s.stats.IdealBM25)
	if bonus == 0 {
		return
	}
	s.stats.IdealBM25 += bonus
	s.stats.Exact = bonus
	var holding []int
	for _, i := range x.Terms() {
		for _, r := range s.regions {
			r.find(s.q.Terms[i].Text).each(&s.postings, func(list []posting) bool {
				for _, e := range list {
					if r.owners[e.slot] != nil {
						holding = append(holding, r.from+int(e.slot))
					}
				}
				return true
			})
		}
	}
	slices.Sort(holding)
	for _, at := range slices.Compact(holding) {
		s.bm25[at] += bonus
	}
}
