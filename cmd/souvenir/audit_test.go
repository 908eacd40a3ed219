package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// The operator's backups and exports have entries, except in a store that can only be read.
func TestCopiesOfTheWholeStoreAreInTheAuditLog(t *testing.T) {
	c := newStore(t)
	for action, args := range map[string][]string{"backup": {"backup", "copy.db"}, "export": {"export", "all.jsonl"}} {
		c.ok(t, args...)
		list := decode[struct {
			Entries []souvenir.AuditEntry `json:"entries"`
		}](t, c.ok(t, "audit", "list", "--json", "--action", action)).Entries
		size := fileSizeInBytes(t, filepath.Join(c.dir, args[1]))
		if len(list) != 1 || list[0].Actor.Via != souvenir.ViaCommand || list[0].Details["bytes"] != size {
			t.Errorf("the audit log after %s: got %+v, want one entry of the command line with %v bytes", action, list, size)
		}
	}
	path := filepath.Join(c.dir, "souvenir.db")
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	c.ok(t, "backup", "second.db") // root may write it anyway
	c.ok(t, "check", "--db", "second.db")
}

// A copy is an export in the log of the store that is copied, and an import in that of the other.
func TestACopyIsInBothAuditLogs(t *testing.T) {
	longtest.Only(t)
	c, _ := full(t)
	c.ok(t, "copy", "--from", "souvenir.db", "--to", "copy.db")
	c.ok(t, "copy", "--from", "souvenir.db", "--to", "copy.db") // changes nothing in the copy
	for _, test := range []struct {
		db, action string
		entries    int
		detail     string
	}{{"souvenir.db", "export", 2, "credentials"}, {"souvenir.db", "import", 0, ""}, {"copy.db", "import", 1,
		"complete"}} {
		list := decode[struct {
			Entries []souvenir.AuditEntry `json:"entries"`
		}](t, c.ok(t, "audit", "list", "--json", "--action", test.action, "--db", test.db)).Entries
		if len(list) != test.entries {
			t.Errorf("the audit log of %s: got %+v, want %d entries about an %s", test.db, list, test.entries, test.action)
		}
		for _, e := range list {
			if e.Actor.Via != souvenir.ViaCommand || e.Details[test.detail] != true {
				t.Errorf("the audit log of %s: got %+v, want an entry of the command line with %s", test.db, e, test.detail)
			}
		}
	}
}

func fileSizeInBytes(t *testing.T, path string) float64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return float64(info.Size())
}

func TestAuditCommands(t *testing.T) {
	c := newStore(t)
	c.ok(t, "token", "add", "--user", "anna", "--name", "laptop")
	list := decode[struct {
		Entries []souvenir.AuditEntry `json:"entries"`
	}](t, c.ok(t, "audit", "list", "--json")).Entries
	if len(list) < 3 || list[0].Action != "token.add" || list[0].Actor.Via != souvenir.ViaCommand ||
		list[0].Kind != "token" {
		t.Fatalf("got %+v, want the new token first", list)
	}
	only := decode[struct {
		Entries []souvenir.AuditEntry `json:"entries"`
	}](t, c.ok(t, "audit", "list", "--json", "--action", "user", "--limit", "1")).Entries
	if len(only) != 1 || only[0].Action != "user.add" {
		t.Errorf("got %+v, want one user.add", only)
	}
	head := fmt.Sprintf("%d:%s", list[0].Seq, list[0].Hash)
	if got, want := c.ok(t, "audit", "verify", "--anchor", head),
		fmt.Sprintf("ok: %d entries, from 1 to %d\n%s\n", len(list), len(list), head); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	c.fails(t, exitUsage, "--anchor", "audit", "verify", "--anchor", "newest")
	c.fails(t, exitError, "--anchor", "audit", "verify", "--anchor", "1:ff")
	c.fails(t, exitError, "NUMBER:HASH", "audit", "cut", "1:"+list[0].Hash)
	c.fails(t, exitUsage, "--limit", "audit", "list", "--limit", "-1")

	removed := decode[struct {
		Removed int `json:"removed"`
	}](t, c.ok(t, "audit", "cut", fmt.Sprintf("%d:%s", list[1].Seq, list[1].Hash), "--json"))
	report := decode[souvenir.AuditReport](t, c.ok(t, "audit", "verify", "--json", "--anchor", head))
	if removed.Removed != len(list)-1 || !report.OK || report.First != list[0].Seq || report.Entries != 2 {
		t.Errorf("got %+v and %+v, want all but the newest removed, and the cut noted", removed, report)
	}
	o := c.run(t, "audit", "verify", "--json", "--anchor", fmt.Sprintf("%d:%s", list[1].Seq, list[0].Hash))
	if report := decode[souvenir.AuditReport](t, o.stdout); o.code != exitError || report.OK || len(report.Problems) != 1 {
		t.Errorf("with a wrong anchor got %+v, want exit status 1 and one problem", o)
	}
}
