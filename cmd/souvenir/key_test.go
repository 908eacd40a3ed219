//go:build !souvenir_cgo

package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

func TestKeyCommands(t *testing.T) {
	c := newStore(t)
	made := decode[struct{ File, ID string }](t, c.ok(t, "key", "generate", "master.key", "--json"))
	content, err := os.ReadFile(filepath.Join(c.dir, "master.key"))
	if err != nil || made.File != "master.key" || len(made.ID) != 16 || len(content) != 65 {
		t.Fatalf("got %+v, %q, %v; want a key of 64 digits, and its id", made, content, err)
	}
	if strings.Contains(string(content), made.ID) {
		t.Error("the id is a part of the key, want a hash")
	}
	c.fails(t, exitError, "master.key", "key", "generate", "master.key")
	c.fails(t, exitUsage, "SOUVENIR_MASTER_KEY_FILE", "key", "encrypt", "souvenir.db", "sealed.db")

	keyed := c
	keyed.env = []string{"SOUVENIR_MASTER_KEY_FILE=master.key"}
	type copied struct {
		Path  string
		Bytes int64
	}
	if got := decode[copied](t, keyed.ok(t, "key", "encrypt", "souvenir.db", "sealed.db", "--json")); got.Bytes == 0 {
		t.Errorf("got %+v, want the new file and its size", got)
	}
	if out := keyed.ok(t, "search", "kettle", "--db", "sealed.db", "--user", "anna"); !strings.Contains(out, "blue") {
		t.Errorf("got %q, want the memory about the kettle", out)
	}
	sealed, err := os.ReadFile(filepath.Join(c.dir, "sealed.db"))
	if err != nil || strings.Contains(string(sealed), "kettle") {
		t.Errorf("got %d bytes, %v; want nothing readable", len(sealed), err)
	}
	c.fails(t, exitError, made.ID, "check", "--db", "sealed.db")
	keyed.fails(t, exitError, "not encrypted", "check", "--db", "souvenir.db")

	keyed.ok(t, "backup", "backup.db", "--db", "sealed.db")
	keyed.ok(t, "restore", "backup.db", "--db", "restored.db")
	keyed.ok(t, "restore", "--drill", "backup.db")
	keyed.ok(t, "recover", "backup.db", "recovered.db")
	c.fails(t, exitError, made.ID, "recover", "backup.db", "other.db")

	c.ok(t, "key", "generate", "next.key")
	changed := decode[struct{ ID string }](t,
		keyed.ok(t, "key", "change", "--db", "sealed.db", "--to", "next.key", "--json"))
	keyed.fails(t, exitError, changed.ID, "check", "--db", "sealed.db")
	keyed.ok(t, "check", "--db", "backup.db")
	next := c
	next.env = []string{"SOUVENIR_MASTER_KEY_FILE=next.key"}
	next.ok(t, "check", "--db", "sealed.db")
	if runtime.GOOS != "windows" {
		next.env = []string{"SOUVENIR_MASTER_KEY_COMMAND=cat next.key"}
		next.ok(t, "check", "--db", "sealed.db")
		next.env = []string{"SOUVENIR_MASTER_KEY_COMMAND=exit 3"}
		next.fails(t, exitError, "SOUVENIR_MASTER_KEY_COMMAND", "check", "--db", "sealed.db")
	}
	if !longtest.On() {
		return
	}
	next.env = []string{"SOUVENIR_MASTER_KEY_FILE=next.key"}
	next.ok(t, "key", "encrypt", "backup.db", "again.db", "--from", "master.key")
	next.ok(t, "check", "--db", "again.db")
	decode[copied](t, next.ok(t, "key", "decrypt", "sealed.db", "plain.db", "--json"))
	c.ok(t, "check", "--db", "plain.db")

	c.env = []string{"SOUVENIR_MASTER_KEY=hunter2-hunter2"}
	c.fails(t, exitError, "SOUVENIR_MASTER_KEY", "check", "--db", "sealed.db")
	if o := c.run(t, "check", "--db", "sealed.db"); strings.Contains(o.stderr, "hunter") {
		t.Errorf("got %q, want no part of the key", o.stderr)
	}
	c.env = append(c.env, "SOUVENIR_MASTER_KEY_FILE=next.key")
	c.fails(t, exitUsage, "set one of them", "check", "--db", "sealed.db")
}
