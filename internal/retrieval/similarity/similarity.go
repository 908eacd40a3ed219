// Package similarity estimates how likely it is that two texts say the same.
//
// The cosine similarity of two vectors shows whether texts are about the same thing. Whether they say the same about it
// depends on details such as a number, a name or a negation. So the score of two texts combines the cosine with
// evidence from their words, by a logistic regression fitted on labelled pairs: STS-B, and pairs in English, German,
// Spanish, Chinese and Japanese (testdata/README.md). The hard ones among these are sentences that differ in one
// number, name or negation.
package similarity

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/embedding/static"
)

// evidence is the evidence for and against two texts having the same meaning.
type evidence [evidences]float64

const (
	bias = iota
	cosine
	overlap      // the part of the shorter text's words that the other has
	dice         // words in common, as a part of all
	number       // numbers that differ
	oneNumber    // numbers that only one has
	names        // names of each that the other does not have
	oneName      // names of one that the other does not have
	denial       // only one text is negated
	substitute   // the same words around another word, weighted by how different it is
	swapped      // the same words around another name
	slot         // nothing else is different
	facts        // all numbers and names in common, and other words
	length       // logarithm of the ratio of lengths
	exact        // the same words in the same order
	wideCosine   // cosine, in a script without spaces
	wideBias     // that script
	wideDice     // words in common there
	wideReplaced // substitute there
	evidences
)

// compareWords collects the evidence for two texts whose vectors have the given cosine similarity, except that of
// compareOrder.
func compareWords(a, b Text, similarity float64) evidence {
	var e evidence
	e[bias], e[cosine] = 1, similarity
	common, smaller := commonWords(a, b)
	if smaller > 0 {
		e[overlap] = float64(common) / float64(smaller)
		e[dice] = 2 * float64(common) / float64(a.content+b.content)
	}
	e[number], e[oneNumber] = unmatched(a, b, func(w token) bool { return w.number })
	e[names], e[oneName] = unmatched(a, b, func(w token) bool { return w.name })
	if e[number]+e[oneNumber]+e[names] == 0 {
		e[facts] = sharedFacts(a, b) * e[overlap]
	}
	if a.denied != b.denied {
		e[denial] = 1
	}
	la, lb := float64(1+utf8.RuneCountInString(a.source)), float64(1+utf8.RuneCountInString(b.source))
	e[length] = math.Abs(math.Log(la / lb))
	if same(a, b) {
		e[exact] = 1
	}
	if a.wide || b.wide {
		e[wideCosine], e[wideBias], e[wideDice] = e[cosine], 1, e[dice]
	}
	return e
}

// compareOrder adds the evidence from the order of the words. It is slow, and can only lower the score.
func (e *evidence) compareOrder(a, b Text) {
	e[substitute], e[swapped], e[slot] = substituted(a, b)
	if a.wide || b.wide {
		e[wideReplaced] = e[substitute]
	}
}

func commonWords(a, b Text) (common, smaller int) {
	for _, w := range a.tokens {
		if !w.function && b.words[w.text] {
			common++
		}
	}
	other := 0
	for _, w := range b.tokens {
		if !w.function && a.words[w.text] {
			other++
		}
	}
	return min(common, other), min(a.content, b.content)
}

// sharedFacts rises towards 1 with the number of different numbers and names that two texts share.
func sharedFacts(a, b Text) float64 {
	shared := map[string]bool{}
	for _, w := range a.tokens {
		if w.isFact() && b.words[w.text] {
			shared[w.text] = true
		}
	}
	return 1 - 1/float64(1+len(shared))
}

func same(a, b Text) bool {
	if len(a.tokens) != len(b.tokens) || a.truncated || b.truncated {
		return false
	}
	for i := range a.tokens {
		if a.tokens[i].text != b.tokens[i].text {
			return false
		}
	}
	return true
}

// unmatched counts the tokens of a kind that the other text does not have: on both sides, and how many more on one
// side, each relative to the size of the texts.
func unmatched(a, b Text, of func(token) bool) (both, one float64) {
	count := func(a, b Text) (all, missing float64) {
		for _, w := range a.tokens {
			if of(w) {
				all++
				if !b.words[w.text] {
					missing++
				}
			}
		}
		return all, missing
	}
	allA, missingA := count(a, b)
	allB, missingB := count(b, a)
	most := max(allA, allB)
	if most == 0 {
		return 0, 0
	}
	return min(missingA, missingB) / math.Sqrt(most), math.Abs(missingA-missingB) / math.Sqrt(most)
}

