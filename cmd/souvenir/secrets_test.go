package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

func TestSecretsAreTreatedAsAsked(t *testing.T) {
	const secret = "AKIA" + "Y7QW3ERTU5OPASDF"
	for mode, want := range map[string]string{"flag": "use " + secret, "mask": "use [secret: aws-access-token]"} {
		o := &souvenir.Options{}
		if err := treatSecrets(o, mode); err != nil || len(o.Hooks) != 1 {
			t.Fatalf("%s: got %v, %v, want hooks", mode, o.Hooks, err)
		}
		m := souvenir.NewMemory{Content: "use " + secret}
		if err := o.Hooks[0].BeforeStore(t.Context(), souvenir.Operation{}, &m); err != nil || m.Content != want {
			t.Errorf("%s: got %q, %v, want %q", mode, m.Content, err, want)
		}
	}
	off := &souvenir.Options{}
	if err := treatSecrets(off, "off"); err != nil || off.Hooks != nil {
		t.Errorf("off: got %v, %v, want none", off.Hooks, err)
	}
	newStore(t).fails(t, exitUsage, "--secrets", "serve", "--secrets", "hide")
	newStore(t).fails(t, exitUsage, "--secrets", "mcp", "--user", "anna", "--secrets", "hide")
}

func TestAnImportReportsSecrets(t *testing.T) {
	longtest.Only(t)
	c := call{dir: t.TempDir()}
	const secret = "AKIA" + "Y7QW3ERTU5OPASDF"
	if err := os.WriteFile(filepath.Join(c.dir, "all.json"), []byte(`[{"id":"1","memory":"use `+secret+`"}]`),
		0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.dir, "hand.jsonl"), []byte(`{"souvenir":"export","version":1}
{"type":"memory","content":"use `+secret+`"}
{"type":"memory","content":"two"}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[string]string{"flag": "flagged", "mask": "masked"} {
		out := c.run(t, "import", "hand.jsonl", "--db", mode+"-hand.db", "--secrets", mode)
		if want := "1 memories with possible secrets were " + want; out.code != 0 || !strings.Contains(out.stderr, want) {
			t.Errorf("%s: got %q, want %q", mode, out.stderr, want)
		}
	}
	c.fails(t, exitError, "line 2: content has what looks like a secret", "import", "hand.jsonl", "--db", "hand.db",
		"--secrets", "refuse")
	if _, err := os.Stat(filepath.Join(c.dir, "hand.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after a refused import: got %v, want no new store", err)
	}
	for mode, want := range map[string]string{"flag": "flagged", "mask": "masked", "refuse": "skipped"} {
		out := c.run(t, "import", "--from", "mem0", "all.json", "--db", mode+".db", "--secrets", mode)
		printed := out.stderr
		if out.code != 0 || !strings.Contains(printed, want+": aws-access-token (1)") || strings.Contains(printed, secret) {
			t.Errorf("%s: got %q, want that items with secrets were %s", mode, printed, want)
		}
	}
}
