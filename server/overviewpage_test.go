package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// furnishOverview gives the pages something to show.
func (w *world) furnishOverview(_ map[string]string) {
	w.t.Helper()
	ada := w.store.As(souvenir.Access{User: w.users[admin]})
	steps := firstError{}
	_, err := ada.AddMemory(w.t.Context(), souvenir.NewMemory{Content: hostile, ProjectID: "p", EventType: hostile[:60]})
	steps.note(err)
	for _, client := range []string{hostile, "", browserOfTests} {
		steps.note(w.store.Upkeep().RecordActivity(w.t.Context(),
			souvenir.NewActivity{Principal: souvenir.Principal{Access: souvenir.Access{User: w.users[admin]}}, Client: client,
				Tool:   hostile,
				Action: hostile, Project: souvenir.ProjectRef{ID: "p"}, MemoryID: hostile, FileID: hostile, Outcome: "internal"}))
	}
	if steps.err != nil {
		w.t.Fatal(steps.err)
	}
}

const browserOfTests = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

func TestOverviewTellsWhatThereIs(t *testing.T) {
	w := newWorld(t, server.Options{})
	w.do(owner, "POST", "/tools/call", `{"name":"list_collections"}`)
	b := w.signedIn(owner)
	p := b.get("/").expect(http.StatusOK, "Hello, olivia", "The shop opens at nine.", `href="/memories/`+w.memory+`"`,
		`href="/memories?project=`+w.users[owner]+`%2Fshop"`, "list_collections", "The shop",
		"2 memories stored in 30 days; 2 in total", `<span class="number">2</span> memories`,
		`<span class="number">2</span> projects`, `<span class="number">2</span> files`,
		`id="days-30" href="/?days=30" hx-get="/?days=30" hx-target="#overview" hx-swap="outerHTML" hx-push-url="true" `+
			`aria-current="true"`, "time zone UTC")
	checkPage(w, p)
	if columns := strings.Count(p.body, `class="column"`); columns != 30 {
		t.Errorf("%d columns for 30 days, want 30", columns)
	}
	year := b.get("/?days=365").expect(http.StatusOK, "Added per week", "2 memories stored in 365 days")
	checkPage(w, year)
	if columns := strings.Count(year.body, `class="column"`); columns != 53 {
		t.Errorf("%d columns for a year, want 53", columns)
	}
	for _, wrong := range []string{"0", "-7", "8", "x", "99999999999999999999"} {
		b.get("/?days="+wrong).expect(http.StatusBadRequest, "7, 30, 90 or 365 is needed")
	}
	// No one learns of what is not theirs.
	w.signedIn(reader).get("/").expect(http.StatusOK, "The shop opens at nine.",
		`<span class="number">1</span> memory`).without(secret)
	w.signedIn(stranger).get("/").expect(http.StatusOK, "No memories yet", "Get started",
		`href="/connect"`).without(secret, "nine", "Growth")
	w.signedIn(admin).get("/").expect(http.StatusOK, "No memories yet").without(secret, "nine", "list_collections")
}

func TestOverviewIsGivenToScriptsInParts(t *testing.T) {
	w := newWorld(t, server.Options{})
	b := w.signedIn(owner)
	whole := b.part("/?days=7", "overview").expect(http.StatusOK, `<div id="overview"`,
		"stored in 7 days").without("<html",
		"<h1")
	if vary := whole.header.Values("Vary"); len(vary) == 0 {
		t.Error("a store could give a part where the page is wanted")
	}
	b.part("/", "health").expect(http.StatusOK, `<div id="health">`,
		"All 2 passages can be searched by meaning").without("<html", `id="overview"`, "hx-trigger")
	b.part("/?days=8", "overview").expect(http.StatusBadRequest, "Days is &#34;8&#34;")
}

// Days are those of the reader: what was stored at 23:30 in New York belongs to that day there, and to the next one
// in UTC.
func TestDaysAreThoseOfTheReader(t *testing.T) {
	w := newWorld(t, server.Options{})
	b := w.signedIn(owner)
	for want, name := range map[string]string{"America/New_York": "America/New_York", "Asia/Tokyo": "Asia/Tokyo",
		"UTC": "UTC", "Local": "UTC", "../../etc/passwd": "UTC", "Nowhere/Land": "UTC", strings.Repeat("x", 500): "UTC"} {
		b.setCookie("souvenir_zone", want)
		p := b.get("/?days=7").expect(http.StatusOK, "time zone "+name+".")
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		if today := time.Now().In(zone).Format("2 Jan 2006"); !strings.Contains(p.body, "<span>"+today+"</span>") {
			t.Errorf("%s: the last day is not %s", want, today)
		}
		if len(want) < 64 && !strings.Contains(p.body, `data-zone="`+want+`"`) {
			t.Errorf("a script would tell %s again and again", want)
		}
	}
}

// part asks for a page as the script of the pages does, for the element of an id.
func (b *browser) part(path, target string) *gotPage {
	b.w.t.Helper()
	r := b.w.request(guest, http.MethodGet, path, nil)
	r.Header.Set("HX-Request", "true")
	r.Header.Set("HX-Target", target)
	return b.send(r)
}
