package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"golang.org/x/term"
	"golang.org/x/text/width"
)

// output is standard output. It keeps the first error, so that commands need not check each print.
type output struct {
	file    *os.File
	painted bool // it may have colours
	err     error
}

// Write writes, unless an earlier write has failed.
func (o *output) Write(p []byte) (n int, err error) {
	if o.err == nil {
		n, o.err = o.file.Write(p)
	}
	return n, o.err
}

// printJSON prints one value, indented for people.
func printJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// printResult prints the result of a command: as JSON for programs, or as a line for people.
func (c *cli) printResult(asJSON bool, value any, format string, args ...any) error {
	if asJSON {
		return printJSON(&c.out, value)
	}
	fmt.Fprintf(&c.out, format+"\n", args...)
	return nil
}

// none prints that a list is empty, instead of a heading alone.
func (c *cli) none(format string, args ...any) error {
	fmt.Fprintf(c.stderr, format+"\n", args...)
	return nil
}

// table prints rows in columns under a heading.
func table(w io.Writer, heading []string, rows [][]string) error {
	var lines bytes.Buffer // paint would count as columns
	t := tabwriter.NewWriter(&lines, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(heading, "\t"))
	for _, row := range rows {
		for i := range row {
			row[i] = plain(row[i])
		}
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	first, rest, _ := strings.Cut(lines.String(), "\n")
	_, err := fmt.Fprintf(w, "%s\n%s", paintOf(w)(bold, first), rest)
	return err
}

// plain formats a text in one line, without terminal control sequences.
func plain(text string) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069 || r == 0x2028 || r == 0x2029 {
			return ' '
		}
		return r
	}, text)
	return strings.Join(strings.Fields(clean), " ")
}

// shorten cuts a text to a number of terminal columns; East Asian characters take two.
func shorten(text string, columns int) string {
	used, cut := 0, -1
	for i, r := range text {
		wide := runeColumns(r)
		if used+wide > columns-1 && cut < 0 {
			cut = i
		}
		if used += wide; used > columns {
			return text[:cut] + "…"
		}
	}
	return text
}

// runeColumns returns how many terminal columns a character takes.
func runeColumns(r rune) int {
	if unicode.Is(unicode.Mn, r) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// terminalWidth returns the width of a file that is a terminal; 0 for any other.
func terminalWidth(file *os.File) int {
	columns, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

func isTerminal(file *os.File) bool { return term.IsTerminal(int(file.Fd())) }

// moment formats a time for people; "-" for none.
func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04")
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// size formats a number of bytes.
func size(bytes int64) string {
	switch {
	case bytes < 1<<10:
		return fmt.Sprintf("%d B", bytes)
	case bytes < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	case bytes < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}
