// Package textview prepares texts for the pages: cut to a size, with search hits marked, or compared with another
// version.
package textview

import (
	"html/template"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff/lcs"

	"github.com/souvenir-ai/souvenir/internal/shorten"
)

// Bounds of comparisons.
const (
	MaxDiffed     = 512 << 10 // total bytes of two compared texts
	maxWordDiffed = 16 << 10  // total bytes of two pieces compared word by word
	MaxDiffShown  = 16 << 10  // bytes of differences that a page shows for two texts
	MaxDiffsShown = 48 << 10  // and for all its comparisons
	diffContext   = 2         // lines around a difference
)

// Diff is the line-by-line difference between two texts.
type Diff struct {
	Lines          []diffLine
	Removed, Added int  // lines
	TooLarge       bool // to compare
	Cut            bool // there are more differences

	Left int // bytes that may still be shown
}

// diffLine is a line of a difference.
type diffLine struct {
	Kind    string // same, gone, new, or skip for omitted equal lines
	Spans   []diffSpan
	Skipped int
}

// diffSpan is a piece of a line; Changed: it differs.
type diffSpan struct {
	Text    string
	Changed bool
}

// Compare compares two texts. Its work is bounded for texts of any size, and its output to most bytes.
func Compare(before, after string, most int) *Diff {
	if len(before)+len(after) > MaxDiffed {
		return &Diff{TooLarge: true}
	}
	d := &Diff{Left: most}
	old, now := strings.Split(before, "\n"), strings.Split(after, "\n")
	at := 0 // line of old up to which the diff is complete
	changes := lcs.DiffLines(old, now)
	for i, change := range changes {
		d.same(old, at, change.Start, i > 0)
		d.change(old[change.Start:change.End], now[change.ReplStart:change.ReplEnd])
		at = change.End
	}
	if len(changes) > 0 {
		end := min(len(old), at+diffContext)
		d.plain("same", old[at:end])
		d.skip(len(old) - end)
	}
	return d
}

// same adds the equal lines next to a difference.
func (d *Diff) same(lines []string, from, to int, follows bool) {
	first, last := from, max(from, to-diffContext)
	if follows {
		first = min(from+diffContext, to)
	}
	d.plain("same", lines[from:first])
	if last > first {
		d.skip(last - first)
	} else {
		last = first
	}
	d.plain("same", lines[last:to])
}

func (d *Diff) skip(lines int) {
	if lines > 0 && !d.Cut {
		d.Lines = append(d.Lines, diffLine{Kind: "skip", Skipped: lines})
	}
}

func (d *Diff) plain(kind string, lines []string) {
	for _, line := range lines {
		d.add(kind, []diffSpan{{Text: line}})
	}
}

// add adds a line, as far as there is room.
func (d *Diff) add(kind string, spans []diffSpan) {
	if d.Cut {
		return
	}
	for i := range spans {
		if view := shorten.Bytes(spans[i].Text, d.Left); len(view) < len(spans[i].Text) {
			spans[i].Text, d.Cut = view+"…", true
			spans = spans[:i+1]
			break
		}
		d.Left -= len(template.HTMLEscapeString(spans[i].Text)) + 10 // for the markup of a mark
	}
	d.Left -= 120 // the markup of a line
	d.Cut = d.Cut || d.Left <= 0
	d.Lines = append(d.Lines, diffLine{Kind: kind, Spans: spans})
}

// change adds replaced lines, with the differing words marked.
func (d *Diff) change(gone, come []string) {
	d.Removed += len(gone)
	d.Added += len(come)
	old, now := strings.Join(gone, "\n"), strings.Join(come, "\n")
	if old == "" || now == "" || len(old)+len(now) > maxWordDiffed {
		d.plain("gone", gone)
		d.plain("new", come)
		return
	}
	oldWords, newWords := wordsOf(old), wordsOf(now)
	oldChanged, newChanged := make([]bool, len(oldWords)), make([]bool, len(newWords))
	for _, c := range lcs.DiffLines(oldWords, newWords) {
		markChanged(oldChanged, c.Start, c.End)
		markChanged(newChanged, c.ReplStart, c.ReplEnd)
	}
	joinMarks(oldWords, oldChanged)
	joinMarks(newWords, newChanged)
	if kept(oldWords, oldChanged)*3 < len(old) &&
		kept(newWords, newChanged)*3 < len(now) { // another text: marks would only distract
		d.plain("gone", gone)
		d.plain("new", come)
		return
	}
	for _, spans := range spansOf(oldWords, oldChanged) {
		d.add("gone", spans)
	}
	for _, spans := range spansOf(newWords, newChanged) {
		d.add("new", spans)
	}
}

func markChanged(changed []bool, from, to int) {
	for i := from; i < to; i++ {
		changed[i] = true
	}
}

// joinMarks also marks the blanks between marked words.
func joinMarks(words []string, changed []bool) {
	for i := 1; i < len(words)-1; i++ {
		if words[i] == " " && changed[i-1] && changed[i+1] {
			changed[i] = true
		}
	}
}

// kept counts the bytes of unchanged words, without blanks, which match by chance.
func kept(words []string, changed []bool) int {
	n := 0
	for i, word := range words {
		if !changed[i] && strings.TrimSpace(word) != "" {
			n += len(word)
		}
	}
	return n
}

// wordsOf splits a text into words and the single characters between them.
func wordsOf(text string) []string {
	var words []string
	start := 0
	for i, size := 0, 0; i < len(text); i += size {
		var r rune
		if r, size = utf8.DecodeRuneInString(text[i:]); unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) {
			continue
		}
		if i > start {
			words = append(words, text[start:i])
		}
		start = i + size // an invalid byte counts as one, too
		words = append(words, text[i:start])
	}
	if start < len(text) {
		words = append(words, text[start:])
	}
	return words
}

// spansOf joins words into lines of changed and unchanged pieces.
func spansOf(words []string, changed []bool) [][]diffSpan {
	lines := [][]diffSpan{nil}
	for i, word := range words {
		line := &lines[len(lines)-1]
		switch last := len(*line) - 1; {
		case word == "\n":
			lines = append(lines, nil)
		case last >= 0 && (*line)[last].Changed == changed[i]:
			(*line)[last].Text += word
		default:
			*line = append(*line, diffSpan{word, changed[i]})
		}
	}
	return lines
}
