package tododoc

import (
	"fmt"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/fault"
)

// scanner scans the lines of a Markdown text and tracks fenced code. It keeps only one line, so it reads a text in
// linear time.
type scanner struct {
	text       string
	at         int // where the next line begins
	start, end int // the current line, without its ending
	number     int // of the current line, from 1
	code       bool
	opened     int   // line of the open fence, or of the last one
	fence      fence // the open one; the zero value for none
	// a fence in a list item: it begins the item, or is indented too far to count outside; it hides only tasks
	inner  fence
	before string
}

// fence is an opening code fence: its character, its length and its indentation.
type fence struct {
	character byte
	length    int
	indent    int
	item      bool // a list item begins with it, so indent is exact: any line indented less ends it
}

func newScanner(text string) *scanner { return &scanner{text: text} }

func (s *scanner) line() string { return s.text[s.start:s.end] }

// next advances to the next line. Lines end with LF, CR LF or CR.
func (s *scanner) next() bool {
	if s.at >= len(s.text) {
		return false
	}
	s.before = s.line()
	s.start = s.at
	s.number++
	length := strings.IndexAny(s.text[s.at:], "\r\n")
	switch {
	case length < 0:
		s.end, s.at = len(s.text), len(s.text)
	case strings.HasPrefix(s.text[s.at+length:], "\r\n"):
		s.end, s.at = s.at+length, s.at+length+2
	default:
		s.end, s.at = s.at+length, s.at+length+1
	}
	s.follow()
	return true
}

// follow updates the fence state for the current line.
func (s *scanner) follow() {
	columns, rest := indentation(s.line())
	f, info := fenceOf(rest)
	f.indent = columns
	closes := func(open fence) bool {
		return f.character == open.character && f.length >= open.length && strings.Trim(info, " \t") == ""
	}
	switch {
	case s.fence.length > 0:
		s.code = true
		if closes(s.fence) && columns <= 3 {
			s.fence = fence{}
		}
		return
	case s.inner.item && (rest == "" || columns >= s.inner.indent):
		s.code = true
		if closes(s.inner) && columns <= s.inner.indent+3 {
			s.inner = fence{}
		}
		return
	case s.inner.item:
		s.inner = fence{}
	}
	switch {
	case s.inner.length > 0 && closes(s.inner) && columns >= s.inner.indent-3:
		s.inner, s.code = fence{}, false
		return
	case f.length > 0 && columns <= 3:
		s.fence, s.inner, s.opened, s.code = f, fence{}, s.number, true
		return
	}
	if f := itemFence(columns, rest); f.length > 0 && s.inner.length == 0 {
		s.inner, s.opened, s.code = f, s.number, true
		return
	}
	s.code = false
	switch {
	case s.inner.length > 0 && rest != "" && columns < s.inner.indent-3:
		s.inner = fence{}
	case s.inner.length == 0 && f.length > 0:
		s.inner = f
	}
}

// indentation counts the columns of white space before a line's text; a tab advances to the next multiple of four.
func indentation(line string) (columns int, rest string) {
	for i := range len(line) {
		switch line[i] {
		case ' ':
			columns++
		case '\t':
			columns += 4 - columns%4
		default:
			return columns, line[i:]
		}
	}
	return columns, ""
}

// fenceOf returns the code fence that a line's text begins with, and its info string.
func fenceOf(text string) (f fence, info string) {
	if text == "" || text[0] != '`' && text[0] != '~' {
		return fence{}, ""
	}
	info = strings.TrimLeft(text, text[:1])
	f = fence{character: text[0], length: len(text) - len(info)}
	if f.length < 3 || f.character == '`' && strings.Contains(info, "`") {
		return fence{}, ""
	}
	return f, info
}

