package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sentence ends: a small part of UAX #29's sentence boundaries with the abbreviations that it leaves to tailoring.

// sentences adds the boundaries between the sentences of the line s[start:end], and records whether its last one is
// complete.
func (f *breakFinder) sentences(start, end int) {
	s := f.s
	for i := start; i < end; {
		r, size := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s[i:end])
		}
		wide, stop := sentenceStop(r)
		if !stop {
			i += size
			continue
		}
		word := i
		i += size
		single := r == '.'
		for i < end { // "?!", "...", and closing quotes or brackets
			r, size = utf8.DecodeRuneInString(s[i:end])
			w, stop := sentenceStop(r)
			if !stop && !isCloser(r) {
				break
			}
			single = single && !stop
			wide = wide || w
			i += size
		}
		if single && isAbbreviation(s[start:word]) {
			continue
		}
		if i == end {
			f.sentence = true
			return
		}
		next, _ := trim(s, i, end)
		if next == i && !wide {
			continue // 3.14, example.com
		}
		if r, _ := utf8.DecodeRuneInString(s[next:]); unicode.IsLower(r) {
			continue
		}
		f.breaks = append(f.breaks, boundary{i, next, breakSentence})
		i = next
	}
}

// sentenceStop reports whether r ends a sentence; a wide one does so without a space after it.
func sentenceStop(r rune) (wide, stop bool) {
	switch r {
	case '.', '!', '?', '…', '‼', '⁇', '⁈', '⁉':
		return false, true
	case '。', '．', '｡', '！', '？', // Chinese, Japanese
		'।', '॥', // Hindi and its neighbours
		'؟', '۔', '։', '።', '။', '។', '៕': // Arabic, Urdu, Armenian, Amharic, Burmese, Khmer
		return true, true
	}
	return false, false
}

func isCloser(r rune) bool {
	switch r {
	case '"', '\'', ')', ']', '}', '*', '_':
		return true
	}
	return r >= utf8.RuneSelf && (unicode.In(r, unicode.Pe, unicode.Pf) || r == '“')
}

// isAbbreviation reports whether a full stop after before belongs to its last word: an initial, a known
// abbreviation, a short number (an ordinal in German, or the number of a list item).
func isAbbreviation(before string) bool {
	const longest = 12 // bytes
	word := before
	if len(word) > longest {
		word = word[len(word)-longest-1:]
	}
	i := strings.LastIndexFunc(word, func(r rune) bool { return unicode.IsSpace(r) || r == '(' || r == '"' || r == '“' })
	if i >= 0 {
		_, size := utf8.DecodeRuneInString(word[i:])
		word = word[i+size:]
	}
	if word == "" || len(word) > longest {
		return false
	}
	if r, size := utf8.DecodeRuneInString(word); size == len(word) {
		return unicode.IsUpper(r) && r != 'I' || unicode.IsDigit(r)
	}
	if len(word) == 2 && isDigit(word[0]) && isDigit(word[1]) {
		return true
	}
	return abbreviations[strings.ToLower(word)]
}

// abbreviations are commonly followed by a capital or a number within the sentence.
var abbreviations = wordSet(
	`mr mrs ms dr prof st sr jr rev hon gen col lt sgt capt gov sen rep pres mt ft
	vs cf al e.g i.e eg ie viz approx ca nos vol vols fig figs eq eqs sec pp ed eds dept est inc ltd co corp bros u.s u.k
	jan feb apr jun jul aug sept oct nov dec`,
	`z.b d.h u.a bzw usw evtl ggf nr abs str hr fr bspw inkl zzgl vgl tel`,
	`mme mlle p.ex`, `sra dra ud uds pág núm`, `dott sig`,
)
