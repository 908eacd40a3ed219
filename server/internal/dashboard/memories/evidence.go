package memories

import (
	"fmt"
	"math"
	"strconv"

	"github.com/souvenir-ai/souvenir"
)

// evidence is one kind of evidence that adds to the score of a search result, or lowers it.
type evidence struct {
	Name    string
	Note    string // empty: nothing to add
	Address string // of the memory that lends it; empty: the result itself
	Kind    string // class of the bar: own, lent or less
	Gain    float64
}

// Percent is the length of the bar: scores are at most 1.
func (r evidence) Percent() int { return int(min(1, math.Abs(r.Gain))*100 + 0.5) }

// Reasons lists what the score consists of: the evidence of the memory itself, then what its conversation lends, in
// its order. It is empty without a search by relevance.
func (m memoryRow) Reasons() []evidence {
	e := m.Explanation
	if e == nil {
		return nil
	}
	var all []evidence
	add := func(r evidence) {
		if math.Abs(r.Gain) < 0.005 { // would be shown as 0.00
			return
		}
		if r.Gain < 0 {
			r.Kind = "less"
		}
		all = append(all, r)
	}
	add(evidence{Name: "Same words", Kind: "own", Gain: e.Words.Gain})
	add(evidence{Name: "Same meaning", Kind: "own", Gain: e.Meaning.Gain})
	add(evidence{Name: "Similar words", Kind: "own", Gain: e.Late.Gain})
	add(evidence{Name: "Exact name or identifier", Kind: "own", Gain: e.Exact})
	add(evidence{Name: "Speaker is named", Kind: "own", Gain: e.Speaker})
	add(evidence{Name: "Is a question", Kind: "own", Gain: e.Asking})
	for _, prior := range []struct {
		name string
		*souvenir.Evidence
	}{{"Recently updated", e.Recency}, {"Important", e.Importance}, {"State", e.State}} {
		if prior.Evidence != nil {
			add(evidence{Name: prior.name, Kind: "own", Gain: prior.Gain})
		}
	}
	for _, l := range e.Neighbours {
		r := evidence{Name: placeLabel(l.Place), Kind: "lent", Gain: l.Gain}
		if l.Place != 0 {
			r.Address = m.Base + "/memories/" + l.ID
		}
		if l.Asks {
			r.Note = "asks what this may answer"
		}
		add(r)
	}
	return all[:min(len(all), m.space.reasons)]
}

// placeLabel names a memory by its place in the conversation, relative to the result.
func placeLabel(place int) string {
	switch {
	case place == 0:
		return "Best in its part of the conversation"
	case place == -1:
		return "The message before"
	case place == 1:
		return "The message after"
	case place < 0:
		return strconv.Itoa(-place) + " messages before"
	}
	return fmt.Sprintf("%d messages after", place)
}
