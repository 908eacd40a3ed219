package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

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
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

// worked waits until the work of a page is done, and returns the page.
func worked(b *servertest.Browser, path string) *servertest.Page {
	b.W.T.Helper()
	for until := time.Now().Add(servertest.Soon); ; time.Sleep(10 * time.Millisecond) {
		p := b.Get(path).Expect(http.StatusOK)
		if !strings.Contains(p.Body, `id="progress"`) {
			return p
		}
		if time.Now().After(until) {
			b.W.T.Fatalf("the work does not end in time, want it ended: %s", p.Body)
		}
	}
}

func TestBackupOnThePage(t *testing.T) {
	servertest.NeedsFile(t)
	w := servertest.New(t, server.Options{})
	ada := w.SignedIn(servertest.Admin)
	p := ada.Get("/backup").Expect(http.StatusOK, "Download souvenir-20", "world.db", "souvenir restore souvenir-20",
		"--db "+filepath.Dir(string(os.PathSeparator)))
	servertest.CheckPage(w, p)
	copied := ada.Submit(p, "/backup/download", nil).Expect(http.StatusOK, "SQLite format 3")
	for name, want := range map[string]string{"Content-Type": `application/octet-stream`,
		"Content-Disposition": `attachment; filename="souvenir-\d{4}-\d\d-\d\d\.db"`} {
		if got := copied.Header.Get(name); !regexp.MustCompile("^" + want + "$").MatchString(got) {
			t.Errorf("%s is %q, want a match of ^%s$", name, got, want)
		}
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(path, []byte(copied.Body), 0o600); err != nil {
		t.Fatal(err)
	}
	restored, err := souvenir.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer restored.Close()
	if report, err := restored.Upkeep().Check(t.Context(), nil); err != nil || !report.OK || report.Checked["memory"] < 2 {
		t.Errorf("got %+v %v, want no error, OK and memory at least 2", report, err)
	}
}

// With a database server, the page offers no backup and makes none.
func TestBackupsOfADatabaseAreItsOwn(t *testing.T) {
	servertest.NeedsDatabase(t)
	w := servertest.New(t, server.Options{})
	ada := w.SignedIn(servertest.Admin)
	p := ada.Get("/backup").Expect(http.StatusOK, "PostgreSQL", "pg_dump").Without("Download", "souvenir restore",
		"in memory only", "the file")
	servertest.CheckPage(w, p)
	csrf := url.Values{"csrf": {p.Hidden().Get("csrf")}}
	servertest.CheckPage(w, ada.Post("/backup/download", csrf).Expect(http.StatusBadRequest, "own tools"))
}

// Everything that an admin can have done to the file is done, one after the other, and reported.
func TestUpkeepOnThePage(t *testing.T) {
	w := servertest.New(t, server.Options{})
	ada := w.SignedIn(servertest.Admin)
	for kind, expected := range map[string]string{
		"check": "No problems found: ", "repair": "No problems found: ", "reindex": "The index has been rebuilt.",
		"purge": "Deleted: 0 past versions", "compact": "The store had ",
	} {
		began := ada.Post("/backup/work", url.Values{"csrf": {ada.Get("/backup").Hidden().Get("csrf")}, "work": {kind}})
		if location := began.Header.Get("Location"); location != "/backup#work" {
			t.Errorf("%s: %d %q %s; want \"/backup#work\"", kind, began.Status, location, began.Body)
		}
		servertest.CheckPage(w, worked(ada, "/backup").Expect(http.StatusOK, expected, "Done <time"))
	}
	p := ada.Get("/backup")
	servertest.CheckPage(w, ada.Submit(p, "/backup/work", url.Values{"work": {"purge"},
		"keep": {"-1"}}).Expect(http.StatusBadRequest,
		"Past versions to keep of each memory is", `value="-1"`))
	servertest.CheckPage(w, ada.Submit(p, "/backup/work", url.Values{"work": {"erase"}}).Expect(http.StatusBadRequest,
		"expected check"))
	content := "new"
	view := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]})
	for range 3 {
		content += "er"
		if _, err := view.UpdateMemory(t.Context(), w.Memory, souvenir.MemoryUpdate{Content: &content}); err != nil {
			t.Fatal(err)
		}
	}
	ada.Submit(p, "/backup/work", url.Values{"work": {"purge"}, "keep": {"1"}}).Expect(http.StatusSeeOther)
	worked(ada, "/backup").Expect(http.StatusOK, "Deleted: 2 past versions")
}

