package dashboard_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// callOf records a caller's call.
func callOf(w *servertest.World, caller string, n souvenir.NewActivity) {
	w.T.Helper()
	n.Principal.Access.User = w.Users[caller]
	if err := w.Store.Upkeep().RecordActivity(w.T.Context(), n); err != nil {
		w.T.Fatal(err)
	}
}

func TestActivityShowsWhoHasCalled(t *testing.T) {
	w := servertest.New(t, server.Options{})
	callOf(w, servertest.Owner, souvenir.NewActivity{Client: "kite 2.1", Tool: "memory", Action: "search",
		Project: souvenir.ProjectRef{ID: "shop"}, MemoryID: w.Memory, FileID: w.File, Duration: 1500 * time.Millisecond})
	callOf(w, servertest.Owner, souvenir.NewActivity{Client: servertest.BrowserOfTests, Tool: "GET /api/files/{id}",
		Outcome:  "not_found",
		Duration: 2500 * time.Microsecond})
	callOf(w, servertest.Stranger, souvenir.NewActivity{Client: "crane", Tool: "memory", MemoryID: "of-the-stranger"})
	b := w.SignedIn(servertest.Owner)
	p := b.Get("/activity").Expect(http.StatusOK, "kite 2.1", "memory search", "1.5 s", "Today", `href="/projects/`+
		w.Users[servertest.Owner]+
		`/shop"`, "The shop", `href="/memories/`+w.Memory+`">“<bdi>The shop opens at nine.</bdi>”`,
		`href="/files/`+w.File+`">“<bdi>menu.txt</bdi>”`, "could not open a file", "GET /api/files/{id}",
		"Firefox on Linux", "2.5 ms", `<span class="tag off">not found</span>`, "30 days").
		Without("crane", "stranger", ">User<")
	servertest.CheckPage(w, p)
	for query, has := range map[string]bool{
		"tool=memory": true, "client=kite+2.1": true, "client=kite": false, "outcome=ok": true, "outcome=error": false,
		"outcome=not_found": false, "project=shop": true, "project=plot": false, "kind=read": true, "kind=deleted": false,
		"credential=token": false, "since=2020-01-01": true, "until=2020-01-01": false,
		"tool=memory&outcome=ok&project=shop": true,
	} {
		if found := b.Get("/activity?" + query).Expect(http.StatusOK); strings.Contains(found.Body,
			"<code>memory search</code>") != has {
			t.Errorf("%s: got %.2000s, want %v", query, found.Body, has)
		}
	}
	b.Get("/activity?tool=none").Expect(http.StatusOK, "No calls match")
	servertest.CheckPage(w, w.SignedIn(servertest.Writer).Get("/activity").Expect(http.StatusOK, "No calls yet",
		`href="/connect"`))
}

func TestWrongFiltersOfActivityAreReportedInTheirPlace(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	b := w.SignedIn(servertest.Owner)
	for query, want := range map[string]string{
		"kind=lost":       "Kind is &#34;lost&#34;",
		"since=yesterday": "Since is &#34;yesterday&#34;; expected a day", "until=2020-13-01": "expected a day",
		"outcome=nice": "nice", "credential=key": "key",
		"user=" + w.Users[servertest.Stranger]: "only admins see other users&#39; calls", "user=*": "only admins",
		"project=%00": "Project_id",
	} {
		servertest.CheckPage(w, b.Get("/activity?"+query).Expect(http.StatusBadRequest, want, `role="alert"`))
	}
	servertest.CheckPage(w, b.Get("/activity?before=gone").Expect(http.StatusNotFound, "start again"))
	if p := b.Get("/activity?client="+url.QueryEscape(servertest.Hostile)).Expect(http.StatusOK,
		"No calls match").Without("<script>alert"); p.HTML == nil {
		t.Error("got no page of HTML, want one")
	}
}

