package souvenir

import "github.com/souvenir-ai/souvenir/internal/ranking"

// Explanation says what the score of a hit consists of. What it names as gains adds up to the score, unless that would
// be above 1, or above the score of a hit that comes before it for another reason.
type Explanation struct {
	Words   Evidence `json:"words"`             // BM25, as a part of the best that the query's words could reach
	Meaning Evidence `json:"meaning"`           // cosine similarity of the vectors
	Late    Evidence `json:"late_interaction"`  // how near each of the query's words is to the nearest one in the memory
	Exact   float64  `json:"exact,omitempty"`   // what it gains because it holds a rare name or identifier of the query
	Asking  float64  `json:"asking,omitempty"`  // below 0: what it loses because it asks itself
	Speaker float64  `json:"speaker,omitempty"` // what it gains because the query names who said it
	Lenders []Lender `json:"lenders,omitempty"` // what was said around it in the same conversation, in order
}

// Evidence is one kind of evidence of a memory: how strong it is, 0 to 1, and what it adds to the score.
type Evidence struct {
	Value float64 `json:"value"`
	Gain  float64 `json:"gain"`
}

// Lender is a memory whose own evidence adds to the score of another one of its conversation.
type Lender struct {
	ID string `json:"id"`
	// 1 is right after the hit, -1 right before it, 0 the hit itself: the best around it
	Place int     `json:"place"`
	Asks  bool    `json:"asks,omitempty"` // it asks, and the hit may be the answer
	Value float64 `json:"value"`          // its own evidence, 0 to 1
	Gain  float64 `json:"gain"`
}

func explanationOf(e *ranking.Explanation) *Explanation {
	if e == nil {
		return nil
	}
	evidence := func(p ranking.Part) Evidence { return Evidence{float64(p.Value), float64(p.Gain)} }
	x := Explanation{Words: evidence(e.Words), Meaning: evidence(e.Meaning), Late: evidence(e.Late),
		Exact:  float64(e.Exact),
		Asking: float64(e.Asking), Speaker: float64(e.Speaker)}
	for _, l := range e.Lenders {
		x.Lenders = append(x.Lenders, Lender{l.ID, l.Place, l.Asks, float64(l.Value), float64(l.Gain)})
	}
	return &x
}
