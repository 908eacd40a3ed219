package dashboard_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// alike returns two memories with nearly the same content, and one that links to the second.
func alike(w *servertest.World) (first, second, linking string) {
	w.T.Helper()
	const said = "The renderer keeps every tile of the coast in two layers, and the second one is drawn over the first " +
		"when the night is over"
	ids := fill(w, servertest.Owner,
		souvenir.NewMemory{Content: said + ".", Tags: []string{"a", "b"}, Importance: souvenir.ImportanceHigh,
			ShownMetadata: map[string]any{"source": "mail"}},
		souvenir.NewMemory{Content: said + ", always.", Tags: []string{"b", "c"}, Importance: souvenir.ImportanceLow,
			EventType: "decision", ProjectID: "shop", ShownMetadata: map[string]any{"source": "talk", "size": 3}})
	linking = fill(w, servertest.Owner, souvenir.NewMemory{Content: "see there", Related: []string{w.Private, ids[1]}})[0]
	return ids[0], ids[1], linking
}

func TestNearDuplicatesAreFound(t *testing.T) {
	w := servertest.New(t, server.Options{})
	olivia, sam := w.SignedIn(servertest.Owner), w.SignedIn(servertest.Stranger)
	sam.Get("/memories/duplicates").Expect(http.StatusOK, "Nothing to compare yet")
	olivia.Get("/memories/duplicates").Expect(http.StatusOK, "Compared 2 memories: no near duplicates.",
		"<h2>No near duplicates</h2>")
	first, second, _ := alike(w)
	p := olivia.Get("/memories/duplicates").Expect(http.StatusOK, "Compared 5 memories: 1 group of near duplicates.",
		"% similar", "<ins>", first, second)
	servertest.CheckPage(w, p)
	olivia.Get("/memories/duplicates?similar=100").Expect(http.StatusOK, "no near duplicates")
	olivia.Get("/memories/duplicates?limit=2").Expect(http.StatusOK, "Compared the 2 memories updated most recently, of 5",
		"Compare older ones")
	olivia.Get("/memories/duplicates?project=shop").Expect(http.StatusOK, "Compared 2 memories: no near duplicates.")
	for query, want := range map[string]string{"similar=5": "Similar is &#34;5&#34;; expected a similarity of 50 to 100",
		"similar=x": "a similarity of", "limit=0": "Limit is &#34;0&#34;; 1 to 5,000", "limit=5001": "1 to 5,000",
		"importance=x": "expected low"} {
		servertest.CheckPage(w, olivia.Get("/memories/duplicates?"+query).Expect(http.StatusBadRequest, want))
	}
	sam.Get("/memories/duplicates").Without("renderer")
}

func TestNearDuplicatesShowTheirMarkdownWhereItDiffersAlone(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	olivia := w.SignedIn(servertest.Owner)
	const said = "The ferry to **Norderney** leaves at eight from pier two, with bicycles on the lower deck"
	fill(w, servertest.Owner, souvenir.NewMemory{Content: "# Ferry\n\n" + said + "."},
		souvenir.NewMemory{Content: "# Ferry\n\n" + said + ", always."})
	olivia.Get("/memories/duplicates").Expect(http.StatusOK, "1 group of near duplicates", "Ferry The ferry to Norderney",
		"<ins>deck.</ins>").Without("**")
	w = servertest.New(t, server.Options{})
	olivia = w.SignedIn(servertest.Owner)
	fill(w, servertest.Owner, souvenir.NewMemory{Content: said},
		souvenir.NewMemory{Content: strings.ReplaceAll(said, "*", "")})
	olivia.Get("/memories/duplicates").Expect(http.StatusOK, "1 group of near duplicates", "<ins>**Norderney** </ins>")
}

