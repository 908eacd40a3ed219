package textview

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/shorten"
)

// Typed returns a text as a text area has it: browsers make every line end the same.
func Typed(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
}

// WithLineEndings converts a typed text to the line endings of the one that it replaces. If only these differ, it
// returns that one.
func WithLineEndings(typed, before string) string {
	switch {
	case Typed(before) == typed:
		return before
	case strings.Contains(before, "\r\n"):
		return strings.ReplaceAll(typed, "\n", "\r\n")
	}
	return typed
}

// Cut is the visible part of a text.
type Cut struct {
	Text string
	Cut  bool // there is more
}

// CutTo cuts a text at the end of a line, if it is longer than most bytes.
func CutTo(text string, most int) Cut {
	if len(text) <= most {
		return Cut{Text: text}
	}
	text = shorten.Bytes(text, most)
	at := strings.LastIndexByte(text, '\n') + 1
	return Cut{text[:cmp.Or(at, len(text))], true}
}

// Clip returns a text in one line, of at most the given number of characters.
func Clip(text string, most int) string {
	return ClipAround(text, nil, most)
}

// Plain formats a JSON value for people: strings and lists of strings without quotes.
func Plain(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case []string:
		return strings.Join(value, ", ")
	case []any:
		if texts := textsOf(value); len(texts) > 0 {
			return strings.Join(texts, ", ")
		}
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return "" // it came from JSON
	}
	return string(encoded)
}

// textsOf returns the texts of a list of texts; nil: it has others.
func textsOf(values []any) (texts []string) {
	for _, value := range values {
		text, is := value.(string)
		if !is {
			return nil
		}
		texts = append(texts, text)
	}
	return texts
}
