package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// find requests the list as the page's script does.
func find(b *servertest.Browser, query string) *servertest.Page {
	b.W.T.Helper()
	r := b.W.Request(servertest.Guest, http.MethodGet, "/memories?"+query, nil)
	r.Header.Set("HX-Request", "true")
	return b.Send(r)
}

// rows returns the ids of the memories in a list.
func rows(p *servertest.Page) []string {
	var ids []string
	for _, input := range p.HTML.All("input") {
		if input.Attr("name") == "id" && input.Attr("form") == "bulk" {
			ids = append(ids, input.Attr("value"))
		}
	}
	return ids
}

// fill adds memories for a caller, one each minute, and returns their ids.
func fill(w *servertest.World, caller string, memories ...souvenir.NewMemory) []string {
	w.T.Helper()
	stored, err := w.Store.As(souvenir.Access{User: w.Users[caller]}).AddMemories(w.T.Context(), memories, nil)
	if err != nil {
		w.T.Fatal(err)
	}
	var ids []string
	for _, m := range stored {
		ids = append(ids, m.ID)
	}
	return ids
}

func TestMemoriesPage(t *testing.T) {
	w := servertest.New(t, server.Options{})
	sam, olivia, rita := w.SignedIn(servertest.Stranger), w.SignedIn(servertest.Owner), w.SignedIn(servertest.Reader)
	sam.Get("/memories").Expect(http.StatusOK, "No memories yet", `href="/memories/new"`).Without("opens at nine",
		servertest.Secret)
	olivia.Get("/memories").Expect(http.StatusOK, "The shop opens at nine.", servertest.Secret, "2 memories",
		"The shop (1)",
		"No project (1)").Without("No memories yet")
	rita.Get("/memories").Expect(http.StatusOK, "The shop opens at nine.", "1 memory",
		"The shop of olivia (1)").Without(servertest.Secret)
	servertest.CheckPage(w, olivia.Get("/memories?q=shop&view=reading"))
	servertest.CheckPage(w, sam.Get("/memories"))
}

// TestNewMemoryOffersEachCollectionOnce has a collection of the reader's own, and a shared one of the same name.
func TestNewMemoryOffersEachCollectionOnce(t *testing.T) {
	w := servertest.New(t, server.Options{})
	for _, user := range []string{servertest.Owner, servertest.Reader} {
		view := w.Store.As(souvenir.Access{User: w.Users[user]})
		if _, err := view.AddCollection(t.Context(), souvenir.NewCollection{Name: "box"}); err != nil {
			t.Fatal(err)
		}
	}
	fill(w, servertest.Owner, souvenir.NewMemory{Content: "a box", Collection: "box", ProjectName: "The shop"})
	rita := w.SignedIn(servertest.Reader)
	if n := strings.Count(rita.Get("/memories/new").Expect(http.StatusOK).Body, `<option value="box"`); n != 1 {
		t.Errorf("got the collection %d times, want once", n)
	}
}

func TestSearchPageExplainsScores(t *testing.T) {
	w := servertest.New(t, server.Options{})
	said := map[string]any{"conversation_id": "harbour"}
	fill(w, servertest.Owner, souvenir.NewMemory{Content: "Where do the otters sleep?", Metadata: said},
		souvenir.NewMemory{Content: "Under the old pier, all three.", Metadata: said})
	olivia := w.SignedIn(servertest.Owner)
	for _, view := range []string{"", "&view=reading"} {
		find(olivia, "q=where+do+otters+sleep"+view).Expect(http.StatusOK, "<summary>Why this score<", "Same words",
			"Same meaning", `The message before</a>, which asks what this may answer</span> <b>&#43;0.`,
			"Is a question</span> <b>-0.",
			`class="lent"`, `class="less"`)
	}
	find(olivia, "").Without("Why this score")
	servertest.CheckPage(w, olivia.Get("/memories?q=where+do+otters+sleep"))
}