func TestMergedMemoriesAreUndone(t *testing.T) {
	w := servertest.New(t, server.Options{})
	first, second, linking := alike(w)
	view, olivia := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]}), w.SignedIn(servertest.Owner)
	file, err := view.AddFile(t.Context(), souvenir.NewFile{Filename: "tile.txt", MemoryID: second},
		strings.NewReader("tile"))
	if err != nil {
		t.Fatal(err)
	}
	before := states(w, servertest.Owner, first, second, linking)
	address := "/memories/merge?id=" + first + "&id=" + second
	p := olivia.Get(address).Expect(http.StatusOK, "Merge memories: 2", "<ins>over, always.</ins>", "Keep <b>A</b>",
		"decision", "source", "<dt>Type</dt>")
	servertest.CheckPage(w, p)

	typed := url.Values{"id": {first, second}, "revision": {"1", "1"}, "keep": {first},
		"content": {"What both say.\r\nIn two lines."}, "csrf": {p.Hidden().Get("csrf")}}
	done := olivia.Post("/memories/merge", typed)
	done.GoesTo("/memories/" + first + "?undo=")
	done = olivia.Get(done.Header.Get("Location")).Expect(http.StatusOK, "2 memories merged.", "Undo")
	m, err := view.GetMemory(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	if m.Content != "What both say.\nIn two lines." || !slices.Equal(m.Tags, []string{"a", "b", "c"}) ||
		m.Importance != souvenir.ImportanceHigh || m.EventType != "decision" ||
		fmt.Sprint(m.Metadata) != "map[size:3 source:mail]" || m.ProjectID != "" {
		t.Errorf("merged: got %+v, want both contents, tags a, b and c, importance high, type decision, the metadata "+
			"of both and no project", m)
	}
	if l, err := view.GetMemory(t.Context(), linking); err != nil || !slices.Equal(l.Related, []string{w.Private, first}) {
		t.Errorf("%q is linked to, %v, want no error and related %v", l.Related, err, []string{w.Private, first})
	}
	if f, err := view.GetFile(t.Context(), file.ID); err != nil || f.MemoryID != first {
		t.Errorf("the file is linked to %q, %v; want %v", f.MemoryID, err, first)
	}
	if _, err := view.GetMemory(t.Context(), second); err == nil {
		t.Error("the other is still there, want an error")
	}

	undo(olivia, done).Expect(http.StatusOK, "Undone.", "Merge memories: 2")
	if after := states(w, servertest.Owner, first, second, linking); !slices.Equal(before, after) {
		t.Errorf("undone to\n%q, not\n%q, want the same", after, before)
	}
	if f, err := view.GetFile(t.Context(), file.ID); err != nil || f.MemoryID != second {
		t.Errorf("the file is linked to %q, %v; want %v", f.MemoryID, err, second)
	}
}

func TestInvalidMerges(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	first, second, _ := alike(w)
	view, olivia := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]}), w.SignedIn(servertest.Owner)
	address := "/memories/merge?id=" + first + "&id=" + second
	csrf := olivia.Get(address).Hidden().Get("csrf")
	send := func(change url.Values) *servertest.Page {
		fields := url.Values{"csrf": {csrf}, "id": {first, second}, "revision": {"1", "1"}, "keep": {first}, "content": {""}}
		for name, values := range change {
			fields[name] = values
		}
		return olivia.Post("/memories/merge", fields)
	}
	before := states(w, servertest.Owner, first, second)
	send(url.Values{"keep": {"none"}}).Expect(http.StatusBadRequest, "choose which memory to keep")
	send(url.Values{"revision": {"1", "2"}, "content": {"typed " + servertest.Hostile}}).Expect(http.StatusConflict,
		"Someone else has changed B meanwhile; nothing was changed", "typed &lt;script&gt;")
	send(url.Values{"revision": {"1"}}).Expect(http.StatusBadRequest, "2 memories with 1 revisions")
	send(url.Values{"id": {first}, "revision": {"1"}}).Expect(http.StatusBadRequest)
	send(url.Values{"content": {strings.Repeat("x", souvenir.MaxContent+1)}}).Expect(http.StatusBadRequest,
		"Nothing was changed: content is 1048577 bytes")
	olivia.Get("/memories/merge?"+url.Values{"id": strings.Split("abcdefghi", "")}.Encode()).Expect(http.StatusBadRequest,
		"names 9 memories; at most 8")
	if after := states(w, servertest.Owner, first, second); !slices.Equal(before, after) {
		t.Errorf("%q became %q, want the same", before, after)
	}
	if err := view.DeleteMemory(t.Context(), second, nil); err != nil {
		t.Fatal(err)
	}
	send(nil).Expect(http.StatusConflict, "ome of them no longer exist")
	olivia.LeadsTo(olivia.Get(address), "/memories/duplicates?done=nothing-to-merge").Expect(http.StatusOK,
		"Only one of them is left")
	olivia.LeadsTo(olivia.Get("/memories/merge"), "/memories/duplicates")
	// A reader can compare but not change them.
	third := fill(w, servertest.Owner, souvenir.NewMemory{Content: "The shop opens at ten.", ProjectID: "shop"})[0]
	rita := w.SignedIn(servertest.Reader)
	p := rita.Get("/memories/merge?id="+w.Memory+"&id="+third).Expect(http.StatusOK, "Merge memories: 2")
	rita.Post("/memories/merge", url.Values{"csrf": {p.Hidden().Get("csrf")}, "id": {w.Memory, third},
		"revision": {"1", "1"}, "keep": {w.Memory}}).Expect(http.StatusForbidden, "Nothing was changed", "read-only")
}

