package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

// change sends what is done to many, as the page does, and returns the page that it leads to.
func (b *browser) change(query, action string, fields url.Values) *gotPage {
	b.w.t.Helper()
	form := b.get("/memories?" + query).hidden()
	fields = cloned(fields)
	fields.Set("csrf", form.Get("csrf"))
	fields.Set("back", form.Get("back"))
	fields.Set("shown", form.Get("shown"))
	fields.Set("action", action)
	p := b.post("/memories/bulk", fields)
	if p.status == http.StatusOK && action == "delete" { // it asks first
		p = b.submit(p, "/memories/bulk", nil)
	}
	if p.status == http.StatusSeeOther {
		return b.get(p.header.Get("Location"))
	}
	return p
}

func cloned(fields url.Values) url.Values {
	all := url.Values{}
	for name, values := range fields {
		all[name] = slices.Clone(values)
	}
	return all
}

// undo takes back what a page says was just done.
func (b *browser) undo(p *gotPage) *gotPage {
	b.w.t.Helper()
	done := b.submit(p, "/undo", nil)
	if done.status == http.StatusSeeOther {
		return b.get(done.header.Get("Location"))
	}
	return done
}

// states are memories as they are shown, but for what a change and its way back leave: revision and time.
func (w *world) states(caller string, ids ...string) []string {
	w.t.Helper()
	view := w.store.As(souvenir.Access{User: w.users[caller]})
	var all []string
	for _, id := range ids {
		m, err := view.GetMemory(w.t.Context(), id)
		if err != nil {
			all = append(all, err.Error())
			continue
		}
		all = append(all, fmt.Sprint(m.ID, m.Content, m.Collection, m.ShownMetadata(), m.CreatedAt))
	}
	return all
}

func TestManyMemoriesAreChangedAndTakenBack(t *testing.T) {
	w := newWorld(t, server.Options{})
	ids := w.fill(owner,
		souvenir.NewMemory{Content: "one", Tags: []string{"a"}, State: "active", ProjectID: "shop"},
		souvenir.NewMemory{Content: "two", Tags: []string{"b", "a", "c"}, ShownMetadata: map[string]any{"source": "mail"}},
		souvenir.NewMemory{Content: "three"})
	if _, err := w.store.As(souvenir.Access{User: w.users[owner]}).UpdateMemory(t.Context(), ids[0],
		souvenir.MemoryUpdate{ShownMetadata: map[string]any{"related_memory_ids": []string{ids[2], ids[1]}}}); err != nil {
		t.Fatal(err)
	}
	olivia := w.signedIn(owner)
	chosen := url.Values{"id": ids}
	for _, c := range []struct {
		action, field, value, said string
		gives                      string // what the list finds then
	}{
		{"archive", "", "", "3 memories are archived.", "state=archived"},
		{"tag", "bulk_tag", " new, one ", "3 memories have the tag &#34;new, one&#34;.", "tag=new,+one"},
		{"tag", "bulk_tag", "c", "2 memories have the tag &#34;c&#34;. 1 memory needed no change.", "tag=c"},
		{"state", "bulk_state", "done", "3 memories have the state done.", "state=done"},
		{"state", "bulk_state", "", "State removed from 1 memory. 2 memories needed no change.", "state=+"},
		{"move", "bulk_project", w.users[owner] + "/plot", "3 memories are in the project plot now.", "project=plot"},
		{"move", "bulk_project", "", "1 memory is no longer in a project. 2 memories needed no change.", "project=+"},
	} {
		before := w.states(owner, ids...)
		p := olivia.change("sort=created_at_asc", c.action, plus(chosen, c.field, c.value)).expect(http.StatusOK, c.said,
			"Undo")
		checkPage(w, p)
		for _, id := range ids {
			if !slices.Contains(olivia.find(c.gives).rows(), id) {
				t.Errorf("%s %q: %s lacks %s", c.action, c.value, c.gives, id)
			}
		}
		olivia.undo(p).expect(http.StatusOK, "Undone.")
		if after := w.states(owner, ids...); !slices.Equal(before, after) {
			t.Errorf("%s %q: taken back to %q, want %q", c.action, c.value, after, before)
		}
	}
	before := w.states(owner, ids...)
	p := olivia.change("", "untag", plus(chosen, "bulk_tag", "a")).expect(http.StatusOK,
		"Tag &#34;a&#34; removed from 2 memories. 1 memory needed no change.")
	if rows := olivia.find("tag=a").rows(); len(rows) != 0 {
		t.Errorf("%d still have it, want 0", len(rows))
	}
	olivia.undo(p).expect(http.StatusOK)
	if after := w.states(owner, ids...); !slices.Equal(before, after) {
		t.Errorf("taken back to %q, want %q", after, before)
	}
	p = olivia.change("tag=a", "delete", chosen).expect(http.StatusOK, "3 memories are deleted.", "No results")
	for i, state := range w.states(owner, ids...) {
		if !strings.Contains(state, "not found, or you have no access") {
			t.Errorf("%d is there: %s; want in it \"not found, or you have no access\"", i, state)
		}
	}
	olivia.undo(p).expect(http.StatusOK, "Undone.", ">one<", ">two<")
	if after := w.states(owner, ids...); !slices.Equal(before, after) {
		t.Errorf("taken back to %q, want %q", after, before)
	}
}

