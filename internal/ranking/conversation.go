package ranking

import "github.com/souvenir-ai/souvenir/internal/index"

// lent is what a memory gains from its conversation, before it is divided by Weights.scale.
type lent struct {
	before, before2, after, after2, answer float32
	near, around                           float32
	asking, speaker                        float32
	nearest, farther                       int     // the places of the best within both reaches
	most                                   float32 // the highest evidence that another memory lends
}

func (l lent) sum() float32 {
	return l.before + l.before2 + l.after + l.after2 + l.answer + l.near + l.around + l.asking + l.speaker
}

// scale makes memories with and without a conversation comparable: the best around a memory that stands alone is
// itself.
func (w Weights) scale() float32 { return 1 + w.Near + w.Around }

// around returns what the member at place i of a neighbourhood gains. sums are the members' own evidence; named tells
// whether the query names a speaker.
func (w Weights) around(members []index.Member, sums []float32, i int, named func(string) bool) lent {
	at := func(j int) float32 {
		if j < 0 || j >= len(sums) {
			return 0
		}
		return sums[j]
	}
	l := lent{before: w.Before * at(i-1), before2: w.Before2 * at(i-2), after: w.After * at(i+1),
		after2: w.After2 * at(i+2)}
	l.nearest, l.farther = best(sums, i, NearReach), best(sums, i, AroundReach)
	l.near, l.around = w.Near*sums[l.nearest], w.Around*sums[l.farther]
	for _, j := range [...]int{i - 2, i - 1, i + 1, i + 2, l.nearest, l.farther} {
		if j != i {
			l.most = max(l.most, at(j))
		}
	}
	if i > 0 && members[i-1].Turn != nil && members[i-1].Turn.Asks {
		l.answer = w.Answer * at(i-1)
	}
	if t := members[i].Turn; t != nil {
		if t.Asks {
			l.asking = w.Asking
		}
		if t.Speaker != "" && named(t.Speaker) {
			l.speaker = w.Speaker
		}
	}
	return l
}

// best returns the place of the highest number within reach of a place; the place itself, or the first, if some are
// equal.
func best(sums []float32, i, reach int) int {
	at := i
	for j := max(0, i-reach); j <= min(len(sums)-1, i+reach); j++ {
		if sums[j] > sums[at] {
			at = j
		}
	}
	return at
}
