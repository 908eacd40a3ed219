package ranking

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/retrieval/calibrate"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
	"github.com/souvenir-ai/souvenir/internal/text"
)

// turnsOf makes a neighbourhood whose members have the given evidence of words, 0 to 1.
func turnsOf(row int64, evidence ...float32) []index.Member {
	members := make([]index.Member, len(evidence))
	for i, e := range evidence {
		members[i] = index.Member{Hit: index.Hit{Row: row + int64(i), ID: fmt.Sprintf("%04d", row+int64(i)),
			Parts: index.Parts{BM25: e}},
			Turn: &index.Turn{Conversation: 1, At: int64(i)}, Known: true, Kept: true}
	}
	return members
}

func found(neighbourhoods ...[]index.Member) index.Found {
	f := index.Found{Stats: index.Stats{IdealBM25: 1}, Weights: make([]float32, 8), Neighbourhoods: neighbourhoods}
	return f
}

// candidates makes hits of all members that are not 0, best first.
func candidates(f index.Found, except ...int64) index.Found {
	for n, members := range f.Neighbourhoods {
		for i, m := range members {
			if m.BM25 > 0 && !slices.Contains(except, m.Row) {
				m.Score = m.BM25
				f.Hits, f.Ranked = append(f.Hits, m.Hit), append(f.Ranked, index.Place{Neighbourhood: n, Member: i})
			}
		}
	}
	return f
}

func scores(hits []index.Hit) map[int64]float32 {
	all := map[int64]float32{}
	for _, h := range hits {
		all[h.Row] = h.Score
	}
	return all
}

func same(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-6 }

// TestConversationEvidenceIsItsFormula computes one score by hand.
func TestConversationEvidenceIsItsFormula(t *testing.T) {
	w := Weights{Words: 1, Before: 0.1, Before2: 0.2, After: 0.3, After2: 0.05, Answer: 0.4, Near: 0.5, Around: 0.6,
		Asking:  -0.05,
		Speaker: 0.15}
	members := turnsOf(10, 0.9, 0, 0, 0, 0, 0.1, 0.2, 0.3, 0.4, 0.35, 0, 0.6)
	members[6].Turn.Asks = true
	members[7].Turn.Asks, members[7].Turn.Speaker = true, "Mara Quill"
	r := Ranking{Weights: w, Question: NewQuestion("what did Mara say", text.QueryTerms("what did Mara say"))}
	got := scores(r.Rank(candidates(found(members))))[17]
	want := (0.3 + 0.1*0.2 + 0.2*0.1 + 0.3*0.4 + 0.05*0.35 + 0.4*0.2 + 0.5*0.4 + 0.6*0.9 - 0.05 + 0.15) / (1 + 0.5 + 0.6)
	if !same(got, float32(want)) {
		t.Errorf("score %v, want %v", got, want)
	}
	members[7].Turn.Asks, members[7].Turn.Speaker = false, "Ann"
	if got := scores(r.Rank(candidates(found(members))))[17]; !same(got, float32(want+(0.05-0.15)/2.1)) {
		t.Errorf("got the score %v without a name in text or question, want %v", got, float32(want+(0.05-0.15)/2.1))
	}
}

// TestAloneIsComparable checks that a memory without a conversation has the same score as one with silent neighbours.
func TestAloneIsComparable(t *testing.T) {
	alone := turnsOf(1, 0.5)
	alone[0].Turn = nil
	f := candidates(found(alone, turnsOf(10, 0, 0, 0.5, 0, 0)))
	r := Ranking{Weights: Default}
	got := scores(r.Rank(f))
	if !same(got[1], 0.5) || !same(got[12], 0.5) {
		t.Errorf("scores %v and %v, want 0.5", got[1], got[12])
	}
}

// TestNeighboursOfCandidatesAreRanked covers members that become hits without being candidates.
func TestNeighboursOfCandidatesAreRanked(t *testing.T) {
	members := turnsOf(10, 0, 0, 0, 0.9, 0, 0, 0)
	members[2].Kept = false
	members[4].Kept, members[4].Known = false, false
	r := Ranking{Weights: Default}
	var rows []int64
	for _, h := range r.Rank(candidates(found(members))) {
		rows = append(rows, h.Row)
	}
	slices.Sort(rows)
	if want := []int64{11, 13, 15}; !slices.Equal(rows, want) {
		t.Errorf("hits %v, want %v: two places to each side, and only what may be shown", rows, want)
	}
}

// TestExactTermsComeFirst tries every position of a memory with an exact term: best, worst, among or behind the
// candidates that are ranked again, and beside strong neighbours.
func TestExactTermsComeFirst(t *testing.T) {
	strong := turnsOf(10, 0.19, 0.19, 0.19, 0.19, 0.19)
	for i := range strong {
		strong[i].Cosine, strong[i].HasVector = 1, true
	}
	weak := turnsOf(100, 0.8)
	weak[0].Turn = nil
	f := candidates(found(strong, weak))
	f.Exact = 0.8
	late := index.Hit{Row: 200, ID: "0200", Parts: index.Parts{BM25: 0.85}, Score: 0.1}
	f.Hits = append(f.Hits, late)
	r := Ranking{Weights: Default, HasVector: true}
	hits := r.Rank(f)
	if hits[0].Row != 100 || hits[1].Row != 200 {
		t.Errorf("%+v; want those with the exact term first", hits[:3])
	}
	last := float32(1)
	for _, h := range hits {
		if h.Score > last || h.Score < 0 {
			t.Errorf("score %v, want 0 to %v, the one before it", h.Score, last)
		}
		last = h.Score
	}
}