func TestSearchOfMemoriesWhileTyping(t *testing.T) {
	w := servertest.New(t, server.Options{})
	fill(w, servertest.Owner, souvenir.NewMemory{Content: "The **otters** swim in the river.\n\nThey like it. " +
		strings.Repeat("Water all day long. ", 100)})
	olivia := w.SignedIn(servertest.Owner)
	part := find(olivia, "q=otter")
	part.Expect(http.StatusOK, "<mark>otters</mark>", "1 memory matches",
		"<summary>2 weaker matches</summary>", `class="score"`, "words 0.",
		"meaning 0.", "<rect").Without("<html", "<h1", `id="filters"`)
	if rows := rows(part); len(rows) != 3 {
		t.Errorf("%d rows, want 3", len(rows))
	}
	find(olivia, "q=otter&view=reading").Expect(http.StatusOK, "<strong>otters</strong>", "Read more").Without("<table")
	find(olivia, "q=zyxwvut").Expect(http.StatusOK, "No matches: no memory has these words",
		"<summary>3 weaker matches</summary>")
	whole := olivia.Get("/memories?q=otter")
	whole.Expect(http.StatusOK, `value="otter"`, "<mark>otters</mark>")
	if whole.Header.Get("Vary") == "" {
		t.Errorf("the part and the page have one address: got %v, want the header Vary", whole.Header.Get("Vary"))
	}
	find(olivia, "q="+strings.Repeat("x", souvenir.MaxQuery+1)).Expect(http.StatusBadRequest,
		"The search text is 65537 bytes; at most 65536 are allowed.", `role="alert"`).Without("<html")
}

func TestWeakerMatchesAreFoldedOnTheFirstPageOnly(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	var many []souvenir.NewMemory
	for i := range 30 {
		many = append(many, souvenir.NewMemory{Content: fmt.Sprintf("Kettle number %d is on a shelf.", i)})
	}
	fill(w, servertest.Owner, append(many, souvenir.NewMemory{Content: "Otters sleep under the old pier."})...)
	olivia := w.SignedIn(servertest.Owner)
	first := find(olivia, "q=where+do+otters+sleep")
	first.Expect(http.StatusOK, "1 memory matches", `<details class="weaker" id="weaker">`, "32 weaker matches")
	if found := first.HTML.All("summary"); len(rows(first)) != 25 || len(found) == 0 {
		t.Errorf("the first page has %d rows, want 25", len(rows(first)))
	}
	find(olivia, "q=where+do+otters+sleep&page=2").Expect(http.StatusOK, "33 memories, best match first").Without("weaker")
	find(olivia, "q=where+do+otters+sleep&sort=created_at_asc").Expect(http.StatusOK).Without("weaker", "best match first")
}

func TestOrdersFollowTheSearchWhileTyping(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	olivia := w.SignedIn(servertest.Owner)
	find(olivia, "q=shop").Expect(http.StatusOK,
		`id="sort" name="sort" hx-swap-oob="true"><option value="" selected>Best match</option>`)
	find(olivia, "").Expect(http.StatusOK, `hx-swap-oob="true"><option value="" selected>Recently updated</option>`)
	olivia.Get("/memories?q=shop").Expect(http.StatusOK, ">Best match</option>").Without("hx-swap-oob")
}

func TestExcerptsInTheListHaveNoMarkdown(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	fill(w, servertest.Owner, souvenir.NewMemory{Content: "# Harbour\n\nThe **otters** eat `fish`, see " +
		"[the map](https://a.example/x)." + strings.Repeat(" And more.", 100) + " Last comes a *zebra* <b>x</b>."})
	olivia := w.SignedIn(servertest.Owner)
	find(olivia, "").Expect(http.StatusOK,
		"<b>Harbour</b> The <b>otters</b> eat <code>fish</code>, see the map. And more.", " …").Without("# Harbour", "**")
	find(olivia, "q=zebra").Expect(http.StatusOK, "… ", "<mark>zebra</mark> &lt;b&gt;x&lt;/b&gt;.").Without("*zebra*")
}

func TestChipsNameWhatAddressesHaveByID(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	first := fill(w, servertest.Owner, souvenir.NewMemory{Content: "The otters live in the river."})
	fill(w, servertest.Owner, souvenir.NewMemory{Content: "They moved in May.", Related: first})
	olivia := w.SignedIn(servertest.Owner)
	find(olivia, "related="+first[0]).Expect(http.StatusOK, "Linked to: <b>The otters live in the river.</b>")
	find(w.SignedIn(servertest.Stranger), "related="+first[0]).Without("otters")
	find(olivia, "project="+w.Users[servertest.Owner]+"/shop").Expect(http.StatusOK, "Project: <b>The shop</b>")
}

