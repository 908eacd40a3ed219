package calibrate_test

import (
	"testing"

	"github.com/souvenir-ai/souvenir/internal/retrieval/calibrate"
)

func TestProbabilityRisesWithTheEvidence(t *testing.T) {
	little := calibrate.Evidence{Words: 0.2, Meaning: 0.2}
	for name, more := range map[string]calibrate.Evidence{
		"words":   {Words: 0.4, Meaning: 0.2},
		"meaning": {Words: 0.2, Meaning: 0.6},
		"exact":   {Words: 0.2, Meaning: 0.2, Exact: true},
		"around":  {Words: 0.2, Meaning: 0.2, Around: 0.3},
	} {
		if a, b := calibrate.Default.Probability(little), calibrate.Default.Probability(more); !(a < b) {
			t.Errorf("%s: with less evidence %v, want less than the %v with more", name, a, b)
		}
	}
}

// TestHalfMeansProbably pins the meaning of 0.5. A score for words of 0.7 means all words of the question, once each,
// in a short memory.
func TestHalfMeansProbably(t *testing.T) {
	for _, test := range []struct {
		name string
		calibrate.Evidence
		want bool
	}{
		{"nothing", calibrate.Evidence{}, false},
		{"meaning alone", calibrate.Evidence{Meaning: 0.6}, false},
		{"a third of the words", calibrate.Evidence{Words: 0.23, Meaning: 0.3}, false},
		{"half of the words, and about the same", calibrate.Evidence{Words: 0.35, Meaning: 0.5}, true},
		{"all words", calibrate.Evidence{Words: 0.7}, true},
		{"few words, but the one before it has most", calibrate.Evidence{Words: 0.1, Meaning: 0.3, Around: 0.35}, true},
		{"an identifier among other words", calibrate.Evidence{Words: 0.15, Exact: true}, true},
	} {
		p := calibrate.Default.Probability(test.Evidence)
		if (p >= 0.5) != test.want || !(p > 0 && p < 1) {
			t.Errorf("%s: %.2f; want at least 0.5: %v", test.name, p, test.want)
		}
	}
}
