package ranking

import (
	"cmp"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/embedding/static"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
)

// Ranking ranks the candidates of one query.
type Ranking struct {
	Weights   Weights
	Question  Question
	HasVector bool // whether the query's vector is compared

	// Confident is, after ranking, the number of memories ranked by all evidence that are probably about the question.
	Confident int

	// Explanations, if not nil, gets one for each hit, by row.
	Explanations map[int64]*Explanation

	Priors Priors
	Failed error // after ranking: why the priors are unknown
}

// exactShare is the part of the scale for memories with an exact term, which come before all others.
const exactShare = 0.5

// ranked is a memory with all evidence. Hits are large, so they stay where they are until all are in order.
type ranked struct {
	hit        *index.Hit
	score      float32
	confidence float32
	exact      bool
}

func compare(a, b ranked) int {
	if a.score != b.score {
		return cmp.Compare(b.score, a.score)
	}
	return cmp.Or(cmp.Compare(a.hit.ID, b.hit.ID), cmp.Compare(a.hit.Row, b.hit.Row))
}

// Rerank returns the ranking as the function that searches take.
func (r *Ranking) Rerank() *index.Rerank {
	return &index.Rerank{Depth: Depth, Reach: Reach, Bounds: 2 * nextTo, Rank: r.Rank}
}

// Rank orders the candidates of a query: first the best ones and their next neighbours, by all evidence, then the
// others in their order. Memories with an exact term come first in any case. The order does not depend on how many
// candidates there are beyond the first Depth.
func (r *Ranking) Rank(found index.Found) []index.Hit {
	r.Confident, r.Failed = 0, nil
	t := task{Ranking: r, found: &found, question: r.Question.ask(found.Weights), named: r.Question.namer()}
	defer t.question.Close()
	t.inTurn = r.Weights.shares(r.HasVector, t.question != nil, false)
	t.alone = r.Weights.shares(r.HasVector, t.question != nil, true)
	t.all = make([]ranked, 0, max(4*Depth, len(found.Hits)))
	chosen := choose(found)
	for n, members := range found.Neighbourhoods {
		t.neighbourhood(members, chosen[n])
	}
	t.addPriors()
	for i := range t.all {
		t.all[i].score = tiered(t.all[i].score, found.Exact > 0, t.all[i].exact)
	}
	front := make(map[int64]bool, len(t.all)) // the rows of those ranked by all evidence
	if len(found.Hits) > len(found.Ranked) {
		for i := range t.all {
			front[t.all[i].hit.Row] = true
		}
	}
	slices.SortFunc(t.all, compare)
	for i := len(found.Ranked); i < len(found.Hits); i++ {
		if hit := &found.Hits[i]; !front[hit.Row] {
			t.addFurther(hit)
		}
	}
	return inTiers(t.all)
}

// task is the ranking of one query's candidates.
type task struct {
	*Ranking
	found         *index.Found
	question      *static.Question // nil = no late interaction
	named         func(speaker string) bool
	inTurn, alone shares

	owns []own // of one neighbourhood after another
	sums []float32
	runs []int32
	all  []ranked
}

// neighbourhood adds the chosen members of a neighbourhood that may be hits, with the evidence of all its members.
func (t *task) neighbourhood(members []index.Member, chosen []place) {
	t.owns = slices.Grow(t.owns[:0], len(members))[:len(members)]
	t.sums = slices.Grow(t.sums[:0], len(members))[:len(members)]
	owns, sums := t.owns, t.sums
	s := t.inTurn
	if len(members) > 0 && members[0].Turn == nil {
		s = t.alone
	}
	for i := range members {
		m := &members[i]
		owns[i] = own{words: words(t.found.Stats, m.Parts), meaning: meaning(m.Parts)}
		if t.worthComparing(&owns[i], chosen[i]) {
			owns[i].late = late(t.question, m.Words)
		}
		owns[i].weigh(s)
		sums[i] = owns[i].sum
	}
	t.runs = runs(t.runs, members)
	for i := range members {
		m := &members[i]
		if chosen[i] == farther || !m.Kept {
			continue
		}
		var l lent
		one := ranked{hit: &m.Hit, score: sums[i], exact: t.found.HasExact(m.Parts)}
		if m.Turn != nil {
			t.settle(members, s, i)
			l = t.Weights.around(members, sums, t.runs, i, t.named)
			one.score = max(0, (sums[i]+l.sum())/l.scale)
		}
		one.confidence = confidence(owns[i], one.exact, l.most)
		if one.confidence >= 0.5 {
			t.Confident++
		}
		t.all = append(t.all, one)
		if t.Explanations != nil {
			t.Explanations[m.Row] = t.explanation(s, owns[i], l, members, sums, i, t.found.Exact > 0, one.exact)
		}
	}
}

// settle ensures that the best around a place are chosen by their exact cosines, not by bounds. Members up to two
// places away are always exact.
func (t *task) settle(members []index.Member, s shares, i int) {
	for _, reach := range [...]int{NearReach, AroundReach} {
		for {
			at := best(t.sums, i, reach)
			m := &members[at]
			if !m.Bound {
				break
			}
			t.found.Compare(m)
			t.owns[at] = own{words: words(t.found.Stats, m.Parts), meaning: meaning(m.Parts)}
			t.owns[at].weigh(s)
			t.sums[at] = t.owns[at].sum
		}
	}
}

// worthComparing reports whether late interaction counts for a memory: it only refines matches by words or meaning. A
// neighbour needs a stronger match than a candidate.
func (t *task) worthComparing(o *own, at place) bool {
	if at == farther || o.words <= 0 && o.meaning <= leastMeaning {
		return false
	}
	return at == candidate || t.Weights.Words*o.words+t.Weights.Meaning*o.meaning >= leastOwn
}

// addFurther adds a candidate beyond the best.
func (t *task) addFurther(hit *index.Hit) {
	one := ranked{hit: hit, score: hit.Score, exact: t.found.HasExact(hit.Parts)}
	one.confidence = confidence(own{words: words(t.found.Stats, hit.Parts), meaning: meaning(hit.Parts)}, one.exact, 0)
	t.all = append(t.all, one)
	if t.Explanations != nil {
		t.Explanations[hit.Row] = t.briefly(*hit, t.found.Stats)
	}
}

// place is the position of a member of a neighbourhood relative to the candidates.
type place uint8

const (
	farther   place = iota
	next            // up to nextTo places beside a candidate
	candidate       // one of the first Depth
)

// choose returns the members' places.
func choose(found index.Found) [][]place {
	members := 0
	for _, list := range found.Neighbourhoods {
		members += len(list)
	}
	room := make([]place, members)
	chosen := make([][]place, len(found.Neighbourhoods))
	for i, list := range found.Neighbourhoods {
		chosen[i], room = room[:len(list)], room[len(list):]
	}
	for _, p := range found.Ranked {
		of := chosen[p.Neighbourhood]
		for j := max(0, p.Member-nextTo); j <= min(len(of)-1, p.Member+nextTo); j++ {
			of[j] = max(of[j], next)
		}
		of[p.Member] = candidate
	}
	return chosen
}