// TestOrderDoesNotDependOnTheLimit compares the order with few candidates beyond the depth and with many.
func TestOrderDoesNotDependOnTheLimit(t *testing.T) {
	for _, exact := range []float32{0, 0.8} {
		members := turnsOf(10, 0.3, 0.2, 0.9, 0, 0, 0.5, 0.1)
		f := candidates(found(members), 10, 16)
		f.Exact = exact
		for i := range 40 {
			h := members[0].Hit // one that is already a neighbour
			if i%10 > 0 {
				h = index.Hit{Row: int64(1000 + i), ID: fmt.Sprint(1000 + i), Parts: index.Parts{BM25: 0.3 - float32(i)/200}}
			}
			h.Score = 0.5 - float32(i)/100
			f.Hits = append(f.Hits, h)
		}
		all := (&Ranking{Weights: Default}).Rank(f)
		for n := len(f.Ranked); n < len(f.Hits); n++ {
			fewer := f
			fewer.Hits = f.Hits[:n]
			for i, h := range (&Ranking{Weights: Default}).Rank(fewer)[:n] {
				if h.Row != all[i].Row || h.Score != all[i].Score {
					t.Fatalf("place %d of %d is %+v, and %+v of all, want row %v and score %v", i, n, h, all[i], all[i].Row,
						all[i].Score)
				}
			}
		}
	}
}

func TestQuestionsLeaveOutFunctionWords(t *testing.T) {
	of := func(s string) int { return len(NewQuestion(s, text.QueryTerms(s)).words) }
	for s, want := range map[string]int{"": 0, "?!": 0, "what did the heron say to the otter?": 3, "the": 1} {
		if got := of(s); got != want {
			t.Errorf("%q has %d words, want %d", s, got, want)
		}
	}
}

// TestWordsCountAmongMemoriesWithAnExactTerm checks that within a tier the other words decide, although the bonus of an
// exact term is much larger.
func TestWordsCountAmongMemoriesWithAnExactTerm(t *testing.T) {
	few, many := turnsOf(1, 0.82)[0], turnsOf(2, 0.98)[0]
	few.Turn, many.Turn = nil, nil
	few.Cosine, few.HasVector = 0.4, true
	f := candidates(found([]index.Member{few}, []index.Member{many}))
	f.Exact = 0.8
	r := Ranking{Weights: Weights{Words: 0.65, AloneMeaning: 0.35}, HasVector: true}
	hits := r.Rank(f)
	if hits[0].Row != 2 {
		t.Errorf("first is %+v; want the memory with nine tenths of the other words", hits[0])
	}
	if got := scores(hits)[2]; !same(got, 0.5+0.5*0.65*0.9) {
		t.Errorf("score %v, want %v", got, 0.5+0.5*0.65*0.9)
	}
}

// TestWeightsDependOnKnownWords covers questions of words that the built-in model knows, and of words that it must
// spell.
func TestWeightsDependOnKnownWords(t *testing.T) {
	of := func(s string) Question { return NewQuestion(s, text.QueryTerms(s)) }
	for _, test := range []struct {
		text        string
		least, most float32
	}{
		{"which doctor treats the allergy of the child", 0.9, 1},
		{"", 0, 0},
		{"Zugangsberechtigungen Lastverteilerkonfiguration", 0, 0},
		{"doctor Lastverteilerkonfiguration", 0.4, 0.6},
		{"医生 朋友", 0.9, 1},
		{"鲸落嗡", 0, 0.1},
	} {
		if got := of(test.text).Known; got < test.least || got > test.most {
			t.Errorf("%q: the model covers %.2f of it, want %v to %v", test.text, got, test.least, test.most)
		}
	}
	w := Weights{Words: 1, Meaning: 0.5, Late: 0.4, AloneMeaning: 0.3, AloneLate: 0.2, OtherMeaning: 0.6, Known: 1}
	half := Question{Known: 0.5}
	if got, want := w.For(half, true), (Weights{Words: 1, Meaning: 0.25, Late: 0.2, AloneMeaning: 0.15, AloneLate: 0.1,
		OtherMeaning: 0.6, Known: 1}); got != want {
		t.Errorf("with the built-in model %+v, want %+v", got, want)
	}
	if got := w.For(half, false); got.Meaning != 0.5 || got.AloneMeaning != 0.6 || got.Late != 0.2 {
		t.Errorf("with another embedder %+v; want its meaning at full weight, and OtherMeaning for AloneMeaning", got)
	}
}

