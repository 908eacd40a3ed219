package souvenir

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
)

// TestPassageOfAnotherContentIsTheWhole covers an index that is newer than the snapshot in which a memory is read.
func TestPassageOfAnotherContentIsTheWhole(t *testing.T) {
	const content = "näher"
	for span, want := range map[index.Span][2]int{
		{Start: 0, End: 6}: {0, 6},
		{Start: 1, End: 3}: {1, 3}, // the ä
		{Start: 3, End: 3}: {3, 3},
		{Start: 0, End: 7}: {0, 6}, // too long
		{Start: 9, End: 9}: {0, 6}, // beyond the end
		{Start: 2, End: 6}: {0, 6}, // begins within the ä
		{Start: 0, End: 2}: {0, 6}, // ends within the ä
		{Start: 4, End: 3}: {0, 6},
	} {
		if start, end := span.In(content); [2]int{start, end} != want {
			t.Errorf("%v is %d to %d of %q, want %v", span, start, end, content, want)
		}
	}
}

// TestPriorsOrderSimilarHits covers each prior, in memory and from the file.
func TestPriorsOrderSimilarHits(t *testing.T) {
	for name, memory := range map[string]int64{"in memory": 0, "from the file": -1} {
		t.Run(name, func(t *testing.T) {
			clock := newMovingClock(time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC))
			s := openWords(t, "", Options{Now: clock.Now, IndexMemory: memory})
			if _, err := s.AddCollection(t.Context(), NewCollection{Name: "notes"}); err != nil {
				t.Fatal(err)
			}
			for _, m := range []NewMemory{
				{Content: "the heron stands in the reeds", State: "done", Importance: ImportanceCritical},
				{Content: "the heron stands in the marsh", State: "open"},
				{Content: "the heron stands in the river", State: "done", Importance: ImportanceLow},
			} {
				m.Collection = "notes"
				if _, err := s.AddMemory(t.Context(), m); err != nil {
					t.Fatal(err)
				}
				clock.Pass(30 * 24 * time.Hour)
			}
			search := func(p Priors) []Hit {
				results, err := s.Search(t.Context(), Query{Text: "heron stands", Priors: p, Explain: true})
				if err != nil {
					t.Fatal(err)
				}
				return results.Hits
			}
			for _, test := range []struct {
				Priors
				want string // the last word of the best hit
			}{
				{Priors{Recency: 0.3}, "river"},
				{Priors{Importance: 0.3}, "reeds"},
				{Priors{State: 0.3, States: map[string]float64{"open": 1}}, "marsh"},
				{Priors{Recency: 0.1, Importance: 0.3}, "reeds"},
			} {
				hits := search(test.Priors)
				if len(hits) != 3 || !strings.HasSuffix(hits[0].Content, test.want) {
					t.Errorf("%+v: %+v; want the one in the %s first", test.Priors, hits, test.want)
				}
				for _, h := range hits {
					x := h.Explanation
					sum := x.Words.Gain + x.Meaning.Gain + x.Late.Gain
					for _, e := range []*Evidence{x.Recency, x.Importance, x.State} {
						if e != nil {
							sum += e.Gain
						}
					}
					if math.Abs(sum-h.Score) > 1e-5 {
						t.Errorf("the explanation of %q adds up to %v, want %v", h.Content, sum, h.Score)
					}
				}
			}
			if x := search(Priors{Recency: 1})[0].Explanation.Recency; x == nil || math.Abs(x.Value-0.5) > 1e-6 {
				t.Errorf("recency of a change 30 days ago: %+v, want a half", x)
			}
			if hits := search(Priors{Recency: 1, HalfLife: 1}); math.IsNaN(hits[0].Score) {
				t.Error("the score with a half-life of a nanosecond is not a number")
			}
			if x := search(Priors{})[0].Explanation; x.Recency != nil || x.Importance != nil || x.State != nil {
				t.Errorf("priors that no caller asked for: %+v", x)
			}
		})
	}
}

func TestPriorsAreChecked(t *testing.T) {
	s := openWords(t, ":memory:", Options{})
	for _, p := range []Priors{{Recency: -1}, {Importance: 1.5}, {State: math.NaN()}, {HalfLife: -1},
		{States: map[string]float64{"open": 2}}} {
		_, err := s.Search(t.Context(), Query{Text: "heron", Priors: p})
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v, want an invalid argument", p, err)
		}
	}
}
