package main

import (
	"math"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/retrieval/calibrate"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// TestLogisticFindsTheWeights draws labels from known weights and fits them.
func TestLogisticFindsTheWeights(t *testing.T) {
	want := vector{-2, 3, 4, 1}
	var examples []example
	for i := range 20 {
		for k := range 20 {
			for m := -1; m <= 1; m++ {
				e := example{evidence: vector{1, float64(i) / 20, float64(k) / 20, float64(m)}}
				sum := 0.0
				for n, x := range e.evidence {
					sum += want[n] * x
				}
				p := 1 / (1 + math.Exp(-sum))
				yes, no := e, e
				yes.answers, yes.weight, no.weight = 1, 10*p, 10*(1-p)
				examples = append(examples, yes, no)
			}
		}
	}
	got := logistic(examples)
	for i := range want {
		if math.Abs(got[i]-want[i]) > 0.05 {
			t.Errorf("weight %d: got %.3f, want %.3f", i, got[i], want[i])
		}
	}
}

// TestCalibrationRefusesUnanswerableQuestions compares the current weights with the figures of docs/retrieval.md, on
// the half of the project's own questions that they were not fitted to.
func TestCalibrationRefusesUnanswerableQuestions(t *testing.T) {
	longtest.Only(t)
	const refusedAtLeast, offeredAtLeast = 0.85, 0.3
	var without, silent, with, offered int
	paths := []string{"own:100"}
	if longtest.All() {
		paths = append(paths, own)
	}
	for _, path := range paths {
		questions, err := judge(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range questions {
			if j.half != "test" {
				continue
			}
			if j.unanswerable {
				without++
				if j.best(defaultWeights.of) < 0.5 {
					silent++
				}
				continue
			}
			with++
			for _, h := range j.hits {
				if h.answers && defaultWeights.of(h) >= 0.5 {
					offered++
				}
			}
		}
	}
	if got := float64(silent) / float64(without); got < refusedAtLeast {
		t.Errorf("nothing is offered for %.2f of what nothing answers; want %.2f", got, refusedAtLeast)
	}
	if got := float64(offered) / float64(with); got < offeredAtLeast {
		t.Errorf("the answer is offered for %.2f of what has one; want %.2f", got, offeredAtLeast)
	}
}

// TestQuestionsAreAskedElsewhere checks the unanswerable questions that are made from a set of conversations.
func TestQuestionsAreAskedElsewhere(t *testing.T) {
	s := set{convs: []string{"a", "b"}, questions: []row{{QID: "q", Conv: "b", Evidence: []string{"1"}}}}
	got := elsewhere(s)
	if len(got) != 1 || got[0].Conv != "a" || !got[0].Unanswerable || got[0].Evidence != nil ||
		s.questions[0].Conv != "b" {
		t.Errorf("got %+v, and the set %+v; want question a alone, and a set with b", got, s)
	}
	s.questions[0].Unanswerable = true
	if got := elsewhere(s); got != nil {
		t.Errorf("a set with questions that nothing answers got more: %+v, want nil", got)
	}
	if elsewhere(set{convs: []string{"a"}, questions: []row{{Conv: "a"}}}) != nil {
		t.Error("a set of one conversation got questions that nothing answers, want nil")
	}
}

// TestFittedWeightsOrderTheEvidence fits weights to questions whose answers have more evidence.
func TestFittedWeightsOrderTheEvidence(t *testing.T) {
	var dev []judged
	for i := range 40 {
		strength := 0.3 + float64(i%10)/20
		dev = append(dev,
			judged{set: own, hits: []judgedHit{{answers: true,
				Evidence: calibrate.Evidence{Meaning: strength, Words: strength + 0.2}}}},
			judged{set: own, unanswerable: true,
				hits: []judgedHit{{Evidence: calibrate.Evidence{Meaning: strength - 0.2, Words: strength - 0.2}}}})
	}
	r := fitWeights(dev)
	if r.Words <= 0 {
		t.Errorf("got %+v; want a weight above 0 for what the answers have more of", r)
	}
	silent := 0
	for _, j := range dev {
		if j.unanswerable && j.best(r.of) < 0.5 {
			silent++
		}
	}
	if silent < 32 || silent > 36 {
		t.Errorf("nothing is offered for %d of 40 questions that nothing answers; want about %.0f", silent, refused*40)
	}
}
