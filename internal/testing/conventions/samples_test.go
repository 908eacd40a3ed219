package conventions

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// goSample matches a sample of Go in a Markdown page.
var goSample = regexp.MustCompile("(?s)```go\n(.*?)```")

// errorCheck matches lines of an example that a sample may omit.
var errorCheck = regexp.MustCompile(`(?m)^if err != nil \{\n(?:log\.Fatal\(err\)|return err)\n\}\n`)

// linesOf returns code without its indentation, empty lines and checks for errors.
func linesOf(code string) string {
	code = regexp.MustCompile(`(?m)^[ \t]+`).ReplaceAllString(code, "")
	return "\n" + errorCheck.ReplaceAllString(regexp.MustCompile(`\n{2,}`).ReplaceAllString(code, "\n"), "")
}

// containsParts reports whether an example contains each part of a sample; "// ..." separates them.
func containsParts(example, sample string) bool {
	for part := range strings.SplitSeq(sample, "\n// ...\n") {
		if !strings.Contains(example, strings.Trim(part, "\n")) {
			return false
		}
	}
	return true
}

// TestSamplesOfTheDocumentsAreExamples finds samples of Go that are not lines of an example with an output, which go
// test runs. Whole programs are built and run by the tests of cmd/souvenir.
func TestSamplesOfTheDocumentsAreExamples(t *testing.T) {
	atRoot(t)
	var examples []string
	read := func(folder, name string, each func(path, text string)) {
		t.Helper()
		if err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if matched, _ := filepath.Match(name, entry.Name()); err != nil || entry.IsDir() || !matched {
				return err
			}
			content, err := os.ReadFile(path)
			each(path, string(content))
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	read(".", "example*_test.go", func(_, text string) {
		for function := range strings.SplitSeq(text, "\nfunc ") {
			if strings.HasPrefix(function, "Example") && strings.Contains(function, "// Output:") {
				examples = append(examples, linesOf(function))
			}
		}
	})
	samples := 0
	check := func(page, text string) {
		for _, found := range goSample.FindAllStringSubmatch(text, -1) {
			code := linesOf(found[1])
			if strings.HasPrefix(code, "\npackage main\n") {
				continue
			}
			samples++
			shown := false
			for _, example := range examples {
				shown = shown || containsParts(example, code)
			}
			if !shown {
				t.Errorf("%s: got a sample that no example with an output has, want its lines in one:\n%s", page, found[1])
			}
		}
	}
	read("docs", "*.md", check)
	read(".", "README.md", check)
	if samples < 30 {
		t.Errorf("got %d samples, want at least 30", samples)
	}
}
