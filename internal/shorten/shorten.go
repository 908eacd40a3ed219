// Package shorten cuts texts that are too long, always between two characters.
package shorten

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Characters returns the first characters of a text.
func Characters(s string, most int) string {
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

// Bytes returns the beginning of a text, up to most bytes, in whole characters.
func Bytes(s string, most int) string {
	if len(s) <= most {
		return s
	}
	most = max(most, 0)
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// Words returns the beginning of a text, up to a number of characters, and ends after a whole word if that is near.
func Words(s string, characters int) string {
	end := len(Characters(s, characters))
	if end == len(s) {
		return s
	}
	const most = 40 // bytes of a word that may be cut off
	space := strings.LastIndexFunc(s[:end], unicode.IsSpace)
	if next, _ := utf8.DecodeRuneInString(s[end:]); !unicode.IsSpace(next) && space > 0 && end-space <= most {
		end = space
	}
	return strings.TrimRightFunc(s[:end], unicode.IsSpace)
}

// After returns a text of up to most characters as it is, and the first most of a longer one, followed by an ellipsis.
func After(s string, most int) string {
	if short := Characters(s, most); len(short) < len(s) {
		return short + "…"
	}
	return s
}

// Within returns a text of up to most characters as it is. A longer text is cut and gets an ellipsis, with most
// characters in total.
func Within(s string, most int) string {
	if len(Characters(s, most)) == len(s) {
		return s
	}
	return Characters(s, most-1) + "…"
}

// markdown are the marks that may stand before the words of a line of Markdown.
const markdown = "#>*-+=_`~| \t"

var emphasis = strings.NewReplacer("**", "", "__", "", "`", "")

// Title returns the first line of a text with words, without Markdown's marks and control characters. A line longer
// than most characters is cut after a word and gets an ellipsis. It is "" without such a line.
func Title(content string, most int) string {
	for line := range strings.Lines(content) {
		line = emphasis.Replace(strings.TrimLeft(strings.TrimSpace(line), markdown))
		line = strings.Join(strings.FieldsFunc(line, func(r rune) bool {
			return unicode.IsSpace(r) || unicode.IsControl(r)
		}), " ")
		if line == "" {
			continue
		}
		if start := Words(line, most); len(start) < len(line) {
			return strings.TrimRight(start, ".,;: ") + "…"
		}
		return line
	}
	return ""
}

// maxLine is the number of characters to which FirstLine cuts a line.
const maxLine = 120

// FirstLine returns the first line of a text that is not empty, at most 120 characters of it.
func FirstLine(s string) string {
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			return Words(line, maxLine)
		}
	}
	return ""
}
