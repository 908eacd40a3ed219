package ranking

import (
	"github.com/souvenir-ai/souvenir/internal/embedding/static"
	"github.com/souvenir-ai/souvenir/internal/retrieval/calibrate"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
)

// words returns BM25 as a fraction of the best possible, without the bonus of exact terms: these put memories into
// tiers (order.go), within which the other words decide.
func words(s index.Stats, p index.Parts) float32 {
	if s.HasExact(p) {
		p.BM25 -= s.Exact
	}
	return share(p.BM25, s.IdealBM25-s.Exact)
}

func share(part, of float32) float32 {
	if of <= 0 {
		return 0
	}
	return part / of
}

// meaning returns the cosine if it is above 0.
func meaning(p index.Parts) float32 { return max(0, p.Cosine) }

// late returns the late interaction with the memory's best passage.
func late(q *static.Question, passages [][]uint16) (best float32) {
	if q == nil {
		return 0
	}
	for _, rows := range passages {
		best = max(best, q.Score(rows))
	}
	return best
}

// Fuse returns the function that scores candidates, by words and meaning, as far as the query has them.
func Fuse(w Weights, hasWords, hasVector bool) func(index.Stats) func(index.Parts) float32 {
	return func(s index.Stats) func(index.Parts) float32 {
		return func(p index.Parts) float32 {
			switch {
			case !hasVector:
				return share(p.BM25, s.IdealBM25)
			case !hasWords:
				return meaning(p)
			}
			// Each product is rounded, so that all machines get the same result.
			return (float32(w.Words*share(p.BM25, s.IdealBM25)) + float32(w.Meaning*meaning(p))) / (w.Words + w.Meaning)
		}
	}
}

// own is the evidence of a memory by itself.
type own struct {
	words, meaning, late float32
	sum                  float32 // weighted; 0 to 1
}

// shares are the weights of a query's own evidence, with the sum 1.
type shares struct{ words, meaning, late float32 }

func (w Weights) shares(hasVector, hasLate, alone bool) shares {
	s := shares{words: w.Words, meaning: w.Meaning, late: w.Late}
	if alone {
		s.meaning, s.late = w.AloneMeaning, w.AloneLate
	}
	if !hasVector {
		s.meaning = 0
	}
	if !hasLate {
		s.late = 0
	}
	if sum := s.words + s.meaning + s.late; sum > 0 {
		s.words, s.meaning, s.late = s.words/sum, s.meaning/sum, s.late/sum
	}
	return s
}

// confidence says how likely it is that a memory is about the question, from its own evidence and from the highest that
// its conversation lends.
func confidence(o own, exact bool, around float32) float32 {
	return float32(calibrate.Default.Probability(calibrate.Evidence{Words: float64(o.words), Meaning: float64(o.meaning),
		Exact: exact, Around: float64(around)}))
}

func (o *own) weigh(s shares) {
	o.sum = float32(s.words*o.words) + float32(s.meaning*o.meaning) + float32(s.late*o.late)
}
