package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// strength orders the places where a passage may end.
type strength uint8

const (
	breakLine     strength = iota // between two lines
	breakSentence                 // between two sentences, or at a blank line inside code
	breakGlue                     // between an introduction and the list, table or code it introduces
	breakItem                     // between two list items
	breakBlock                    // between two blocks
	breakHeading                  // before a heading

	strengths = int(breakHeading) + 1
)

// boundary is a place where a passage may end. Between end and start there is only white space.
type boundary struct {
	end      int // where the text before it ends
	start    int // where the text after it begins
	strength strength
}

// lineKind is the kind of a line in Markdown (CommonMark 0.31), as far as splitting needs it.
type lineKind uint8

const (
	lineText lineKind = iota
	lineHeading
	lineUnderline // of a setext heading
	lineItem
	lineTable
	lineFence // the opening line of fenced code
	lineCode  // inside the fence, and its closing line
)

// breakFinder reads the content line by line.
type breakFinder struct {
	s      string
	breaks []boundary
	fence  string // what closes the fenced code, or ""
	// the last line that was not blank
	prev      lineKind
	prevStart int  // where it begins, without white space
	prevEnd   int  // where it ends; 0 before the first
	prevAlone bool // it is the only line of its block so far
	blank     bool // blank lines followed it
	list      bool // it belongs to a list
	sentence  bool // it ended a sentence
}

// findBreaks returns the boundaries of s in order.
func findBreaks(s string) []boundary {
	f := breakFinder{s: s}
	for at := 0; at < len(s); {
		end, next := lineEnd(s, at)
		f.line(at, end, next)
		at = next
	}
	return f.breaks
}

// lineEnd returns where the line at s[at:] ends, and where the next one begins.
func lineEnd(s string, at int) (end, next int) {
	i := strings.IndexAny(s[at:], "\n\r")
	if i < 0 {
		return len(s), len(s)
	}
	end = at + i
	if strings.HasPrefix(s[end:], "\r\n") {
		return end, end + 2
	}
	return end, end + 1
}

// line processes the line s[at:end]; the next one begins at next.
func (f *breakFinder) line(at, end, next int) {
	start, stop := trim(f.s, at, end)
	if start == stop {
		f.blank = true
		return
	}
	indented := start-at >= 2
	kind := f.kind(f.s[start:stop], next)
	alone := f.prevEnd == 0 || f.blank || kind != f.prev
	if f.prevEnd > 0 {
		if k, ok := f.between(kind, start); ok {
			f.breaks = append(f.breaks, boundary{f.prevEnd, start, k})
		}
	}
	f.list = kind == lineItem || f.list && (!f.blank || indented) && kind != lineHeading
	f.prev, f.prevStart, f.prevEnd, f.prevAlone, f.blank = kind, start, stop, alone, false
	f.sentence = false
	if kind == lineText || kind == lineItem {
		f.sentences(start, stop)
	}
}

// between returns the strength of the break before a line, if there is a break.
func (f *breakFinder) between(kind lineKind, start int) (strength, bool) {
	opens := kind == lineItem || kind == lineTable || kind == lineFence
	switch {
	case f.prev == lineHeading && kind == lineHeading, kind == lineUnderline:
		return 0, false
	case kind == lineHeading:
		return breakHeading, true
	case kind == lineCode && f.blank:
		return breakSentence, true
	case kind == lineCode, kind == lineTable && f.prev == lineTable && !f.blank:
		return breakLine, true
	case kind == lineItem && f.list:
		return breakItem, true
	case f.introduces() && opens:
		return breakGlue, true
	case f.introduces() && f.blank, f.prev == lineHeading, f.prev == lineUnderline:
		return 0, false
	case f.blank && f.list:
		return breakItem, true // another paragraph of an item, or the text after the list
	case f.blank, opens, f.prev == lineCode, f.prev == lineTable:
		return breakBlock, true
	}
	if r, _ := utf8.DecodeRuneInString(f.s[start:]); f.sentence && !unicode.IsLower(r) {
		return breakSentence, true
	}
	return breakLine, true
}

// introduces reports whether the last line belongs to the text after it: a heading, a title, or words before a colon.
func (f *breakFinder) introduces() bool {
	const titleBytes = 80
	switch f.prev {
	case lineHeading, lineUnderline:
		return true
	case lineText:
		line := f.s[f.prevStart:f.prevEnd]
		return strings.HasSuffix(line, ":") || strings.HasSuffix(line, "：") ||
			f.prevAlone && !f.list && !f.sentence && len(line) <= titleBytes
	}
	return false
}

// kind returns the kind of a line. The next line begins at next.
func (f *breakFinder) kind(line string, next int) lineKind {
	if f.fence != "" {
		if strings.HasPrefix(line, f.fence) && strings.Trim(line, f.fence[:1]) == "" {
			f.fence = ""
		}
		return lineCode
	}
	switch c := line[0]; {
	case c == '`' || c == '~':
		n := len(line) - len(strings.TrimLeft(line, line[:1]))
		if n >= 3 && !(c == '`' && strings.Contains(line[n:], "`")) {
			f.fence = line[:n]
			return lineFence
		}
	case c == '#':
		n := len(line) - len(strings.TrimLeft(line, "#"))
		if n <= 6 && (n == len(line) || line[n] == ' ' || line[n] == '\t') {
			return lineHeading
		}
	case c == '|':
		return lineTable
	case (c == '=' || c == '-') && f.prev == lineHeading && !f.blank && isUnderline(line):
		return lineUnderline
	case isItem(line):
		return lineItem
	}
	if (f.prevEnd == 0 || f.blank) && next < len(f.s) {
		end, _ := lineEnd(f.s, next)
		if isUnderline(strings.TrimSpace(f.s[next:end])) {
			return lineHeading
		}
	}
	return lineText
}

// isUnderline reports whether line makes the line above it a heading.
func isUnderline(line string) bool {
	return len(line) >= 3 && (strings.Trim(line, "=") == "" || strings.Trim(line, "-") == "")
}

// isItem reports whether line begins a list item: a bullet or a number, and a space.
func isItem(line string) bool {
	switch line[0] {
	case '-', '*', '+':
		return len(line) > 1 && (line[1] == ' ' || line[1] == '\t')
	}
	if s, ok := strings.CutPrefix(line, "•"); ok {
		return s != ""
	}
	n := 0
	for n < len(line) && n < 9 && isDigit(line[n]) {
		n++
	}
	return n > 0 && n+1 < len(line) && (line[n] == '.' || line[n] == ')') && (line[n+1] == ' ' || line[n+1] == '\t')
}
