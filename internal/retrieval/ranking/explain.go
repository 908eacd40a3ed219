package ranking

import "github.com/souvenir-ai/souvenir/internal/retrieval/index"

// Explanation breaks down a hit's score. The gains add up to the score, unless that would exceed 1, or the score of a
// hit that precedes it by rule.
type Explanation struct {
	Words, Meaning, Late Part // the memory by itself
	Exact                float32
	Asking, Speaker      float32

	Recency, Importance, State Part // see Priors

	Lenders []Lender // what was said around it, in the order of the conversation
}

// Part is one kind of evidence: how strong it is, 0 to 1, and what it adds to the score.
type Part struct{ Value, Gain float32 }

// Lender is a memory of the same conversation that adds to a score.
type Lender struct {
	Row   int64
	ID    string
	Place int     // 1 = right after the hit, -1 = right before it; 0 = the hit itself, as the best around it
	Asks  bool    // it asks, and the hit comes right after it
	Value float32 // its own evidence
	Gain  float32
}

func (r *Ranking) explanation(s shares, o own, l lent, members []index.Member, sums []float32, i int,
	anyExact, exact bool) *Explanation {
	e := &Explanation{}
	factor := tierFactor(anyExact) / r.Priors.scale()
	if anyExact && exact {
		e.Exact = exactShare
	}
	inConversation := members[i].Turn != nil
	if inConversation {
		factor /= l.scale
	}
	e.Words = Part{o.words, factor * s.words * o.words}
	e.Meaning = Part{o.meaning, factor * s.meaning * o.meaning}
	e.Late = Part{o.late, factor * s.late * o.late}
	if !inConversation {
		return e
	}
	e.Asking, e.Speaker = factor*l.asking, factor*l.speaker
	gains := map[int]float32{}
	for _, g := range []struct {
		place int
		gain  float32
	}{{i - 1, l.before}, {i - 2, l.before2}, {i + 1, l.after}, {i + 2, l.after2}, {i - 1, l.answer}, {l.nearest, l.near},
		{l.farther, l.around}} {
		gains[g.place] += g.gain
	}
	for j := max(0, i-AroundReach); j <= min(len(members)-1, i+AroundReach); j++ {
		if gains[j] != 0 {
			e.Lenders = append(e.Lenders, Lender{Row: members[j].Row, ID: members[j].ID, Place: j - i,
				Asks: j == i-1 && l.answer > 0, Value: sums[j], Gain: factor * gains[j]})
		}
	}
	return e
}

// briefly explains a hit beyond the best candidates: its words and its meaning decide.
func (r *Ranking) briefly(hit index.Hit, stats index.Stats) *Explanation {
	s := r.Weights.shares(r.HasVector, false, false)
	o := own{words: words(stats, hit.Parts), meaning: meaning(hit.Parts)}
	return &Explanation{Words: Part{o.words, s.words * o.words}, Meaning: Part{o.meaning, s.meaning * o.meaning}}
}