func plus(fields url.Values, name, value string) url.Values {
	all := cloned(fields)
	if name != "" {
		all.Set(name, value)
	}
	return all
}

func TestManyMemoriesOfWhichSomeHaveChanged(t *testing.T) {
	w := newWorld(t, server.Options{})
	ids := w.fill(owner, souvenir.NewMemory{Content: "one"}, souvenir.NewMemory{Content: "two"},
		souvenir.NewMemory{Content: "three"})
	view, olivia := w.store.As(souvenir.Access{User: w.users[owner]}), w.signedIn(owner)
	if err := view.DeleteMemory(t.Context(), ids[2]); err != nil {
		t.Fatal(err)
	}
	p := olivia.change("", "tag", url.Values{"id": append(ids, ids[0]), "bulk_tag": {"x"}}).expect(http.StatusOK,
		"2 memories have the tag", "1 memory was deleted meanwhile.")
	if _, err := view.UpdateMemory(t.Context(), ids[0],
		souvenir.MemoryUpdate{ShownMetadata: map[string]any{"state": "mine"}}); err != nil {
		t.Fatal(err)
	}
	olivia.undo(p).expect(http.StatusConflict, "1 memory is as before.", "it has been changed or deleted since",
		"“one”")
	if found := olivia.find("tag=x").rows(); !slices.Equal(found, ids[:1]) {
		t.Errorf("%q have the tag, want %v", found, ids[:1])
	}
	olivia.change("", "delete", url.Values{"id": ids[2:]}).expect(http.StatusConflict,
		"Nothing was changed: 1 memory was deleted meanwhile.")
	olivia.change("", "state", url.Values{"id": ids[:1], "bulk_state": {"mine"}}).expect(http.StatusOK,
		"No changes.")
}

