package ranking

import "github.com/souvenir-ai/souvenir/internal/retrieval/index"

// lent holds the score that a memory gains from its conversation, before division by scale.
type lent struct {
	before, before2, after, after2, answer float32
	near, around                           float32
	asking, speaker                        float32
	nearest, farther                       int     // the places of the best within both reaches
	most                                   float32 // the highest evidence that another memory lends
	scale                                  float32 // divides the sum of own evidence and gains
}

func (l *lent) sum() float32 {
	return l.before + l.before2 + l.after + l.after2 + l.answer + l.near + l.around + l.asking + l.speaker
}

// runs counts, for each place of a neighbourhood, the pairs of members up to it that follow each other and are by the
// same speaker. An unknown speaker equals no other.
func runs(counts []int32, members []index.Member) []int32 {
	counts = append(counts[:0], 0)
	for i := 1; i < len(members); i++ {
		n := counts[i-1]
		if sameSpeaker(members, i) {
			n++
		}
		counts = append(counts, n)
	}
	return counts
}

// sameSpeaker reports whether the member at place i is by the speaker of the one before it.
func sameSpeaker(members []index.Member, i int) bool {
	a, b := members[i-1].Turn, members[i].Turn
	return a != nil && b != nil && a.Speaker != "" && a.Speaker == b.Speaker
}

// chat returns the share of the pairs within AroundReach that are by the same speaker: 0 in a dialogue, in which people
// take turns, and more in a chat, in which they send several messages in a row.
func chat(runs []int32, i int) float32 {
	from, to := max(0, i-AroundReach), min(len(runs)-1, i+AroundReach)
	if from == to {
		return 0
	}
	return float32(runs[to]-runs[from]) / float32(to-from)
}

// around returns what the member at place i of a neighbourhood gains. sums are the members' own evidence, runs the
// pairs by the same speaker; named reports whether the query names a speaker.
func (w *Weights) around(members []index.Member, sums []float32, runs []int32, i int, named func(string) bool) lent {
	at := func(j int) float32 {
		if j < 0 || j >= len(sums) {
			return 0
		}
		return sums[j]
	}
	chat := chat(runs, i)
	less := 1 - w.Chat*chat
	near := w.Near * less
	l := lent{before: less * w.Before * at(i-1), before2: less * w.Before2 * at(i-2), after: less * w.After * at(i+1),
		after2: less * w.After2 * at(i+2)}
	l.nearest, l.farther = best(sums, i, NearReach), best(sums, i, AroundReach)
	// A memory outside a conversation is the best around itself, so that memories with and without a conversation are
	// comparable.
	l.near, l.around, l.scale = near*sums[l.nearest], w.Around*sums[l.farther], 1+near+w.Around
	for _, j := range [...]int{i - 2, i - 1, i + 1, i + 2, l.nearest, l.farther} {
		if j != i {
			l.most = max(l.most, at(j))
		}
	}
	if i > 0 && members[i-1].Turn != nil {
		if members[i-1].Turn.Asks {
			l.answer = w.Answer * at(i-1)
		}
		if chat > 0 && sameSpeaker(members, i) {
			l.before -= w.Same * chat * at(i-1)
		}
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
