package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// furnishMemoryList gives the pages something to show.
func (w *world) furnishMemoryList(paths map[string]string) {
	w.t.Helper()
	ada := w.store.As(souvenir.Access{User: w.users[admin]})
	if _, err := ada.AddCollection(w.t.Context(), souvenir.NewCollection{Name: "<i>c</i>"}); err != nil {
		w.t.Fatal(err)
	}
	var ids []string
	for i := range 2 {
		m, err := ada.AddMemory(w.t.Context(),
			souvenir.NewMemory{Collection: "<i>c</i>", Content: hostile + " " + hostile, EventType: "<b>type", State: "archived",
				Importance: souvenir.ImportanceHigh,
				Tags:       []string{hostile, fmt.Sprint("n", i)}, ProjectID: "p",
				ShownMetadata: map[string]any{"source": hostile}})
		if err != nil {
			w.t.Fatal(err)
		}
		ids = append(ids, m.ID)
	}
	paths["/memories/merge"] = "/memories/merge?" + url.Values{"id": ids}.Encode()
	paths["/memories/new"] = "/memories/new?content=" + url.QueryEscape(hostile)
	paths["/memories"] = "/memories?q=" + url.QueryEscape(hostile) + "&tag=" + url.QueryEscape(hostile) +
		"&key=source&value=" + url.QueryEscape(hostile)
}

// find asks for the list as the script of the page does.
func (b *browser) find(query string) *gotPage {
	b.w.t.Helper()
	r := b.w.request(guest, http.MethodGet, "/memories?"+query, nil)
	r.Header.Set("HX-Request", "true")
	return b.send(r)
}

// rows are the ids of the memories that a list shows.
func (p *gotPage) rows() []string {
	var ids []string
	for _, input := range p.html.all("input") {
		if input.attr("name") == "id" && input.attr("form") == "bulk" {
			ids = append(ids, input.attr("value"))
		}
	}
	return ids
}

