package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestEveryCommandHasAManualPage(t *testing.T) {
	c := call{dir: t.TempDir()}
	if got := c.ok(t, "man", "deep/man1"); !strings.HasSuffix(got, " pages to deep/man1\n") {
		t.Errorf("souvenir man printed %q, want how many pages it wrote, and where", got)
	}
	again := decode[struct{ Pages []string }](t, c.ok(t, "man", "deep/man1", "--json")) // replaces them
	everyCommand(func(command *cobra.Command) {
		if command.Hidden {
			return
		}
		name := filepath.Join("deep/man1", strings.ReplaceAll(command.CommandPath(), " ", "-")+".1")
		content, err := os.ReadFile(filepath.Join(c.dir, name))
		if err != nil {
			t.Error(err)
			return
		}
		page := strings.NewReplacer(`\-`, "-", `\(aq`, "'").Replace(string(content))
		for _, want := range []string{command.Short, ".SH \"DESCRIPTION\"", strings.Fields(command.Long)[0]} {
			if !strings.Contains(page, want) {
				t.Errorf("%s does not say %q, want it there", name, want)
			}
		}
		if command.Flags().Lookup("db") != nil && !strings.Contains(page, "Variable: SOUVENIR_DB\n") {
			t.Errorf("%s does not name the variable SOUVENIR_DB, want it there", name)
		}
		for _, path := range again.Pages {
			if path == name {
				return
			}
		}
		t.Errorf("--json lists %v, want in it %s", again.Pages, name)
	})
	c.fails(t, exitUsage, "needs DIR", "man")
	if err := os.WriteFile(filepath.Join(c.dir, "taken"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.fails(t, exitError, "DIR|taken", "man", "taken")
}

// groff finds no fault in the pages and renders their text.
func TestManualPagesAreReadAsTheyAreMeant(t *testing.T) {
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("groff is missing")
	}
	c := call{dir: t.TempDir()}
	c.ok(t, "man", ".")
	pages, err := filepath.Glob(filepath.Join(c.dir, "*.1"))
	if err != nil || len(pages) < 40 {
		t.Fatalf("%d pages, %v; want 40 or more", len(pages), err)
	}
	check := exec.CommandContext(t.Context(), groff, append([]string{"-man", "-ww", "-z", "-Tutf8"}, pages...)...)
	if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("groff says %s %v; want nothing", out, err)
	}
	show := exec.CommandContext(t.Context(), groff, "-man", "-Tutf8", "-rLL=200n", "-P-c", "-P-b", "-P-u",
		filepath.Join(c.dir, "souvenir-import.1"))
	out, err := show.Output()
	for _, want := range []string{`{"type":"memory","content":"The kettle is blue.","owner":"anna","tags":["kitchen"]}`,
		"--on-conflict WHAT", "zcat memories.jsonl.gz | souvenir import -", "souvenir(1)"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("the page of import (%v) does not show %q:\n%s, want it shown", err, want, out)
		}
	}
}
