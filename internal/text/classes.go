package text

import (
	"unicode"
	"unicode/utf8"
)

// class is the effect of a character on the word it is in.
type class uint8

const (
	classOther      class = iota // ends a word
	classLower                   // a letter without case, or of lower case
	classUpper                   // a letter of upper or title case
	classDigit                   // a number of any kind
	classMark                    // a combining mark that is part of the letter before it
	classIgnored                 // leaves no trace: points, joiners, soft hyphens, variation selectors
	classConnector               // joins two words into an identifier: . _ - and apostrophes
	classContinuous              // a letter of a script that is written without spaces
)

// inWord reports whether a character of the class can begin or continue a word.
func (c class) inWord() bool { return c == classLower || c == classUpper || c == classDigit }

var asciiClass = func() (t [utf8.RuneSelf]class) {
	for c := range t {
		switch {
		case 'a' <= c && c <= 'z':
			t[c] = classLower
		case 'A' <= c && c <= 'Z':
			t[c] = classUpper
		case '0' <= c && c <= '9':
			t[c] = classDigit
		}
	}
	for _, c := range `._-'` {
		t[c] = classConnector
	}
	return t
}()

func classOf(r rune) class {
	if r < utf8.RuneSelf {
		return asciiClass[r]
	}
	switch {
	case isContinuous(r):
		switch {
		case unicode.IsMark(r):
			return classMark
		case unicode.IsDigit(r):
			return classDigit
		case unicode.IsLetter(r) || unicode.Is(unicode.Nl, r):
			return classContinuous
		}
		return classOther
	case isApostrophe(r), r == '‐', r == '‑', r == '״': // hyphens; Hebrew gershayim, as in צה״ל
		return classConnector
	case unicode.IsUpper(r), unicode.IsTitle(r):
		return classUpper
	case unicode.IsLetter(r):
		return classLower
	case unicode.IsNumber(r):
		return classDigit
	case unicode.Is(droppedMarks, r), unicode.Is(unicode.Cf, r):
		return classIgnored
	case unicode.IsMark(r):
		return classMark
	}
	return classOther
}

// isApostrophe covers the typewriter's and the typographer's, the letters used as one in Ukrainian, Hawaiian and
// transliterations, and Hebrew geresh.
func isApostrophe(r rune) bool {
	switch r {
	case '\'', '’', '‘', 'ʼ', 'ʻ', '׳':
		return true
	}
	return false
}

// isContinuous reports whether r is in a block of a script that is written without spaces between words, or, for
// Korean, one whose particles attach to the word.
func isContinuous(r rune) bool {
	switch {
	case r < 0x0e00:
		return false
	case r <= 0x0eff: // Thai, Lao
		return true
	case r < 0x1000:
		return false
	case r <= 0x109f, 0x1100 <= r && r <= 0x11ff, 0x1780 <= r && r <= 0x17ff: // Burmese, Hangul jamo, Khmer
		return true
	case r < 0x3005:
		return false
	case r <= 0x3007, 0x3021 <= r && r <= 0x3029, 0x3031 <= r && r <= 0x3035, 0x3041 <= r &&
		r <= 0x30ff: // Han marks, kana
		return true
	case 0x3105 <= r && r <= 0x318e, 0x31a0 <= r && r <= 0x31bf, 0x31f0 <= r && r <= 0x31ff: // Bopomofo, Hangul, kana
		return true
	case 0xa960 <= r && r <= 0xa97f, 0xa9e0 <= r && r <= 0xa9ff, 0xaa60 <= r && r <= 0xaa7f: // Hangul, Burmese
		return true
	case 0xd7b0 <= r && r <= 0xd7ff: // Hangul
		return true
	}
	return isHan(r) || isHangulSyllable(r)
}

func isHan(r rune) bool {
	return 0x4e00 <= r && r <= 0x9fff || 0x3400 <= r && r <= 0x4dbf || 0xf900 <= r && r <= 0xfaff || 0x20000 <= r &&
		r <= 0x323af
}

func isHangulSyllable(r rune) bool { return 0xac00 <= r && r <= 0xd7a3 }