// fill stores memories for a caller, one a minute, and returns their ids.
func (w *world) fill(caller string, memories ...souvenir.NewMemory) []string {
	w.t.Helper()
	stored, err := w.store.As(souvenir.Access{User: w.users[caller]}).AddMemories(w.t.Context(), memories, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	var ids []string
	for _, m := range stored {
		ids = append(ids, m.ID)
	}
	return ids
}

func TestMemoriesPage(t *testing.T) {
	w := newWorld(t, server.Options{})
	sam, olivia, rita := w.signedIn(stranger), w.signedIn(owner), w.signedIn(reader)
	sam.get("/memories").expect(http.StatusOK, "No memories yet", `href="/memories/new"`).without("opens at nine",
		secret)
	olivia.get("/memories").expect(http.StatusOK, "The shop opens at nine.", secret, "2 memories", "The shop (1)",
		"No project (1)").without("No memories yet")
	rita.get("/memories").expect(http.StatusOK, "The shop opens at nine.", "1 memory",
		"The shop of olivia (1)").without(secret)
	checkPage(w, olivia.get("/memories?q=shop&view=reading"))
	checkPage(w, sam.get("/memories"))
}

func TestSearchPageSaysWhatMakesUpAScore(t *testing.T) {
	w := newWorld(t, server.Options{})
	said := map[string]any{"conversation_id": "harbour"}
	w.fill(owner, souvenir.NewMemory{Content: "Where do the otters sleep?", Metadata: said},
		souvenir.NewMemory{Content: "Under the old pier, all three.", Metadata: said})
	olivia := w.signedIn(owner)
	for _, view := range []string{"", "&view=reading"} {
		olivia.find("q=where+do+otters+sleep"+view).expect(http.StatusOK, "<summary>Why this score<", "Same words",
			"Same meaning", `The message before</a>, which asks what this may answer</span> <b>&#43;0.`,
			"Is a question</span> <b>-0.",
			`class="lent"`, `class="less"`)
	}
	olivia.find("").without("Why this score")
	checkPage(w, olivia.get("/memories?q=where+do+otters+sleep"))
}

func TestSearchOfMemoriesWhileTyping(t *testing.T) {
	w := newWorld(t, server.Options{})
	w.fill(owner, souvenir.NewMemory{Content: "The **otters** swim in the river.\n\nThey like it. " +
		strings.Repeat("Water all day long. ", 100)})
	olivia := w.signedIn(owner)
	part := olivia.find("q=otter")
	part.expect(http.StatusOK, "<mark>otters</mark>", "3 memories, best match first", `class="score"`, "words 0.",
		"meaning 0.", "<rect").without("<html", "<h1", `id="filters"`)
	if rows := part.rows(); len(rows) != 3 {
		t.Errorf("%d rows, want 3", len(rows))
	}
	olivia.find("q=otter&view=reading").expect(http.StatusOK, "<strong>otters</strong>", "Read more").without("<table")
	olivia.find("q=zyxwvut").expect(http.StatusOK, "No memory has these words.")
	whole := olivia.get("/memories?q=otter")
	whole.expect(http.StatusOK, `value="otter"`, "<mark>otters</mark>")
	if whole.header.Get("Vary") == "" {
		t.Error("the part and the page are not told apart")
	}
	olivia.find("q="+strings.Repeat("x", souvenir.MaxQuery+1)).expect(http.StatusBadRequest,
		"The search text is 65537 bytes; at most 65536 are allowed.", `role="alert"`).without("<html")
}

func TestFiltersOfMemories(t *testing.T) {
	w := newWorld(t, server.Options{})
	if _, err := w.store.As(souvenir.Access{User: w.users[owner]}).AddCollection(t.Context(),
		souvenir.NewCollection{Name: "box"}); err != nil {
		t.Fatal(err)
	}
	ids := w.fill(owner,
		souvenir.NewMemory{Content: "one", Collection: "box", EventType: "decision", State: "active",
			Importance: souvenir.ImportanceHigh, Classification: souvenir.ClassDo, Tags: []string{"a", "b,c"}, ProjectID: "shop",
			ShownMetadata: map[string]any{"source": "mail", "size": 3}},
		souvenir.NewMemory{Content: "two", Tags: []string{"a", "module:engine"}, State: "archived",
			ShownMetadata: map[string]any{"source": "3"}},
		souvenir.NewMemory{Content: "three", Tags: []string{"engine"}, EventType: "note"})
	w.fill(owner, souvenir.NewMemory{Content: "four", Related: ids[2:]})
	olivia := w.signedIn(owner)
	today, tomorrow := time.Now().UTC().Format(time.DateOnly), time.Now().UTC().AddDate(0, 0, 1).Format(time.DateOnly)
	for query, want := range map[string]string{
		"":                                    "2 one two three four",
		"collection=box":                      "0 one",
		"project=shop":                        "1 one",
		"project=" + w.users[owner] + "/shop": "1 one",
		"project=+":                           "1 two three four",
		"event_type=decision":                 "0 one",
		"event_type=+":                        "2 two four",
		"state=archived":                      "0 two",
		"state=active":                        "0 one",
		"archived=hide":                       "2 one three four",
		"importance=high":                     "0 one",
		"importance=low":                      "0",
		"classification=do":                   "0 one",
		"rule_type=do":                        "0",
		"tag=a":                               "0 one two",
		"tag=a&tag=b,c":                       "0 one",
		"tag=a&tag=a&tag=":                    "0 one two",
		"module=engine":                       "0 two three",
		"module=engine&tag=a":                 "0 two",
		"created_from=" + today:               "2 one two three four",
		"created_to=" + today:                 "2 one two three four",
		"created_from=" + tomorrow:            "0",
		"updated_to=2020-01-01":               "0",
		"updated_from=2020-01-01T10:00:00Z":   "2 one two three four",
		"key=source&value=mail":               "0 one",
		"key=source":                          "0 one two",
		"key=size&value=3":                    "0 one",
		"key=source&value=3":                  "0 two",
		"key=project_name&value=The+shop":     "1 one",
		"related=" + ids[2]:                   "0 four",
		"tag=a&state=archived&sort=created_at_asc&view=reading": "0 two",
	} {
		p := olivia.find(query).expect(http.StatusOK)
		others, words, _ := strings.Cut(want, " ")
		names := strings.Fields(words)
		if n := len(names) + int(others[0]-'0'); len(p.rows()) != n {
			t.Errorf("%s: %d memories, want %d", query, len(p.rows()), n)
		}
		for _, name := range names {
			if !strings.Contains(p.body, name) {
				t.Errorf("%s: %s is missing", query, name)
			}
		}
		checkPage(w, olivia.get("/memories?"+query))
	}
	p := olivia.get("/memories?tag=a&tag=b,c&state=active&q=one")
	p.expect(http.StatusOK, "Remove filter Tag: b,c", "Remove filter State: active",
		`href="?q=one&amp;state=active&amp;tag=a"`,
		`href="?q=one&amp;tag=a&amp;tag=b%2Cc"`)
}

func TestFiltersThatAreWrongSaySo(t *testing.T) {
	w := newWorld(t, server.Options{})
	olivia := w.signedIn(owner)
	for query, want := range map[string]string{
		"importance=huge":        "Importance is &#34;huge&#34;; allowed are low, medium, high, critical.",
		"classification=x":       "Classification is &#34;x&#34;; allowed are do, dont, todo, notes.",
		"rule_type=x":            "Rule type is &#34;x&#34;",
		"sort=best":              "Order is &#34;best&#34;; allowed are updated_at_desc",
		"view=wall":              "View is &#34;wall&#34;; allowed are table, reading.",
		"created_from=yesterday": "Stored from is &#34;yesterday&#34;; a day such as 2026-03-01 is expected",
		"updated_from=2026-03-02&updated_to=2026-03-01": "which is before &#34;2026-03-02&#34;",
		"value=x":                                    "Key is missing",
		"key=state&value=x&state=active":             "a filter of its own",
		"key=created_at&value=x":                     "a time is expected",
		"tag=" + strings.Repeat("x", 2000):           "", // none has it
		"q=%ff&tag=%ff&state=%ff&key=%ff":            "",
		"project=a/b/c":                              "",
		"event_type=" + strings.Repeat("x", 200):     "",
		"collection=" + url.QueryEscape("none such"): "Collection &#34;none such&#34;",
	} {
		p := olivia.get("/memories?" + query)
		checkPage(w, p)
		if want == "" {
			continue
		}
		if p.status != http.StatusBadRequest && p.status != http.StatusNotFound {
			t.Errorf("%s: %d", query, p.status)
		}
		if !strings.Contains(p.body, want) {
			t.Errorf("%s: %q is missing in %s", query, want, p.body)
		}
	}
	olivia.get("/memories?importance=huge&collection=none").expect(http.StatusBadRequest, `<option value="huge" selected>`,
		`<option value="none" selected>`)
	olivia.get("/memories?project=nowhere").expect(http.StatusOK,
		"Project &#34;nowhere&#34; not found, or you have no access to it",
		`<option value="nowhere" selected>`)
}

func TestPartsOfTheList(t *testing.T) {
	w := newWorld(t, server.Options{})
	var memories []souvenir.NewMemory
	for i := range 60 {
		memories = append(memories, souvenir.NewMemory{Content: fmt.Sprintf("note %02d", i), Tags: []string{"many"}})
	}
	w.fill(owner, memories...)
	olivia := w.signedIn(owner)
	for _, query := range []string{"tag=many", "tag=many&q=note"} {
		seen := map[string]bool{}
		for part := 1; part <= 3; part++ {
			p := olivia.get(fmt.Sprintf("/memories?%s&page=%d", query, part)).expect(http.StatusOK,
				fmt.Sprintf("Page %d of 3", part))
			checkPage(w, p)
			for _, id := range p.rows() {
				seen[id] = true
			}
		}
		if len(seen) != 60 {
			t.Errorf("%s: %d are shown, want 60", query, len(seen))
		}
		for _, past := range []string{"4", "99999999999999999999", "1000000"} {
			p := olivia.get("/memories?" + query + "&page=" + past)
			if past == "99999999999999999999" {
				p.expect(http.StatusOK, "Page 1 of 3")
			} else {
				p.expect(http.StatusOK, "Page 3 of 3", "no longer exists")
			}
		}
		olivia.get("/memories?"+query+"&page=-3").expect(http.StatusOK, "Page 1 of 3")
	}
	first, last := olivia.find("sort=created_at_asc&tag=many").rows(),
		olivia.find("sort=created_at_desc&tag=many&page=3").rows()
	if len(first) != 25 || len(last) != 10 {
		t.Errorf("%d and %d rows", len(first), len(last))
	}
}

func TestVeryLongMemoriesInTheList(t *testing.T) {
	w := newWorld(t, server.Options{})
	long := strings.Repeat("all of it is long, ", 50_000) + "otter"
	var memories []souvenir.NewMemory
	for range 25 {
		memories = append(memories, souvenir.NewMemory{Content: long[:souvenir.MaxContent/2]},
			souvenir.NewMemory{Content: strings.Repeat("x", 50_000)})
	}
	w.fill(owner, memories[:4]...)
	olivia := w.signedIn(owner)
	for _, query := range []string{"", "?view=reading", "?q=long", "?q=long&view=reading"} {
		checkPage(w, olivia.get("/memories"+query).expect(http.StatusOK))
	}
}
