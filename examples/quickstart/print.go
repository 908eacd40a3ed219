package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/souvenir-ai/souvenir"
)

const (
	width  = 100 // columns of a line
	indent = 36  // of a memory's text, after its score, date and kind
	timed  = 10  // of a duration at the end of a line
)

func printStep(w io.Writer, name, text string, took time.Duration) {
	printTimed(w, fmt.Sprintf("%-7s %s", name, text), took)
}

func printAnswer(w io.Writer, a answer) {
	fmt.Fprintln(w)
	printTimed(w, a.Ask, a.took)
	if len(a.hits) == 0 {
		fmt.Fprintln(w, "  nothing found")
	}
	for i, hit := range a.hits {
		mark, lines := " ", 1
		if i == 0 {
			lines = 3
		}
		if i+1 == a.rank() {
			mark = "*"
		}
		date, _ := hit.Metadata["date"].(string)
		text := wrap(plain(hit), width-indent, lines)
		fmt.Fprintf(w, "  %.3f %s %-10s  %-13s %s\n", hit.Score, mark, date, shorten(hit.EventType, 13), text[0])
		for _, line := range text[1:] {
			fmt.Fprintf(w, "%*s%s\n", indent, "", line)
		}
	}
}

func printSummary(w io.Writer, answers []answer, firstAnswer time.Duration, own bool) {
	var found, first int
	took := make([]time.Duration, len(answers))
	for i, a := range answers {
		took[i] = a.took
		if a.rank() > 0 {
			found++
		}
		if a.rank() == 1 {
			first++
		}
	}
	slices.Sort(took)
	fmt.Fprintln(w)
	if !own {
		fmt.Fprintf(w, "* answers the question: so for %d of %d questions, in first place for %d.\n", found, len(answers),
			first)
	}
	fmt.Fprintf(w, "First answer %s after the program began; median search %s.\n",
		milliseconds(firstAnswer), milliseconds(took[len(took)/2]))
	fmt.Fprint(w, `
What to try next
  go run ./examples/quickstart agent.db                     keep the file and run it twice
  go run ./examples/quickstart agent.db "who sings alto?"   ask something of your own
  go doc github.com/souvenir-ai/souvenir                    the package: what else a store can do
`)
}

// printTimed prints a line with a duration at its end.
func printTimed(w io.Writer, text string, took time.Duration) {
	text = shorten(text, width-timed-1)
	var right string
	if took > 0 {
		right = milliseconds(took)
	}
	gap := width - timed - columns(text)
	fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%s%*s%*s", text, gap, "", timed, right), " "))
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

// plain is the found passage in one line; a passage from within a document has the document's title before it.
func plain(hit souvenir.Hit) string {
	passage := hit.Content[hit.Start:hit.End]
	if title, _, _ := strings.Cut(hit.Content, "\n"); strings.HasPrefix(title, "# ") && hit.Start > 0 {
		passage = title + "\n… " + passage
	}
	var words []string
	for line := range strings.Lines(passage) {
		if heading := strings.TrimLeft(line, "#"); heading != line {
			line = strings.TrimSpace(heading) + ":"
		}
		words = append(words, strings.Fields(line)...)
	}
	return strings.Join(words, " ")
}

// wrap breaks text into lines of a width in columns, and marks what it cuts with an ellipsis.
func wrap(text string, width, lines int) []string {
	var wrapped []string
	for len(wrapped) < lines-1 && columns(text) > width {
		cut := fit(text, width+1) // a blank may stand just past the edge
		if blank := strings.LastIndexByte(text[:cut], ' '); blank > 0 {
			cut = blank
		} else {
			cut = fit(text, width)
		}
		wrapped = append(wrapped, text[:cut])
		text = strings.TrimLeft(text[cut:], " ")
	}
	return append(wrapped, shorten(text, width))
}

func shorten(text string, width int) string {
	if columns(text) <= width {
		return text
	}
	return text[:fit(text, width-1)] + "…"
}

// fit returns how many bytes of text fit into a width in columns.
func fit(text string, width int) int {
	for i, r := range text {
		if width -= columns(string(r)); width < 0 {
			return i
		}
	}
	return len(text)
}

// columns is the width of text on a terminal, where East Asian characters take two columns.
func columns(text string) int {
	n := 0
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul), r >= 0x3000 && r < 0x3040,
			r >= 0xFF00 && r < 0xFF61:
			n += 2
		case !unicode.Is(unicode.Mn, r):
			n++
		}
	}
	return n
}
