package text

import (
	"strings"
	"unicode/utf8"
)

// MaxQueryTerms bounds the distinct terms of one search. A longer search text, such as a whole document, is
// represented by its first ones.
const MaxQueryTerms = 256

// Term is one term of a search.
type Term struct {
	Text   string
	Weight float32 // its weight relative to the others; 1 is a plain word
	Exact  Exactness
	Chunk  int // terms of one address or path have the same number, above 0; 0 = of none
}

// partWeight is the weight of the parts of an identifier, whose whole counts 1. Each part is less specific than a
// separate word.
const partWeight = 0.75

// QueryTerms returns the distinct terms to search for when the search text is s, in order of their first
// appearance. Terms returns the same ones for these words. Function words of English and some other languages
// are left out, unless s has nothing else, or writes them in capitals while the rest is not (US, WHO). Single
// characters of a run that its pairs already cover are left out, too.
func QueryTerms(s string) []Term {
	if strings.ToUpper(s) == s {
		s = strings.ToLower(s)
	}
	a := analyzers.Get().(*analyzer)
	defer a.release()
	a.query = true
	a.analyze(s)
	a.query = false
	terms := a.queryTerms(false)
	if len(terms) == 0 {
		terms = a.queryTerms(true)
	}
	return terms
}

// queryTerms turns the tokens into terms, with the stop words or without.
func (a *analyzer) queryTerms(stops bool) []Term {
	language := a.language()
	a.judgeShort(stops, language)
	text := string(a.out)
	var terms []Term
	at := make(map[string]int)
	start := 0
	for _, t := range a.tokens {
		term := text[start:t.end]
		start = t.end
		if t.role == roleLetter || t.stop && !stops {
			continue
		}
		weight := float32(1)
		if t.role == rolePart {
			weight = partWeight
		}
		switch {
		case t.exact == Name: // capitalised "May" and "IT" are not function words
			weight *= nameWeight
		case !stops:
			weight *= lightness(term, t.role, language)
		}
		if i, ok := at[term]; ok {
			terms[i].Weight = max(terms[i].Weight, weight)
			terms[i].Exact = max(terms[i].Exact, t.exact)
			continue
		}
		if len(terms) == MaxQueryTerms {
			break
		}
		at[term] = len(terms)
		terms = append(terms, Term{term, weight, t.exact, t.chunk})
	}
	return terms
}

// IsTerm reports whether s could be one of Terms: valid UTF-8 of bounded length, without ASCII characters but digits
// and small letters.
func IsTerm(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !isDigit(c) && (c < 'a' || c > 'z') && c < utf8.RuneSelf {
			return false
		}
	}
	return s != "" && len(s) <= MaxTermBytes && utf8.ValidString(s)
}
