// Package text turns text into index entries: terms for full-text search, and passages for embedding.
//
// Terms alone defines the words of a text. A stored text and a search text go through the same code, so that they
// match in any case, with any accents, inflection or punctuation. Split cuts long content into passages.
package text

import (
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// TermsVersion increases with every change in what Terms returns for previously assigned characters: full text
// indexed under another version must be indexed again.
const TermsVersion = 1

// MaxTermBytes bounds one term. A longer word is cut there, at a character; a longer identifier is found by its
// parts.
const MaxTermBytes = 64

// Terms returns the terms of s in order, with repetitions. Each is made of a-z, 0-9 and characters past ASCII
// only, so that full text has to split texts at spaces alone. Invalid UTF-8 separates words.
//
//   - Words are runs of letters and digits, folded as fold.go says; English ones are stemmed ("cities": citi).
//   - Identifiers give their parts and the whole: "getUserByID" is get, user, by, id, getuserbyid; "wi-fi" is
//     wi, fi, wifi; "foo.bar/baz.go" is foo, bar, foobar, baz, go, bazgo. Of "v1.60.1" the whole keeps its dots,
//     as 1·60·1, so that it is not 1601.
//   - English clitics are no terms: "Hannah's" is Hannah, "we'll" is we; "don't" is dont.
//   - Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese runs give each character and each pair of
//     neighbours, so that a substring of two or more characters is found by its pairs, and a single one by itself.
func Terms(s string) []string { return AppendTerms(nil, s) }

// AppendTerms appends the terms of s to dst. All of them share one allocation, which stays in memory as long as any of
// them.
func AppendTerms(dst []string, s string) []string {
	a := analyzers.Get().(*analyzer)
	defer a.release()
	a.analyze(s)
	text := string(a.out)
	start := 0
	for _, t := range a.tokens {
		dst = append(dst, text[start:t.end])
		start = t.end
	}
	return dst
}

// Indexed returns the terms of s joined by single spaces: the text to store in a full-text table.
func Indexed(s string) string {
	a := analyzers.Get().(*analyzer)
	defer a.release()
	a.analyze(s)
	var b strings.Builder
	b.Grow(len(a.out) + len(a.tokens))
	start := 0
	for i, t := range a.tokens {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.Write(a.out[start:t.end])
		start = t.end
	}
	return b.String()
}

// role is how a term came out of the text.
type role uint8

const (
	roleWord   role = iota // a word by itself
	rolePart               // a part of an identifier
	roleWhole              // an identifier, joined
	roleLetter             // one character of a run without spaces
	rolePair               // two neighbours of such a run
)

// token is one term: it ends at end in analyzer.out, and begins where the one before it ends.
type token struct {
	end  int
	role role

	// in a search text
	stop  bool      // one of the function words
	exact Exactness // how much it looks like a name
	chunk int       // 1 + where the address or path that it is part of ends; 0 = of none
}

// analyzer holds the buffers of one analysis; they are reused.
type analyzer struct {
	out    []byte // terms, one after another
	tokens []token
	query  bool // look for stop words and names, too
	chunk  chunk

	// the identifier being read, see identifier.go
	folded []byte
	words  []word
	parts  []int
}

var analyzers = sync.Pool{New: func() any { return new(analyzer) }}

// release returns the buffers to the pool, unless a huge text has made them too large.
func (a *analyzer) release() {
	if cap(a.out)+cap(a.folded) > 1<<20 {
		return
	}
	analyzers.Put(a)
}

func (a *analyzer) analyze(s string) {
	a.out, a.tokens = a.out[:0], a.tokens[:0]
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, " ")
	}
	if !norm.NFKC.IsNormalString(s) {
		s = norm.NFKC.String(s)
	}
	a.chunk = chunk{}
	for i := 0; i < len(s); {
		from, first := i, len(a.tokens)
		i = a.step(s, i)
		if a.query {
			a.judge(s, from, i, first)
		}
	}
}

// step emits the terms of the word or character at s[i:] and returns where it ends.
func (a *analyzer) step(s string, i int) int {
	c := s[i]
	if c >= utf8.RuneSelf {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch k := classOf(r); {
		case k == classContinuous:
			return a.continuous(s, i)
		case k.inWord():
			return a.identifier(s, i)
		}
		return i + size
	}
	if !asciiClass[c].inWord() {
		return i + 1
	}
	if end := plainWord(s, i); end > i {
		a.plain(s[i:end])
		return end
	}
	return a.identifier(s, i)
}

// plainWord returns the end of the word at s[i:] if it has the form of nearly all English words: small letters
// after at most one capital, with nothing after them that could join them to more. Otherwise it returns i.
func plainWord(s string, i int) int {
	j := i + 1
	if asciiClass[s[i]] == classDigit {
		return i
	}
	for j < len(s) && 'a' <= s[j] && s[j] <= 'z' {
		j++
	}
	if j == len(s) {
		return j
	}
	switch c := s[j]; {
	case c >= utf8.RuneSelf, c == '+', c == '#', asciiClass[c].inWord():
		return i
	case asciiClass[c] == classConnector && j+1 < len(s) && (s[j+1] >= utf8.RuneSelf || asciiClass[s[j+1]].inWord()):
		return i
	}
	return j
}

// plain emits a word of ASCII letters.
func (a *analyzer) plain(w string) {
	start := len(a.out)
	a.out = append(a.out, w...)
	a.out[start] |= 0x20 // only this one may be a capital
	a.finish(start, roleWord)
}

// emit adds w as a term.
func (a *analyzer) emit(w []byte, k role) {
	start := len(a.out)
	a.out = append(a.out, w...)
	a.finish(start, k)
}

// finish turns what was appended to out since start into a term: bounded, and stemmed if it looks English. Folded
// words are stemmed, too, so that café and cafe stay one.
func (a *analyzer) finish(start int, k role) {
	w := a.out[start:]
	if len(w) > MaxTermBytes {
		n := MaxTermBytes
		for !utf8.RuneStart(w[n]) {
			n--
		}
		w = w[:n]
	}
	if len(w) == 0 {
		return
	}
	t := token{role: k}
	if a.query {
		t.stop = stopWords[string(w)]
	}
	if isLatin(w) {
		w = stem(w)
	}
	a.out = append(a.out[:start], w...) // mostly in place; the stem of led is longer
	t.end = len(a.out)
	a.tokens = append(a.tokens, t)
}

// isLatin reports whether w is all a-z.
func isLatin(w []byte) bool {
	for _, c := range w {
		if c < 'a' || c > 'z' {
			return false
		}
	}
	return true
}
