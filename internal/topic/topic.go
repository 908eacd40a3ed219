// Package topic names what texts are about: the words that are typical of a group of texts, and the words that two
// texts have in common.
package topic

import (
	"cmp"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/lru"
	"github.com/souvenir-ai/souvenir/internal/text"
)

// Texts holds the words of texts. Create one with [Read].
type Texts struct {
	Languages []string // of each text, as text.Language guesses

	words    [][]int32 // of each text, each once, in ascending order
	names    []string  // of each word, in the most common spelling; of equally common ones, in lower case
	holding  []int     // how many texts have each word
	function []bool    // of each word: it says nothing about a subject
}

// mostWords is the number of different words of a text that count.
const mostWords = 60

// Read reads texts. They should be short, such as first lines, since only the first words of each count.
func Read(texts []string) *Texts {
	r := reader{t: &Texts{Languages: make([]string, len(texts)), words: make([][]int32, len(texts))},
		spellings: map[form]*spelling{}, forms: map[form]int32{}, terms: map[string]int32{}}
	for i, s := range texts {
		r.language = languageOf(s)
		r.t.Languages[i] = r.language
		r.t.words[i] = r.read(s)
	}
	written := map[writtenForm]int{}
	for f, s := range r.spellings {
		if s.word >= 0 {
			written[writtenForm{s.word, f.text}] += s.times
		}
	}
	best := make([]int, len(r.t.names))
	for f, n := range written {
		if n > best[f.word] || n == best[f.word] && f.form > r.t.names[f.word] {
			best[f.word], r.t.names[f.word] = n, f.form
		}
	}
	return r.t
}

// languages keeps the languages of texts, by their hashes: the same ones are read again and again.
var (
	languages lru.Cache
	seed      = maphash.MakeSeed()
)

func languageOf(s string) string {
	const most, each = 2 << 20, 100 // bytes
	key := maphash.String(seed, s)
	language, known := lru.Get[string](&languages, key)
	if !known {
		language = text.Language(s)
		languages.Put(key, language, each, most)
	}
	return language
}

// reader reads texts into t. Most words occur many times, and are analysed once.
type reader struct {
	t         *Texts
	language  string
	spellings map[form]*spelling
	forms     map[form]int32   // numbers of words, in lower case; -1: none
	terms     map[string]int32 // numbers of words by their stems
}

// spelling is how often a word is written in one way.
type spelling struct {
	word  int32 // -1: none
	times int
}

// form is a word as it is written in a language.
type form struct{ text, language string }

// writtenForm is a way of writing a word.
type writtenForm struct {
	word int32
	form string
}

func (r *reader) read(s string) []int32 {
	var words []int32
	note := func(w string) {
		known := r.spellings[form{w, r.language}]
		if known == nil {
			known = &spelling{word: r.number(w)}
			r.spellings[form{w, r.language}] = known
		}
		number := known.word
		if known.times++; number < 0 {
			return
		}
		if at, known := slices.BinarySearch(words, number); !known {
			words = slices.Insert(words, at, number)
			r.t.holding[number]++
		}
	}
	for len(s) > 0 && len(words) < mostWords {
		begin := strings.IndexFunc(s, isLetter)
		if begin < 0 {
			break
		}
		s = s[begin:]
		end := strings.IndexFunc(s, func(c rune) bool { return !isLetter(c) && !isJoint(c) })
		if end < 0 {
			end = len(s)
		}
		run := strings.TrimRightFunc(s[:end], isJoint)
		s = s[end:]
		if continuous(run) {
			pairs(run, note)
		} else {
			note(run)
		}
	}
	return words
}

func isLetter(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.IsMark(c) }

// isJoint reports whether a character can be inside a word: wi-fi, don't.
func isJoint(c rune) bool { return c == '-' || c == '\'' || c == '’' || c == '_' }

// continuous reports whether a run is of a script without spaces between words, or begins so.
func continuous(run string) bool {
	for _, c := range run {
		if c >= '\u0e00' && unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Khmer,
			unicode.Lao, unicode.Myanmar) {
			return true
		}
	}
	return false
}

