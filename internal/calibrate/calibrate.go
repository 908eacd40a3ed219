// Package calibrate estimates how likely it is that a memory is about a question, so that 0.5 means "probably" in
// every collection and language. The score of a search does not: it orders the memories of one search, and depends on
// how many words a question has and how common they are.
//
// The estimate is a logistic regression over a few kinds of evidence. Its weights were fitted by `go run ./eval fit`;
// docs/retrieval.md says on what, and how well it does.
package calibrate

import "math"

// Word is a term of a question, in relation to one passage.
type Word struct {
	Weight     float64 // its inverse document frequency in what is searched, times its weight in the question
	Held       bool    // the passage contains it
	Identifier bool    // it looks like a code, a version or a path: a passage either contains it or is about another one
}

// Evidence is what speaks for one passage. The zero value is none.
type Evidence struct {
	Cosine  float64 `json:"cosine"`  // of the vectors of question and passage; 0 if below
	Covered float64 `json:"covered"` // the share of the question's terms that it contains, by weight: 0 to 1
	// 1: it contains an identifier of the question; -1: the question has some, and it none; 0: the question has none
	Identifier float64 `json:"identifier"`
	// the largest Covered of the memories around it in the same conversation, within the reach of the ranking; 0
	// outside of conversations
	Around float64 `json:"around"`
}

// Gather returns what the words of a question, its terms, and the vectors say of a passage.
func Gather(cosine float64, words []Word) Evidence {
	e := Evidence{Cosine: max(0, cosine)}
	var all, held float64
	for _, w := range words {
		if !(w.Weight > 0) {
			continue
		}
		all += w.Weight
		if w.Held {
			held += w.Weight
		}
		switch {
		case w.Identifier && w.Held:
			e.Identifier = 1
		case w.Identifier && e.Identifier == 0:
			e.Identifier = -1
		}
	}
	if all > 0 {
		e.Covered = held / all
	}
	return e
}

// Weights are those of the regression: the logarithm of the odds is their sum, times the evidence.
type Weights struct {
	Bias, Cosine, Covered, Identifier, Around float64
}

// Default are the weights for the built-in model.
var Default = Weights{Bias: -3.28, Cosine: 2.84, Covered: 4.67, Identifier: 2.64, Around: 4.89}

// Probability returns how likely it is that a passage with this evidence is about the question: 0 to 1. It rises with
// each kind of evidence.
func (w Weights) Probability(e Evidence) float64 {
	odds := w.Bias + w.Cosine*e.Cosine + w.Covered*e.Covered + w.Identifier*e.Identifier + w.Around*e.Around
	return 1 / (1 + math.Exp(-odds))
}