// A script asks for the progress. When the work has ended, the answer makes it reload the page.
func TestProgressOfWork(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	ada := w.SignedIn(servertest.Admin)
	began, release := make(chan struct{}), make(chan struct{})
	hold := func(ctx souvenir.Progress) (any, error) {
		ctx("memories", 3, 7)
		close(began)
		<-release
		return nil, nil
	}
	ask := func() *servertest.Page {
		t.Helper()
		r := w.Request(servertest.Guest, "GET", "/backup", nil)
		r.Header.Set("HX-Request", "true")
		return ada.Send(r)
	}
	server.BeginWork(w.Server, httptest.NewRequestWithContext(t.Context(), "POST", "/backup/work", nil), "reindex", hold)
	<-began
	if p := ask().Expect(http.StatusOK, "Now: memories, 3 of 7",
		`value="42"`).Without("<html"); p.Header.Get("HX-Refresh") != "" {
		t.Errorf("the page is reloaded during the work: got %v, want no HX-Refresh", p.Header.Get("HX-Refresh"))
	}
	p := ada.Get("/backup").Expect(http.StatusOK, "3 of 7", ">Stop<")
	servertest.CheckPage(w, p)
	ada.Submit(p, "/backup/work", url.Values{"work": {"check"}}).Expect(http.StatusBadRequest,
		"has been running since just now")
	close(release)
	worked(ada, "/backup")
	if p := ask().Expect(http.StatusOK); p.Header.Get("HX-Refresh") != "true" {
		t.Errorf(`the page is not reloaded when the work has ended: got %v, want "true"`, p.Header.Get("HX-Refresh"))
	}
}

func TestWorkCanBeStopped(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	ada := w.SignedIn(servertest.Admin)
	server.BeginWork(w.Server, httptest.NewRequestWithContext(t.Context(), "POST", "/backup/work", nil), "check",
		nil) // until it is stopped
	ada.LeadsTo(ada.Submit(ada.Get("/backup"), "/backup/stop", nil), "/backup?done=stopped").Expect(http.StatusOK,
		"Stopping.")
	servertest.CheckPage(w, worked(ada, "/backup").Expect(http.StatusOK, "Stopped after"))

	// A panic ends only the work itself.
	server.BeginWork(w.Server, httptest.NewRequestWithContext(t.Context(), "POST", "/backup/work", nil), "check",
		func(souvenir.Progress) (any, error) { panic("broken") })
	servertest.CheckPage(w, worked(ada, "/backup").Expect(http.StatusOK, "The server failed"))
	if !strings.Contains(w.Log.String(), "a background task panicked") {
		t.Errorf(`the log lacks the panic: %s, want "a background task panicked" in the log`, w.Log)
	}
}

// Faults of a file are shown as text, and can be repaired.
func TestFaultsAreListedAndRepaired(t *testing.T) {
	w := servertest.New(t, server.Options{})
	ada := w.SignedIn(servertest.Admin)
	report := souvenir.CheckReport{Total: 60}
	for range 60 {
		report.Findings = append(report.Findings,
			souvenir.Finding{Table: "memory", ID: servertest.Hostile, Problem: servertest.Hostile, Repairable: true})
	}
	server.BeginWork(w.Server, httptest.NewRequestWithContext(t.Context(), "POST", "/backup/work", nil), "check",
		func(souvenir.Progress) (any, error) { return report, nil })
	p := worked(ada, "/backup").Expect(http.StatusOK, "60 problems found", "And 10 more problems", "<td>Yes</td>",
		"Repair")
	servertest.CheckPage(w, p)
	ada.Post("/backup/work", url.Values{"csrf": {p.Hidden().Get("csrf")}, "work": {"repair"}}).Expect(http.StatusSeeOther)
	worked(ada, "/backup").Expect(http.StatusOK, "No problems found").Without("Repairable")
}

// Only admins see the pages about the file.
func TestBackupIsForAdmins(t *testing.T) {
	w := servertest.New(t, server.Options{})
	b := w.SignedIn(servertest.Owner)
	b.Get("/backup").Expect(http.StatusForbidden, "for admins").Without("world.db")
	csrf := b.Get("/profile").Hidden().Get("csrf")
	for _, path := range []string{"/backup/download", "/backup/work", "/backup/stop"} {
		b.Post(path, url.Values{"csrf": {csrf}, "work": {"check"}}).Expect(http.StatusForbidden,
			"for admins").Without("SQLite format")
	}
	guest := w.Browser()
	guest.LeadsTo(guest.Get("/backup"), "/login?next=%2Fbackup")
}

// An admin's unattended browser must not give access to everyone's data.
func TestExportsOfAllDataNeedARecentSignIn(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	setPassword(w, servertest.Admin)
	ada := w.SignedIn(servertest.Admin)
	backup, transfer := ada.Get("/backup").Without("Sign in again"), ada.Get("/transfer").Without("sign in again")
	server.SetRecently(w.Server, 0)
	pages := map[string]*servertest.Page{
		"/transfer": ada.Submit(transfer, "/transfer/export", url.Values{"of": {"all"}})}
	if w.Database.File() != "" {
		pages["/backup"] = ada.Submit(backup, "/backup/download", nil)
	}
	for path, p := range pages {
		again := ada.LeadsTo(p, "/login?again=1&next="+url.QueryEscape(path)).Expect(http.StatusOK, `type="password"`)
		servertest.CheckPage(w, ada.Get(path).Expect(http.StatusOK, "again=1&amp;next="+url.QueryEscape(path)))
		server.SetRecently(w.Server, time.Hour)
		ada.LeadsTo(ada.Submit(again, "/login", url.Values{"username": {"ada"}, "password": {rightPassword}}),
			path).Expect(http.StatusOK).Without("again=1")
		server.SetRecently(w.Server, 0)
	}
	ada.LeadsTo(bring(ada, "{}"), "/login?again=1&next=%2Ftransfer")
	ada.Submit(ada.Get("/transfer"), "/transfer/export", url.Values{"of": {"own"}}).Expect(http.StatusOK, `"type":"end"`)
}
