package ranking

import (
	"strings"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/embedding/static"
	"github.com/souvenir-ai/souvenir/internal/text"
)

// Question is a search text, analysed for late interaction and for the names in it.
type Question struct {
	// Known is the share of its words that the built-in model has as a whole, by their weight as terms: 0 to 1. The
	// pieces of other words reflect their spelling more than their meaning.
	Known float32

	words []questionWord
	names map[string]bool // its terms
}

// questionWord is a word of the text that is searched for: its rows in the model's table, and the query's terms that
// it consists of, which say how rare it is.
type questionWord struct {
	rows  []uint16
	terms []int
}

// NewQuestion analyses a search text, given the terms that [text.QueryTerms] makes of it. Words without such a term,
// such as function words, are left out.
func NewQuestion(s string, terms []text.Term) Question {
	q := Question{names: map[string]bool{}}
	place := make(map[string]int, len(terms))
	for i, t := range terms {
		place[t.Text] = i
		q.names[t.Text] = true
	}
	for word := range strings.FieldsSeq(s) {
		var of []int
		for _, t := range text.Terms(word) {
			if i, ok := place[t]; ok {
				of = append(of, i)
			}
		}
		if len(of) == 0 {
			continue
		}
		if rows := static.Default().AppendWords(nil, word); len(rows) > 0 {
			q.words = append(q.words, questionWord{rows, of})
		}
	}
	q.Known = q.known(terms)
	return q
}

// known returns [Question.Known]. A run of a script without spaces has no words to count; there, the characters in
// pieces of several characters count.
func (q Question) known(terms []text.Term) float32 {
	var all, known float32
	for _, w := range q.words {
		weight := float32(0)
		for _, t := range w.terms {
			weight = max(weight, terms[t].Weight)
		}
		unspaced := false
		for _, row := range w.rows {
			piece := static.Default().Piece(int32(row))
			if !isUnspaced(piece) {
				continue
			}
			// Two characters make about one word.
			share := weight * float32(utf8.RuneCountInString(piece)) / 2
			unspaced = true
			all += share
			if share > weight/2 {
				known += share
			}
		}
		if unspaced {
			continue
		}
		all += weight
		if len(w.rows) == 1 {
			known += weight
		}
	}
	if all == 0 {
		return 0
	}
	return known / all
}

// isUnspaced reports whether a piece is of a script that is written without spaces: Thai and Lao, or Chinese, Japanese
// and Korean.
func isUnspaced(piece string) bool {
	r, _ := utf8.DecodeRuneInString(strings.TrimPrefix(piece, "##"))
	return 0x0e00 <= r && r < 0x0f00 || r >= 0x3000
}

// ask prepares the comparison. weights are those of the query's terms: a word has the weight of its rarest term. It
// returns nil if nothing can be compared.
func (q Question) ask(weights []float32) *static.Question {
	var tokens []static.QueryToken
	for _, w := range q.words {
		weight := float32(0)
		for _, t := range w.terms {
			weight = max(weight, weights[t])
		}
		for _, row := range w.rows {
			tokens = append(tokens, static.QueryToken{Row: row, Weight: weight})
		}
	}
	return static.Default().Ask(tokens)
}

// namer returns a function that reports whether the query has a word of a speaker's name.
func (q Question) namer() func(speaker string) bool {
	known := map[string]bool{}
	return func(speaker string) bool {
		named, ok := known[speaker]
		if !ok {
			for _, term := range text.Terms(speaker) {
				named = named || q.names[term]
			}
			known[speaker] = named
		}
		return named
	}
}
