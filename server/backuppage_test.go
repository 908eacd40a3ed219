package server_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// worked waits until the work of a page is done, and returns the page.
func (b *browser) worked(path string) *gotPage {
	b.w.t.Helper()
	for until := time.Now().Add(soon); ; time.Sleep(10 * time.Millisecond) {
		p := b.get(path).expect(http.StatusOK)
		if !strings.Contains(p.body, `id="progress"`) {
			return p
		}
		if time.Now().After(until) {
			b.w.t.Fatalf("the work does not end: %s", p.body)
		}
	}
}

func TestBackupOnThePage(t *testing.T) {
	w := newWorld(t, server.Options{})
	ada := w.signedIn(admin)
	p := ada.get("/backup").expect(http.StatusOK, "Download souvenir-20", "world.db", "souvenir restore souvenir-20",
		"--db "+filepath.Dir(string(os.PathSeparator)))
	checkPage(w, p)
	copied := ada.submit(p, "/backup/download", nil).expect(http.StatusOK, "SQLite format 3")
	for name, want := range map[string]string{"Content-Type": `application/vnd\.sqlite3`,
		"Content-Disposition": `attachment; filename="souvenir-\d{4}-\d\d-\d\d\.db"`} {
		if got := copied.header.Get(name); !regexp.MustCompile("^" + want + "$").MatchString(got) {
			t.Errorf("%s is %q", name, got)
		}
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(path, []byte(copied.body), 0o600); err != nil {
		t.Fatal(err)
	}
	restored, err := souvenir.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer restored.Close()
	if report, err := restored.Upkeep().Check(t.Context(), nil); err != nil || !report.OK || report.Checked["memory"] < 2 {
		t.Errorf("%+v %v", report, err)
	}
}

// Everything that an admin may have done to the file is done, one after the other, and told.
func TestUpkeepOnThePage(t *testing.T) {
	w := newWorld(t, server.Options{})
	ada := w.signedIn(admin)
	for kind, expected := range map[string]string{
		"check": "No problems found: ", "repair": "No problems found: ", "reindex": "The index is made again.",
		"purge": "Deleted: 0 past versions", "compact": "The file had ",
	} {
		began := ada.post("/backup/work", url.Values{"csrf": {ada.get("/backup").hidden().Get("csrf")}, "work": {kind}})
		if location := began.header.Get("Location"); location != "/backup#work" {
			t.Errorf("%s: %d %q %s; want \"/backup#work\"", kind, began.status, location, began.body)
		}
		checkPage(w, ada.worked("/backup").expect(http.StatusOK, expected, "Done <time"))
	}
	p := ada.get("/backup")
	checkPage(w, ada.submit(p, "/backup/work", url.Values{"work": {"purge"}, "keep": {"-1"}}).expect(http.StatusBadRequest,
		"Past versions to keep of each memory is", `value="-1"`))
	checkPage(w, ada.submit(p, "/backup/work", url.Values{"work": {"erase"}}).expect(http.StatusBadRequest,
		"allowed are check"))
	content := "new"
	view := w.store.As(souvenir.Access{User: w.users[owner]})
	for range 3 {
		content += "er"
		if _, err := view.UpdateMemory(t.Context(), w.memory, souvenir.MemoryUpdate{Content: &content}); err != nil {
			t.Fatal(err)
		}
	}
	ada.submit(p, "/backup/work", url.Values{"work": {"purge"}, "keep": {"1"}}).expect(http.StatusSeeOther)
	ada.worked("/backup").expect(http.StatusOK, "Deleted: 2 past versions")
}

// A script asks how far the work is, and gets the answer to load the page when it has ended.
func TestProgressOfWork(t *testing.T) {
	w := newWorld(t, server.Options{})
	ada := w.signedIn(admin)
	began, release := make(chan struct{}), make(chan struct{})
	hold := func(ctx souvenir.Progress) (any, error) {
		ctx("memories", 3, 7)
		close(began)
		<-release
		return nil, nil
	}
	ask := func() *gotPage {
		t.Helper()
		r := w.request(guest, "GET", "/backup", nil)
		r.Header.Set("HX-Request", "true")
		return ada.send(r)
	}
	server.BeginWork(w.inner, httptest.NewRequestWithContext(t.Context(), "POST", "/backup/work", nil), "reindex", hold)
	<-began
	if p := ask().expect(http.StatusOK, "Now: memories, 3 of 7",
		`value="42"`).without("<html"); p.header.Get("HX-Refresh") != "" {
		t.Error("the page is loaded anew though the work goes on")
	}
	p := ada.get("/backup").expect(http.StatusOK, "3 of 7", ">Stop<")
	checkPage(w, p)
	ada.submit(p, "/backup/work", url.Values{"work": {"check"}}).expect(http.StatusBadRequest,
		"has been running since just now")
	close(release)
	ada.worked("/backup")
	if p := ask().expect(http.StatusOK); p.header.Get("HX-Refresh") != "true" {
		t.Error("the page is not loaded anew when the work has ended")
	}
}

func TestWorkCanBeStopped(t *testing.T) {
	w := newWorld(t, server.Options{})
	ada := w.signedIn(admin)
	server.BeginWork(w.inner, httptest.NewRequestWithContext(t.Context(), "POST", "/backup/work", nil), "check",
		nil) // until it is stopped
	ada.leadsTo(ada.submit(ada.get("/backup"), "/backup/stop", nil), "/backup?done=stopped").expect(http.StatusOK,
		"Stopping.")
	checkPage(w, ada.worked("/backup").expect(http.StatusOK, "Stopped after"))

	// What panics ends nothing but itself.
	server.BeginWork(w.inner, httptest.NewRequestWithContext(t.Context(), "POST", "/backup/work", nil), "check",
		func(souvenir.Progress) (any, error) { panic("broken") })
	checkPage(w, ada.worked("/backup").expect(http.StatusOK, "The server failed"))
	if !strings.Contains(w.log.String(), "a background task panicked") {
		t.Errorf("the log does not tell: %s", w.log)
	}
}

// What is wrong with a file is shown, as text, and can be repaired.
func TestFaultsAreListedAndRepaired(t *testing.T) {
	w := newWorld(t, server.Options{})
	ada := w.signedIn(admin)
	report := souvenir.CheckReport{Total: 60}
	for range 60 {
		report.Findings = append(report.Findings,
			souvenir.Finding{Table: "memory", ID: hostile, Problem: hostile, Repairable: true})
	}
	server.BeginWork(w.inner, httptest.NewRequestWithContext(t.Context(), "POST", "/backup/work", nil), "check",
		func(souvenir.Progress) (any, error) { return report, nil })
	p := ada.worked("/backup").expect(http.StatusOK, "60 problems found", "And 10 more problems", "<td>Yes</td>",
		"Repair")
	checkPage(w, p)
	ada.post("/backup/work", url.Values{"csrf": {p.hidden().Get("csrf")}, "work": {"repair"}}).expect(http.StatusSeeOther)
	ada.worked("/backup").expect(http.StatusOK, "No problems found").without("Repairable")
}

// The file is the admins' business.
func TestBackupIsForAdmins(t *testing.T) {
	w := newWorld(t, server.Options{})
	b := w.signedIn(owner)
	b.get("/backup").expect(http.StatusForbidden, "for admins").without("world.db")
	csrf := b.get("/profile").hidden().Get("csrf")
	for _, path := range []string{"/backup/download", "/backup/work", "/backup/stop"} {
		b.post(path, url.Values{"csrf": {csrf}, "work": {"check"}}).expect(http.StatusForbidden,
			"for admins").without("SQLite format")
	}
	guest := w.browser()
	guest.leadsTo(guest.get("/backup"), "/login?next=%2Fbackup")
}

// A browser that an admin has left open is no way to everyone's things.
func TestEverythingIsTakenAwayAfterARecentSignInOnly(t *testing.T) {
	w := newWorld(t, server.Options{})
	w.setPassword(admin)
	ada := w.signedIn(admin)
	backup, transfer := ada.get("/backup").without("Sign in again"), ada.get("/transfer").without("sign in again")
	server.SetRecently(w.inner, 0)
	for path, p := range map[string]*gotPage{
		"/backup":   ada.submit(backup, "/backup/download", nil),
		"/transfer": ada.submit(transfer, "/transfer/export", url.Values{"of": {"all"}}),
	} {
		again := ada.leadsTo(p, "/login?again=1&next="+url.QueryEscape(path)).expect(http.StatusOK, `type="password"`)
		checkPage(w, ada.get(path).expect(http.StatusOK, "again=1&amp;next="+url.QueryEscape(path)))
		server.SetRecently(w.inner, time.Hour)
		ada.leadsTo(ada.submit(again, "/login", url.Values{"username": {"ada"}, "password": {rightPassword}}),
			path).expect(http.StatusOK).without("again=1")
		server.SetRecently(w.inner, 0)
	}
	ada.leadsTo(ada.bring("{}"), "/login?again=1&next=%2Ftransfer")
	ada.submit(ada.get("/transfer"), "/transfer/export", url.Values{"of": {"own"}}).expect(http.StatusOK, `"type":"end"`)
}
