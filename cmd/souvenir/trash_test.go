package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// trashed returns a store with four deleted memories: three of anna and one of ben, with their ids.
func trashed(t *testing.T) (c call, anna []string, ben string) {
	t.Helper()
	c = newStore(t)
	store := openStore(t, filepath.Join(c.dir, "souvenir.db"))
	throwAway := func(name, content string) string {
		user, err := store.Accounts().GetUser(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		view := store.As(souvenir.Access{User: user.ID})
		m, err := view.AddMemory(t.Context(), souvenir.NewMemory{Content: content})
		if err == nil {
			err = view.DeleteMemory(t.Context(), m.ID, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		return m.ID
	}
	for _, content := range []string{"one of three", "two of three", "three \x1b[2J of three"} {
		anna = append(anna, throwAway("anna", content))
	}
	return c, anna, throwAway("ben", "of ben")
}

func TestTrashCommands(t *testing.T) {
	c, anna, ben := trashed(t)
	lines := strings.Split(strings.TrimSpace(c.ok(t, "trash", "list", "--user", "anna")), "\n")
	if len(lines) != 4 || !regexp.MustCompile(`^DELETED +RESTORABLE UNTIL +KIND +ID +BY +TITLE$`).MatchString(lines[0]) ||
		!regexp.MustCompile(`  memory  `+anna[2]+`  anna  three \[2J of three$`).MatchString(lines[1]) {
		t.Errorf("the list is\n%s, want a heading and 3 entries", strings.Join(lines, "\n"))
	}
	if o := c.run(t, "trash", "list", "--user", "anna", "--limit", "1"); o.code != exitOK ||
		o.stderr != "2 more: --offset 1\n" {
		t.Errorf("a part of the list is %+v; want code %v", o, exitOK)
	}
	if o := c.run(t, "trash", "list", "--user", "anna", "--kind", "file"); o.stdout != "" ||
		o.stderr != "the trash is empty\n" {
		t.Errorf("the files are %+v; want stdout \"\"", o)
	}
	page := decode[souvenir.TrashPage](t, c.ok(t, "trash", "list", "--user", "ben", "--json"))
	if page.Total != 1 || page.Entries[0].ID != ben {
		t.Errorf("ben's is %+v, want total 1 and ID %v", page, ben)
	}
	c.fails(t, exitUsage, "--user is missing", "trash", "list")
	c.fails(t, exitError, "--kind", "trash", "list", "--user", "anna", "--kind", "user")
	c.fails(t, exitUsage, "--limit is 0", "trash", "list", "--user", "anna", "--limit", "0")

	if got := c.ok(t, "trash", "restore", anna[0], "--user", "anna"); got != "restored memory one of three\n" {
		t.Errorf("restore printed %q, want %v", got, "restored memory one of three\n")
	}
	c.fails(t, exitError, "ID|is not in the trash", "trash", "restore", anna[0], "--user", "anna")
	c.fails(t, exitError, "is not in the trash", "trash", "restore", ben, "--user", "anna")
	o := c.run(t, "trash", "restore", "none", anna[1], "--user", "anna", "--json")
	if o.code != exitError || !strings.Contains(o.stderr, "none") || len(decode[[]souvenir.TrashEntry](t, o.stdout)) != 1 {
		t.Errorf("of two, when one can be restored: got %+v, want one restored", o)
	}
	if got := c.ok(t, "search", "--user", "anna", "--json"); !strings.Contains(got, anna[0]) ||
		!strings.Contains(got, anna[1]) {
		t.Errorf("the restored memory is not found: got %v, want %q in it and %q in it", got, anna[0], anna[1])
	}
}

func TestEmptyingTheTrashNeedsConfirmation(t *testing.T) {
	longtest.Only(t)
	c, anna, ben := trashed(t)
	c.fails(t, exitUsage, "--yes is missing: 3 entries would be erased", "trash", "empty", "--user", "anna")
	c.fails(t, exitError, "is not in the trash", "trash", "empty", anna[0], ben, "--user", "anna", "--yes")
	if got := c.ok(t, "trash", "empty", anna[1], anna[1], "--user", "anna", "--yes"); !strings.HasPrefix(got,
		"erased 1 entry permanently") {
		t.Errorf("it printed %q, want at its start \"erased 1 entry permanently\"", got)
	}
	if got := decode[object](t, c.ok(t, "trash", "empty", "--user", "anna", "--yes", "--json")); got["erased"] != 2.0 {
		t.Errorf("it erased %v, want 2.0", got)
	}
	if got := c.ok(t, "trash", "empty", "--user", "anna"); got != "there is nothing to erase\n" {
		t.Errorf("the empty trash gives %q, want %v", got, "there is nothing to erase\n")
	}
	if page := decode[souvenir.TrashPage](t, c.ok(t, "trash", "list", "--user", "ben", "--json")); page.Total != 1 {
		t.Errorf("ben has %d, want 1", page.Total)
	}
}

func TestStdioDeletionsGoToTheTrash(t *testing.T) {
	longtest.Only(t)
	c := newStore(t)
	store := openStore(t, filepath.Join(c.dir, "souvenir.db"))
	anna, err := store.Accounts().GetUser(t.Context(), "anna")
	if err != nil {
		t.Fatal(err)
	}
	view := store.As(souvenir.Access{User: anna.ID})
	c.fails(t, exitUsage, "--trash-days is -1", "mcp", "--trash-days", "-1")
	for _, step := range []struct {
		days  string
		total int
	}{{"0", 0}, {"3", 1}} {
		m, err := view.AddMemory(t.Context(), souvenir.NewMemory{Content: "by stdio"})
		if err != nil {
			t.Fatal(err)
		}
		p := c.startMCP(t, "--user", "anna", "--trash-days", step.days)
		if _, err := p.memory(object{"action": "delete", "id": m.ID}); err != nil {
			t.Fatal(err)
		}
		p.end(t)
		page, err := view.Trash().Page(t.Context(), souvenir.TrashQuery{})
		if err != nil || page.Total != step.total {
			t.Fatalf("with --trash-days %s: %+v, %v; want total %v", step.days, page, err, step.total)
		}
		for _, e := range page.Entries {
			if e.Through != "mcp" || e.Until.Sub(e.DeletedAt).Hours() != 72 {
				t.Errorf(`the entry is %+v, want through "mcp" and hours 72`, e)
			}
		}
	}
}