// worldWithHooks is a world whose store has hooks.
func worldWithHooks(t *testing.T, hooks souvenir.Hooks) *servertest.World {
	t.Helper()
	p := servertest.Template(t)
	return servertest.Serve(t, p, p.Copy(t).Open(t, &souvenir.Options{Hooks: []souvenir.Hooks{hooks}}), server.Options{})
}

// sendMerge merges two memories into the first.
func sendMerge(by *servertest.Browser, first, second string) *servertest.Page {
	p := by.Get("/memories/merge?id=" + first + "&id=" + second)
	return by.Post("/memories/merge", url.Values{"csrf": {p.Hidden().Get("csrf")}, "id": {first, second},
		"revision": {"1", "1"}, "keep": {first}, "content": {""}})
}

func TestAMergeThatFailsMidwayHasChangedNothing(t *testing.T) {
	w := worldWithHooks(t, souvenir.Hooks{BeforeDelete: func(context.Context, souvenir.Operation) error {
		return &souvenir.Error{Kind: souvenir.KindForbidden, Message: "nothing is deleted here"}
	}})
	first, second, linking := alike(w)
	view := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]})
	sendMerge(w.SignedIn(servertest.Owner), first, second).Expect(http.StatusForbidden,
		"Nothing was changed: nothing is deleted here")
	for _, id := range []string{first, second, linking} {
		if m, err := view.GetMemory(t.Context(), id); err != nil || m.Revision != 1 {
			t.Errorf("got revision %d and %v, want 1", m.Revision, err)
		}
	}
}

func TestAnEditDuringAMergeIsNotLost(t *testing.T) {
	const content = "an edit in between"
	var w *servertest.World
	var second string
	var begun atomic.Bool
	edited := make(chan error, 1)
	w = worldWithHooks(t, souvenir.Hooks{BeforeUpdate: func(context.Context, souvenir.Operation,
		*souvenir.MemoryUpdate) error {
		if !begun.Swap(true) {
			over := make(chan struct{})
			go func() {
				defer close(over)
				text := content
				_, err := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]}).UpdateMemory(context.Background(), second,
					souvenir.MemoryUpdate{Content: &text})
				edited <- err
			}()
			select {
			case <-over:
			case <-time.After(200 * time.Millisecond): // it waits for the merge
			}
		}
		return nil
	}})
	first, second2, _ := alike(w)
	second = second2
	p := sendMerge(w.SignedIn(servertest.Owner), first, second)
	err := <-edited
	m, gone := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]}).GetMemory(t.Context(), second)
	merged := p.Status == http.StatusSeeOther
	if merged == (err == nil) || merged == (gone == nil) || !merged && m.Content != content {
		t.Errorf("got %q after the merge was answered with %d and the edit with %v, want one of both done", m.Content,
			p.Status, err)
	}
}

