package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Leading returns the first characters of a text.
func Leading(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for i := range s {
		if most--; most < 0 {
			return s[:i]
		}
	}
	return s
}

// LeadingBytes returns the beginning of a text, up to most bytes, in whole characters.
func LeadingBytes(s string, most int) string {
	if len(s) <= most {
		return s
	}
	most = max(most, 0)
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// LeadingWords returns the beginning of a text, up to a number of characters: whole words if that costs little.
func LeadingWords(s string, characters int) string {
	end := len(Leading(s, characters))
	if end == len(s) {
		return s
	}
	const most = 40 // bytes of a word that are given up
	space := strings.LastIndexFunc(s[:end], unicode.IsSpace)
	if next, _ := utf8.DecodeRuneInString(s[end:]); !unicode.IsSpace(next) && space > 0 && end-space <= most {
		end = space
	}
	return strings.TrimRightFunc(s[:end], unicode.IsSpace)
}

// Clip returns a text of up to most characters as it is, and the first of them of a longer one, with an ellipsis.
func Clip(s string, most int) string {
	if short := Leading(s, most); len(short) < len(s) {
		return short + "…"
	}
	return s
}
