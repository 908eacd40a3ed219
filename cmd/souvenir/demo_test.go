package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

func TestDemoLeavesNothingBehind(t *testing.T) {
	longtest.Only(t)
	folder := t.TempDir()
	c := call{dir: t.TempDir(), env: []string{"TMPDIR=" + folder, "TMP=" + folder}}
	p := c.start(t, "demo")
	page := ""
	for !strings.Contains(page, "Ctrl-C") {
		line, err := p.stdout.ReadString('\n')
		if err != nil {
			t.Fatal(err, page)
		}
		page += line
	}
	token := page[strings.Index(page, "mcp_"):][:47]
	call, err := json.Marshal(map[string]any{"name": "list_collections", "arguments": map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	if status, body := request(t, "POST", p.url+"/tools/call", token, bytes.NewReader(call)); status != http.StatusOK ||
		!strings.Contains(body, "688") {
		t.Errorf(`the token that is shown gets %d %s, want status %v and "688" in the body`, status, body, http.StatusOK)
	}
	demoLinkSignsIn(t, page)
	databases, err := filepath.Glob(filepath.Join(folder, "*", "demo.db"))
	if err != nil || len(databases) != 1 {
		t.Fatalf("databases: %v, %v; want a length of 1", databases, err)
	}
	if found := c.run(t, "search", "which medicine is grandmother allergic to?", "--user", "demo",
		"--db", databases[0]); !strings.Contains(found.stdout, "penicillin") {
		t.Errorf("search in the demo's file: %+v; want stdout in it \"penicillin\"", found)
	}
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code, _ := p.wait(t); code != exitOK {
		t.Errorf("exit status %d: %s; want %v", code, p.stderr, exitOK)
	}
	if left := readDir(t, folder); len(left) > 0 {
		t.Errorf("left behind: %v, want none", left)
	}
}

// demoLinkSignsIn follows the link that a demonstration prints, as a browser does, and checks the pages.
func demoLinkSignsIn(t *testing.T, printed string) {
	t.Helper()
	found := regexp.MustCompile(`(http://\S+)/sign-in\?key=\S+`).FindStringSubmatch(printed)
	if found == nil {
		t.Fatalf("got %s, want a link to sign in", printed)
	}
	link, site := found[0], found[1]
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	get := func(address, want string) {
		t.Helper()
		if body := demoPage(t, browser, address); !strings.Contains(body, want) {
			t.Errorf("%s: got a page without %q, want it to have that: %.500s", address, want, body)
		}
	}
	get(link, "Hello, demo")
	get(site+"/activity", "claude-code/2.1.4")
	get(site+"/memories/duplicates", "2 groups of near duplicates")
	get(site+"/proposals", "Deploy window")
	get(site+"/memories?q=who+pulled+the+plug+of+the+primary", "standby-measured.eml")
	get(site+"/memories?q=how+long+is+a+coach+in+metres+of+lane", "group-bookings.html")
	get(site+"/trash", "Deleted (4)")
	get(site+"/project-invitations", "Tide tables")
	get(site+"/settings", `aria-label="Change Memory for the search index"`)
	idle := regexp.MustCompile(`called \w+|not used yet|does not expire|last used <time[^>]*>2 months ago`)
	for _, path := range []string{"/", "/activity", "/activity?group=client", "/tokens", "/connected", "/users"} {
		body := demoPage(t, browser, site+path)
		if wrong := idle.FindString(body); wrong != "" {
			t.Errorf("%s: got %q on the page, want clients at work until today, in sentences", path, wrong)
		}
		if unseen := strings.Count(body, "not seen yet"); path == "/users" && unseen != 1 { // Priya has not accepted yet
			t.Errorf("got %d users who were not seen, want 1", unseen)
		}
	}
	if berth := regexp.MustCompile(`href="(/projects/[^"]*)"[^>]*>berth<`).FindStringSubmatch(
		demoPage(t, browser, site+"/projects")); berth == nil {
		t.Error("got no project berth, want one")
	} else {
		get(site+berth[1], "booking engine we sell to ferry operators")
	}
	get(link, "used already")
}

// demoPage opens a page of a demonstration.
func demoPage(t *testing.T, browser *http.Client, address string) string {
	t.Helper()
	response, err := browser.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
