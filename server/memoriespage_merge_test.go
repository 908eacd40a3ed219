package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// alike are two memories that say nearly the same, and one that links to the second.
func (w *world) alike() (first, second, linking string) {
	w.t.Helper()
	const said = "The renderer keeps every tile of the coast in two layers, and the second one is drawn over the first " +
		"when the night is over"
	ids := w.fill(owner,
		souvenir.NewMemory{Content: said + ".", Tags: []string{"a", "b"}, Importance: souvenir.ImportanceHigh,
			ShownMetadata: map[string]any{"source": "mail"}},
		souvenir.NewMemory{Content: said + ", always.", Tags: []string{"b", "c"}, Importance: souvenir.ImportanceLow,
			EventType: "decision", ProjectID: "shop", ShownMetadata: map[string]any{"source": "talk", "size": 3}})
	linking = w.fill(owner, souvenir.NewMemory{Content: "see there", Related: []string{w.private, ids[1]}})[0]
	return ids[0], ids[1], linking
}

func TestNearDuplicatesAreFound(t *testing.T) {
	w := newWorld(t, server.Options{})
	olivia, sam := w.signedIn(owner), w.signedIn(stranger)
	sam.get("/memories/duplicates").expect(http.StatusOK, "Nothing to compare yet")
	olivia.get("/memories/duplicates").expect(http.StatusOK, "Compared 2 memories: no near duplicates.",
		"<h2>No near duplicates</h2>")
	first, second, _ := w.alike()
	p := olivia.get("/memories/duplicates").expect(http.StatusOK, "Compared 5 memories: 1 group of near duplicates.",
		"% similar", "<ins>", first, second)
	checkPage(w, p)
	olivia.get("/memories/duplicates?similar=100").expect(http.StatusOK, "no near duplicates")
	olivia.get("/memories/duplicates?limit=2").expect(http.StatusOK, "Compared the 2 memories updated most recently, of 5",
		"Compare older ones")
	olivia.get("/memories/duplicates?project=shop").expect(http.StatusOK, "Compared 2 memories: no near duplicates.")
	for query, want := range map[string]string{"similar=5": "Similar is &#34;5&#34;; a similarity of 50 to 100",
		"similar=x": "a similarity of", "limit=0": "Limit is &#34;0&#34;; 1 to 5,000", "limit=5001": "1 to 5,000",
		"importance=x": "allowed are low"} {
		checkPage(w, olivia.get("/memories/duplicates?"+query).expect(http.StatusBadRequest, want))
	}
	sam.get("/memories/duplicates").without("renderer")
}

