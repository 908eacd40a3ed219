package dashboard_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

func TestOverviewShowsWhatIsStored(t *testing.T) {
	w := servertest.New(t, server.Options{})
	w.Do(servertest.Owner, "POST", "/tools/call", `{"name":"list_collections"}`)
	b := w.SignedIn(servertest.Owner)
	p := b.Get("/").Expect(http.StatusOK, "Hello, olivia", "The shop opens at nine.", `href="/memories/`+w.Memory+`"`,
		`href="/memories?project=`+w.Users[servertest.Owner]+`%2Fshop"`, "listed the collections", "The shop",
		"2 memories stored in 30 days; 2 in total", `<span class="number">2</span> memories`,
		`<span class="number">2</span> projects`, `<span class="number">2</span> files`,
		`id="days-30" href="/?days=30" hx-get="/?days=30" hx-target="#overview" hx-swap="outerHTML" hx-push-url="true" `+
			`aria-current="true"`, "time zone UTC")
	servertest.CheckPage(w, p)
	if columns := strings.Count(p.Body, `class="column"`); columns != 30 {
		t.Errorf("%d columns for 30 days, want 30", columns)
	}
	past := time.Now().Add(-time.Hour)
	if _, err := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]}).AddMemory(t.Context(),
		souvenir.NewMemory{Content: "It was open.", ValidUntil: past}); err != nil {
		t.Fatal(err)
	}
	b.Get("/").Expect(http.StatusOK, `<span class="number">3</span> memories`, "1 memory of 3 is not valid at the moment")
	b.Get("/memories").Expect(http.StatusOK, "2 memories")
	year := b.Get("/?days=365").Expect(http.StatusOK, "Added per week", "3 memories stored in 365 days")
	servertest.CheckPage(w, year)
	if columns := strings.Count(year.Body, `class="column"`); columns != 53 {
		t.Errorf("%d columns for a year, want 53", columns)
	}
	for _, wrong := range []string{"0", "-7", "8", "x", "99999999999999999999"} {
		b.Get("/?days="+wrong).Expect(http.StatusBadRequest, "expected 7, 30, 90 or 365")
	}
	// Users learn nothing about others' data.
	w.SignedIn(servertest.Reader).Get("/").Expect(http.StatusOK, "The shop opens at nine.",
		`<span class="number">1</span> memory`).Without(servertest.Secret)
	w.SignedIn(servertest.Stranger).Get("/").Expect(http.StatusOK, "No memories yet", "Get started",
		`href="/connect?client=Another%20client"`).Without(servertest.Secret, "nine", "Growth")
	w.SignedIn(servertest.Admin).Get("/").Expect(http.StatusOK, "No memories yet").Without(servertest.Secret, "nine",
		"listed the collections")
}

func TestOverviewIsGivenToScriptsInParts(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	b := w.SignedIn(servertest.Owner)
	whole := part(b, "/?days=7", "overview").Expect(http.StatusOK, `<div id="overview"`,
		"stored in 7 days").Without("<html",
		"<h1")
	if vary := whole.Header.Values("Vary"); len(vary) == 0 {
		t.Error("a store could give a part where the page is wanted")
	}
	part(b, "/", "health").Expect(http.StatusOK, `<div id="health">`,
		"All 2 passages can be searched by meaning").Without("<html", `id="overview"`, "hx-trigger")
	part(b, "/", "client-counts").Expect(http.StatusOK, "Calls by client").Without("<html", "By type")
	part(b, "/?days=8", "overview").Expect(http.StatusBadRequest, "Days is &#34;8&#34;")
}

