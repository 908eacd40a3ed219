package tokens

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// isSpace is Unicode's property White_Space, which unicode.IsSpace has too.
func isSpace(r rune) bool { return unicode.IsSpace(r) }

// isWord is \w of regular expressions.
func isWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r) || unicode.Is(unicode.Pc, r) ||
		unicode.Is(unicode.Nl, r)
}

// isControl reports whether BERT removes a character: control and format characters, and those of private use.
func isControl(r rune) bool {
	switch r {
	case '\t', '\n', '\r':
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co)
}

// isPunctuation reports whether BERT makes a character a word of its own.
func isPunctuation(r rune) bool {
	if r < 128 {
		return r >= '!' && r <= '/' || r >= ':' && r <= '@' || r >= '[' && r <= '`' || r >= '{' && r <= '~'
	}
	return unicode.IsPunct(r)
}

// isIdeograph reports whether BERT treats a character as Chinese: the blocks of CJK ideographs, without kana and
// Hangul.
func isIdeograph(r rune) bool {
	return r >= 0x4E00 && r <= 0x9FFF || r >= 0x3400 && r <= 0x4DBF || r >= 0x20000 && r <= 0x2A6DF ||
		r >= 0x2A700 && r <= 0x2B73F || r >= 0x2B740 && r <= 0x2B81F || r >= 0x2B920 && r <= 0x2CEAF ||
		r >= 0xF900 && r <= 0xFAFF || r >= 0x2F800 && r <= 0x2FA1F
}

// cleanText removes control characters and makes every white space a blank.
func cleanText(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == 0 || r == unicode.ReplacementChar || isControl(r):
			return -1
		case isSpace(r):
			return ' '
		}
		return r
	}, text)
}

// spaceIdeographs puts blanks around Chinese characters, so that each becomes a word.
func spaceIdeographs(text string) string {
	if !slices.ContainsFunc([]rune(text), isIdeograph) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if isIdeograph(r) {
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// stripAccents decomposes characters and removes the marks.
func stripAccents(text string) string {
	return removeMarks(norm.NFD.String(text))
}

// removeMarks removes non-spacing marks.
func removeMarks(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, text)
}

// removeAllMarks removes marks of every kind.
func removeAllMarks(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsMark(r) {
			return -1
		}
		return r
	}, text)
}

// nmt removes control characters, and makes white space of some kinds a blank, as SentencePiece's rule "nmt" does.
func nmt(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 1 && r <= 8, r == 0xB, r >= 0xE && r <= 0x1F, r == 0x7F, r == 0x8F, r == 0x9F:
			return -1
		case r == 9 || r == 0xA || r == 0xC || r == 0xD, r == 0x1680, r >= 0x200B && r <= 0x200F, r == 0x2028, r == 0x2029,
			r == 0x2581, r == 0xFEFF, r == 0xFFFD:
			return ' '
		}
		return r
	}, text)
}

// lower is Unicode's lower case, character by character. Only one character becomes two.
func lower(text string) string {
	if strings.ContainsRune(text, 'İ') {
		text = strings.ReplaceAll(text, "İ", "i\u0307")
	}
	return strings.Map(unicode.ToLower, text)
}

// trimmer removes white space at one end, or both.
func trimmer(left, right bool) step {
	return func(text string) string {
		if left {
			text = strings.TrimLeftFunc(text, isSpace)
		}
		if right {
			text = strings.TrimRightFunc(text, isSpace)
		}
		return text
	}
}

// splitBERT cuts a text at white space, and makes every punctuation character a piece of its own.
func splitBERT(text string, _ bool) []string {
	var pieces []string
	start := -1
	for i, r := range text {
		space, punctuation := isSpace(r), isPunctuation(r)
		if (space || punctuation) && start >= 0 {
			pieces = append(pieces, text[start:i])
			start = -1
		}
		switch {
		case punctuation:
			pieces = append(pieces, text[i:i+len(string(r))])
		case !space && start < 0:
			start = i
		}
	}
	if start >= 0 {
		pieces = append(pieces, text[start:])
	}
	return pieces
}

// splitSpace cuts a text at white space.
func splitSpace(text string, _ bool) []string { return strings.FieldsFunc(text, isSpace) }

// blank is how SentencePiece writes the blank before a word.
const blank = "\u2581"

// metaspace returns the splitter that writes blanks as a character, and cuts before each of them.
func metaspace(mark, scheme string, split bool) splitter {
	return func(text string, first bool) []string {
		text = strings.ReplaceAll(text, " ", mark)
		if !strings.HasPrefix(text, mark) && (scheme == "always" || scheme == "first" && first) {
			text = mark + text
		}
		if !split {
			return []string{text}
		}
		var pieces []string
		for len(text) > 0 {
			next := strings.Index(text[min(len(mark), len(text)):], mark)
			if !strings.HasPrefix(text, mark) {
				next = strings.Index(text, mark)
			} else if next >= 0 {
				next += len(mark)
			}
			if next < 0 {
				return append(pieces, text)
			}
			pieces, text = append(pieces, text[:next]), text[next:]
		}
		return pieces
	}
}
