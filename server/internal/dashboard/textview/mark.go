package textview

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/shorten"
)

// Segment is a piece of a text.
type Segment struct {
	Text   string
	Marked bool // it matches a search word
	Strong bool // emphasized in the text
	Code   bool
}

// Opening returns the beginning of a text, cut at the end of a line or a word if there is one nearby.
func Opening(text string, most int) (first string, more bool) {
	if len(text) <= most {
		return text, false
	}
	end := len(shorten.Bytes(text, most))
	for _, stop := range []string{"\n", " "} {
		if at := strings.LastIndex(text[:end], stop); at > most/2 {
			end = at
			break
		}
	}
	return text[:end] + " …", true
}

// ClipAround returns a one-line piece of a text: from shortly before the first of the words on, or from its
// beginning.
func ClipAround(text string, words []string, most int) string {
	const ahead = 60     // bytes before the word
	const far = 16 << 10 // limit for the search in a text
	if len(text) > far {
		text, _ = Opening(text, far)
	}
	start := 0
	if at := firstMatch(text, words); at > most*2/3 {
		start = len(shorten.Bytes(text, at-ahead))
		if space := strings.IndexByte(text[start:at], ' '); space >= 0 {
			start += space
		}
	}
	line := strings.Join(strings.Fields(text[start:]), " ")
	if start := shorten.Words(line, most); len(start) < len(line) {
		line = strings.TrimSpace(start) + " …"
	}
	if start > 0 {
		line = "… " + line
	}
	return line
}

// Window returns the part of a text that an excerpt of at most the given number of characters needs: from shortly
// before the first of the words on, or from its beginning. It keeps the lines.
func Window(text string, words []string, most int) (window string, start bool) {
	const ahead = 60 // bytes before the word
	const far = 16 << 10
	const marks = 4 // bytes for a character: of an address, or of marks that an excerpt leaves out
	if len(text) > far {
		text, _ = Opening(text, far)
	}
	from := 0
	if at := firstMatch(text, words); at > most*2/3 {
		from = at - ahead
		if line := strings.LastIndexByte(text[:at], '\n') + 1; line > from {
			from = line
		}
		from = len(shorten.Bytes(text, from))
		if space := strings.IndexByte(text[from:at], ' '); space >= 0 && from > 0 && text[from-1] != '\n' {
			from += space + 1
		}
	}
	to := len(shorten.Bytes(text, from+marks*most))
	return text[from:to], from == 0
}

// SearchWords returns the words of a search, in lower case.
func SearchWords(text string) []string {
	const most = 32 // more are not useful in a clip
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !wordLetter(r) })
	const short = 3 // letters: such words are ignored beside longer ones
	if slices.ContainsFunc(words, func(word string) bool { return utf8.RuneCountInString(word) > short }) {
		words = slices.DeleteFunc(words, func(word string) bool { return utf8.RuneCountInString(word) <= short })
	}
	return words[:min(len(words), most)]
}

func wordLetter(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || unicode.Is(unicode.Mn, r)
}

// sameWord reports whether a word of a text matches a search word: exactly, or with another ending, as in the
// search.
func sameWord(word, sought string) bool {
	word = strings.ToLower(word)
	const ending, stem = 3, 4 // letters: of endings that may differ, of stems that must match
	common := 0
	for common < len(word) && common < len(sought) && word[common] == sought[common] {
		common++
	}
	if common == len(word) && common == len(sought) {
		return true
	}
	return common >= stem && len(word)-common <= ending && len(sought)-common <= ending
}

// eachWord yields the words of a text.
func eachWord(text string, yield func(start, end int) bool) {
	start := -1
	for at, r := range text {
		switch inside := wordLetter(r); {
		case inside && start < 0:
			start = at
		case !inside && start >= 0:
			if !yield(start, at) {
				return
			}
			start = -1
		}
	}
	if start >= 0 {
		yield(start, len(text))
	}
}

// HasAll reports whether the beginning of a text, 16 KiB, has a match of each word.
func HasAll(text string, words []string) bool {
	const far = 16 << 10
	text = text[:min(len(text), far)]
	missing := slices.Clone(words)
	eachWord(text, func(start, end int) bool {
		missing = slices.DeleteFunc(missing, func(sought string) bool { return sameWord(text[start:end], sought) })
		return len(missing) > 0
	})
	return len(missing) == 0
}

// firstMatch returns the position of the first match of any word; -1: none.
func firstMatch(text string, words []string) int {
	found := -1
	if len(words) == 0 {
		return found
	}
	eachWord(text, func(start, end int) bool {
		if slices.ContainsFunc(words, func(sought string) bool { return sameWord(text[start:end], sought) }) {
			found = start
		}
		return found < 0
	})
	return found
}

// Marked splits a text into matches of search words and other pieces.
func Marked(text string, words []string) []Segment {
	if len(words) == 0 {
		return []Segment{{Text: text}}
	}
	var all []Segment
	last := 0
	eachWord(text, func(start, end int) bool {
		if slices.ContainsFunc(words, func(sought string) bool { return sameWord(text[start:end], sought) }) {
			if start > last {
				all = append(all, Segment{Text: text[last:start]})
			}
			all = append(all, Segment{Text: text[start:end], Marked: true})
			last = end
		}
		return true
	})
	if last < len(text) {
		all = append(all, Segment{Text: text[last:]})
	}
	return all
}
