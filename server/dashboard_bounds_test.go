package server_test

import (
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/seed"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// For any amount of data, a page names at most 51 of anything, stays below 100 KB, and runs few statements, which read
// few rows for each.
func TestPagesAreBounded(t *testing.T) {
	longtest.Only(t)
	const n, mostNamed, mostPage, mostStatements, mostRows = 60, 51, 100_000, 260, 13 * 60
	name := regexp.MustCompile(`([a-z]+) (\d{5}) `)
	for path, p := range openWide(t, n) {
		if size := len(p.body); size > mostPage {
			t.Errorf("%s: got %d bytes, want at most %d", path, size, mostPage)
		}
		if p.statements > mostStatements || p.rows > mostRows {
			t.Errorf("%s: got %d statements and %d rows, want at most %d and %d", path, p.statements, p.rows, mostStatements,
				mostRows)
		}
		t.Logf("%s: %d bytes, %d statements, %d rows", path, len(p.body), p.statements, p.rows)
		named := map[string]map[string]bool{}
		for _, found := range name.FindAllStringSubmatch(p.body, -1) {
			if named[found[1]] == nil {
				named[found[1]] = map[string]bool{}
			}
			named[found[1]][found[2]] = true
		}
		delete(named, "line") // of a text
		for noun, all := range named {
			if len(all) > mostNamed && !strings.HasPrefix(path, "/graph") && !strings.HasPrefix(path, "/map") { // draws all
				t.Errorf("%s: got %d names of the kind %q, want at most %d", path, len(all), noun, mostNamed)
			}
		}
	}
}

// opened is the cost of opening a page for the second time.
type opened struct {
	body             string
	statements, rows int
}

// openWide opens all pages of a store with n of everything.
func openWide(t *testing.T, n int) map[string]opened {
	t.Helper()
	path := filepath.Join(t.TempDir(), "wide.db")
	filled, err := seed.Wide(t.Context(), path, n)
	if err != nil {
		t.Fatal(err)
	}
	var read counts
	store, err := souvenir.Open(db.WithOpener(t.Context(), countReads(path, &read)), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	at := httptest.NewServer(server.New(store, &server.Options{PublicURL: servertest.PublicAt}))
	t.Cleanup(at.Close)
	session, err := store.Accounts().AddSignIn(t.Context(), souvenir.NewSignIn{User: filled.User})
	if err != nil {
		t.Fatal(err)
	}
	paths := dashboardPaths(filled)
	project := "/projects/{owner}/{id}"
	for _, further := range []string{"/memories?event_type=decision", "/memories?sort=created_at_asc",
		"/memories?q=tiles", "/memories?view=reading&page=2", "/context?query=tiles", "/graph?show=list", "/map?show=list",
		"/find?q=tiles", "/memories/compare?q=tiles", "/files?part=2", "/activity?group=client", "/trash?entries=2",
		"/collections?search=collection", "/users?users=2", "/tokens?tokens=2", "/memories/{id}/history?part=3",
		project + "/todo?section=tasks", project + "/members?members=2",
		project + "/conversations?key=" + url.QueryEscape(seed.WideConversation)} {
		pattern, query, _ := strings.Cut(further, "?")
		paths[further] = paths[pattern] + "?" + query
	}
	found := map[string]opened{}
	for pattern, path := range paths {
		openPage(t, at, path, session.Value)
		before, rows := read.statements.Load(), read.rows.Load()
		body := openPage(t, at, path, session.Value)
		found[pattern] = opened{body, int(read.statements.Load() - before), int(read.rows.Load() - rows)}
	}
	return found
}