func TestFiltersOfMemories(t *testing.T) {
	w := servertest.New(t, server.Options{})
	if _, err := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]}).AddCollection(t.Context(),
		souvenir.NewCollection{Name: "box"}); err != nil {
		t.Fatal(err)
	}
	ids := fill(w, servertest.Owner,
		souvenir.NewMemory{Content: "one", Collection: "box", EventType: "decision", State: "active",
			Importance: souvenir.ImportanceHigh, Classification: souvenir.ClassDo, Tags: []string{"a", "b,c"}, ProjectID: "shop",
			ShownMetadata: map[string]any{"source": "mail", "size": 3}},
		souvenir.NewMemory{Content: "two", Tags: []string{"a", "module:engine"}, State: "archived",
			ShownMetadata: map[string]any{"source": "3"}},
		souvenir.NewMemory{Content: "three", Tags: []string{"engine"}, EventType: "note"})
	fill(w, servertest.Owner, souvenir.NewMemory{Content: "four", Related: ids[2:]})
	olivia := w.SignedIn(servertest.Owner)
	today, tomorrow := time.Now().UTC().Format(time.DateOnly), time.Now().UTC().AddDate(0, 0, 1).Format(time.DateOnly)
	filters := map[string]string{
		"":               "2 one two three four",
		"collection=box": "0 one",
		"project=shop":   "1 one",
		"project=" + w.Users[servertest.Owner] + "/shop": "1 one",
		"project=+":                         "1 two three four",
		"event_type=decision":               "0 one",
		"event_type=+":                      "2 two four",
		"state=archived":                    "0 two",
		"state=active":                      "0 one",
		"archived=hide":                     "2 one three four",
		"importance=high":                   "0 one",
		"importance=low":                    "0",
		"classification=do":                 "0 one",
		"rule_type=do":                      "0",
		"tag=a":                             "0 one two",
		"tag=a&tag=b,c":                     "0 one",
		"tag=a&tag=a&tag=":                  "0 one two",
		"module=engine":                     "0 two three",
		"module=engine&tag=a":               "0 two",
		"created_from=" + today:             "2 one two three four",
		"created_to=" + today:               "2 one two three four",
		"created_from=" + tomorrow:          "0",
		"updated_to=2020-01-01":             "0",
		"updated_from=2020-01-01T10:00:00Z": "2 one two three four",
		"key=source&value=mail":             "0 one",
		"key=source":                        "0 one two",
		"key=size&value=3":                  "0 one",
		"key=source&value=3":                "0 two",
		"key=project_name&value=The+shop":   "1 one",
		"related=" + ids[2]:                 "0 four",
		"tag=a&state=archived&sort=created_at_asc&view=reading": "0 two",
	}
	for _, query := range longtest.Keys(filters, 1, 4) {
		want := filters[query]
		p := find(olivia, query).Expect(http.StatusOK)
		others, words, _ := strings.Cut(want, " ")
		names := strings.Fields(words)
		if n := len(names) + int(others[0]-'0'); len(rows(p)) != n {
			t.Errorf("%s: %d memories, want %d", query, len(rows(p)), n)
		}
		for _, name := range names {
			if !strings.Contains(p.Body, name) {
				t.Errorf("%s: got a page without %s, want one that contains it", query, name)
			}
		}
		servertest.CheckPage(w, olivia.Get("/memories?"+query))
	}
	p := olivia.Get("/memories?tag=a&tag=b,c&state=active&q=one")
	p.Expect(http.StatusOK, "Remove filter Tag: b,c", "Remove filter State: active",
		`href="?q=one&amp;state=active&amp;tag=a"`,
		`href="?q=one&amp;tag=a&amp;tag=b%2Cc"`)
}