func TestAMergeMakesNothingOutdatedValidAgain(t *testing.T) {
	w := servertest.New(t, server.Options{})
	first, second, _ := alike(w)
	outdated := fill(w, servertest.Owner, souvenir.NewMemory{Content: "The lake is deep."},
		souvenir.NewMemory{Content: "Anna works in Kiel."}, souvenir.NewMemory{Content: "The tea is black."})
	newer := fill(w, servertest.Owner, souvenir.NewMemory{Content: "The lake is very deep.", Supersedes: outdated[0]},
		souvenir.NewMemory{Content: "Anna works in Bremen.", Supersedes: outdated[1]},
		souvenir.NewMemory{Content: "The tea is green.", Supersedes: outdated[2]},
		souvenir.NewMemory{Content: "All tea is green.", Supersedes: outdated[2]},
		souvenir.NewMemory{Content: "The tea is white.", Supersedes: outdated[2],
			ValidFrom: time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)})
	olivia := w.SignedIn(servertest.Owner)
	send := func(keep string, ids ...string) *servertest.Page {
		p := olivia.Get("/memories/merge?" + url.Values{"id": ids}.Encode())
		fields := url.Values{"csrf": {p.Hidden().Get("csrf")}, "id": ids, "keep": {keep}, "content": {""}}
		for range ids {
			fields.Add("revision", "1")
		}
		return olivia.Post("/memories/merge", fields)
	}
	send(first, first, newer[0]).Expect(http.StatusBadRequest, "B replaces an outdated memory", "keep B")
	send(newer[0], newer[0], newer[1]).Expect(http.StatusBadRequest, "A and B each replace an outdated memory")
	send(newer[0], first, newer[0]).Expect(http.StatusSeeOther)
	send(second, second, newer[2], newer[3]).Expect(http.StatusBadRequest, "B and C replace the same outdated memory",
		"keep B or C")
	send(second, second, newer[1], outdated[1]).Expect(http.StatusSeeOther)
	send(newer[2], newer[2], newer[3]).Expect(http.StatusSeeOther) // which replaces the same
	send(newer[4], newer[4], newer[2]).Expect(http.StatusBadRequest, "B replaces an outdated memory", "keep B")
	view := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]})
	for m, err := range view.Memories(t.Context(), souvenir.MemoryList{}) {
		if err != nil || slices.Contains(outdated, m.ID) {
			t.Errorf("got %q, %v, want no outdated memory", m.Content, err)
		}
	}
}

func TestNewAndEditAreOneForm(t *testing.T) {
	w := servertest.New(t, server.Options{})
	olivia := w.SignedIn(servertest.Owner)
	_, edited := editForm(olivia, w.Memory)
	created := typed(olivia.Get("/memories/new").Expect(http.StatusOK, "Preview"), "/memories/new")
	created.Set("base", "") // the version that is edited
	delete(created, "collection")
	if made, changed := slices.Sorted(maps.Keys(created)), slices.Sorted(maps.Keys(edited)); !slices.Equal(made, changed) {
		t.Errorf("a new memory has the fields %q, want those of one that is edited, %q", made, changed)
	}
}

