package main

import (
	"testing"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// floors are the minimum recall@10, in per cent, of the project's own questions among 1,500 memories of each language:
// the measured values, less one or two questions. Raise them when the ranking improves.
var floors = map[string]float64{
	"bug": 86, "conversation": 93, "decision": 76, "identifier": 100, "paraphrase": 12, "preference": 66, "rule": 70,
	"en": 77, "de": 64, "es": 70, "zh": 62, "ja": 70,
	"all": 70,
}

// leastMRR is the minimum mean reciprocal rank of all questions, in per cent.
const leastMRR = 53

// TestRankingKeepsItsQuality fails when a change of the ranking loses quality. `go run ./eval run own` prints all
// figures. With -record before and after, `go run ./eval compare` lists the lost questions.
func TestRankingKeepsItsQuality(t *testing.T) {
	longtest.Only(t)
	how := defaultSetting()
	how.direct = true
	answers, err := measure(t.Context(), own, []setting{how}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, p := range parts(answers) {
		floor, ok := floors[p.name]
		if !ok {
			t.Errorf("got no floor for %s, want one", p.name)
			continue
		}
		seen++
		if got := 100 * mean(recall10.values(p.answers)); got < floor {
			t.Errorf("%s: recall@10 is %.1f, want at least %.1f", p.name, got, floor)
		}
		if p.name == "all" {
			mrr := 0.0
			for _, a := range p.answers {
				mrr += 100 * a.reciprocalRank() / float64(len(p.answers))
			}
			if mrr < leastMRR {
				t.Errorf("all: MRR is %.1f, below its floor of %.1f; want at least %v", mrr, float64(leastMRR), leastMRR)
			}
		}
	}
	if seen != len(floors) {
		t.Errorf("%d of %d floors were compared, want the same", seen, len(floors))
	}
}
