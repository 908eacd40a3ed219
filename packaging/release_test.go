package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// uses matches the actions of a workflow, and pinned those with a commit and its version.
var (
	uses   = regexp.MustCompile(`(?m)^\s*-? ?uses: (.*)$`)
	pinned = regexp.MustCompile(`^[a-z-]+/[a-z/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
)

// An action's tag can be moved to other code; a commit cannot.
func TestWorkflowsPinTheirActions(t *testing.T) {
	files, err := filepath.Glob("../.github/workflows/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("got %v, %v; want the workflows", files, err)
	}
	for _, path := range files {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found := uses.FindAllStringSubmatch(string(content), -1)
		if len(found) == 0 {
			t.Errorf("%s: got no action, want some", path)
		}
		for _, match := range found {
			if !pinned.MatchString(match[1]) {
				t.Errorf("%s: got the action %q, want it with a commit and its version", path, match[1])
			}
		}
		if !strings.Contains(string(content), "\npermissions:\n  contents: read\n") {
			t.Errorf("%s: got no permissions for the whole workflow, want that it may read only", path)
		}
	}
}

func TestFilesForOperatorsAreYAML(t *testing.T) {
	read := 0
	for _, pattern := range []string{"../.goreleaser.yaml", "../.github/*.yaml", "../.github/*/*.y*ml", "*/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range strings.Split(string(content), "\n---\n") {
				var value map[string]any
				if err := yaml.Unmarshal([]byte(part), &value); err != nil || len(value) == 0 {
					t.Errorf("%s: got %v and %v, want settings", path, value, err)
				}
			}
			read++
		}
	}
	if read < 10 {
		t.Errorf("got %d files, want at least 10", read)
	}
}
