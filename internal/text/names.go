package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// HasName reports whether a text contains a name, in any case, as whole words.
func HasName(text, name string) bool {
	text, name = strings.ToLower(text), strings.ToLower(name)
	if name == "" {
		return false
	}
	for at := 0; ; {
		i := strings.Index(text[at:], name)
		if i < 0 {
			return false
		}
		i += at
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		after, _ := utf8.DecodeRuneInString(text[i+len(name):])
		if !inWord(before) && !inWord(after) {
			return true
		}
		_, size := utf8.DecodeRuneInString(text[i:])
		at = i + size
	}
}

// inWord reports whether a character belongs to a word.
func inWord(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_')
}
