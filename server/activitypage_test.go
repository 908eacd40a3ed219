package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// callOf records a call of someone.
func (w *world) callOf(caller string, n souvenir.NewActivity) {
	w.t.Helper()
	n.Principal.Access.User = w.users[caller]
	if err := w.store.Upkeep().RecordActivity(w.t.Context(), n); err != nil {
		w.t.Fatal(err)
	}
}

func TestActivityShowsWhoHasCalled(t *testing.T) {
	w := newWorld(t, server.Options{})
	w.callOf(owner, souvenir.NewActivity{Client: "kite 2.1", Tool: "memory", Action: "search",
		Project: souvenir.ProjectRef{ID: "shop"}, MemoryID: w.memory, FileID: w.file, Duration: 1500 * time.Millisecond})
	w.callOf(owner, souvenir.NewActivity{Client: browserOfTests, Tool: "GET /api/files/{id}", Outcome: "not_found",
		Duration: 2500 * time.Microsecond})
	w.callOf(stranger, souvenir.NewActivity{Client: "crane", Tool: "memory", MemoryID: "of-the-stranger"})
	b := w.signedIn(owner)
	p := b.get("/activity").expect(http.StatusOK, "kite 2.1", "memory search", "1.5 s", `href="/projects/`+w.users[owner]+
		`/shop"`, "The shop", `href="/memories/`+w.memory+`"`, `href="/files/`+w.file+`"`,
		"opened a file", "GET /api/files/{id}", "Firefox on Linux", "2.5 ms", `<span class="tag off">not found</span>`,
		`<span class="tag">OK</span>`, "30 days").without("crane", "stranger", ">User<")
	checkPage(w, p)
	for query, has := range map[string]bool{
		"tool=memory": true, "client=kite+2.1": true, "client=kite": false, "outcome=ok": true, "outcome=error": false,
		"outcome=not_found": false, "project=shop": true, "project=plot": false,
		"credential=token": false, "since=2020-01-01": true, "until=2020-01-01": false,
		"tool=memory&outcome=ok&project=shop": true,
	} {
		if found := b.get("/activity?" + query).expect(http.StatusOK); strings.Contains(found.body,
			"<b>memory search</b>") != has {
			t.Errorf("%s: %.2000s", query, found.body)
		}
	}
	b.get("/activity?tool=none").expect(http.StatusOK, "No calls match")
	checkPage(w, w.signedIn(writer).get("/activity").expect(http.StatusOK, "No calls yet", `href="/connect"`))
}

func TestWrongFiltersOfActivityAreReportedInTheirPlace(t *testing.T) {
	w := newWorld(t, server.Options{})
	b := w.signedIn(owner)
	for query, want := range map[string]string{
		"since=yesterday": "Since is &#34;yesterday&#34;; a day is needed", "until=2020-13-01": "a day is needed",
		"outcome=nice": "nice", "credential=key": "key",
		"user=" + w.users[stranger]: "only admins see other users&#39; calls", "user=*": "only admins",
		"project=%00": "Project_id",
	} {
		checkPage(w, b.get("/activity?"+query).expect(http.StatusBadRequest, want, `role="alert"`))
	}
	checkPage(w, b.get("/activity?before=gone").expect(http.StatusNotFound, "start again"))
	if p := b.get("/activity?client="+url.QueryEscape(hostile)).expect(http.StatusOK,
		"No calls match").without("<script>alert"); p.html == nil {
		t.Error("no page")
	}
}

// Admins see that others call, and with which tool; what it was about leads them nowhere.
func TestActivityOfOthersIsForAdmins(t *testing.T) {
	w := newWorld(t, server.Options{})
	w.callOf(owner, souvenir.NewActivity{Client: "kite", Tool: "memory", Action: "search",
		Project: souvenir.ProjectRef{ID: "shop"}, MemoryID: w.memory})
	w.callOf(stranger, souvenir.NewActivity{Client: "crane", Tool: "rules"})
	b := w.signedIn(admin)
	b.get("/activity").expect(http.StatusOK, "All users", "olivia").without("kite", "crane")
	all := b.get("/activity?user=*").expect(http.StatusOK, "kite", "crane", "<bdi>olivia</bdi>",
		"<bdi>sam</bdi>").without("/memories/"+w.memory, w.memory, "/shop")
	checkPage(w, all)
	b.get("/activity?user="+w.users[owner]).expect(http.StatusOK, "kite").without("crane")
	b.get("/activity?user=nemo").expect(http.StatusNotFound)
}

func TestActivityGoesBackInParts(t *testing.T) {
	w := newWorld(t, server.Options{})
	const many = 120
	for i := range many {
		w.callOf(owner, souvenir.NewActivity{Client: fmt.Sprintf("client-%03d", i), Tool: "memory"})
	}
	b := w.signedIn(owner)
	var seen []string
	path := "/activity?tool=memory"
	for parts := 1; ; parts++ {
		p := b.get(path).expect(http.StatusOK)
		checkPage(w, p)
		for _, found := range regexp.MustCompile(`<td><bdi>(client-\d+)`).FindAllStringSubmatch(p.body, -1) {
			seen = append(seen, found[1])
		}
		older := regexp.MustCompile(`href="([^"]*)">Older calls`).FindStringSubmatch(p.body)
		if older == nil {
			if parts != 3 || !strings.Contains(p.body, "Back to the newest") {
				t.Errorf("%d parts", parts)
			}
			break
		}
		path = strings.ReplaceAll(older[1], "&amp;", "&")
		if !strings.Contains(path, "tool=memory") {
			t.Fatalf("the filter is lost: %s; want in it \"tool=memory\"", path)
		}
	}
	if len(seen) != many || !slices.IsSortedFunc(seen, func(a, b string) int { return strings.Compare(b, a) }) {
		t.Errorf("%d of %d are shown: %v", len(seen), many, seen)
	}
}

func TestActivityIsFollowed(t *testing.T) {
	w := newWorld(t, server.Options{})
	w.callOf(owner, souvenir.NewActivity{Client: "kite", Tool: "memory"})
	b := w.signedIn(owner)
	b.get("/activity").expect(http.StatusOK, `href="/activity?live=1"`).without("every 5s")
	live := b.get("/activity?tool=memory&live=1").expect(http.StatusOK, "every 5s", "Pause", `name="live"`)
	checkPage(w, live)
	w.callOf(owner, souvenir.NewActivity{Client: "crane", Tool: "memory"})
	b.part(htmxGet(t, live, "activity"), "activity").expect(http.StatusOK, "kite", "crane", "every 5s").without("<html",
		"<form")
	b.get("/activity?live=1&outcome=nice").expect(http.StatusBadRequest).without("every 5s")
}

func TestActivityThatIsNotRecorded(t *testing.T) {
	w := newWorld(t, server.Options{NoActivity: true})
	checkPage(w, w.signedIn(owner).get("/activity").expect(http.StatusOK, "recording turned off"))
	w.signedIn(owner).get("/").expect(http.StatusOK).without("Recent activity")
}