// TestConfidenceIsOfTheEvidence covers which evidence counts, and how many hits are counted.
func TestConfidenceIsOfTheEvidence(t *testing.T) {
	members := turnsOf(10, 0.05, 0.7, 0, 0, 0.05)
	alone := turnsOf(100, 0.7)
	alone[0].Turn = nil
	f := candidates(found(members, alone))
	f.Hits = append(f.Hits, index.Hit{Row: 200, ID: "0200", Parts: index.Parts{BM25: 0.6}})
	r := Ranking{Weights: Default}
	got := map[int64]float32{}
	for _, h := range append(r.Rank(f), r.Rank(f)...) { // twice: it counts from zero
		got[h.Row] = h.Confidence
	}
	want := func(words, around float64) float32 {
		return float32(calibrate.Default.Probability(calibrate.Evidence{Words: words, Around: around}))
	}
	// 14 has the strongest neighbour three places before it.
	for row, want := range map[int64]float32{10: want(0.05, 0.7), 11: want(0.7, 0.05), 14: want(0.05, 0.7),
		100: want(0.7, 0), 200: want(0.6, 0)} {
		if !same(got[row], want) {
			t.Errorf("confidence of %d is %v, want %v", row, got[row], want)
		}
	}
	probable := 0
	for row, p := range got {
		if p >= 0.5 && row != 200 {
			probable++
		}
	}
	if r.Confident != probable {
		t.Errorf("%d are counted as probable, want %d: those with all evidence", r.Confident, probable)
	}
}

// TestPriorsAreAddedToTheScore computes scores by hand, with their explanations, and without hits.
func TestPriorsAreAddedToTheScore(t *testing.T) {
	one, two := turnsOf(1, 0.6), turnsOf(2, 0.5)
	one[0].Turn, two[0].Turn = nil, nil
	f := candidates(found(one, two))
	r := Ranking{Weights: Default, Explanations: map[int64]*Explanation{}}
	r.Priors = Priors{Weights: Prior{Recency: 0.2, Importance: 0.1, State: 0.3},
		Of: func(rows []int64) (map[int64]Prior, error) {
			slices.Sort(rows)
			if !slices.Equal(rows, []int64{1, 2}) {
				t.Errorf("asked for %v, want 1 and 2", rows)
			}
			return map[int64]Prior{2: {Recency: 1, Importance: 0.5, State: 0.25}}, nil
		}}
	hits := r.Rank(f)
	if len(hits) != 2 || hits[0].Row != 2 {
		t.Fatalf("%+v; want memory 2 first", hits)
	}
	got := scores(hits)
	for row, want := range map[int64]float32{1: 0.6 / 1.6, 2: (0.5 + 0.2 + 0.05 + 0.075) / 1.6} {
		if !same(got[row], want) {
			t.Errorf("score of %d is %v, want %v", row, got[row], want)
		}
		e := r.Explanations[row]
		if sum := e.Words.Gain + e.Recency.Gain + e.Importance.Gain + e.State.Gain; !same(sum, want) {
			t.Errorf("the explanation of %d adds up to %v, want %v", row, sum, want)
		}
	}
	want := errors.New("the disk is gone")
	r.Priors.Of = func([]int64) (map[int64]Prior, error) { return nil, want }
	if r.Rank(f); !errors.Is(r.Failed, want) {
		t.Errorf("failed with %v, want %v", r.Failed, want)
	}
}

// TestChatsLendLess computes a score where half of the messages around follow one by the same speaker, and where
// speakers alternate or are unknown.
func TestChatsLendLess(t *testing.T) {
	w := Weights{Words: 1, Before: 0.1, Before2: 0.2, After: 0.3, After2: 0.05, Near: 0.5, Around: 0.6, Chat: 0.4,
		Same: 0.3}
	members := turnsOf(10, 0.2, 0.1, 0.4, 0.5, 0.1, 0.2, 0.3)
	score := func(speakers string) float32 {
		for i, s := range strings.Split(speakers, "") {
			members[i].Turn.Speaker = strings.Trim(s, "-")
		}
		r := Ranking{Weights: w, Explanations: map[int64]*Explanation{}}
		got := scores(r.Rank(candidates(found(members))))[13]
		sum := r.Explanations[13].Words.Gain
		for _, l := range r.Explanations[13].Lenders {
			sum += l.Gain
		}
		if !same(sum, got) {
			t.Errorf("%q: the explanation adds up to %v, want %v", speakers, sum, got)
		}
		return got
	}
	of := func(chat, before float32) float32 {
		less := 1 - w.Chat*chat
		lent := less*(w.Before*0.4+w.Before2*0.1+w.After*0.1+w.After2*0.2+w.Near*0.5) + w.Around*0.5 - before
		return (0.5 + lent) / (1 + less*w.Near + w.Around)
	}
	for _, test := range []struct {
		speakers string // one letter each; - for unknown
		want     float32
	}{
		{"ababaab", of(1./6, 0)},
		{"aabbaab", of(3./6, 0.3*3/6*0.4)},
		{"aaaaaaa", of(1, 0.3*0.4)},
		{"-------", of(0, 0)},
	} {
		got := score(test.speakers)
		if !same(got, test.want) {
			t.Errorf("%q: score %v, want %v", test.speakers, got, test.want)
		}
	}
}
