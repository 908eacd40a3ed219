package main

import (
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func TestUserCommands(t *testing.T) {
	c := call{dir: t.TempDir(), stdin: "a password of anna\n"}
	if got := c.ok(t, "user", "add", "anna", "--admin", "--email", "anna@example.com",
		"--password-stdin"); got != "added user anna (admin)\n" {
		t.Errorf("user add printed %q, want %v", got, "added user anna (admin)\n")
	}
	c.ok(t, "user", "add", "ben", "--no-password")
	added := decode[souvenir.User](t,
		c.ok(t, "user", "add", "local-anna", "--id", souvenir.LocalUser, "--no-password", "--json"))
	if added.ID != souvenir.LocalUser {
		t.Errorf("--id local gave the account to %q, want %v", added.ID, souvenir.LocalUser)
	}
	lines := strings.Split(strings.TrimSpace(c.ok(t, "user", "list")), "\n")
	if len(lines) != 4 || !regexp.MustCompile(`^anna +admin +active +anna@example.com `).MatchString(lines[1]) {
		t.Errorf("the list is\n%s, want anna in the second of 4 lines", strings.Join(lines, "\n"))
	}
	store := openStore(t, filepath.Join(c.dir, "souvenir.db"))
	token := strings.TrimSpace(c.ok(t, "token", "add", "--user", "ben", "--name", "x"))
	for _, step := range []struct {
		args  []string
		state string
		valid bool
	}{
		{[]string{"user", "disable", "ben"}, "disabled", false},
		{[]string{"user", "enable", "ben"}, "active", false}, // tokens stay revoked
	} {
		if got := c.ok(t, step.args...); got != step.args[1]+"d user ben\n" {
			t.Errorf("%v printed %q, want %v", step.args, got, step.args[1]+"d user ben\n")
		}
		if got := c.ok(t, "user", "list"); !regexp.MustCompile(`(?m)^ben +user +` + step.state).MatchString(got) {
			t.Errorf("after %v:\n%s", step.args, got)
		}
		if _, err := store.Accounts().CheckToken(t.Context(), token); (err == nil) != step.valid {
			t.Errorf("after %v the token gives %v, want %v", step.args, err, step.valid)
		}
	}
	c.ok(t, "user", "passwd", "anna", "--no-password")
	if _, err := store.Accounts().CheckPassword(t.Context(),
		souvenir.Credentials{Name: "anna", Password: "a password of anna"}); !errors.Is(err, souvenir.ErrUnauthenticated) {
		t.Errorf("the old password gives %v, want souvenir.ErrUnauthenticated", err)
	}
	c.ok(t, "user", "delete", "ben")
	if _, err := store.Accounts().GetUser(t.Context(), "ben"); !errors.Is(err, souvenir.ErrNotFound) {
		t.Errorf("the deleted user gives %v, want souvenir.ErrNotFound", err)
	}
}

func TestTokenCommands(t *testing.T) {
	c := newStore(t)
	printed := c.ok(t, "token", "add", "--db", "souvenir.db", "--user", "anna", "--name", "ci", "--expires-in", "90d",
		"--scope", "memory:read,files:read", "--project", "home")
	if !regexp.MustCompile(`^mcp_[0-9A-Za-z]{43}\n$`).MatchString(printed) {
		t.Fatalf("token add printed %q; want the token alone", printed)
	}
	tokens := decode[[]souvenir.Token](t, c.ok(t, "token", "list", "--user", "anna", "--json"))
	if len(tokens) != 1 || len(tokens[0].Scopes) != 2 || len(tokens[0].Projects) != 1 ||
		tokens[0].ExpiresAt.Sub(tokens[0].CreatedAt).Round(time.Hour) != 90*24*time.Hour {
		t.Errorf("the token is %+v, want 2 scopes, 1 project and 90 days", tokens)
	}
	if list := c.ok(t, "token", "list", "--user", "anna"); strings.Contains(list, strings.TrimSpace(printed)) ||
		!strings.Contains(list, printed[:8]+"…") {
		t.Errorf("the list shows too much or too little, want no %q and %q in the list:\n%s", strings.TrimSpace(printed),
			printed[:8]+"…", list)
	}
	c.fails(t, exitError, tokens[0].ID, "token", "delete", tokens[0].ID, "--user", "ben")
	c.ok(t, "token", "delete", tokens[0].ID, "--user", "anna")
	store := openStore(t, filepath.Join(c.dir, "souvenir.db"))
	if _, err := store.Accounts().CheckToken(t.Context(), strings.TrimSpace(printed)); !errors.Is(err,
		souvenir.ErrUnauthenticated) {
		t.Errorf("the deleted token gives %v, want souvenir.ErrUnauthenticated", err)
	}
}

func TestSearchShowsScores(t *testing.T) {
	c := newStore(t)
	table := c.ok(t, "search", "what", "colour", "has", "the", "kettle?", "--user", "anna", "--project", "home", "--tag",
		"everyday")
	lines := strings.Split(strings.TrimSpace(table), "\n")
	if len(lines) != 2 || !regexp.MustCompile(`^SCORE +UPDATED +ID +MEMORY$`).MatchString(lines[0]) ||
		!regexp.MustCompile(`^0\.\d{3}  \d{4}-\d\d-\d\d  [0-9a-f-]{36}  The kettle in the kitchen is blue\.$`).MatchString(
			lines[1]) {
		t.Errorf("the table is\n%s, want a heading and a match", table)
	}
	if o := c.run(t, "search", "kettle", "--user", "anna", "--tag", "nothing"); o.code != exitOK || o.stdout != "" ||
		o.stderr != "nothing found\n" {
		t.Errorf("nothing found is %+v, want that alone, on standard error", o)
	}
	store := openStore(t, filepath.Join(c.dir, "souvenir.db"))
	if _, err := store.AddMemory(t.Context(),
		souvenir.NewMemory{Content: "clear \x1b[2J\nthe screen \u202e!"}); err != nil {
		t.Fatal(err)
	}
	if got := c.ok(t, "search", "screen", "--user", "local"); !strings.HasSuffix(got, "clear [2J the screen !\n") {
		t.Errorf("what a terminal would obey is printed: %q", got)
	}
}

func TestUsersAreChangedFromTheCommandLine(t *testing.T) {
	c := newStore(t)
	token := strings.TrimSpace(c.ok(t, "token", "add", "--user", "ben", "--name", "test"))
	if got := c.ok(t, "user", "update", "ben", "--role", "admin", "--name", "benjamin", "--email",
		"ben@example.com"); got != "changed user benjamin (admin)\n" {
		t.Errorf("it prints %q, want %v", got, "changed user benjamin (admin)\n")
	}
	c.ok(t, "user", "update", "anna", "--role", "user") // because there is another admin
	store := openStore(t, filepath.Join(c.dir, "souvenir.db"))
	ben, err := store.Accounts().GetUser(t.Context(), "benjamin")
	if err != nil || ben.Email != "ben@example.com" || ben.Role != souvenir.RoleAdmin {
		t.Errorf(`got %+v, %v, want no error, email "ben@example.com" and role %v`, ben, err, souvenir.RoleAdmin)
	}
	if p, err := store.Accounts().CheckToken(t.Context(), token); err != nil || p.User.ID != ben.ID {
		t.Errorf("the token of a user who was changed: %+v, %v; want ID %v", p, err, ben.ID)
	}
	c.ok(t, "user", "update", "benjamin", "--email", "-")
	if ben, err := store.Accounts().GetUser(t.Context(), "benjamin"); err != nil || ben.Email != "" ||
		ben.Name != "benjamin" || ben.Role != souvenir.RoleAdmin {
		t.Errorf(`got %+v, %v, want no error, no email, name "benjamin" and role %v`, ben, err, souvenir.RoleAdmin)
	}
}

// Errors name flags where the library's errors name Go fields.
func TestErrorsNameFlags(t *testing.T) {
	c := newStore(t)
	for _, step := range []struct {
		says, not string
		args      []string
	}{
		{"--redirect-uri", "redirect_uris",
			[]string{"client", "add", "--user", "anna", "--redirect-uri", "javascript:alert(1)"}},
		{"--scope", "scopes ", []string{"token", "add", "--user", "anna", "--name", "n", "--scope", "everything"}},
	} {
		o := c.run(t, step.args...)
		if o.code == exitOK || !strings.Contains(o.stderr, step.says) || strings.Contains(o.stderr, step.not) {
			t.Errorf("souvenir %s: got %q; want %s and not %s", strings.Join(step.args, " "), o.stderr, step.says, step.not)
		}
	}
}

func TestProjectMemberCommands(t *testing.T) {
	c := newStore(t)
	add := []string{"project", "member", "add", "home", "ben", "--role", "writer", "--owner", "anna"}
	if got := c.ok(t, add...); got != "ben is a member of home (writer)\n" {
		t.Errorf("member add printed %q, want %v", got, "ben is a member of home (writer)\n")
	}
	c.fails(t, exitError, "already", add...)
	store := openStore(t, filepath.Join(c.dir, "souvenir.db"))
	ids := map[string]string{}
	for _, name := range []string{"anna", "ben"} {
		u, err := store.Accounts().GetUser(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		ids[name] = u.ID
	}
	anna := store.As(souvenir.Access{User: ids["anna"]})
	p, err := anna.GetProject(t.Context(), souvenir.ProjectRef{Name: "home"})
	if err != nil {
		t.Fatal(err)
	}
	p, err = store.As(souvenir.Access{User: ids["ben"]}).GetProject(t.Context(),
		souvenir.ProjectRef{ID: ids["anna"] + "/" + p.ID})
	if err != nil || p.Role != souvenir.MemberWriter {
		t.Errorf("the member sees %+v, %v; want role %v", p, err, souvenir.MemberWriter)
	}
	if _, err := anna.AddMember(t.Context(),
		souvenir.NewMember{Project: souvenir.ProjectRef{ID: p.ID}, User: "zoe", Role: souvenir.MemberReader}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(c.ok(t, "project", "member", "list", "home", "--owner", "anna")), "\n")
	if len(lines) != 4 || !regexp.MustCompile(`^ben +writer +accepted `).MatchString(lines[2]) ||
		!regexp.MustCompile(`^zoe +reader +invited `).MatchString(lines[3]) {
		t.Errorf("the list is\n%s, want ben and zoe among 4 lines", strings.Join(lines, "\n"))
	}
	if members := decode[[]souvenir.Member](t,
		c.ok(t, "project", "member", "list", "home", "--owner", "anna", "--json")); len(members) != 3 {
		t.Errorf("the list is %+v; want a length of 3", members)
	}
	c.ok(t, "project", "member", "remove", "home", "ben", "--owner", "anna")
	c.ok(t, "project", "member", "remove", "home", "zoe", "--owner", "anna")
	for says, args := range map[string][]string{
		"nor invited to it":       {"project", "member", "remove", "home", "ben", "--owner", "anna"},
		`anna has no project "x"`: {"project", "member", "add", "x", "ben", "--owner", "anna"},
		`ben has no project "x"`:  {"project", "member", "add", "x", "anna", "--owner", "ben"},
		"--role is \"king\"":      {"project", "member", "add", "home", "ben", "--owner", "anna", "--role", "king"},
		"USER \"zoe\" is unknown": {"project", "member", "add", "home", "zoe", "--owner", "anna"},
	} {
		c.fails(t, exitError, says, args...)
	}
	c.fails(t, exitUsage, "--owner is missing", "project", "member", "add", "home", "ben")
	c.fails(t, exitUsage, "needs USER", "project", "member", "add", "home")
}
