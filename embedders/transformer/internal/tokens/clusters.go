package tokens

import (
	"unicode"
	"unicode/utf8"
)

// clusterEnd returns the length of the first user-perceived character of a text (an extended grapheme cluster, UAX
// #29). It applies only the rules that can give a cluster of less than 6 bytes, since the cut of longer ones makes no
// difference here: Hangul syllables, flags, emoji sequences and Indic conjuncts are always longer.
func clusterEnd(text string) int {
	r, end := utf8.DecodeRuneInString(text)
	if end < len(text) && r < 0x80 && text[end] < 0x80 && r != '\r' {
		return end
	}
	if r == '\r' && end < len(text) && text[end] == '\n' { // GB3
		return end + 1
	}
	if breaksAround(r) { // GB4
		return end
	}
	prepended := isPrepended(r)
	for end < len(text) {
		next, width := utf8.DecodeRuneInString(text[end:])
		switch {
		case breaksAround(next): // GB5
			return end
		case isExtending(next): // GB9, GB9a
			prepended = false
		case prepended: // GB9b
			prepended = isPrepended(next)
		case isHangul(r) && isHangul(next): // GB6 to GB8, all of 6 bytes and more
			prepended = false
		default:
			return end
		}
		r = next
		end += width
	}
	return end
}

// breaksAround are the classes CR, LF and Control: nothing joins them.
func breaksAround(r rune) bool {
	switch {
	case r == 0x200C || r == 0x200D || unicode.Is(unicode.Prepended_Concatenation_Mark, r):
		return false
	case r >= 0xE0020 && r <= 0xE007F: // tags, which extend
		return false
	case r >= 0xE0000 && r <= 0xE0FFF: // reserved, ignorable by default
		return !unicode.Is(unicode.Mn, r)
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) || r >= 0x2060 && r <= 0x206F ||
		r >= 0xFFF0 && r <= 0xFFF8
}

// isExtending are the classes Extend, ZWJ and SpacingMark.
func isExtending(r rune) bool {
	if r < 0x300 {
		return false
	}
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Other_Grapheme_Extend), r == 0x200D, r >= 0x1F3FB && r <= 0x1F3FF:
		return true
	case r == 0xE33 || r == 0xEB3:
		return true
	case unicode.Is(unicode.Mc, r):
		return !isFreeVowel(r)
	}
	return false
}

// isFreeVowel are the spacing marks that do not join the character before them.
func isFreeVowel(r rune) bool {
	switch r {
	case 0x102B, 0x102C, 0x1038, 0x1083, 0x108F, 0x1A61, 0x1A63, 0x1A64, 0xAA7B, 0xAA7D, 0x11720, 0x11721:
		return true
	}
	return r >= 0x1062 && r <= 0x1064 || r >= 0x1067 && r <= 0x106D || r >= 0x1087 && r <= 0x108C ||
		r >= 0x109A && r <= 0x109C
}

// isPrepended is the class Prepend.
func isPrepended(r rune) bool {
	switch r {
	case 0xD4E, 0x111C2, 0x111C3, 0x1193F, 0x11941, 0x11A3A, 0x11D46, 0x11F02:
		return true
	}
	return r >= 0x600 && unicode.Is(unicode.Prepended_Concatenation_Mark, r) || r >= 0x11A84 && r <= 0x11A89
}

func isHangul(r rune) bool {
	return r >= 0x1100 && r <= 0x11FF || r >= 0xA960 && r <= 0xA97C || r >= 0xAC00 && r <= 0xD7FB
}
