package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// change sends a change of many memories, as the page does, and returns the page that follows.
func change(b *servertest.Browser, query, action string, fields url.Values) *servertest.Page {
	b.W.T.Helper()
	form := b.Get("/memories?" + query).Hidden()
	fields = cloned(fields)
	fields.Set("csrf", form.Get("csrf"))
	fields.Set("back", form.Get("back"))
	fields.Set("shown", form.Get("shown"))
	fields.Set("action", action)
	p := b.Post("/memories/bulk", fields)
	if p.Status == http.StatusOK && action == "delete" { // it asks first
		p = b.Submit(p, "/memories/bulk", nil)
	}
	if p.Status == http.StatusSeeOther {
		return b.Get(p.Header.Get("Location"))
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

// undo undoes the change that a page reports.
func undo(b *servertest.Browser, p *servertest.Page) *servertest.Page {
	b.W.T.Helper()
	done := b.Submit(p, "/undo", nil)
	if done.Status == http.StatusSeeOther {
		return b.Get(done.Header.Get("Location"))
	}
	return done
}

// states returns memories as shown, without revision and time, which differ after an undo.
func states(w *servertest.World, caller string, ids ...string) []string {
	w.T.Helper()
	view := w.Store.As(souvenir.Access{User: w.Users[caller]})
	var all []string
	for _, id := range ids {
		m, err := view.GetMemory(w.T.Context(), id)
		if err != nil {
			all = append(all, err.Error())
			continue
		}
		all = append(all, fmt.Sprint(m.ID, m.Content, m.Collection, m.ShownMetadata(), m.CreatedAt))
	}
	return all
}

func TestManyMemoriesAreChangedAndUndone(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	ids := fill(w, servertest.Owner,
		souvenir.NewMemory{Content: "one", Tags: []string{"a"}, State: "active", ProjectID: "shop"},
		souvenir.NewMemory{Content: "two", Tags: []string{"b", "a", "c"}, ShownMetadata: map[string]any{"source": "mail"}},
		souvenir.NewMemory{Content: "three"})
	if _, err := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]}).UpdateMemory(t.Context(), ids[0],
		souvenir.MemoryUpdate{ShownMetadata: map[string]any{"related_memory_ids": []string{ids[2], ids[1]}}}); err != nil {
		t.Fatal(err)
	}
	olivia := w.SignedIn(servertest.Owner)
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
		{"move", "bulk_project", w.Users[servertest.Owner] + "/plot", "3 memories are in the project plot now.",
			"project=plot"},
		{"move", "bulk_project", "", "1 memory is no longer in a project. 2 memories needed no change.", "project=+"},
	} {
		before := states(w, servertest.Owner, ids...)
		p := change(olivia, "sort=created_at_asc", c.action, plus(chosen, c.field, c.value)).Expect(http.StatusOK, c.said,
			"Undo")
		servertest.CheckPage(w, p)
		for _, id := range ids {
			if !slices.Contains(rows(find(olivia, c.gives)), id) {
				t.Errorf("%s %q: got no %s in the list of %s, want it there", c.action, c.value, id, c.gives)
			}
		}
		undo(olivia, p).Expect(http.StatusOK, "Undone.")
		if after := states(w, servertest.Owner, ids...); !slices.Equal(before, after) {
			t.Errorf("%s %q: undone to %q, want %q", c.action, c.value, after, before)
		}
	}
	before := states(w, servertest.Owner, ids...)
	p := change(olivia, "", "untag", plus(chosen, "bulk_tag", "a")).Expect(http.StatusOK,
		"Tag &#34;a&#34; removed from 2 memories. 1 memory needed no change.")
	if rows := rows(find(olivia, "tag=a")); len(rows) != 0 {
		t.Errorf("%d still have it, want 0", len(rows))
	}
	undo(olivia, p).Expect(http.StatusOK)
	if after := states(w, servertest.Owner, ids...); !slices.Equal(before, after) {
		t.Errorf("undone to %q, want %q", after, before)
	}
	p = change(olivia, "tag=a", "delete", chosen).Expect(http.StatusOK, "3 memories are deleted.", "No results")
	for i, state := range states(w, servertest.Owner, ids...) {
		if !strings.Contains(state, "not found, or you have no access") {
			t.Errorf("%d is there: %s; want in it \"not found, or you have no access\"", i, state)
		}
	}
	undo(olivia, p).Expect(http.StatusOK, "Undone.", ">one<", ">two<")
	if after := states(w, servertest.Owner, ids...); !slices.Equal(before, after) {
		t.Errorf("undone to %q, want %q", after, before)
	}
}

