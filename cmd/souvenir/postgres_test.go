package main

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// inDatabase returns a call whose variables name an empty database, the database's address, and its password.
func inDatabase(t *testing.T) (c call, address, password string) {
	t.Helper()
	database, err := url.Parse(pgtest.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	password, given := database.User.Password()
	if !given { // the server accepts any password
		password = "hunter2-secret"
		database.User = url.UserPassword(database.User.Username(), password)
	}
	return call{dir: t.TempDir(), env: []string{"SOUVENIR_DB=" + database.String()}}, database.String(), password
}

func TestEveryCommandWorksOnADatabase(t *testing.T) {
	c, address, password := inDatabase(t)
	for _, none := range []string{"user list", "stats", "token list", "check --repair", "purge", "export"} {
		c.fails(t, exitError, "no store", strings.Fields(none)...)
	}
	c.ok(t, "user", "add", "anna", "--no-password", "--admin")
	token := strings.TrimSpace(c.ok(t, "token", "add", "--name", "laptop"))
	lines := "{\"souvenir\":\"export\",\"version\":1}\n" +
		`{"type":"memory","content":"The kettle is blue.","owner":"anna"}` + "\n"
	if err := os.WriteFile(filepath.Join(c.dir, "in.jsonl"), []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	c.ok(t, "import", "in.jsonl")
	for _, run := range [][2]string{
		{"search kettle", "blue"},
		{"export --credentials", "The kettle is blue."},
		{"check", "ok: 1 memories"},
		{"check --repair", "ok: 1 memories"},
		{"reindex", "reindexed 1 memories"},
		{"purge --compact", "deleted 0 past versions"},
		{"stats", "memories       1"},
		{"token list", "laptop"},
		{"user list", "anna"},
		{"client-config cursor --stdio", "postgres://"},
	} {
		command, want := run[0], run[1]
		printed := c.ok(t, strings.Fields(command)...)
		if !strings.Contains(printed, want) {
			t.Errorf("souvenir %s: got %q, want in it %q", command, printed, want)
		}
		if strings.Contains(printed, password) {
			t.Errorf("souvenir %s prints the password of the database: %s, want none in it", command, printed)
		}
	}
	c.fails(t, exitError, "pg_dump", "backup", "copy.db")
	c.fails(t, exitError, "pg_restore", "restore", "copy.db")

	mcp := c.startMCP(t)
	if !mcp.finds(t, "kettle") {
		t.Error("mcp does not find the memory, want it found")
	}
	mcp.end(t)

	p := c.start(t, "serve", "--listen", "127.0.0.1:0", "--log-level", "debug")
	if _, err := storeOverHTTP(t.Context(), p.url, token, "The anchor is red."); err != nil {
		t.Fatal(err)
	}
	if code, printed := p.stop(t); code != exitOK || strings.Contains(printed+p.stderr.String(), password) {
		t.Errorf("serve: exit status %d, want %d, and no password in what it printed: %s%s", code, exitOK, printed, p.stderr)
	}
	if left := readFolder(t, c.dir); len(left) != 1 {
		t.Errorf("files beside a database: got %v, want in.jsonl alone", left)
	}
	elsewhere := call{dir: c.dir, env: []string{"SOUVENIR_DB=" + strings.Replace(address, "search_path=",
		"search_path=x", 1)}}
	elsewhere.fails(t, exitError, "search_path", "stats")
}

func TestADatabaseThatCannotBeReachedIsNamedWithoutItsPassword(t *testing.T) {
	longtest.Only(t)
	for _, address := range []string{
		"postgres://anna:hunter2@127.0.0.1:1/none?connect_timeout=2", "postgres://anna:hunter2@[::1:x/none",
		"postgres://127.0.0.1:1/none?user=anna&password=hunter2&connect_timeout=2",
	} {
		for _, command := range []string{"stats", "user add ben --no-password", "serve --listen 127.0.0.1:0"} {
			o := call{dir: t.TempDir()}.run(t, append(strings.Fields(command), "--db", address)...)
			if o.code != exitError || !strings.Contains(o.stderr, "--db: postgres://") {
				t.Errorf("souvenir %s: got status %d and %q, want %d and the address", command, o.code, o.stderr, exitError)
			}
			if strings.Contains(o.stdout+o.stderr, "hunter2") {
				t.Errorf("souvenir %s prints the password: %s%s, want none in it", command, o.stdout, o.stderr)
			}
		}
	}
}

func TestLocationsHaveNoPasswordsAsTexts(t *testing.T) {
	for given, want := range map[location]string{
		"souvenir.db":                          "souvenir.db",
		"postgres://anna@db/x":                 "postgres://anna@db/x",
		"postgresql://anna:b%20c@db:5/x?a=1":   "postgresql://anna@db:5/x?a=1",
		"postgres://db/x?password=c&user=anna": "postgres://db/x?user=anna",
		"postgres://anna:c@[::1:x/none":        "postgres://...",
		"postgres://anna:12#c@db/x":            "postgres://...",
		"postgres://anna:12/c@db/x":            "postgres://...",
		"postgres://anna:12?c@db/x":            "postgres://...",
		"postgres://anna:12@c#d@db/x":          "postgres://...",
		"postgres://anna:c@a.example,b.org/x":  "postgres://anna@a.example,b.org/x",
	} {
		if got := fmt.Sprintf("%s|%v|%q", given, given, given); got != fmt.Sprintf("%s|%s|%q", want, want, want) {
			t.Errorf("%s: got %s, want %s", string(given), got, want)
		}
	}
}

func TestAnAddressOfAnUnknownDatabaseIsRefusedWithoutItsPassword(t *testing.T) {
	const address, want = "mysql://anna:hunter2@db/x", `is "mysql://..."; give a file, or postgres://user@host/name`
	c := call{dir: t.TempDir()}
	c.fails(t, exitUsage, "--db "+want, "stats", "--db", address)
	c.env = []string{"SOUVENIR_DB=" + address}
	c.fails(t, exitUsage, "SOUVENIR_DB "+want, "stats")
}

func TestTheSchemeOfAnAddressMayBeInCapitals(t *testing.T) {
	for given, want := range map[string]string{"POSTGRES://anna:hunter2@db/x": "postgres://anna@db/x",
		"PostgreSQL://db/x": "postgresql://db/x", "Notes.db": "Notes.db", "C://Notes.db": "C://Notes.db"} {
		var l location
		if err := l.Set(given); err != nil || l.String() != want {
			t.Errorf("--db %s: got %s, %v, want %s and no error", given, l, err, want)
		}
	}
}

// Two servers share a database. Each finds what the other has answered in its next search, while others write. If one
// is killed, nothing that was answered is lost.
func TestServersShareADatabase(t *testing.T) {
	c, _, _ := inDatabase(t)
	c.ok(t, "user", "add", "anna", "--no-password")
	token := strings.TrimSpace(c.ok(t, "token", "add", "--name", "laptop"))
	servers := []*process{c.start(t, "serve", "--listen", "127.0.0.1:0"), c.start(t, "serve", "--listen", "127.0.0.1:0")}

	finds := func(p *process, content, id string) error {
		query := compact(object{"name": "memory", "arguments": object{"action": "search", "query": content, "limit": 5}})
		status, body := request(t, http.MethodPost, p.url+"/tools/call", token, strings.NewReader(query))
		if status != http.StatusOK || !strings.Contains(body, id) {
			return fmt.Errorf("search for %q: got %d and %s, want %d and memory %s", content, status, body, http.StatusOK, id)
		}
		return nil
	}
	const writers, rounds = 4, 8
	var wg sync.WaitGroup
	stored := make([]map[string]string, writers)
	for w := range writers {
		stored[w] = map[string]string{}
		wg.Go(func() {
			for n := range rounds {
				content := fmt.Sprintf("The courier of team %d brings parcel %d%d.", w, w, n)
				id, err := storeOverHTTP(t.Context(), servers[(w+n)%2].url, token, content)
				if err == nil {
					err = finds(servers[(w+n+1)%2], content, id)
				}
				if err != nil {
					t.Error(err)
				}
				stored[w][id] = content
			}
		})
	}
	wg.Wait()
	servers[0].kill(t)
	for _, own := range stored {
		for id, content := range own {
			if err := finds(servers[1], content, id); err != nil {
				t.Error(err)
			}
		}
	}
	if printed := c.ok(t, "check"); !strings.Contains(printed, fmt.Sprintf("ok: %d memories", writers*rounds)) {
		t.Errorf("check: got %q, want %d memories and no problem", printed, writers*rounds)
	}
}