// Sentences use names that people know: of clients, memories, and items in the trash.
func TestActivityIsWrittenInSentences(t *testing.T) {
	w := servertest.New(t, server.Options{})
	view := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]})
	added, err := view.Accounts().AddToken(t.Context(), souvenir.NewToken{Name: "Cursor"})
	if err != nil {
		t.Fatal(err)
	}
	principal, err := w.Store.Accounts().CheckToken(t.Context(), added.Value)
	if err != nil {
		t.Fatal(err)
	}
	window := w.AddMemory(servertest.Owner, souvenir.NewMemory{ProjectID: "shop",
		Content: "# Deploy window\n\nThursdays."})
	gone := w.AddMemory(servertest.Owner, souvenir.NewMemory{Content: "What is thrown away."})
	headed := w.AddMemory(servertest.Owner, souvenir.NewMemory{Content: "## Old **window**\n\nTuesdays."})
	for _, id := range []string{gone.ID, headed.ID} {
		if err := view.DeleteMemory(t.Context(), id, nil); err != nil {
			t.Fatal(err)
		}
	}
	record := func(n souvenir.NewActivity) {
		t.Helper()
		n.Principal, n.Client = principal, "cursor/2.0"
		if err := w.Store.Upkeep().RecordActivity(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	record(souvenir.NewActivity{Tool: "memory", Action: "update", MemoryID: window.ID})
	record(souvenir.NewActivity{Tool: "memory", Action: "delete", MemoryID: gone.ID})
	record(souvenir.NewActivity{Tool: "memory", Action: "delete", MemoryID: headed.ID})
	for range 3 {
		record(souvenir.NewActivity{Tool: "memory", Action: "search"})
	}
	record(souvenir.NewActivity{Tool: "memory", Action: "retrieve", MemoryID: "of-no-memory", Outcome: "not_found"})
	b := w.SignedIn(servertest.Owner)
	p := b.Get("/activity")
	servertest.CheckPage(w, p)
	text := strings.Join(strings.Fields(p.HTML.Text), " ")
	for _, want := range []string{"Cursor updated “Deploy window” in The shop", "Cursor deleted “What is thrown away.”",
		"Cursor deleted “Old window”",
		"Cursor searched the memories, 3 times", "Cursor could not read a memory that you cannot open not found"} {
		if !strings.Contains(text, want) {
			t.Errorf("got %s, want in it %q", text, want)
		}
	}
	b.Get("/activity?kind=deleted").Expect(http.StatusOK, "What is thrown away.").Without("Deploy window")
	b.Get("/activity?kind=updated").Expect(http.StatusOK, "Deploy window").Without("thrown away")

	// Above the calls of one client, the page shows its access and can revoke it.
	own := "/activity?credential=token&credential_id=" + added.ID
	p.Expect(http.StatusOK, strings.ReplaceAll(own, "&", "&amp;"))
	p = b.Get(own).Expect(http.StatusOK, "Revoke access", "Deploy window")
	servertest.CheckPage(w, p)
	b.LeadsTo(b.Submit(p, "/tokens/end", nil), "/tokens?done=token").Expect(http.StatusOK)
	b.Get(own).Expect(http.StatusOK, "Deploy window").Without("Revoke access")
	w.SignedIn(servertest.Stranger).Get(own).Expect(http.StatusOK, "No calls match").Without("Cursor")
}

// Admins see that others call, and which tools. Links to others' memories do not work.
func TestActivityOfOthersIsForAdmins(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	callOf(w, servertest.Owner, souvenir.NewActivity{Client: "kite", Tool: "memory", Action: "search",
		Project: souvenir.ProjectRef{ID: "shop"}, MemoryID: w.Memory})
	callOf(w, servertest.Stranger, souvenir.NewActivity{Client: "crane", Tool: "rules"})
	b := w.SignedIn(servertest.Admin)
	b.Get("/activity").Expect(http.StatusOK, "All users", "olivia").Without("kite", "crane")
	all := b.Get("/activity?user=*").Expect(http.StatusOK, "kite", "crane", "<bdi>olivia</bdi>",
		"<bdi>sam</bdi>").Without("/memories/"+w.Memory, w.Memory, "/shop")
	servertest.CheckPage(w, all)
	b.Get("/activity?user="+w.Users[servertest.Owner]).Expect(http.StatusOK, "kite").Without("crane")
	b.Get("/activity?user=nemo").Expect(http.StatusNotFound)
}

// With many projects, the filter offers the chosen one, those of the latest calls, and the first ones.
func TestActivityOffersTheProjectsOfTheLatestCalls(t *testing.T) {
	w := servertest.New(t, server.Options{})
	view := w.Store.As(souvenir.Access{User: w.Users[servertest.Stranger]})
	if err := view.Transaction(t.Context(), func(ctx context.Context) error {
		for i := range 101 {
			if _, err := view.AddProject(ctx, souvenir.NewProject{ID: fmt.Sprint("many-", i)}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	callOf(w, servertest.Stranger, souvenir.NewActivity{Tool: "memory", Project: souvenir.ProjectRef{ID: "many-99"}})
	b := w.SignedIn(servertest.Stranger)
	b.Get("/activity").Expect(http.StatusOK, `/many-99"`, `/many-1"`).Without(`/many-98"`)
	b.Get("/activity?project=many-98").Expect(http.StatusOK, `/many-99"`, `/many-98" selected`).
		Without(`/many-97"`)
}

func TestActivityGoesBackInParts(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	const many = 120
	for i := range many {
		callOf(w, servertest.Owner, souvenir.NewActivity{Client: fmt.Sprintf("client-%03d", i), Tool: "memory"})
	}
	b := w.SignedIn(servertest.Owner)
	var seen []string
	path := "/activity?tool=memory"
	for parts := 1; ; parts++ {
		p := b.Get(path).Expect(http.StatusOK)
		servertest.CheckPage(w, p)
		_, list, _ := strings.Cut(p.Body, `<div id="activity"`)
		for _, found := range regexp.MustCompile(`<bdi>(client-\d+)`).FindAllStringSubmatch(list, -1) {
			seen = append(seen, found[1])
		}
		older := regexp.MustCompile(`href="([^"]*)">Older calls`).FindStringSubmatch(p.Body)
		if older == nil {
			if parts != 3 || !strings.Contains(p.Body, "Back to the newest") {
				t.Errorf(`%d parts, want parts 3 and "Back to the newest" in the body`, parts)
			}
			break
		}
		path = strings.ReplaceAll(older[1], "&amp;", "&")
		if !strings.Contains(path, "tool=memory") {
			t.Fatalf("the filter is lost: %s; want in it \"tool=memory\"", path)
		}
	}
	if len(seen) != many || !slices.IsSortedFunc(seen, func(a, b string) int { return strings.Compare(b, a) }) {
		t.Errorf("%d of %d are shown: %v, want all, the newest first", len(seen), many, seen)
	}
}

func TestActivityIsFollowed(t *testing.T) {
	w := servertest.New(t, server.Options{})
	callOf(w, servertest.Owner, souvenir.NewActivity{Client: "kite", Tool: "memory"})
	b := w.SignedIn(servertest.Owner)
	b.Get("/activity").Expect(http.StatusOK, `href="/activity?live=1"`).Without("every 5s")
	live := b.Get("/activity?tool=memory&live=1").Expect(http.StatusOK, "every 5s", "Pause", `name="live"`)
	servertest.CheckPage(w, live)
	callOf(w, servertest.Owner, souvenir.NewActivity{Client: "crane", Tool: "memory"})
	part(b, htmxGet(t, live, "activity"), "activity").Expect(http.StatusOK, "kite", "crane", "every 5s").Without("<html",
		"<form")
	b.Get("/activity?live=1&outcome=nice").Expect(http.StatusBadRequest).Without("every 5s")
}

func TestActivityThatIsNotRecorded(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{NoActivity: true})
	servertest.CheckPage(w, w.SignedIn(servertest.Owner).Get("/activity").Expect(http.StatusOK, "recording turned off"))
	w.SignedIn(servertest.Owner).Get("/").Expect(http.StatusOK).Without("Recent activity")
}

// The sentences of two updates of one memory say what each changed.
func TestUpdatesSayWhatTheyChanged(t *testing.T) {
	w := servertest.New(t, server.Options{})
	update := func(arguments string) {
		w.Do(servertest.Owner, "POST", "/tools/call", `{"name":"memory","arguments":{"action":"update","id":"`+w.Memory+
			`",`+arguments+`}}`)
	}
	update(`"content":"The shop opens at eight."`)
	update(`"event_type":"decision"`)
	update(`"content":"The shop opens at noon.","event_type":"fact"`)
	b := w.SignedIn(servertest.Owner)
	servertest.CheckPage(w, b.Get("/activity?kind=updated").Expect(http.StatusOK, "updated the text of",
		"updated the event type of", "updated the text and event type of", "<del><bdi>nine</bdi></del>",
		"<ins><bdi>eight</bdi></ins>",
		"<ins><bdi>decision</bdi></ins>", "<del><bdi>eight</bdi></del>", "<ins><bdi>noon</bdi></ins>"))
	w.SignedIn(servertest.Admin).Get("/activity?user="+w.Users[servertest.Owner]).Without(">eight<", ">noon<", ">nine<")

	// A busy server records calls late; one without effect does not claim the change of another.
	content, view := "The shop opens at dawn.", w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]})
	updated, err := view.UpdateMemory(t.Context(), w.Memory, souvenir.MemoryUpdate{Content: &content})
	if err != nil {
		t.Fatal(err)
	}
	late := updated.UpdatedAt.Add(25 * time.Millisecond)
	for i := range 2 {
		callOf(w, servertest.Owner, souvenir.NewActivity{Tool: "memory", Action: "update", MemoryID: w.Memory,
			StartedAt: late.Add(time.Duration(i) * 9 * time.Millisecond), Duration: time.Millisecond})
	}
	p := b.Get("/activity?kind=updated").Expect(http.StatusOK)
	if n := strings.Count(p.Body, "<ins><bdi>dawn</bdi></ins>"); n != 1 {
		t.Errorf("%d updates claim the last change, want 1: %s", n, p.Body)
	}

	update(`"content":"` + strings.Repeat("long ", 200_000) + `"`) // five versions of it would be too many bytes to read
	b.Get("/activity?kind=updated").Expect(http.StatusOK, "updated").Without("updated the")
}