func TestMemoriesBecomeOneAndAreTakenBack(t *testing.T) {
	w := newWorld(t, server.Options{})
	first, second, linking := w.alike()
	view, olivia := w.store.As(souvenir.Access{User: w.users[owner]}), w.signedIn(owner)
	file, err := view.AddFile(t.Context(), souvenir.NewFile{Filename: "tile.txt", MemoryID: second},
		strings.NewReader("tile"))
	if err != nil {
		t.Fatal(err)
	}
	before := w.states(owner, first, second, linking)
	address := "/memories/merge?id=" + first + "&id=" + second
	p := olivia.get(address).expect(http.StatusOK, "Merge memories: 2", "<ins>over, always.</ins>", "Keep <b>A</b>",
		"decision", "source")
	checkPage(w, p)

	typed := url.Values{"id": {first, second}, "revision": {"1", "1"}, "keep": {first},
		"content": {"What both say.\r\nIn two lines."}, "csrf": {p.hidden().Get("csrf")}}
	done := olivia.post("/memories/merge", typed)
	done.goesTo("/memories/" + first + "?undo=")
	done = olivia.get(done.header.Get("Location")).expect(http.StatusOK, "2 memories merged.", "Undo")
	m, err := view.GetMemory(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	if m.Content != "What both say.\nIn two lines." || !slices.Equal(m.Tags, []string{"a", "b", "c"}) ||
		m.Importance != souvenir.ImportanceHigh || m.EventType != "decision" ||
		fmt.Sprint(m.Metadata) != "map[size:3 source:mail]" || m.ProjectID != "" {
		t.Errorf("one is %+v", m)
	}
	if l, err := view.GetMemory(t.Context(), linking); err != nil || !slices.Equal(l.Related, []string{w.private, first}) {
		t.Errorf("%q is linked to, %v", l.Related, err)
	}
	if f, err := view.GetFile(t.Context(), file.ID); err != nil || f.MemoryID != first {
		t.Errorf("the file is linked to %q, %v; want %v", f.MemoryID, err, first)
	}
	if _, err := view.GetMemory(t.Context(), second); err == nil {
		t.Error("the other is still there")
	}

	olivia.undo(done).expect(http.StatusOK, "Undone.", "Merge memories: 2")
	if after := w.states(owner, first, second, linking); !slices.Equal(before, after) {
		t.Errorf("taken back to\n%q, not\n%q", after, before)
	}
	if f, err := view.GetFile(t.Context(), file.ID); err != nil || f.MemoryID != second {
		t.Errorf("the file is linked to %q, %v; want %v", f.MemoryID, err, second)
	}
}

func TestMergesThatCannotBe(t *testing.T) {
	w := newWorld(t, server.Options{})
	first, second, _ := w.alike()
	view, olivia := w.store.As(souvenir.Access{User: w.users[owner]}), w.signedIn(owner)
	address := "/memories/merge?id=" + first + "&id=" + second
	csrf := olivia.get(address).hidden().Get("csrf")
	send := func(change url.Values) *gotPage {
		fields := url.Values{"csrf": {csrf}, "id": {first, second}, "revision": {"1", "1"}, "keep": {first}, "content": {""}}
		for name, values := range change {
			fields[name] = values
		}
		return olivia.post("/memories/merge", fields)
	}
	before := w.states(owner, first, second)
	send(url.Values{"keep": {"none"}}).expect(http.StatusBadRequest, "choose which memory to keep")
	send(url.Values{"revision": {"1", "2"}, "content": {"typed " + hostile}}).expect(http.StatusConflict,
		"Someone else has changed B meanwhile; nothing was changed", "typed &lt;script&gt;")
	send(url.Values{"revision": {"1"}}).expect(http.StatusBadRequest, "2 memories with 1 revisions")
	send(url.Values{"id": {first}, "revision": {"1"}}).expect(http.StatusBadRequest)
	send(url.Values{"content": {strings.Repeat("x", souvenir.MaxContent+1)}}).expect(http.StatusBadRequest,
		"Nothing was changed: content is 1048577 bytes")
	olivia.get("/memories/merge?"+url.Values{"id": strings.Split("abcdefghi", "")}.Encode()).expect(http.StatusBadRequest,
		"names 9 memories; at most 8")
	if after := w.states(owner, first, second); !slices.Equal(before, after) {
		t.Errorf("%q became %q", before, after)
	}
	if err := view.DeleteMemory(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	send(nil).expect(http.StatusConflict, "ome of them no longer exist")
	olivia.leadsTo(olivia.get(address), "/memories/duplicates?done=nothing-to-merge").expect(http.StatusOK,
		"Only one of them is left")
	olivia.leadsTo(olivia.get("/memories/merge"), "/memories/duplicates")
	// A reader can compare, and change nothing.
	third := w.fill(owner, souvenir.NewMemory{Content: "The shop opens at ten.", ProjectID: "shop"})[0]
	rita := w.signedIn(reader)
	p := rita.get("/memories/merge?id="+w.memory+"&id="+third).expect(http.StatusOK, "Merge memories: 2")
	rita.post("/memories/merge", url.Values{"csrf": {p.hidden().Get("csrf")}, "id": {w.memory, third},
		"revision": {"1", "1"}, "keep": {w.memory}}).expect(http.StatusForbidden, "Nothing was changed", "read-only")
}

func TestNewMemoryPage(t *testing.T) {
	w := newWorld(t, server.Options{})
	olivia := w.signedIn(owner)
	p := olivia.get("/memories/new?project="+url.QueryEscape(w.users[owner]+"/shop")).expect(http.StatusOK,
		"The shop</option>", `/shop" selected>`)
	checkPage(w, p)
	typed := url.Values{"content": {"Otters swim.\r\nAll day."}, "project": {w.users[owner] + "/shop"}, "collection": {""},
		"tags": {" a, b ,,a"}, "event_type": {"note"}, "state": {"active"}, "importance": {"high"},
		"classification": {"notes"}, "metadata": {"source: mail\r\nsize: 3\r\n\r\nurl: https://x.example/a:b"}}
	done := olivia.submit(p, "/memories/new", typed)
	to := done.header.Get("Location")
	id := strings.TrimPrefix(strings.Split(to, "?")[0], "/memories/")
	page := olivia.get(to).expect(http.StatusOK, "Memory stored.", "Undo")
	m, err := w.store.As(souvenir.Access{User: w.users[owner]}).GetMemory(t.Context(), id)
	if err != nil || m.Content != "Otters swim.\nAll day." || !slices.Equal(m.Tags, []string{"a", "b"}) ||
		m.ProjectID != "shop" || m.EventType != "note" || m.State != "active" || m.Importance != souvenir.ImportanceHigh ||
		m.Classification != souvenir.ClassNotes ||
		fmt.Sprint(m.Metadata) != "map[size:3 source:mail url:https://x.example/a:b]" {
		t.Errorf("stored is %+v, %v", m, err)
	}
	similar := olivia.submit(p, "/memories/new", url.Values{"content": {"Otters swim. All day!"}})
	olivia.get(similar.header.Get("Location")).expect(http.StatusOK, "Another one says nearly the same",
		"Merge memories: 2", id)
	olivia.undo(page).expect(http.StatusOK, "Undone.").without(id)

	for want, wrong := range map[string]url.Values{
		"Content is empty":                                           {"content": {"  "}},
		"Importance is &#34;huge&#34;; allowed are":                  {"content": {"x"}, "importance": {"huge"}},
		"has the line &#34;nothing&#34;; a key, a colon and a value": {"content": {"x"}, "metadata": {"nothing"}},
		"has the key &#34;a&#34; twice":                              {"content": {"x"}, "metadata": {"a: 1\na: 2"}},
		"is not a JSON object":                                       {"content": {"x"}, "metadata": {"{"}},
		"Tags":                                                       {"content": {"x"}, "tags": {strings.Repeat("x", 129)}},
		"Content is 1048577 bytes": {"content": {strings.Repeat("x", souvenir.MaxContent+
			1)}},
		"Collection &#34;none&#34;": {"content": {"x"}, "collection": {"none"}},
	} {
		p := olivia.submit(olivia.get("/memories/new"), "/memories/new", wrong)
		if p.status != http.StatusBadRequest && p.status != http.StatusNotFound || !strings.Contains(p.body, want) {
			t.Errorf("%q is missing: %d %.3000s", want, p.status, p.body[strings.Index(p.body, "<main"):])
		}
		if len(p.body) < 100_000 {
			checkPage(w, p)
		}
	}
	rita := w.signedIn(reader)
	rita.submit(rita.get("/memories/new"), "/memories/new",
		url.Values{"content": {"x"}, "project": {w.users[owner] + "/shop"}}).expect(http.StatusForbidden)
}
