package souvenir_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheRootFolderCanBeTakenIn holds the root to a number of files that a reader can take in, each with a concept of
// its own.
func TestTheRootFolderCanBeTakenIn(t *testing.T) {
	const most, shortest, longest = 50, 60, 650
	all, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for _, name := range all {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		files++
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if lines := bytes.Count(content, []byte("\n")); lines < shortest || lines > longest {
			t.Errorf("%s: got %d lines, want %d to %d; put it where it belongs, or cut it", name, lines, shortest, longest)
		}
	}
	if files == 0 || files > most {
		t.Errorf("got %d files in the root, want at most %d; move machinery into internal/", files, most)
	}
}

// TestTheDocumentsNameWhatExists finds paths in the documents on the code that do not exist, and packages that the
// architecture leaves out.
func TestTheDocumentsNameWhatExists(t *testing.T) {
	path := regexp.MustCompile("`((?:[a-z0-9_]+/)*[a-z0-9_]+\\.go|(?:internal|server|cmd)/[a-z0-9/]+)`")
	named := ""
	for _, name := range []string{"docs/walks.md", "docs/architecture.md"} {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if name == "docs/architecture.md" {
			named = string(content)
		}
		found := path.FindAllStringSubmatch(string(content), -1)
		if len(found) == 0 {
			t.Errorf("%s: got no path, want some", name)
		}
		for _, match := range found {
			if _, err := os.Stat(match[1]); err != nil {
				t.Errorf("%s names %s: got %v, want a path that exists", name, match[1], err)
			}
		}
	}
	packages, err := os.ReadDir("internal")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages {
		if !strings.Contains(named, "`"+p.Name()+"`") && !strings.Contains(named, "internal/"+p.Name()) {
			t.Errorf("docs/architecture.md lacks internal/%s", p.Name())
		}
	}
}