func TestNewMemoryPage(t *testing.T) {
	w := servertest.New(t, server.Options{})
	olivia := w.SignedIn(servertest.Owner)
	p := olivia.Get("/memories/new?project="+url.QueryEscape(w.Users[servertest.Owner]+"/shop")).Expect(http.StatusOK,
		"The shop</option>", `/shop" selected>`)
	servertest.CheckPage(w, p)
	typed := url.Values{"content": {"Otters swim.\r\nAll day."}, "project": {w.Users[servertest.Owner] + "/shop"},
		"collection": {""},
		"tags":       {" a, b ,,a"}, "event_type": {"note"}, "state": {"active"}, "importance": {"high"},
		"classification": {"notes"}, "metadata": {"source: mail\r\nsize: 3\r\n\r\nurl: https://x.example/a:b"}}
	done := olivia.Submit(p, "/memories/new", typed)
	to := done.Header.Get("Location")
	id := strings.TrimPrefix(strings.Split(to, "?")[0], "/memories/")
	page := olivia.Get(to).Expect(http.StatusOK, "Memory stored.", "Undo")
	m, err := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]}).GetMemory(t.Context(), id)
	if err != nil || m.Content != "Otters swim.\nAll day." || !slices.Equal(m.Tags, []string{"a", "b"}) ||
		m.ProjectID != "shop" || m.EventType != "note" || m.State != "active" || m.Importance != souvenir.ImportanceHigh ||
		m.Classification != souvenir.ClassNotes ||
		fmt.Sprint(m.Metadata) != "map[size:3 source:mail url:https://x.example/a:b]" {
		t.Errorf("stored is %+v, %v, want the chosen parts", m, err)
	}
	similar := olivia.Submit(p, "/memories/new", url.Values{"content": {"Otters swim. All day!"}})
	olivia.Get(similar.Header.Get("Location")).Expect(http.StatusOK, "Another one is a near duplicate",
		"Merge memories: 2", id)
	undo(olivia, page).Expect(http.StatusOK, "Undone.").Without(id)

	for want, wrong := range map[string]url.Values{
		"Text is empty":                          {"content": {"  "}},
		"Importance is &#34;huge&#34;; expected": {"content": {"x"}, "importance": {"huge"}},
		"has the line &#34;nothing&#34;; expected a key, a colon and a value": {"content": {"x"}, "metadata": {"nothing"}},
		"has the key &#34;a&#34; twice":                                       {"content": {"x"}, "metadata": {"a: 1\na: 2"}},
		"is not a JSON object":                                                {"content": {"x"}, "metadata": {"{"}},
		"Tags": {"content": {"x"}, "tags": {strings.Repeat("x",
			129)}},
		"Text is 1048577 bytes": {"content": {strings.Repeat("x", souvenir.MaxContent+
			1)}},
		"Collection &#34;none&#34;": {"content": {"x"}, "collection": {"none"}},
	} {
		p := olivia.Submit(olivia.Get("/memories/new"), "/memories/new", wrong)
		if p.Status != http.StatusBadRequest && p.Status != http.StatusNotFound || !strings.Contains(p.Body, want) {
			t.Errorf("%q is missing: %d %.3000s, want status %v or %v and the word in the body", want, p.Status,
				p.Body[strings.Index(p.Body, "<main"):], http.StatusBadRequest, http.StatusNotFound)
		}
		if len(p.Body) < 100_000 {
			servertest.CheckPage(w, p)
		}
	}
	// Without scripts, buttons show a preview and find memories to link. Nothing is stored.
	look := url.Values{"content": {"*typed*"}, "seek": {"opens at nine"}, "tags": {"kept"}, "preview": {"yes"}}
	looked := olivia.Submit(olivia.Get("/memories/new"), "/memories/new", look).Stays(http.StatusOK,
		"<em>typed</em>", `value="kept"`, `name="related" value="`+w.Memory+`"`)
	linked := olivia.Submit(looked, "/memories/new", url.Values{"content": {"It is open late."}, "related": {w.Memory},
		"seek": {""}})
	id = strings.TrimPrefix(strings.Split(linked.Header.Get("Location"), "?")[0], "/memories/")
	if m := memoryOf(w, servertest.Owner, id); !slices.Equal(m.Related, []string{w.Memory}) {
		t.Errorf("the new memory is linked to %v, want %v", m.Related, w.Memory)
	}
	rita := w.SignedIn(servertest.Reader)
	rita.Submit(rita.Get("/memories/new"), "/memories/new",
		url.Values{"content": {"x"}, "project": {w.Users[servertest.Owner] + "/shop"}}).Expect(http.StatusForbidden)
}
