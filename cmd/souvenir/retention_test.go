package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
)

func TestRetentionCommands(t *testing.T) {
	c := newStore(t)
	store := openStore(t, filepath.Join(c.dir, "souvenir.db"))
	anna, err := store.Accounts().GetUser(t.Context(), "anna")
	if err != nil {
		t.Fatal(err)
	}
	view := store.As(souvenir.Access{User: anna.ID})
	if _, err := view.AddCollection(t.Context(), souvenir.NewCollection{Name: "日记"}); err != nil {
		t.Fatal(err)
	}
	old := `{"souvenir":"export","version":1}` + "\n" + `{"type":"memory","id":"01a0f3a1-0000-7000-8000-000000000001",` +
		`"owner":"` + anna.ID + `","collection_name":"日记","content":"旧事","metadata":{},"revision":1,` +
		`"created_at":"2001-01-01T00:00:00Z","updated_at":"2001-01-01T00:00:00Z"}` + "\n"
	if _, err := store.Upkeep().Import(t.Context(), strings.NewReader(old), nil); err != nil {
		t.Fatal(err)
	}
	if o := c.run(t, "retention", "list", "--user", "anna"); o.stdout != "" ||
		!strings.Contains(o.stderr, "no retention rules") {
		t.Errorf("without rules: %+v; want no stdout, and that none has a rule", o)
	}
	set := []string{"retention", "set", "--user", "anna", "--collection", "日记", "--after", "1y"}
	dry := decode[keptPlace](t, c.ok(t, append(set, "--dry-run", "--json")...))
	if want := (keptPlace{Collection: "日记", Seconds: 365 * 24 * 3600, Action: "trash", Due: 1}); dry != want {
		t.Errorf("a dry run says %+v, want %+v", dry, want)
	}
	c.fails(t, exitUsage, "--yes is missing: 1 memory of collection 日记", append(set, "--delete")...)
	if got := c.ok(t, "retention", "list", "--user", "anna", "--json"); strings.TrimSpace(got) != "[]" {
		t.Errorf("after a dry run the rules are %s, want []", got)
	}
	c.ok(t, append(set, "--json")...)
	in := c.ok(t, "retention", "set", "--user", "anna", "--project", "home", "--after", "90d", "--delete")
	const want = "memories of project home that do not change for 90d are deleted permanently; due now: 0 memories\n"
	if in != want {
		t.Errorf("got %q, want %q", in, want)
	}
	rules := decode[[]keptPlace](t, c.ok(t, "retention", "list", "--user", "anna", "--json"))
	if len(rules) != 2 || rules[0].Collection != "日记" || rules[1].ProjectName != "home" || rules[1].Action != "delete" {
		t.Errorf("the rules are %+v, want those of 日记 and home", rules)
	}
	if got := c.ok(t, "retention", "list", "--user", "anna"); !strings.Contains(got, "project home  ") ||
		!strings.Contains(got, "  90d ") {
		t.Errorf("the list is\n%s\nwant project home with 90d in it", got)
	}
	ben, err := store.Accounts().GetUser(t.Context(), "ben")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := view.AddMemory(t.Context(), souvenir.NewMemory{Content: "shared", Collection: "日记",
		ProjectName: "home"}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.AddMember(t.Context(), souvenir.NewMember{Project: souvenir.ProjectRef{ID: anna.ID + "/" +
		rules[1].ProjectID}, User: ben.ID, Role: souvenir.MemberReader}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.As(souvenir.Access{User: ben.ID}).AddCollection(t.Context(),
		souvenir.NewCollection{Name: "日记"}); err != nil {
		t.Fatal(err)
	}
	if got := c.ok(t, "retention", "list", "--user", "ben", "--json"); strings.TrimSpace(got) != "[]" {
		t.Errorf("the rules of ben, who sees a collection of anna's, are %s, want []", got)
	}
	removed := decode[keptPlace](t, c.ok(t, "retention", "remove", "--user", "anna", "--project", "home", "--json"))
	if removed.Action != "none" || removed.ProjectName != "home" {
		t.Errorf("removed %+v, want home without a rule", removed)
	}
	if rules := decode[[]keptPlace](t, c.ok(t, "retention", "list", "--user", "anna", "--json")); len(rules) != 1 {
		t.Errorf("the rules are %+v, want that of 日记", rules)
	}
}

func TestRetentionRefusals(t *testing.T) {
	c := newStore(t)
	c.fails(t, exitUsage, "--collection or --project", "retention", "set", "--after", "90d", "--user", "anna")
	c.fails(t, exitUsage, "--collection or --project", "retention", "remove", "--project", "home", "--collection", "c",
		"--user", "anna")
	c.fails(t, exitUsage, "--after is missing", "retention", "set", "--project", "home", "--user", "anna")
	for _, wrong := range []string{"5h", "0d", "-3d", "101y", "soon"} {
		c.fails(t, exitUsage, "--after is|1d to 36500d", "retention", "set", "--project", "home", "--user", "anna",
			"--after="+wrong)
	}
	c.fails(t, exitError, "--collection|nowhere", "retention", "remove", "--collection", "nowhere", "--user", "anna")
	c.fails(t, exitError, "nowhere", "retention", "remove", "--project", "nowhere", "--user", "anna")
}