// The overview names what needs attention, with a link to the right page, but nothing of other users.
func TestOverviewSaysWhatNeedsAttention(t *testing.T) {
	w := servertest.New(t, server.Options{})
	olivia := w.SignedIn(servertest.Owner)
	olivia.Get("/").Expect(http.StatusOK, `hx-get="/attention"`)
	servertest.CheckPage(w, olivia.Get("/attention").Expect(http.StatusOK, "Nothing needs your attention"))
	w.Do(servertest.Owner, "POST", "/tools/call", `{"name":"todo","arguments":{"action":"complete","project_id":"none"}}`)
	view := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]})
	for range 2 {
		if _, err := view.AddMemory(t.Context(), souvenir.NewMemory{Content: "The harbour closes at ten."}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Store.Upkeep().WaitEmbedded(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := olivia.Get("/attention").Expect(http.StatusOK, "1 pair of near-duplicate memories",
		`href="/memories/duplicates"`, "1 call failed in the last 7 days", `href="/activity?outcome=error"`)
	servertest.CheckPage(w, p)
	part(olivia, "/attention", "attention").Expect(http.StatusOK, `id="attention"`).Without("<html")
	w.SignedIn(servertest.Stranger).Get("/attention").Expect(http.StatusOK, "Nothing needs your attention").
		Without("harbour", "pair")
}

// The overview of admins reports failed and missing backups of the server; that of others does not.
func TestOverviewSaysWhatIsWrongWithBackups(t *testing.T) {
	longtest.Only(t)
	made := time.Now().Add(-time.Hour)
	state := server.Backups{Every: 24 * time.Hour, Made: made}
	w := servertest.New(t, server.Options{Backups: func() server.Backups { return state }})
	ada, olivia := w.SignedIn(servertest.Admin), w.SignedIn(servertest.Owner)
	ada.Get("/attention").Expect(http.StatusOK, "Nothing needs your attention")
	state.Failed = true
	servertest.CheckPage(w, ada.Get("/attention").Expect(http.StatusOK,
		"The last backup failed; the newest sound one is from "+made.UTC().Format("2 Jan 2006"), `href="/backup"`))
	olivia.Get("/attention").Expect(http.StatusOK, "Nothing needs your attention")
	state.Made = time.Time{}
	ada.Get("/attention").Expect(http.StatusOK, "The last backup failed, and there is no earlier one")
	state = server.Backups{Every: time.Hour, Made: made.Add(-24 * time.Hour)}
	ada.Get("/attention").Expect(http.StatusOK, "The newest backup is from ")
}

// Trends count what programs did, compared with the time before.
func TestOverviewHasTrends(t *testing.T) {
	w := servertest.New(t, server.Options{})
	olivia := w.SignedIn(servertest.Owner)
	servertest.CheckPage(w, olivia.Get("/trends").Expect(http.StatusOK, "No client has called", "in 30 days"))
	for _, query := range []string{"opens at nine", "zzzz qqqq"} {
		w.Do(servertest.Owner, "POST", "/tools/call",
			`{"name":"memory","arguments":{"action":"search","min_score":0.9,"query":"`+query+`"}}`)
	}
	w.Do(servertest.Owner, "POST", "/tools/call", `{"name":"todo","arguments":{"action":"complete","project_id":"none"}}`)
	olivia.Get("/").Expect(http.StatusOK, `hx-get="/trends?days=30"`)
	p := olivia.Get("/trends?days=7").Expect(http.StatusOK, "in 7 days", "Calls: 3, before 0", "Failed calls: 1, before 0",
		"Searches: 2, before 0", "Searches with hits: 50%, before –", "Clients on a day: 1, before 0")
	servertest.CheckPage(w, p)
	servertest.CheckPage(w, olivia.Get("/trends?days=365").Expect(http.StatusOK, "Week", "Calls: 3\""))
	part(olivia, "/trends?days=7", "trends").Expect(http.StatusOK, `id="trends"`).Without("<html")
	w.SignedIn(servertest.Stranger).Get("/trends").Expect(http.StatusOK, "No client has called")
	olivia.Get("/trends?days=8").Expect(http.StatusBadRequest)
}

// Days are in the reader's time zone: a memory stored at 23:30 in New York belongs to that day there, and to the next
// one in UTC.
func TestDaysAreThoseOfTheReader(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	b := w.SignedIn(servertest.Owner)
	for want, name := range map[string]string{"America/New_York": "America/New_York", "Asia/Tokyo": "Asia/Tokyo",
		"UTC": "UTC", "Local": "UTC", "../../etc/passwd": "UTC", "Nowhere/Land": "UTC", strings.Repeat("x", 500): "UTC"} {
		b.SetCookie("souvenir_zone", want)
		p := b.Get("/?days=7").Expect(http.StatusOK, "time zone "+name+".")
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		if today := time.Now().In(zone).Format("2 Jan 2006"); !strings.Contains(p.Body, "<span>"+today+"</span>") {
			t.Errorf("%s: the last day is not %s, want %q in the body", want, today, "<span>"+today+"</span>")
		}
		if len(want) < 64 && !strings.Contains(p.Body, `data-zone="`+want+`"`) {
			t.Errorf("a screen reader would announce %s repeatedly, want it announced once", want)
		}
	}
}

// part requests one element of a page, as the pages' script does.
func part(b *servertest.Browser, path, target string) *servertest.Page {
	b.W.T.Helper()
	r := b.W.Request(servertest.Guest, http.MethodGet, path, nil)
	r.Header.Set("HX-Request", "true")
	r.Header.Set("HX-Target", target)
	return b.Send(r)
}

func TestTheOverviewShowsTextsWithoutMarkdown(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	fill(w, servertest.Owner, souvenir.NewMemory{Content: "# Deploy window\n\nReleased on **Thursdays**, `at two`."})
	w.SignedIn(servertest.Owner).Get("/").Expect(http.StatusOK, "Deploy window Released on Thursdays, at two.").
		Without("# Deploy", "**Thursdays**")
}

// In Havana midnight of 8 March 2026 is skipped: that day begins at 01:00, and 23:30 belongs to the day before.
func TestDaysWithoutMidnight(t *testing.T) {
	w := servertest.New(t, server.Options{})
	b := w.SignedIn(servertest.Owner)
	b.SetCookie("souvenir_zone", "America/Havana")
	for name, at := range map[string]time.Time{
		"evening":   time.Date(2026, 3, 8, 4, 30, 0, 0, time.UTC),
		"noon":      time.Date(2026, 3, 8, 16, 0, 0, 0, time.UTC),
		"late":      time.Date(2026, 3, 9, 3, 30, 0, 0, time.UTC),
		"following": time.Date(2026, 3, 9, 4, 30, 0, 0, time.UTC),
	} {
		fill(w, servertest.Owner, souvenir.NewMemory{Content: "the " + name + " tea", CreatedAt: at})
	}
	for day, want := range map[string]string{"2026-03-07": "evening", "2026-03-08": "noon late",
		"2026-03-09": "following"} {
		memories := b.Get("/memories?created_from=" + day + "&created_to=" + day).Expect(http.StatusOK)
		for _, name := range []string{"evening", "noon", "late", "following"} {
			has := strings.Contains(want, name)
			if got := strings.Contains(memories.Body, "the "+name+" tea"); got != has {
				t.Errorf("memories of %s include that of the %s: %v, want %v", day, name, got, has)
			}
		}
	}
}
