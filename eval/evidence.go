package main

import (
	"context"
	"slices"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/eval/questions"
	"github.com/souvenir-ai/souvenir/internal/retrieval/calibrate"
)

// judgedHits is the number of best hits of a question that are judged.
const judgedHits = 10

// judged is a question with the evidence of its best hits.
type judged struct {
	set, language, half string
	unanswerable        bool
	hits                []judgedHit
}

type judgedHit struct {
	calibrate.Evidence
	answers bool
	score   float64 // of the search
}

// judge asks the questions of a set and gathers the evidence of their best hits. If a set of several conversations has
// no unanswerable questions, each question is also asked in the next conversation, which cannot answer it.
func judge(ctx context.Context, path string) ([]judged, error) {
	s, err := readSet(path)
	if err != nil {
		return nil, err
	}
	s.questions = append(s.questions, elsewhere(s)...)
	l, err := load(ctx, s, storing{direct: true})
	if err != nil {
		return nil, err
	}
	defer l.store.Close()
	var all []judged
	for _, q := range s.questions {
		query := souvenir.Query{Text: q.Question, Collections: []string{q.Conv}, Limit: judgedHits, Explain: true}
		found, err := l.store.Search(ctx, query)
		if err != nil {
			return nil, err
		}
		j := judged{set: s.name, language: q.Language, half: q.Half, unanswerable: q.Unanswerable}
		if j.half == "" {
			j.half = questions.Half(q.QID)
		}
		for _, h := range found.Hits {
			x := h.Explanation
			e := calibrate.Evidence{Words: x.Words.Value, Meaning: x.Meaning.Value, Exact: x.Exact > 0}
			for _, lender := range x.Neighbours {
				if lender.Place != 0 {
					e.Around = max(e.Around, lender.Value)
				}
			}
			j.hits = append(j.hits, judgedHit{e, slices.Contains(q.Evidence, l.ids[h.ID]), h.Score})
		}
		all = append(all, j)
	}
	return all, nil
}

// elsewhere returns each question of a set once more, asked in the next conversation, where nothing answers it.
func elsewhere(s set) []row {
	if len(s.convs) < 2 || slices.ContainsFunc(s.questions, func(q row) bool { return q.Unanswerable }) {
		return nil
	}
	var asked []row
	for _, q := range s.questions {
		q.Conv = s.convs[(slices.Index(s.convs, q.Conv)+1)%len(s.convs)]
		q.Evidence, q.Unanswerable = nil, true
		asked = append(asked, q)
	}
	return asked
}