// substituted measures how much two texts look like one sentence with different words put in. It returns the part of
// the words that are the same and in the same order, times the difference of the words replaced between them; the same
// for replaced names; and that part cubed if nothing else differs. It measures the difference of words only in scripts
// without spaces, where alone it has weight.
func substituted(a, b Text) (differs, swaps, alone float64) {
	n, m := len(a.tokens), len(b.tokens)
	if n == 0 || m == 0 {
		return 0, 0, 0
	}
	kept := commonSequence(a.tokens, b.tokens)
	covered := float64(len(kept)) / float64(min(n, m))
	only := true
	i, j := 0, 0
	for _, k := range append(kept, [2]int{n, m}) {
		left, right := a.span(i, k[0]), b.span(j, k[1])
		i, j = k[0]+1, k[1]+1
		if left.content == 0 && right.content == 0 {
			continue
		}
		if left.content == 0 || right.content == 0 || left.content > maxReplaced || right.content > maxReplaced {
			only = false
			continue
		}
		if a.wide || b.wide {
			differs = max(differs, covered*(1-phraseCosine(left.text, right.text)))
		}
		if left.names > 0 && right.names > 0 {
			swaps = covered
		}
		alone = covered * covered * covered
	}
	if !only {
		alone = 0
	}
	return differs, swaps, alone
}

// part is a run of tokens.
type part struct {
	text           string
	content, names int
}

func (t Text) span(from, to int) (p part) {
	if from >= to {
		return p
	}
	for _, w := range t.tokens[from:to] {
		if !w.function {
			p.content++
		}
		if w.name || w.initial && !w.function {
			p.names++
		}
	}
	p.text = t.source[t.tokens[from].start:t.tokens[to-1].end]
	return p
}

// commonSequence returns the places of the longest common subsequence of tokens.
func commonSequence(a, b []token) (places [][2]int) {
	n, m := len(a), len(b)
	longest := make([]uint16, (n+1)*(m+1)) // of a[i:] and b[j:], at i*(m+1)+j
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			at := i*(m+1) + j
			if a[i].text == b[j].text {
				longest[at] = longest[at+m+2] + 1
			} else {
				longest[at] = max(longest[at+m+1], longest[at+1])
			}
		}
	}
	for i, j := 0, 0; i < n && j < m; {
		switch at := i*(m+1) + j; {
		case a[i].text == b[j].text:
			places = append(places, [2]int{i, j})
			i, j = i+1, j+1
		case longest[at+m+1] >= longest[at+1]:
			i++
		default:
			j++
		}
	}
	return places
}

// phraseCosine returns how similar two texts are to the built-in model.
func phraseCosine(a, b string) float64 {
	m := static.Default()
	x, y := m.Embed(nil, a, false), m.Embed(nil, b, false)
	sum := 0.0
	for i := range x {
		sum += float64(x[i]) * float64(y[i])
	}
	return max(0, min(1, sum))
}

// CosineOf returns the cosine similarity of the built-in model's vectors of two texts.
func CosineOf(a, b Text) float64 { return phraseCosine(a.source, b.source) }

// maxReplaced is the most words, or characters of a script without spaces, that can fill one place in a sentence.
const maxReplaced = 6

// Duplicate is the score from which two texts count as near duplicates: nine of ten pairs that reach it say the
// same (docs/benchmarks.md).
const Duplicate = 0.8

// Candidate is the cosine similarity from which two texts are worth comparing.
const Candidate = 0.5

// Score returns the probability, 0 to 1, that two texts say the same. Their vectors of the built-in model have
// the given cosine similarity.
func Score(a, b Text, similarity float64) float64 { return ScoreFrom(0, a, b, similarity) }

// ScoreFrom returns Score if it is at least least, and otherwise a number below least, which is faster to
// compute.
func ScoreFrom(least float64, a, b Text, similarity float64) float64 {
	if !a.truncated && !b.truncated && strings.EqualFold(strings.TrimSpace(a.source), strings.TrimSpace(b.source)) {
		return 1
	}
	if a.source > b.source { // symmetric
		a, b = b, a
	}
	e := compareWords(a, b, similarity)
	score := e.score()
	if score < least {
		return score // the order of the words only lowers it
	}
	e.compareOrder(a, b)
	return e.score()
}

func (e *evidence) score() float64 {
	sum := 0.0
	for i, x := range e {
		sum += weights[i] * x
	}
	return 1 / (1 + math.Exp(-sum))
}

// weights are the weights of the logistic regression, see testdata/README.md.
var weights = evidence{
	bias: -6.12, cosine: 4.95, overlap: 0.14, dice: 2.72, number: -3.24, oneNumber: -1.43, oneName: -0.84, denial: -2.56,
	swapped: -0.25, slot: -1.8,
	facts: 2.21, length: -0.55, exact: 0.95, wideCosine: -1.42, wideBias: 1.87, wideDice: -0.38, wideReplaced: -1.01,
}
