// Package calibrate estimates how likely it is that a memory is about a question, so that 0.5 means "probably" in
// collections of any size and in every language. The score of a search does not do this: it orders the memories of one
// search, and its magnitude depends on the question.
//
// The estimate is a logistic regression over evidence that the ranking computes anyway. Its weights were fitted by `go
// run ./eval fit`; docs/retrieval.md has the data and the results.
package calibrate

import "math"

// Evidence is the evidence for one memory. The zero value is none.
type Evidence struct {
	Words   float64 `json:"words"`   // BM25 of its best passage, as a fraction of the best possible: 0 to 1
	Meaning float64 `json:"meaning"` // cosine of the vectors of question and passage, 0 to 1
	Exact   bool    `json:"exact"`   // it holds a rare name or identifier of the question
	// the highest own evidence that another memory of the same conversation lends it, 0 to 1; 0 outside of conversations
	Around float64 `json:"around"`
}

// Weights are the weights of the regression: the logarithm of the odds is the sum of the evidence times the weights.
type Weights struct {
	Bias, Words, Meaning, Exact, Around float64
}

// Default are the weights for the built-in model.
var Default = Weights{Bias: -3.30, Words: 7.80, Meaning: 2.61, Exact: 2.91, Around: 6.75}

// Probability returns how likely it is that a memory with this evidence is about the question: 0 to 1. It rises with
// each kind of evidence.
func (w Weights) Probability(e Evidence) float64 {
	odds := w.Bias + w.Words*e.Words + w.Meaning*e.Meaning + w.Around*e.Around
	if e.Exact {
		odds += w.Exact
	}
	return 1 / (1 + math.Exp(-odds))
}
