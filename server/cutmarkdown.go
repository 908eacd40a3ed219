package server

import (
	"cmp"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// withLineEndings gives a text the line endings of the one that it replaces.
func withLineEndings(typed, before string) string {
	if strings.Contains(before, "\r\n") {
		return strings.ReplaceAll(typed, "\n", "\r\n")
	}
	return typed
}

// cutMarkdown is as much of a text as a page shows of it.
type cutMarkdown struct {
	Text string
	Cut  bool // there is more
}

// cutTo cuts a text at the end of a line, if it is longer than so many bytes.
func cutTo(text string, most int) cutMarkdown {
	if len(text) <= most {
		return cutMarkdown{Text: text}
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	at := strings.LastIndexByte(text[:most], '\n') + 1
	return cutMarkdown{text[:cmp.Or(at, most)], true}
}

// clipped is a text in one line, of so many characters at most.
func clipped(text string, most int) string {
	return clipAround(text, nil, most)
}

// plain is a value of JSON as people read it: texts and lists of texts without quotes.
func plain(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case []string:
		return strings.Join(value, ", ")
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return "" // it came from JSON
	}
	return string(encoded)
}