func TestManyMemoriesOfOthers(t *testing.T) {
	w := newWorld(t, server.Options{})
	before := w.states(owner, w.memory, w.private)
	for _, caller := range []string{reader, stranger, admin} {
		b := w.signedIn(caller)
		b.get("/memories").expect(http.StatusOK)
		csrf := b.get("/profile").hidden().Get("csrf")
		for _, action := range []string{"archive", "delete", "tag", "state", "move"} {
			b.post("/memories/bulk", url.Values{"csrf": {csrf}, "id": {w.memory, w.private}, "action": {action},
				"bulk_tag": {"x"}, "bulk_state": {"x"}, "sure": {"yes"}}).
				expect(http.StatusConflict, "Nothing was changed").without(secret)
		}
		b.post("/memories/merge", url.Values{"csrf": {csrf}, "id": {w.memory, w.private}, "revision": {"1", "1"},
			"keep": {w.memory}}).without(secret)
	}
	if after := w.states(owner, w.memory, w.private); !slices.Equal(before, after) {
		t.Errorf("%q became %q", before, after)
	}
	p := w.signedIn(writer).change("", "tag",
		url.Values{"id": {w.memory}, "bulk_tag": {"by walter"}}).expect(http.StatusOK, "1 memory has the tag")
	w.signedIn(owner).post("/undo",
		url.Values{"csrf": {w.signedIn(owner).get("/profile").hidden().Get("csrf")},
			"step": {p.hidden().Get("step")}}).without("taken back.")
	w.signedIn(writer).change("", "move", url.Values{"id": {w.memory}}).expect(http.StatusConflict,
		"Only its owner can move it to another project")
}

func TestDeletionsOfManyMemoriesAskFirst(t *testing.T) {
	w := newWorld(t, server.Options{})
	ids := w.fill(owner, souvenir.NewMemory{Content: "one", Tags: []string{"x"}},
		souvenir.NewMemory{Content: "two", Tags: []string{"x"}}, souvenir.NewMemory{Content: "three", Tags: []string{"x"}})
	olivia := w.signedIn(owner)
	ask := func(b *browser, query string, fields url.Values) *gotPage {
		form := b.get("/memories?" + query).hidden()
		fields.Set("csrf", form.Get("csrf"))
		fields.Set("back", form.Get("back"))
		fields.Set("action", "delete")
		return b.post("/memories/bulk", fields)
	}
	day := time.Now().AddDate(0, 0, 30).UTC().Format("January 2006")
	p := ask(olivia, "tag=x", url.Values{"id": ids[:2]}).
		expect(http.StatusOK, "Delete 2 memories?", "They stay in the trash until", day+", and can be restored until then.",
			"Cancel", `href="/memories?tag=x"`)
	checkPage(w, p)
	ask(olivia, "", url.Values{"id": {ids[0], ids[0]}}).expect(http.StatusOK, "Delete 1 memory?",
		"It stays in the trash until")
	all := ask(olivia, "tag=x", url.Values{"all": {"3"}}).expect(http.StatusOK, "Delete 3 memories?")
	if rows := olivia.find("tag=x").rows(); len(rows) != 3 {
		t.Fatalf("%d of 3 are left before the answer, want 3", len(rows))
	}
	added := w.fill(owner, souvenir.NewMemory{Content: "came meanwhile", Tags: []string{"x"}})
	done := olivia.submit(all, "/memories/bulk", nil)
	olivia.get(done.header.Get("Location")).expect(http.StatusOK, "3 memories are deleted.", "The trash keeps them until")
	if rows := olivia.find("tag=x").rows(); !slices.Equal(rows, added) {
		t.Errorf("%q are left; want %q, which was not counted", rows, added)
	}

	store, err := souvenir.Open(t.Context(), ":memory:", &souvenir.Options{KeepTrash: -1})
	if err != nil {
		t.Fatal(err)
	}
	w = serve(t, w.plan, store, server.Options{})
	admin, err := store.Accounts().AddUser(t.Context(),
		souvenir.NewUser{Name: "adam", Password: "a password of adam", Role: souvenir.RoleAdmin})
	if err != nil {
		t.Fatal(err)
	}
	session, err := store.Accounts().AddSignIn(t.Context(), souvenir.NewSignIn{User: admin.ID})
	if err != nil {
		t.Fatal(err)
	}
	m, err := store.As(souvenir.Access{User: admin.ID}).AddMemory(t.Context(),
		souvenir.NewMemory{Content: "one", ProjectID: "p"})
	if err != nil {
		t.Fatal(err)
	}
	adam := w.browser()
	adam.setCookie("auth_token", session.Value)
	ask(adam, "", url.Values{"id": {m.ID}}).expect(http.StatusOK, "Delete 1 memory?",
		"This cannot be undone.").without("stays in the trash")
	adam.get("/projects/"+admin.ID+"/p/settings").expect(http.StatusOK,
		"This cannot be undone.").without("stays in the trash")
}

