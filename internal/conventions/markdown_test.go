package conventions

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// listMarker is the beginning of an item of a list, or the indentation of a line.
var listMarker = regexp.MustCompile(`^ *(?:[-*+] +|[0-9]+[.)] +)?`)

// tooWide returns the numbers of the lines of a Markdown text that are longer than 120 characters and could be wrapped.
// Tables and code are left alone, and so is a line that has no space outside of code to break at.
func tooWide(text string) []int {
	const widest = 120
	var found []int
	fenced := false
	for i, line := range strings.Split(text, "\n") {
		start := strings.TrimLeft(line, " ")
		if strings.HasPrefix(start, "```") || strings.HasPrefix(start, "~~~") {
			fenced = !fenced
		}
		indented := strings.HasPrefix(line, "    ") && listMarker.FindString(line) == line[:len(line)-len(start)]
		if fenced || indented || strings.HasPrefix(start, "|") || utf8.RuneCountInString(line) <= widest {
			continue
		}
		code, at := false, 0
		for _, c := range line[len(listMarker.FindString(line)):] {
			if c == '`' {
				code = !code
			}
			if c == ' ' && !code {
				found = append(found, i+1)
				break
			}
			if at++; at > widest {
				break
			}
		}
	}
	return found
}

// TestMarkdownKeepsToTheWidthOfCode finds lines of prose of more than 120 characters.
func TestMarkdownKeepsToTheWidthOfCode(t *testing.T) {
	atRoot(t)
	except := []string{".git", "node_modules", "testdata", "data"} // texts that tests and examples store, and licences
	read := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(except, entry.Name()):
			return fs.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		read++
		for _, line := range tooWide(string(content)) {
			t.Errorf("%s:%d: got a line of more than 120 characters, want it wrapped", path, line)
		}
		return nil
	})
	if err != nil || read < 20 {
		t.Errorf("got %v after %d files, want at least 20 files", err, read)
	}
	long := strings.Repeat("word ", 25)
	text := long + "\n```\n" + long + "\n```\n| " + long + "|\n- `" + long + "`\n- " + long + "\n    " + long + "\n"
	if got, want := tooWide(text), []int{1, 7}; !slices.Equal(got, want) {
		t.Errorf("got lines %v, want %v", got, want)
	}
}