// itemFence returns the code fence that a list item, whose text begins at a column, begins with: "- ```" or "1. ```".
// An item with tabs after the bullet does not count.
func itemFence(column int, item string) fence {
	const fewest = len("- ```")
	for len(item) >= fewest {
		digits := strings.TrimLeft(item, "0123456789")
		numbered := len(digits) < len(item)
		if digits == "" || len(item)-len(digits) > 9 || numbered && digits[0] != '.' && digits[0] != ')' || !numbered &&
			!strings.ContainsRune("-*+", rune(item[0])) {
			return fence{}
		}
		text := strings.TrimLeft(digits[1:], " ")
		if spaces := len(digits) - 1 - len(text); spaces < 1 || spaces > 4 { // more begin indented code
			return fence{}
		}
		column += len(item) - len(text)
		if f, _ := fenceOf(text); f.length > 0 {
			f.indent, f.item = column, true
			return f
		}
		item = text // an item may begin with another item
	}
	return fence{}
}

type heading struct {
	level int
	text  string
}

// heading parses the current line as an ATX heading, if it is one.
func (s *scanner) heading() (heading, bool) {
	columns, rest := indentation(s.line())
	text := strings.TrimLeft(rest, "#")
	level := len(rest) - len(text)
	if columns > 3 || level < 1 || level > 6 || text != "" && text[0] != ' ' && text[0] != '\t' {
		return heading{}, false
	}
	text = strings.Trim(text, " \t")
	if open := strings.TrimRight(text, "#"); open == "" || strings.HasSuffix(open, " ") || strings.HasSuffix(open, "\t") {
		text = strings.TrimRight(open, " \t") // a closing sequence
	}
	return heading{level, text}, true
}

// stray describes the current line if it looks like a section's heading but is not one.
func (s *scanner) stray(h heading, isHeading bool) (like Section, stray string) {
	columns, rest := indentation(s.line())
	written, number := s.line(), s.number
	switch {
	case isHeading:
		like = Like(h.text)
	case strings.HasPrefix(rest, "##"):
		like = Like(rest)
	case rest != "" && columns <= 3 &&
		(strings.Trim(rest, "- \t") == "" || strings.Trim(rest, "= \t") == ""): // an underline
		like, written, number = Like(s.before), s.before, s.number-1
	}
	if like == "" {
		return "", ""
	}
	return like, fmt.Sprintf("line %d is %s, which must read %s", number, fault.Show(written), fault.Show(like.Heading()))
}

// task parses the current line as a list item with a checkbox, if it is one. Its ID is empty if it has none.
func (s *scanner) task() (Task, bool) {
	_, item := indentation(s.line())
	if s.inner.length > 0 || len(item) < 5 || !strings.ContainsRune("-*+", rune(item[0])) {
		return Task{}, false
	}
	_, box := indentation(item[1:])
	if len(box) == len(item)-1 || len(box) < 3 || box[0] != '[' || box[2] != ']' ||
		!strings.ContainsRune(" xX", rune(box[1])) {
		return Task{}, false
	}
	_, text := indentation(box[3:])
	if text == box[3:] && text != "" {
		return Task{}, false // "[x](link)"
	}
	t := Task{Text: strings.TrimRight(text, " \t"), Done: box[1] != ' ', Line: s.number, Box: s.end - len(box) + 1}
	t.ID, t.Text = taskID(t.Text)
	return t, true
}

// taskID splits a task's text into its id and the rest. The id may be emphasised or in brackets and followed by
// punctuation: "T1 text", "**T1**: text", "[T1] text". T1a and T1.2 are not ids.
func taskID(text string) (id, rest string) {
	const emphasis = "*_`["
	named := strings.TrimLeft(text, emphasis)
	if named == "" || named[0] != 'T' && named[0] != 't' {
		return "", text
	}
	digits := strings.TrimLeft(named[1:], "0123456789")
	id = named[:len(named)-len(digits)]
	rest = strings.TrimLeft(digits, "*_`]):.,;")
	if len(id) < 2 || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
		return "", text
	}
	return id, strings.TrimLeft(rest, " \t")
}