// pairs passes on the pairs of neighbouring characters of a run, since most Chinese words have two.
func pairs(run string, note func(string)) {
	_, size := utf8.DecodeRuneInString(run)
	for at := 0; at+size < len(run); {
		_, next := utf8.DecodeRuneInString(run[at+size:])
		note(run[at : at+size+next])
		at, size = at+size, next
	}
}

// number returns the number of a word; -1 for a number, a single letter and the like.
func (r *reader) number(w string) int32 {
	w = strings.ToLower(w)
	key := form{w, r.language}
	if number, known := r.forms[key]; known {
		return number
	}
	number := int32(-1)
	if terms := text.Terms(w); len(terms) > 0 && strings.ContainsFunc(w, unicode.IsLetter) &&
		utf8.RuneCountInString(w) > 1 {
		term := terms[len(terms)-1] // of a word with parts, the whole; of a pair, the pair
		known := false
		if number, known = r.terms[term]; !known {
			number = int32(len(r.t.names))
			r.terms[term] = number
			r.t.names, r.t.holding = append(r.t.names, w), append(r.t.holding, 0)
			r.t.function = append(r.t.function, false)
		}
		if saysNothing(term, r.language) {
			r.t.function[number] = true
		}
	}
	r.forms[key] = number
	return number
}

// Shared returns up to most words that two texts have in common, the rarest first, without function words.
func (t *Texts) Shared(a, b, most int) []string {
	var both []int32
	x, y := t.words[a], t.words[b]
	for len(x) > 0 && len(y) > 0 {
		switch {
		case x[0] < y[0]:
			x = x[1:]
		case x[0] > y[0]:
			y = y[1:]
		default:
			if !t.function[x[0]] {
				both = append(both, x[0])
			}
			x, y = x[1:], y[1:]
		}
	}
	slices.SortStableFunc(both, func(a, b int32) int { return cmp.Compare(t.holding[a], t.holding[b]) })
	return t.named(both, most)
}

// Names returns up to most words that are typical of each group of texts: those of many of its texts and of few others
// (c-TF-IDF: M. Grootendorst, BERTopic: Neural topic modeling with a class-based TF-IDF procedure, 2022, counted once
// per text). Texts may be in no group.
func (t *Texts) Names(groups [][]int, most int) [][]string {
	all := make([][]string, len(groups))
	counts := make([]int, len(t.names))
	for i, group := range groups {
		var seen []int32
		for _, one := range group {
			for _, word := range t.words[one] {
				if counts[word] == 0 {
					seen = append(seen, word)
				}
				counts[word]++
			}
		}
		score := func(word int32) float64 {
			n, held := float64(counts[word]), float64(t.holding[word])
			if t.function[word] || n < 2 && len(group) > 2 {
				return 0
			}
			// Its share of the group's texts, the group's share of its texts, and its rarity in all texts.
			return n / float64(len(group)) * n / held * math.Log(1+float64(len(t.words))/held)
		}
		seen = slices.DeleteFunc(seen, func(word int32) bool { return score(word) == 0 })
		slices.SortFunc(seen, func(a, b int32) int { return cmp.Or(cmp.Compare(score(b), score(a)), cmp.Compare(a, b)) })
		all[i] = t.named(seen, most)
		for _, one := range group {
			for _, word := range t.words[one] {
				counts[word] = 0
			}
		}
	}
	return all
}

// named returns the first words by name. It skips pairs of characters that overlap.
func (t *Texts) named(words []int32, most int) []string {
	names := []string{}
	for _, word := range words {
		if len(names) == most {
			break
		}
		if name := t.names[word]; !slices.ContainsFunc(names, func(other string) bool { return overlap(name, other) }) {
			names = append(names, name)
		}
	}
	return names
}

// overlap reports whether the names are pairs of characters, and one begins with the last character of the other.
func overlap(a, b string) bool {
	if utf8.RuneCountInString(a) != 2 || utf8.RuneCountInString(b) != 2 || !continuous(a) {
		return false
	}
	x, y := []rune(a), []rune(b)
	return x[0] == y[1] || x[1] == y[0]
}