func TestAllMemoriesThatFit(t *testing.T) {
	w := newWorld(t, server.Options{})
	var memories []souvenir.NewMemory
	for i := range 1040 {
		memories = append(memories, souvenir.NewMemory{Content: fmt.Sprintf("note %d", i), Tags: []string{"many"}})
	}
	ids := w.fill(owner, memories...)
	olivia := w.signedIn(owner)
	olivia.get("/memories?tag=many").expect(http.StatusOK, "The first 1,000 of 1,040")
	olivia.get("/memories?state=+").expect(http.StatusOK, "The first 1,000 of 1,042")
	if longtest.On() {
		p := olivia.change("tag=many", "archive", url.Values{"all": {"1040"}}).expect(http.StatusOK,
			"1,000 memories are archived.")
		olivia.get("/memories?tag=many&state=archived").expect(http.StatusOK, "All 1,000")
		olivia.undo(p).expect(http.StatusOK)
		olivia.get("/memories?tag=many&state=archived").expect(http.StatusOK, "No results")
	}
	p := olivia.change("tag=many", "delete", url.Values{"all": {"1040"}}).expect(http.StatusOK,
		"1,000 memories are deleted.")
	olivia.get("/memories?tag=many").expect(http.StatusOK, "40 memories match")
	olivia.undo(p).expect(http.StatusOK)
	olivia.get("/memories?tag=many").expect(http.StatusOK, "1,040 memories match")
	olivia.change("tag=many&q=note", "archive", url.Values{"all": {"1"}}).expect(http.StatusBadRequest,
		"A search ranks all memories")
	olivia.get("/memories?tag=many&q=note").without(`id="all"`)
	olivia.change("", "archive", url.Values{"id": append(ids, "x")}).expect(http.StatusBadRequest,
		"1041 memories are selected; at most 1,000")
}

func TestBulkFormsThatAreWrongSaySo(t *testing.T) {
	w := newWorld(t, server.Options{})
	olivia := w.signedIn(owner)
	one := url.Values{"id": {w.memory}}
	for want, send := range map[string]func() *gotPage{
		"No memory is selected; select memories":        func() *gotPage { return olivia.change("", "archive", nil) },
		"Action is &#34;burn&#34;; allowed are archive": func() *gotPage { return olivia.change("", "burn", one) },
		"The tag is missing":                            func() *gotPage { return olivia.change("", "tag", one) },
		"1 memory is selected; select 2 to 8":           func() *gotPage { return olivia.change("", "merge", one) },
		"Tags[0] is 129 characters long": func() *gotPage {
			return olivia.change("", "tag",
				plus(one, "bulk_tag", strings.Repeat("x", 129)))
		},
		"State is 65 characters long": func() *gotPage {
			return olivia.change("", "state",
				plus(one, "bulk_state", strings.Repeat("x", 65)))
		},
		"Nothing was changed: 1 memory unchanged: Pr": func() *gotPage {
			return olivia.change("", "move",
				plus(one, "bulk_project", w.users[admin]+"/none"))
		},
		"9 memories are selected; at most 8 can be merged": func() *gotPage {
			return olivia.change("", "merge",
				url.Values{"id": strings.Split("abcdefghi", "")})
		},
	} {
		p := send()
		if p.status < 400 || p.status >= 500 || !strings.Contains(p.body, want) {
			t.Errorf("%q is missing: %d %s", want, p.status, p.body[strings.Index(p.body, "<main"):])
		}
		checkPage(w, p)
	}
}
