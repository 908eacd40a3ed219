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

// People who install by hand get the unit of the packages, hardened in the same way.
func TestThePageOnSelfHostingPrintsThePackagedUnit(t *testing.T) {
	page, err := os.ReadFile("../docs/self-hosting.md")
	if err != nil {
		t.Fatal(err)
	}
	unit, err := os.ReadFile("systemd/souvenir.service")
	if err != nil {
		t.Fatal(err)
	}
	_, want, _ := strings.Cut(strings.ReplaceAll(string(unit), "/usr/bin/", "/usr/local/bin/"), "\n")
	_, got, _ := strings.Cut(string(page), "```ini\n")
	got, _, _ = strings.Cut(got, "```")
	if got != want {
		t.Errorf("docs/self-hosting.md prints the unit\n%s\nwant packaging/systemd/souvenir.service, in /usr/local/bin:\n%s",
			got, want)
	}
}

// promtool runs these tests (e2e/alerts.sh), which must see each alert both silent and raised.
func TestEachAlertHasATest(t *testing.T) {
	var alerts struct {
		Groups []struct{ Rules []struct{ Alert string } }
	}
	var tests struct {
		Tests []struct {
			Cases []struct {
				Name   string `yaml:"alertname"`
				Raised []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	for path, value := range map[string]any{"prometheus/alerts.yaml": &alerts, "prometheus/alerts_test.yaml": &tests} {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(content, value); err != nil {
			t.Fatal(err)
		}
	}
	silent, raised := map[string]bool{}, map[string]bool{}
	for _, test := range tests.Tests {
		for _, c := range test.Cases {
			silent[c.Name] = silent[c.Name] || len(c.Raised) == 0
			raised[c.Name] = raised[c.Name] || len(c.Raised) > 0
		}
	}
	for _, rule := range alerts.Groups[0].Rules {
		if !silent[rule.Alert] || !raised[rule.Alert] {
			t.Errorf("%s is silent in a test: %t, raised in one: %t; want both", rule.Alert, silent[rule.Alert],
				raised[rule.Alert])
		}
	}
	if len(raised) < 10 {
		t.Errorf("got tests of %d alerts, want at least 10", len(raised))
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
