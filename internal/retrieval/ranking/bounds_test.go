package ranking

import (
	"slices"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/embedding/static"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
	"github.com/souvenir-ai/souvenir/internal/text"
)

// TestBoundsChangeNoResult compares searches that look at distant members only where their bounds could matter with
// searches that compare everything exactly: hits, scores, confidences and explanations.
func TestBoundsChangeNoResult(t *testing.T) {
	g := newGenerator()
	ix := g.index(1500)
	bounded, members := 0, 0
	for range 25 {
		question := "what did Mara say about " + g.sentence(1+g.random.IntN(8))
		terms := text.QueryTerms(question)
		answer := func(bounds int) ([]index.Hit, map[int64]*Explanation) {
			q := index.Query{Vector: static.Default().Embed(nil, question, true), Partitions: []int64{1}, Limit: 20,
				BM25: index.BM25{K1: 0.9, B: 0.75, Pivot: 80}, Fuse: Fuse(Default, true, true)}
			for _, t := range terms {
				q.Terms = append(q.Terms, index.Term{Text: t.Text, Weight: t.Weight})
			}
			r := Ranking{Weights: Default, Question: NewQuestion(question, terms), HasVector: true,
				Explanations: map[int64]*Explanation{}}
			q.Rerank = r.Rerank()
			q.Rerank.Bounds = bounds
			q.Rerank.Rank = func(f index.Found) []index.Hit {
				hits := r.Rank(f)
				for _, of := range f.Neighbourhoods {
					for _, m := range of {
						members++
						if m.Bound {
							bounded++
						}
					}
				}
				return hits
			}
			hits, _, err := ix.Search(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			return hits, r.Explanations
		}
		got, gotWhy := answer((&Ranking{}).Rerank().Bounds)
		want, wantWhy := answer(0)
		if !slices.Equal(got, want) {
			t.Fatalf("%q: hits %+v, want %+v", question, got, want)
		}
		for _, h := range want {
			a, b := gotWhy[h.Row], wantWhy[h.Row]
			if a.Words != b.Words || a.Meaning != b.Meaning || a.Late != b.Late || !slices.Equal(a.Lenders, b.Lenders) {
				t.Fatalf("%q: the explanation of %d is %+v, want %+v", question, h.Row, a, b)
			}
		}
	}
	t.Logf("%d of %d members in both searches are left with a bound", bounded, members)
}
