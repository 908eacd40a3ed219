package calibrate

import (
	"math"
	"testing"
)

func TestGatherWeighsTheWordsOfTheQuestion(t *testing.T) {
	for _, test := range []struct {
		name  string
		words []Word
		want  Evidence
	}{
		{"no words", nil, Evidence{Cosine: 0.5}},
		{"a rare word counts more", []Word{{Weight: 3, Held: true}, {Weight: 1}},
			Evidence{Cosine: 0.5, Covered: 0.75, Identifier: 0}},
		{"words without weight are left out", []Word{{Weight: 0, Held: true}, {Weight: math.NaN()}, {Weight: 2}},
			Evidence{Cosine: 0.5, Covered: 0, Identifier: 0}},
		{"an identifier is missing", []Word{{Weight: 1, Held: true}, {Weight: 1, Identifier: true}},
			Evidence{Cosine: 0.5, Covered: 0.5, Identifier: -1}},
		{"one of two identifiers is there", []Word{{Weight: 1, Held: true, Identifier: true}, {Weight: 1, Identifier: true}},
			Evidence{Cosine: 0.5, Covered: 0.5, Identifier: 1}},
		{"in any order", []Word{{Weight: 1, Identifier: true}, {Weight: 1, Held: true, Identifier: true}},
			Evidence{Cosine: 0.5, Covered: 0.5, Identifier: 1}},
	} {
		if got := Gather(0.5, test.words); got != test.want {
			t.Errorf("%s: got %+v, want %+v", test.name, got, test.want)
		}
	}
	if got := Gather(-0.4, nil); got.Cosine != 0 {
		t.Errorf("a cosine below 0 counts as %v; want 0", got.Cosine)
	}
}

func TestProbabilityRisesWithTheEvidence(t *testing.T) {
	little := Evidence{Cosine: 0.2, Covered: 0.2}
	for name, more := range map[string]Evidence{
		"meaning":    {Cosine: 0.6, Covered: 0.2},
		"words":      {Cosine: 0.2, Covered: 0.6},
		"identifier": {Cosine: 0.2, Covered: 0.2, Identifier: 1},
		"around":     {Cosine: 0.2, Covered: 0.2, Around: 0.5},
	} {
		if a, b := Default.Probability(little), Default.Probability(more); !(a < b) {
			t.Errorf("%s: %v with more evidence, %v with less", name, b, a)
		}
	}
	missing := little
	missing.Identifier = -1
	if a, b := Default.Probability(missing), Default.Probability(little); !(a < b) {
		t.Errorf("without the identifier of the question: %v; without one in the question: %v", a, b)
	}
}

// TestHalfMeansProbably pins what 0.5 means: most words and some meaning are enough, either of them alone is not.
func TestHalfMeansProbably(t *testing.T) {
	for _, test := range []struct {
		name string
		Evidence
		want bool
	}{
		{"nothing", Evidence{}, false},
		{"meaning alone", Evidence{Cosine: 0.5}, false},
		{"a third of the words", Evidence{Cosine: 0.3, Covered: 0.33}, false},
		{"most words, and about the same", Evidence{Cosine: 0.4, Covered: 0.8}, true},
		{"all words", Evidence{Covered: 1}, true},
		{"few words, but the one before it has most", Evidence{Cosine: 0.3, Covered: 0.1, Around: 0.6}, true},
		{"an identifier among other words", Evidence{Cosine: 0.3, Covered: 0.5, Identifier: 1}, true},
		{"most words, but another identifier", Evidence{Cosine: 0.4, Covered: 0.5, Identifier: -1}, false},
	} {
		p := Default.Probability(test.Evidence)
		if (p >= 0.5) != test.want || !(p > 0 && p < 1) {
			t.Errorf("%s: %.2f; want at least 0.5: %v", test.name, p, test.want)
		}
	}
}
