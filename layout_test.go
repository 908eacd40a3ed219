package souvenir_test

import (
	"bytes"
	"os"
	"path/filepath"
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
