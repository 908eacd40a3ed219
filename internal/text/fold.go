package text

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Folding decides which spellings are the same term. The text is already in NFKC (UAX #15), so full-width letters,
// ligatures, superscripts and decomposed accents are already plain.
//
//   - Latin and Greek lose case and every mark: é, Ğ, ơ, ά become e, g, o, α. Turkish ı and İ become i,
//     because a memory may hold Turkish beside English, and a search does not know which it means.
//   - Letters that do not decompose are spelt out as their users do on a plain keyboard: ß ss, æ ae, ø o, ł l.
//   - Greek final sigma is sigma. Cyrillic ё is е, as in most printed Russian; й, ї, ў are letters of their own.
//   - Arabic and Hebrew lose points, cantillation and tatweel; alef with hamza or madda is alef, teh marbuta
//     is heh, and the Persian forms of yeh and kaf are the Arabic ones (as Lucene's ArabicNormalizer and
//     PersianNormalizer do).
//   - Marks of other scripts (Indic, Thai, Khmer, kana voicing) are vowels or parts of letters, and stay.
//   - Decimal digits of every script are 0-9.

// foldedLetter maps letters that have no decomposition, or whose fold is not their base letter.
var foldedLetter = map[rune]string{
	'ß': "ss", 'ẞ': "ss", 'æ': "ae", 'Æ': "ae", 'œ': "oe", 'Œ': "oe", 'ø': "o", 'Ø': "o", 'ł': "l", 'Ł': "l",
	'đ': "d", 'Đ': "d", 'ð': "d", 'Ð': "d", 'þ': "th", 'Þ': "th", 'ħ': "h", 'Ħ': "h", 'ŧ': "t", 'Ŧ': "t", 'ŋ': "n",
	'Ŋ': "n",
	'ı': "i", 'İ': "i", 'ə': "e", 'Ə': "e",
	'ς': "σ", 'ё': "е", 'Ё': "е", 'ѐ': "е", 'Ѐ': "е", 'ѝ': "и", 'Ѝ': "и",
	'أ': "ا", 'إ': "ا", 'آ': "ا", 'ٱ': "ا", 'ى': "ي", 'ی': "ي", 'ة': "ه", 'ک': "ك", 'ـ': "",
}

// appendFolded appends the folded form of a character of class k, which is part of a word.
func appendFolded(dst []byte, r rune, k class) []byte {
	if r < utf8.RuneSelf {
		if k == classUpper {
			r += 'a' - 'A'
		}
		return append(dst, byte(r))
	}
	if isHan(r) || isHangulSyllable(r) {
		return utf8.AppendRune(dst, r)
	}
	if s, ok := foldedLetter[r]; ok {
		return append(dst, s...)
	}
	switch k {
	case classDigit:
		if d, ok := digitValue(r); ok {
			return append(dst, '0'+d)
		}
	case classUpper:
		r = unicode.ToLower(r)
	}
	if r < 0x0400 || 0x1e00 <= r && r < 0x2000 { // the blocks of accented Latin and Greek letters
		var b [utf8.UTFMax]byte
		n := utf8.EncodeRune(b[:], r)
		if d := norm.NFD.Properties(b[:n]).Decomposition(); d != nil {
			r, _ = utf8.DecodeRune(d)
		}
		if s, ok := foldedLetter[r]; ok { // ǿ, ǽ
			return append(dst, s...)
		}
	}
	return utf8.AppendRune(dst, r)
}

// digitValue returns the value of a decimal digit. Every range of category Nd is made of whole runs of ten,
// in order from zero (Unicode Standard, 4.6).
func digitValue(r rune) (byte, bool) {
	for _, t := range unicode.Nd.R16 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return byte((r - rune(t.Lo)) % 10), true
		}
	}
	for _, t := range unicode.Nd.R32 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return byte((r - rune(t.Lo)) % 10), true
		}
	}
	return 0, false
}

// droppedMarks are marks that a reader may leave out without changing the word.
var droppedMarks = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x0300, 0x036f, 1},                                                                // combining diacritical marks
		{0x0483, 0x0489, 1},                                                                // Cyrillic titlo and others
		{0x0591, 0x05bd, 1}, {0x05bf, 0x05bf, 1}, {0x05c1, 0x05c2, 1}, {0x05c4, 0x05c5, 1}, // Hebrew
		{0x05c7, 0x05c7, 1},
		{0x0610, 0x061a, 1}, {0x064b, 0x065f, 1}, {0x0670, 0x0670, 1}, {0x06d6, 0x06dc, 1}, // Arabic
		{0x06df, 0x06e4, 1}, {0x06e7, 0x06e8, 1}, {0x06ea, 0x06ed, 1}, {0x08d3, 0x08e1, 1}, {0x08e3, 0x08ff, 1},
		{0x0711, 0x0711, 1}, {0x0730, 0x074a, 1}, // Syriac
		{0x1ab0, 0x1aff, 1}, {0x1dc0, 0x1dff, 1}, {0x20d0, 0x20ff, 1}, // diacritical marks, continued
		{0x302a, 0x302f, 1}, // tone marks
		{0xfe00, 0xfe0f, 1}, // variation selectors
		{0xfe20, 0xfe2f, 1}, // half marks
	},
	R32: []unicode.Range32{{0xe0100, 0xe01ef, 1}},
}
