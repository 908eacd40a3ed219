package storetest

import (
	"fmt"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// stocked stores memories: one answers "When does the ferry to Naxos leave?", and several share a word with it.
func stocked(f *fixture) {
	f.Helper()
	for i := range 30 {
		f.addTexts(fmt.Sprintf("Note %d of the harbour: the tide was low and the nets were dry.", i))
	}
	f.addTexts("The ferry to Naxos leaves at seven.", "A ferry was painted blue in spring.",
		"The train to the coast leaves from platform two on weekdays.")
}

const (
	answered   = "When does the ferry to Naxos leave?"
	unanswered = "Which dentist did the grandmother of Ottilie recommend?"
)

func searchConfidence(f *fixture) {
	stocked(f)
	found := f.search(souvenir.Query{Text: answered})
	first := found.Hits[0]
	if first.Content != "The ferry to Naxos leaves at seven." || first.Confidence < 0.5 || first.Confidence >= 1 {
		f.Errorf("first is %q with a confidence of %v; want the answer, with 0.5 or more", first.Content, first.Confidence)
	}
	if found.Found < 1 || found.Found >= found.Total {
		f.Errorf("%d of %d are probably about the question; want some", found.Found, found.Total)
	}
	for _, h := range f.search(souvenir.Query{Text: unanswered}).Hits {
		if h.Confidence >= 0.5 {
			f.Errorf("%q has a confidence of %v in what it does not answer, want less than 0.5", h.Content, h.Confidence)
		}
	}
	f.equal("found of what nothing answers", f.search(souvenir.Query{Text: unanswered}).Found, 0)
	for _, h := range f.search(souvenir.Query{Vector: Words{}.Vector("ferry")}).Hits {
		f.equal("confidence without a text", h.Confidence, max(0, h.Parts.Vector))
	}
	newest := f.search(souvenir.Query{})
	f.equal("nothing is sought", []any{newest.Found, newest.Hits[0].Confidence}, []any{newest.Total, 0.0})
	f.equal("in JSON", strings.Contains(toJSON(found), `"confidence":0.`) && strings.Contains(toJSON(found), `"found":`),
		true)
}

func searchMinScore(f *fixture) {
	stocked(f)
	all := f.search(souvenir.Query{Text: answered, Limit: souvenir.MaxLimit})
	for _, least := range []float64{0.01, 0.3, 0.5, 0.9, 1} {
		var want []string
		for _, h := range all.Hits {
			if h.Confidence >= least {
				want = append(want, h.ID)
			}
		}
		q := souvenir.Query{Text: answered, MinScore: least, Limit: 2}
		var got []string
		for more := true; more; q.Offset += q.Limit {
			page := f.search(q)
			for _, h := range page.Hits {
				got = append(got, h.ID)
				f.equal("rank", h.Rank, len(got))
			}
			f.equal(fmt.Sprint("total and found from ", least), []int{page.Total, page.Found}, []int{len(want), len(want)})
			more = page.HasMore()
		}
		f.same(fmt.Sprint("from ", least), got, want...)
	}
	none := f.search(souvenir.Query{Text: unanswered, MinScore: 0.5})
	f.equal("what nothing answers", []int{len(none.Hits), none.Total, none.Found}, []int{0, 0, 0})
	late := f.search(souvenir.Query{Text: answered, MinScore: 0.5, Sort: souvenir.SortCreatedAsc})
	for _, h := range late.Hits {
		if h.Confidence < 0.5 {
			f.Errorf("by time, %q has a confidence of %v; want at least 0.5", h.Content, h.Confidence)
		}
	}
	f.equal("by time, none", f.search(souvenir.Query{Text: unanswered, MinScore: 0.5,
		Sort: souvenir.SortCreatedAsc}).Total, 0)
	for _, least := range []float64{-0.1, 1.1, float64(nan())} {
		_, err := f.reader.Search(f.ctx, souvenir.Query{Text: answered, MinScore: least})
		f.failsAt("Search with a bad least score", err, souvenir.ErrInvalid, "min_score", "0 to 1")
	}
}

func contextUnrelated(f *fixture) {
	stocked(f)
	c := f.context(souvenir.ContextQuery{Query: unanswered})
	f.same("related to what nothing is about", listed(c.Related))
	if text := strings.Join(c.Warnings, "\n"); !strings.Contains(text, "probably no memory is about the query") {
		f.Errorf("warnings are %q; want one that says why nothing is related", text)
	}
	f.equal("with all", len(f.context(souvenir.ContextQuery{Query: unanswered, MinScore: -1}).Related), 7)
	c = f.context(souvenir.ContextQuery{Query: answered})
	if len(c.Related) == 0 || c.Related[0].Content != "The ferry to Naxos leaves at seven." || len(c.Warnings) > 0 {
		f.Errorf("related are %q, warnings %q; want the answer first", listed(c.Related), c.Warnings)
	}
	f.same("with more than it reaches", listed(f.context(souvenir.ContextQuery{Query: answered, MinScore: 1}).Related))
	for _, least := range []float64{1.1, float64(nan())} {
		_, err := f.reader.GetContext(f.ctx, souvenir.ContextQuery{Query: answered, MinScore: least})
		f.failsAt("GetContext with a bad least score", err, souvenir.ErrInvalid, "min_score", "at most 1")
	}
}