// Undoing the deletion of many memories restores the links between them.
func TestUndoneDeletionsRestoreLinks(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	var ids []string
	for i := range 20 {
		ids = append(ids, fill(w, servertest.Owner,
			souvenir.NewMemory{Content: "some text", Tags: []string{"linked"}, Related: ids[max(0, i-1):]})...)
	}
	olivia := w.SignedIn(servertest.Owner)
	p := change(olivia, "tag=linked", "delete", url.Values{"id": ids}).Expect(http.StatusOK, "20 memories are deleted.")
	undo(olivia, p).Expect(http.StatusOK, "Undone.")
	view := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]})
	for i, id := range ids {
		m, err := view.GetMemory(t.Context(), id)
		if err != nil || len(m.Related) != min(i, 1) {
			t.Errorf("memory %d is back with links %v, %v, want %d and no error", i, m.Related, err, min(i, 1))
		}
	}
}

func plus(fields url.Values, name, value string) url.Values {
	all := cloned(fields)
	if name != "" {
		all.Set(name, value)
	}
	return all
}

func TestManyMemoriesWhenSomeHaveChanged(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	ids := fill(w, servertest.Owner, souvenir.NewMemory{Content: "one"}, souvenir.NewMemory{Content: "two"},
		souvenir.NewMemory{Content: "three"})
	view, olivia := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]}), w.SignedIn(servertest.Owner)
	if err := view.DeleteMemory(t.Context(), ids[2], nil); err != nil {
		t.Fatal(err)
	}
	p := change(olivia, "", "tag", url.Values{"id": append(ids, ids[0]), "bulk_tag": {"x"}}).Expect(http.StatusOK,
		"2 memories have the tag", "1 memory was deleted meanwhile.")
	if _, err := view.UpdateMemory(t.Context(), ids[0],
		souvenir.MemoryUpdate{ShownMetadata: map[string]any{"state": "mine"}}); err != nil {
		t.Fatal(err)
	}
	undo(olivia, p).Expect(http.StatusConflict, "1 memory is as before.", "it has been changed or deleted since",
		"“one”")
	if found := rows(find(olivia, "tag=x")); !slices.Equal(found, ids[:1]) {
		t.Errorf("%q have the tag, want %v", found, ids[:1])
	}
	change(olivia, "", "delete", url.Values{"id": ids[2:]}).Expect(http.StatusConflict,
		"Nothing was changed: 1 memory was deleted meanwhile.")
	change(olivia, "", "state", url.Values{"id": ids[:1], "bulk_state": {"mine"}}).Expect(http.StatusOK,
		"No changes.")
}

func TestManyMemoriesOfOthers(t *testing.T) {
	w := servertest.New(t, server.Options{})
	before := states(w, servertest.Owner, w.Memory, w.Private)
	for _, caller := range []string{servertest.Reader, servertest.Stranger, servertest.Admin} {
		b := w.SignedIn(caller)
		b.Get("/memories").Expect(http.StatusOK)
		csrf := b.Get("/profile").Hidden().Get("csrf")
		for _, action := range []string{"archive", "delete", "tag", "state", "move"} {
			b.Post("/memories/bulk", url.Values{"csrf": {csrf}, "id": {w.Memory, w.Private}, "action": {action},
				"bulk_tag": {"x"}, "bulk_state": {"x"}, "sure": {"yes"}}).
				Expect(http.StatusConflict, "Nothing was changed").Without(servertest.Secret)
		}
		b.Post("/memories/merge", url.Values{"csrf": {csrf}, "id": {w.Memory, w.Private}, "revision": {"1", "1"},
			"keep": {w.Memory}}).Without(servertest.Secret)
	}
	if after := states(w, servertest.Owner, w.Memory, w.Private); !slices.Equal(before, after) {
		t.Errorf("%q became %q, want the same", before, after)
	}
	p := change(w.SignedIn(servertest.Writer), "", "tag",
		url.Values{"id": {w.Memory}, "bulk_tag": {"by walter"}}).Expect(http.StatusOK, "1 memory has the tag")
	w.SignedIn(servertest.Owner).Post("/undo",
		url.Values{"csrf": {w.SignedIn(servertest.Owner).Get("/profile").Hidden().Get("csrf")},
			"step": {p.Hidden().Get("step")}}).Without("Undone.")
	change(w.SignedIn(servertest.Writer), "", "move", url.Values{"id": {w.Memory}}).Expect(http.StatusConflict,
		"Only its owner can move it to another project")
}

