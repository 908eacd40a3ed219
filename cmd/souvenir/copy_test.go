package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// rowsOf returns the lines of a store's export, without the first and the last one.
func rowsOf(t *testing.T, c call, db string) string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(c.ok(t, "export", "--credentials", "--db", db)), "\n")
	return strings.Join(lines[1:len(lines)-1], "\n")
}

// full adds to the store of newStore whatever an export holds besides memories.
func full(t *testing.T) (c call, token string) {
	t.Helper()
	c = newStore(t)
	token = strings.TrimSpace(c.ok(t, "token", "add", "--user", "anna", "--name", "laptop"))
	c.ok(t, "client", "add", "--user", "anna", "--redirect-uri", "https://app.example/back")
	store := openStore(t, filepath.Join(c.dir, "souvenir.db"))
	user, err := store.Accounts().GetUser(t.Context(), "anna")
	if err != nil {
		t.Fatal(err)
	}
	view := store.As(souvenir.Access{User: user.ID})
	m, err := view.AddMemory(t.Context(), souvenir.NewMemory{Content: "The harbour is deep.", Tags: []string{"sea"},
		ProjectID: "harbour"})
	if err != nil {
		t.Fatal(err)
	}
	changed := "The harbour is shallow."
	if _, err := view.UpdateMemory(t.Context(), m.ID, souvenir.MemoryUpdate{Content: &changed}); err != nil {
		t.Fatal(err)
	}
	if _, err := view.AddFile(t.Context(), souvenir.NewFile{Filename: "tide.txt"}, strings.NewReader("low")); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Accounts().RotateSigningKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c, token
}

func copyFrom(t *testing.T, c call, from, to string) {
	t.Helper()
	for _, run := range []string{"first", "second"} { // the second one finds everything there
		if printed := c.ok(t, "copy", "--from", from, "--to", to); !strings.Contains(printed, "all rows match") {
			t.Errorf("the %s copy from %s to %s: got %s, want every row there", run, from, to, printed)
		}
	}
	if got, want := rowsOf(t, c, to), rowsOf(t, c, from); got != want {
		t.Errorf("the copy has other rows:\n got %s\nwant %s", got, want)
	}
}

func TestACopyHasEveryRow(t *testing.T) {
	c, _ := full(t)
	copyFrom(t, c, "souvenir.db", "copy.db")
}

func TestACopyToADatabaseAndBackHasEveryRow(t *testing.T) {
	address := pgtest.Address(t)
	c, token := full(t)
	copyFrom(t, c, "souvenir.db", address)
	copyFrom(t, c, address, "back.db")
	p := c.start(t, "serve", "--listen", "127.0.0.1:0", "--db", address)
	if status, body := request(t, "GET", p.url+"/api/owner-ids/me", token, nil); status != 200 {
		t.Errorf("a copied token: got %d %s, want 200", status, body)
	}
	if code, _ := p.stop(t); code != exitOK {
		t.Errorf("exit status %d, want %d: %s", code, exitOK, p.stderr)
	}
}

func TestCopyReportsDifferences(t *testing.T) {
	longtest.Only(t)
	c, _ := full(t)
	c.ok(t, "copy", "--from", "souvenir.db", "--to", "copy.db")
	copied := openStore(t, filepath.Join(c.dir, "copy.db"))
	user, err := copied.Accounts().GetUser(t.Context(), "anna")
	if err != nil {
		t.Fatal(err)
	}
	view := copied.As(souvenir.Access{User: user.ID})
	for m, err := range view.Memories(t.Context(), souvenir.MemoryList{}) {
		if err != nil {
			t.Fatal(err)
		}
		if m.Content == "The harbour is shallow." {
			changed := "The harbour is dry."
			if _, err := view.UpdateMemory(t.Context(), m.ID, souvenir.MemoryUpdate{Content: &changed}); err != nil {
				t.Fatal(err)
			}
		}
	}
	o := c.run(t, "copy", "--from", "souvenir.db", "--to", "copy.db")
	if o.code != exitError || !strings.Contains(o.stderr, "1 rows (memory) are missing in copy.db, or differ there") ||
		!strings.Contains(o.stderr, "copy.db has 1 rows (memory) that were not copied") {
		t.Errorf("got status %d and %s, want %d and the memory that differs", o.code, o.stderr, exitError)
	}
}

func TestCopyRefusesInvalidArguments(t *testing.T) {
	c := newStore(t)
	before := readFolder(t, c.dir)
	c.fails(t, exitUsage, "--from and --to", "copy", "--from", "souvenir.db")
	c.fails(t, exitUsage, "same store", "copy", "--from", "souvenir.db", "--to", "souvenir.db")
	c.fails(t, exitUsage, "same store", "copy", "--from", "./souvenir.db", "--to", filepath.Join(c.dir, "souvenir.db"))
	c.fails(t, exitError, "missing.db", "copy", "--from", "missing.db", "--to", "new.db")
	if _, err := os.Stat(filepath.Join(c.dir, "new.db")); err == nil || len(readFolder(t, c.dir)) != len(before) {
		t.Error("a copy that cannot be has made a file, want none")
	}
}
