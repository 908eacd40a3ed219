package openai_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestThePageShowsTheExamples compares the Go code of the page with that of the examples, which are run.
func TestThePageShowsTheExamples(t *testing.T) {
	const page, most = "../../docs/frameworks/openai.md", 15 // lines of code
	unindented := func(name string) string {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return regexp.MustCompile(`(?m)^\t+`).ReplaceAllString(string(content), "")
	}
	examples := unindented("example_test.go")
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(unindented(page), -1)
	if len(blocks) == 0 {
		t.Errorf("%s: got no Go code, want some", page)
	}
	for _, block := range blocks {
		if !strings.Contains(examples, block[1]) {
			t.Errorf("%s: got code that is in no example, want it there:\n%s", page, block[1])
		}
		if n := strings.Count(block[1], "\n"); n > most {
			t.Errorf("%s: got %d lines, want at most %d:\n%s", page, n, most, block[1])
		}
	}
}