func TestDeletionsOfManyMemoriesAskFirst(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	ids := fill(w, servertest.Owner, souvenir.NewMemory{Content: "one", Tags: []string{"x"}},
		souvenir.NewMemory{Content: "two", Tags: []string{"x"}}, souvenir.NewMemory{Content: "three", Tags: []string{"x"}})
	olivia := w.SignedIn(servertest.Owner)
	ask := func(b *servertest.Browser, query string, fields url.Values) *servertest.Page {
		form := b.Get("/memories?" + query).Hidden()
		fields.Set("csrf", form.Get("csrf"))
		fields.Set("back", form.Get("back"))
		fields.Set("action", "delete")
		return b.Post("/memories/bulk", fields)
	}
	day := time.Now().AddDate(0, 0, 30).UTC().Format("January 2006")
	p := ask(olivia, "tag=x", url.Values{"id": ids[:2]}).
		Expect(http.StatusOK, "Delete 2 memories?", "They stay in the trash until", day+", and can be restored until then.",
			"Cancel", `href="/memories?tag=x"`)
	servertest.CheckPage(w, p)
	ask(olivia, "", url.Values{"id": {ids[0], ids[0]}}).Expect(http.StatusOK, "Delete 1 memory?",
		"It stays in the trash until")
	all := ask(olivia, "tag=x", url.Values{"all": {"3"}}).Expect(http.StatusOK, "Delete 3 memories?")
	if rows := rows(find(olivia, "tag=x")); len(rows) != 3 {
		t.Fatalf("%d of 3 are left before the answer, want 3", len(rows))
	}
	added := fill(w, servertest.Owner, souvenir.NewMemory{Content: "came meanwhile", Tags: []string{"x"}})
	done := olivia.Submit(all, "/memories/bulk", nil)
	olivia.Get(done.Header.Get("Location")).Expect(http.StatusOK, "3 memories are deleted.", "The trash keeps them until")
	if rows := rows(find(olivia, "tag=x")); !slices.Equal(rows, added) {
		t.Errorf("%q are left; want %q, which was not counted", rows, added)
	}

	store, err := souvenir.Open(t.Context(), ":memory:", &souvenir.Options{KeepTrash: -1})
	if err != nil {
		t.Fatal(err)
	}
	w = servertest.Serve(t, w.Plan, store, server.Options{})
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
	adam := w.Browser()
	adam.SetCookie("auth_token", session.Value)
	ask(adam, "", url.Values{"id": {m.ID}}).Expect(http.StatusOK, "Delete 1 memory?",
		"This cannot be undone.").Without("stays in the trash")
	adam.Get("/projects/"+admin.ID+"/p/settings").Expect(http.StatusOK,
		"This cannot be undone.").Without("stays in the trash")
}

func TestAllMemoriesThatFit(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	var memories []souvenir.NewMemory
	for i := range 1040 {
		memories = append(memories, souvenir.NewMemory{Content: fmt.Sprintf("note %d", i), Tags: []string{"many"}})
	}
	ids := fill(w, servertest.Owner, memories...)
	olivia := w.SignedIn(servertest.Owner)
	olivia.Get("/memories?tag=many").Expect(http.StatusOK, "The first 1,000 of 1,040")
	olivia.Get("/memories?state=+").Expect(http.StatusOK, "The first 1,000 of 1,042")
	p := change(olivia, "tag=many", "archive", url.Values{"all": {"1040"}}).Expect(http.StatusOK,
		"1,000 memories are archived.")
	olivia.Get("/memories?tag=many&state=archived").Expect(http.StatusOK, "All 1,000")
	undo(olivia, p).Expect(http.StatusOK)
	olivia.Get("/memories?tag=many&state=archived").Expect(http.StatusOK, "No results")
	p = change(olivia, "tag=many", "delete", url.Values{"all": {"1040"}}).Expect(http.StatusOK,
		"1,000 memories are deleted.")
	olivia.Get("/memories?tag=many").Expect(http.StatusOK, "40 memories match")
	undo(olivia, p).Expect(http.StatusOK)
	olivia.Get("/memories?tag=many").Expect(http.StatusOK, "1,040 memories match")
	change(olivia, "tag=many&q=note", "archive", url.Values{"all": {"1"}}).Expect(http.StatusBadRequest,
		"A search ranks all memories")
	olivia.Get("/memories?tag=many&q=note").Without(`id="all"`)
	change(olivia, "", "archive", url.Values{"id": append(ids, "x")}).Expect(http.StatusBadRequest,
		"1041 memories are selected; at most 1,000")
}

