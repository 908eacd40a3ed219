package similarity

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/souvenir-ai/souvenir/internal/text"
)

// Limits of the compared part of a text, its beginning.
const (
	MaxBytes  = 4 << 10
	maxTokens = 256
)

// Text is a text prepared for comparison.
type Text struct {
	source    string
	tokens    []token
	words     map[string]bool // the stems of its words, and single characters of scripts without spaces
	content   int             // tokens that are not function words
	denied    bool            // it is negated
	wide      bool            // most of it is in a script without spaces
	truncated bool
}

type token struct {
	text     string // folded, a stem
	start    int    // in source
	end      int
	number   bool // a number, a time, a day of the week, a month
	name     bool // capitalised inside a sentence, or in katakana
	initial  bool // capitalised at the beginning of a sentence
	function bool // a function word, a particle, a negation
}

// Read splits a text into tokens.
func Read(content string) Text {
	var t Text
	if len(content) > MaxBytes {
		t.truncated = true
		content = content[:MaxBytes]
	}
	t.source = norm.NFKC.String(strings.ToValidUTF8(content, " "))
	t.tokens = make([]token, 0, min(len(t.source)/6+1, maxTokens))
	wide := 0
	begins := true // of a sentence
	for i := 0; i < len(t.source) && len(t.tokens) < maxTokens; {
		r, size := utf8.DecodeRuneInString(t.source[i:])
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			begins = begins && r != ',' || strings.ContainsRune(".?!:。？！：\n", r)
			i += size
			continue
		}
		end := tokenEnd(t.source, i)
		if isWide(r) {
			wide++
		}
		t.take(i, end, begins)
		i, begins = end, false
	}
	t.wide = 2*wide > len(t.tokens)
	for i := range t.tokens {
		t.readDenial(i)
	}
	t.joinTimes()
	t.words = make(map[string]bool, len(t.tokens))
	for _, w := range t.tokens {
		t.words[w.text] = true
		if !w.function {
			t.content++
		}
	}
	return t
}

// isWide reports whether r is of a script without spaces, except katakana, which writes names.
func isWide(r rune) bool {
	return r >= '\u0e00' && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Thai, unicode.Lao, unicode.Khmer,
		unicode.Myanmar)
}

func isKatakana(r rune) bool { return r >= '\u30a0' && (unicode.Is(unicode.Katakana, r) || r == 'ー') }

// tokenEnd returns where the word, number or character at s[i:] ends.
func tokenEnd(s string, i int) int {
	first, size := utf8.DecodeRuneInString(s[i:])
	end := i + size
	if isWide(first) {
		return end
	}
	digits := unicode.IsDigit(first)
	for end < len(s) {
		r, size := utf8.DecodeRuneInString(s[end:])
		inside := unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
		switch {
		case inside && isWide(r), inside && isKatakana(r) != isKatakana(first):
			return end
		case inside:
			digits = digits && unicode.IsDigit(r)
		case strings.ContainsRune("'’-_.:,/", r) && end+size < len(s):
			next, _ := utf8.DecodeRuneInString(s[end+size:])
			if isWide(next) || !unicode.IsDigit(next) &&
				(digits || !unicode.IsLetter(next) || r == ':' || r == ',' || r == '/') ||
				unicode.IsDigit(next) && !digits && strings.ContainsRune(",:/", r) {
				return end
			}
		default:
			return end
		}
		end += size
	}
	return end
}

// take adds the token source[start:end].
func (t *Text) take(start, end int, begins bool) {
	word := t.source[start:end]
	first, _ := utf8.DecodeRuneInString(word)
	w := token{start: start, end: end, text: strings.ToLower(word)}
	switch {
	case strings.IndexFunc(word, unicode.IsDigit) >= 0:
		w.number = true
		w.text = strings.TrimSuffix(strings.ReplaceAll(w.text, ",", ""), ":00")
	case isKatakana(first):
		w.name = utf8.RuneCountInString(word) > 1
	case isWide(first):
		w.function = wideParticles[first]
	default:
		if functionWords[w.text] {
			w.function = true
			break
		}
		if n, ok := numberWords[w.text]; ok {
			w.text, w.number = n, true
			break
		}
		var few [4]string
		if terms := text.AppendTerms(few[:0], word); len(terms) > 0 {
			w.text = terms[len(terms)-1]
		}
		if n, ok := numberWords[w.text]; ok {
			w.text, w.number = n, true
			break
		}
		if unicode.IsUpper(first) {
			w.name, w.initial = !begins, begins
		}
	}
	t.tokens = append(t.tokens, w)
}

// readDenial notes negations.
func (t *Text) readDenial(i int) {
	w := t.tokens[i]
	if negations[w.text] {
		t.denied = true
		return
	}
	if n := len(w.text); n > 3 && strings.HasSuffix(strings.ToLower(t.source[w.start:w.end]), "n't") {
		t.denied = true
		return
	}
	if first, _ := utf8.DecodeRuneInString(w.text); !isWide(first) {
		return
	}
	rest := t.source[w.start:]
	for _, n := range wideNegations {
		if strings.HasPrefix(rest, n) && !strings.HasPrefix(rest, "ませんか") {
			t.denied = true
		}
	}
}

// joinTimes turns "2 pm" into 14, and Chinese and Japanese days of the week into numbers.
func (t *Text) joinTimes() {
	kept := t.tokens[:0]
	for i := 0; i < len(t.tokens); i++ {
		w := t.tokens[i]
		if i+1 < len(t.tokens) && w.number {
			switch next := t.tokens[i+1].text; {
			case next == "pm" || next == "p.m":
				if hour, ok := afternoon[w.text]; ok {
					w.text = hour
				}
				i++
			case next == "am" || next == "a.m" || next == "uhr" || next == "oclock":
				i++
			}
		}
		rest := t.source[w.start:]
		first, _ := utf8.DecodeRuneInString(rest)
		for _, day := range wideDays[first] {
			if strings.HasPrefix(rest, day.name) {
				w = token{text: day.number, start: w.start, end: w.start + len(day.name), number: true}
				for i+1 < len(t.tokens) && t.tokens[i+1].start < w.end {
					i++
				}
				break
			}
		}
		kept = append(kept, w)
	}
	t.tokens = kept
}
