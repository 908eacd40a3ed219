package ranking

import (
	"slices"

	"github.com/souvenir-ai/souvenir/internal/index"
)

// Ranking ranks the candidates of one query.
type Ranking struct {
	Weights   Weights
	Question  Question
	HasVector bool // whether the query's vector is compared

	// Confident counts, once ranked, those ranked by all evidence that are probably about the question.
	Confident int

	// Explanations, if not nil, gets one for each hit, by row.
	Explanations map[int64]*Explanation
}

// exactShare is the part of a score that containing an exact term decides: what contains one comes before all else.
const exactShare = 0.5

// ranked is a memory with all evidence.
type ranked struct {
	hit   index.Hit
	exact bool
}

// Again returns the ranking in the form that searches take.
func (r *Ranking) Again() *index.Again {
	return &index.Again{Depth: Depth, Reach: Reach, Rank: r.Rank}
}

// Rank orders what a query has found: first the best candidates and their next neighbours, by all evidence, then the
// other candidates as they are. Memories with an exact term come first in any case. The order does not depend on how
// many candidates there are beyond the first Depth.
func (r *Ranking) Rank(found index.Found) []index.Hit {
	r.Confident = 0
	question := r.Question.ask(found.Weights)
	defer question.Close()
	inTurn := r.Weights.shares(r.HasVector, question != nil, false)
	alone := r.Weights.shares(r.HasVector, question != nil, true)
	named := r.Question.namer()

	// The candidates among the members, and the ones next to them.
	chosen := make([][]bool, len(found.Neighbourhoods))
	for i, members := range found.Neighbourhoods {
		chosen[i] = make([]bool, len(members))
	}
	for _, p := range found.Ranked {
		of := chosen[p.Neighbourhood]
		for j := max(0, p.Member-nextTo); j <= min(len(of)-1, p.Member+nextTo); j++ {
			of[j] = true
		}
	}
	var all []ranked
	var front map[int64]bool // the rows of those, if there are more
	if len(found.Hits) > len(found.Ranked) {
		front = make(map[int64]bool, 2*Depth)
	}
	var owns []own
	var sums []float32
	for n, members := range found.Neighbourhoods {
		owns = slices.Grow(owns[:0], len(members))[:len(members)]
		sums = slices.Grow(sums[:0], len(members))[:len(members)]
		s := inTurn
		if len(members) > 0 && members[0].Turn == nil {
			s = alone
		}
		for i := range members {
			m := &members[i]
			owns[i] = own{words: words(found.Stats, m.Parts), meaning: meaning(m.Parts)}
			// Late interaction sharpens what words or meaning find; alone it finds nothing.
			if chosen[n][i] && (owns[i].words > 0 || owns[i].meaning > leastMeaning) {
				owns[i].late = late(question, m.Words)
			}
			owns[i].weigh(s)
			sums[i] = owns[i].sum
		}
		for i := range members {
			if !chosen[n][i] || !members[i].Kept {
				continue
			}
			hit := members[i].Hit
			var l lent
			hit.Score = sums[i]
			if members[i].Turn != nil {
				l = r.Weights.around(members, sums, i, named)
				hit.Score = max(0, (sums[i]+l.sum())/r.Weights.scale())
			}
			exact := found.HasExact(hit.Parts)
			hit.Confidence = confidence(owns[i], exact, l.most)
			if hit.Confidence >= 0.5 {
				r.Confident++
			}
			hit.Score = tiered(hit.Score, found.Exact > 0, exact)
			all = append(all, ranked{hit, exact})
			if front != nil {
				front[hit.Row] = true
			}
			r.explain(hit.Row, func() *Explanation {
				return r.explanation(s, owns[i], l, members, sums, i, found.Exact > 0, exact)
			})
		}
	}
	slices.SortFunc(all, func(a, b ranked) int { return index.CompareHits(&a.hit, &b.hit) })
	for _, hit := range found.Hits[len(found.Ranked):] {
		if !front[hit.Row] {
			exact := found.HasExact(hit.Parts)
			hit.Confidence = confidence(own{words: words(found.Stats, hit.Parts), meaning: meaning(hit.Parts)}, exact, 0)
			all = append(all, ranked{hit, exact})
			r.explain(hit.Row, func() *Explanation { return r.briefly(hit, found.Stats) })
		}
	}
	return inTiers(all)
}