func TestInvalidBulkForms(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	olivia := w.SignedIn(servertest.Owner)
	one := url.Values{"id": {w.Memory}}
	for want, send := range map[string]func() *servertest.Page{
		"No memory is selected; select memories": func() *servertest.Page {
			return change(olivia, "", "archive",
				nil)
		},
		"Action is &#34;burn&#34;; expected archive": func() *servertest.Page { return change(olivia, "", "burn", one) },
		"The tag is missing":                         func() *servertest.Page { return change(olivia, "", "tag", one) },
		"1 memory is selected; select 2 to 8":        func() *servertest.Page { return change(olivia, "", "merge", one) },
		"Tags[0] is 129 characters long": func() *servertest.Page {
			return change(olivia, "", "tag",
				plus(one, "bulk_tag", strings.Repeat("x", 129)))
		},
		"State is 65 characters long": func() *servertest.Page {
			return change(olivia, "", "state",
				plus(one, "bulk_state", strings.Repeat("x", 65)))
		},
		"Nothing was changed: 1 memory unchanged: Pr": func() *servertest.Page {
			return change(olivia, "", "move",
				plus(one, "bulk_project", w.Users[servertest.Admin]+"/none"))
		},
		"9 memories are selected; at most 8 can be merged": func() *servertest.Page {
			return change(olivia, "", "merge",
				url.Values{"id": strings.Split("abcdefghi", "")})
		},
	} {
		p := send()
		if p.Status < 400 || p.Status >= 500 || !strings.Contains(p.Body, want) {
			t.Errorf("%q is missing: %d %s, want a status from 400 to 499 and the word in the body", want, p.Status,
				p.Body[strings.Index(p.Body, "<main"):])
		}
		servertest.CheckPage(w, p)
	}
}

// A memory that is moved into another user's project belongs to that user, who alone can move it out: the page says so,
// and offers no undo that could only fail.
func TestAMoveIntoAnotherUsersProjectIsNotUndone(t *testing.T) {
	w := servertest.New(t, server.Options{})
	ids := fill(w, servertest.Writer, souvenir.NewMemory{Content: "a first note"},
		souvenir.NewMemory{Content: "a second note"}, souvenir.NewMemory{Content: "a third note"})
	b := w.SignedIn(servertest.Writer)
	shop := w.Users[servertest.Owner] + "/shop"
	const belongs = "Memories in a project of olivia belong to olivia, and only olivia can move them out again."
	change(b, "", "move", url.Values{"id": ids[:2], "bulk_project": {shop}}).Expect(http.StatusOK,
		"2 memories are in the project shop now. "+belongs).Without("Undo")

	form := b.Get("/memories/" + ids[2] + "/edit").Expect(http.StatusOK).Hidden()
	p := b.Post("/memories/"+ids[2]+"/edit", url.Values{"csrf": {form.Get("csrf")}, "base": {form.Get("base")},
		"content": {"a third note"}, "project": {shop}})
	b.Get(p.Expect(http.StatusSeeOther).Header.Get("Location")).Expect(http.StatusOK, "Memory saved. "+belongs).
		Without("Undo")

	// A project of one's own can be undone, with the same button.
	own := w.AddMemory(servertest.Owner, souvenir.NewMemory{Content: "a fourth note"})
	olivia := w.SignedIn(servertest.Owner)
	moved := change(olivia, "", "move", url.Values{"id": {own.ID}, "bulk_project": {shop}}).Expect(http.StatusOK,
		"1 memory is in the project shop now.", "Undo").Without("belong to")
	undo(olivia, moved).Expect(http.StatusOK, "Undone.")
}
