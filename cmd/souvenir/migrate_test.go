package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/migrate"
)

func TestImportFromAnotherProgram(t *testing.T) {
	c := call{dir: t.TempDir()}
	graph := `{"type":"entity","name":"Anna","entityType":"person","observations":["eats no peanuts"]}` + "\n" +
		`{"type":"entity","name":"Atlas","entityType":"project","observations":[]}` + "\n" +
		`{"type":"relation","from":"Anna","to":"Atlas","relationType":"works on"}` + "\n"
	if err := os.WriteFile(filepath.Join(c.dir, "memory.jsonl"), []byte(graph), 0o600); err != nil {
		t.Fatal(err)
	}
	const from = "--from=server-memory"
	if got, want := c.ok(t, "import", from, "memory.jsonl", "--dry-run"),
		"2 memories and 0 turns of 0 conversations can be imported; nothing was stored\n"; got != want {
		t.Errorf("a dry run printed %q, want %q", got, want)
	}
	if _, err := os.Stat(filepath.Join(c.dir, "souvenir.db")); !os.IsNotExist(err) {
		t.Errorf("after a dry run the store's file gives %v, want none", err)
	}
	if got, want := c.ok(t, "import", from, "memory.jsonl", "--project", "atlas"),
		"2 memories: 2 added, 0 updated, 0 unchanged; 1 links\n"; !strings.HasPrefix(got, want) {
		t.Errorf("the import printed %q, want %q", got, want)
	}
	second := decode[migrate.Report](t, c.ok(t, "import", from, "memory.jsonl", "--project", "atlas", "--json"))
	if second.Unchanged != 2 || second.Added != 0 {
		t.Errorf("the second import reports %+v, want 2 unchanged", second)
	}
	if got := c.ok(t, "search", "peanuts", "--project", "atlas"); !strings.Contains(got, "eats no peanuts") {
		t.Errorf("the search printed %q, want the entity", got)
	}
	c.fails(t, exitUsage, "--from is \"floppy\"; there are: basic-memory", "import", "--from", "floppy", "memory.jsonl")
	c.fails(t, exitUsage, "--project is given without --from", "import", "--project", "atlas", "memory.jsonl")
	c.fails(t, exitUsage, "--secrets is \"hide\"", "import", from, "memory.jsonl", "--secrets", "hide")
	c.fails(t, exitUsage, "--on-conflict cannot be combined with --from",
		"import", from, "memory.jsonl", "--on-conflict=keep")
	c.fails(t, exitError, "IN cannot be read", "import", from, "missing.jsonl")
	c.fails(t, exitError, "encrypted", "import", "--from=chromem", "memory.jsonl")
}