func TestInvalidFiltersShowAnError(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	olivia := w.SignedIn(servertest.Owner)
	for query, want := range map[string]string{
		"importance=huge":        "Importance is &#34;huge&#34;; expected low, medium, high, critical.",
		"classification=x":       "Classification is &#34;x&#34;; expected do, dont, todo, notes.",
		"rule_type=x":            "Rule type is &#34;x&#34;",
		"sort=best":              "Order is &#34;best&#34;; expected updated_at_desc",
		"view=wall":              "View is &#34;wall&#34;; expected table, reading.",
		"created_from=yesterday": "Created from is &#34;yesterday&#34;; expected a day such as 2026-03-01",
		"updated_from=2026-03-02&updated_to=2026-03-01": "which is before &#34;2026-03-02&#34;",
		"value=x":                                    "Key is missing",
		"key=state&value=x&state=active":             "a filter of its own",
		"key=created_at&value=x":                     "expected a time",
		"tag=" + strings.Repeat("x", 2000):           "", // none has it
		"q=%ff&tag=%ff&state=%ff&key=%ff":            "",
		"project=a/b/c":                              "",
		"event_type=" + strings.Repeat("x", 200):     "",
		"collection=" + url.QueryEscape("none such"): "Collection &#34;none such&#34;",
	} {
		p := olivia.Get("/memories?" + query)
		servertest.CheckPage(w, p)
		if want == "" {
			continue
		}
		if p.Status != http.StatusBadRequest && p.Status != http.StatusNotFound {
			t.Errorf("%s: got %d, want %v or %v", query, p.Status, http.StatusBadRequest, http.StatusNotFound)
		}
		if !strings.Contains(p.Body, want) {
			t.Errorf("%s: got %s, want a page that contains %q", query, p.Body, want)
		}
	}
	olivia.Get("/memories?importance=huge&collection=none").Expect(http.StatusBadRequest, `<option value="huge" selected>`,
		`<option value="none" selected>`)
	olivia.Get("/memories?project=nowhere").Expect(http.StatusOK,
		"Project &#34;nowhere&#34; not found, or you have no access to it",
		`<option value="nowhere" selected>`)
}

func TestPartsOfTheList(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	var memories []souvenir.NewMemory
	for i := range 60 {
		memories = append(memories, souvenir.NewMemory{Content: fmt.Sprintf("note %02d", i), Tags: []string{"many"}})
	}
	fill(w, servertest.Owner, memories...)
	olivia := w.SignedIn(servertest.Owner)
	for _, query := range []string{"tag=many", "tag=many&q=note"} {
		seen := map[string]bool{}
		for part := 1; part <= 3; part++ {
			p := olivia.Get(fmt.Sprintf("/memories?%s&page=%d", query, part)).Expect(http.StatusOK,
				fmt.Sprintf("Page %d of 3", part))
			servertest.CheckPage(w, p)
			for _, id := range rows(p) {
				seen[id] = true
			}
		}
		if len(seen) != 60 {
			t.Errorf("%s: %d are shown, want 60", query, len(seen))
		}
		for _, past := range []string{"4", "99999999999999999999", "1000000"} {
			p := olivia.Get("/memories?" + query + "&page=" + past)
			if past == "99999999999999999999" {
				p.Expect(http.StatusOK, "Page 1 of 3")
			} else {
				p.Expect(http.StatusOK, "Page 3 of 3", "no longer exists")
			}
		}
		olivia.Get("/memories?"+query+"&page=-3").Expect(http.StatusOK, "Page 1 of 3")
	}
	first, last := rows(find(olivia, "sort=created_at_asc&tag=many")),
		rows(find(olivia, "sort=created_at_desc&tag=many&page=3"))
	if len(first) != 25 || len(last) != 10 {
		t.Errorf("got %d and %d rows, want 25 and 10", len(first), len(last))
	}
}

func TestVeryLongMemoriesInTheList(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	long := strings.Repeat("all of it is long, ", 50_000) + "otter"
	var memories []souvenir.NewMemory
	for range 25 {
		memories = append(memories, souvenir.NewMemory{Content: long[:souvenir.MaxContent/2]},
			souvenir.NewMemory{Content: strings.Repeat("x", 50_000)})
	}
	fill(w, servertest.Owner, memories[:4]...)
	olivia := w.SignedIn(servertest.Owner)
	for _, query := range []string{"", "?view=reading", "?q=long", "?q=long&view=reading"} {
		servertest.CheckPage(w, olivia.Get("/memories"+query).Expect(http.StatusOK))
	}
}
