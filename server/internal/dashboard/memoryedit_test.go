package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// editForm opens the form of a memory and returns what a browser would send.
func editForm(b *servertest.Browser, id string) (*servertest.Page, url.Values) {
	b.W.T.Helper()
	p := b.Get("/memories/"+id+"/edit").Expect(http.StatusOK, "Preview")
	servertest.CheckPage(b.W, p)
	return p, typed(p, "/memories/"+id+"/edit")
}

// typed returns the fields of a page's form, including its long texts.
func typed(p *servertest.Page, action string) url.Values {
	p.T.Helper()
	for _, form := range p.HTML.All("form") {
		if form.Attr("action") != action {
			continue
		}
		fields := form.Fields()
		for _, area := range form.All("textarea") {
			if name := area.Attr("name"); name != "" {
				fields.Set(name, strings.TrimPrefix(area.Text, "\n"))
			}
		}
		return fields
	}
	p.T.Fatalf("the page has no form to %s: %.500s", action, p.Body)
	return nil
}

// memoryOf returns a memory as its owner sees it.
func memoryOf(w *servertest.World, user, id string) souvenir.Memory {
	w.T.Helper()
	m, err := w.Store.As(souvenir.Access{User: w.Users[user]}).GetMemory(w.T.Context(), id)
	if err != nil {
		w.T.Fatal(err)
	}
	return m
}

func patchMemory(w *servertest.World, user, id string, u souvenir.MemoryUpdate) {
	w.T.Helper()
	if _, err := w.Store.As(souvenir.Access{User: w.Users[user]}).UpdateMemory(w.T.Context(), id, u); err != nil {
		w.T.Fatal(err)
	}
}

// undoOf undoes the change that a form's next page reports.
func undoOf(b *servertest.Browser, p *servertest.Page) *servertest.Page {
	b.W.T.Helper()
	shown := b.Get(p.Header.Get("Location")).Expect(http.StatusOK, "Undo")
	return b.Submit(shown, "/undo", nil)
}

func TestEveryFieldOfAMemoryIsSaved(t *testing.T) {
	w := servertest.New(t, server.Options{})
	ada := w.SignedIn(servertest.Admin)
	target := w.AddMemory(servertest.Admin, souvenir.NewMemory{Content: "The target", ProjectID: "home",
		ProjectName: "Home"})
	m := w.AddMemory(servertest.Admin, souvenir.NewMemory{Content: "First line\r\nsecond line",
		Tags: []string{"one, and two", `say "hi"`, "three"}, State: "active",
		ShownMetadata: map[string]any{"votes": 3, "source": map[string]any{"wiki": "Old", "page": 1.5}, "kept": []any{nil,
			true}}})
	path := "/memories/" + m.ID + "/edit"

	_, fields := editForm(ada, m.ID)
	if got := fields.Get("tags"); got != `"one, and two", "say ""hi""", three` {
		t.Errorf(`tags are shown as %s, want "one, and two", "say ""hi""", three`, got)
	}
	saved := ada.Post(path, fields) // unchanged
	ada.Get(saved.Header.Get("Location")).Expect(http.StatusOK, "No changes.")
	if after := memoryOf(w, servertest.Admin, m.ID); after.Revision != 1 || after.Content != m.Content {
		t.Errorf("saving the same text makes %+v, want revision 1 and content %v", after, m.Content)
	}

	fields.Set("content", "First line\r\nanother second line")
	fields.Set("project", w.Users[servertest.Admin]+"/home")
	fields.Set("event_type", "decision")
	fields.Set("state", "")
	fields.Set("importance", "high")
	fields.Set("classification", "notes")
	fields.Set("tags", `"one, and two", four,, `)
	fields.Set("related", "http://memory.example/memories/"+target.ID+"?view=text\n"+target.ID)
	fields.Set("metadata", `{"source": {"wiki": "New"}, "kept": [null, true], "empty": {}, "list": [{"a": null}]}`)
	saved = ada.Post(path, fields)
	if saved.Status != http.StatusSeeOther ||
		!strings.HasPrefix(saved.Header.Get("Location"), "/memories/"+m.ID+"?undo=") {
		t.Fatalf("%d to %q: %.900s, want status %v and %q at the beginning of the Location", saved.Status,
			saved.Header.Get("Location"), saved.Body, http.StatusSeeOther, "/memories/"+m.ID+"?undo=")
	}
	after := memoryOf(w, servertest.Admin, m.ID)
	if after.Content != "First line\r\nanother second line" || after.ProjectID != "home" ||
		after.EventType != "decision" || after.State != "" || after.Importance != "high" ||
		after.Classification != "notes" || strings.Join(after.Tags, "|") != "one, and two|four" ||
		strings.Join(after.Related, "|") != target.ID {
		t.Errorf("saved as %+v, want what was typed", after)
	}
	if got := asJSON(t, after.Metadata); got != `{"empty":{},"kept":[null,true],"list":[{"a":null}],`+
		`"source":{"wiki":"New"}}` {
		t.Errorf("metadata is %s; want %v", got, `{"empty":{},"kept":[null,true],"list":[{"a":null}],`+
			`"source":{"wiki":"New"}}`)
	}

	undoOf(ada, saved)
	if back := memoryOf(w, servertest.Admin, m.ID); back.Content != m.Content ||
		asJSON(t, back.ShownMetadata()) != asJSON(t, m.ShownMetadata()) {
		t.Errorf("undone, it is %+v, want it as before", back)
	}
}

// An error is shown beside its field, and the typed values stay.
// A text area gives every line the same end. A text with others stays as it is, unless it is edited.
func TestMixedLineEndingsAreNoChange(t *testing.T) {
	w := servertest.New(t, server.Options{})
	ada := w.SignedIn(servertest.Admin)
	const content, sent = "one\rtwo\r\nthree\nfour", "one\r\ntwo\r\nthree\r\nfour"
	m := w.AddMemory(servertest.Admin, souvenir.NewMemory{Content: content})
	path := "/memories/" + m.ID + "/edit"
	_, fields := editForm(ada, m.ID)
	fields.Set("content", sent)
	saved := ada.Post(path, fields)
	ada.Get(saved.Header.Get("Location")).Expect(http.StatusOK, "No changes.")
	fields.Set("tags", "numbers")
	ada.Post(path, fields).Expect(http.StatusSeeOther)
	if after := memoryOf(w, servertest.Admin, m.ID); after.Content != content || len(after.Tags) != 1 {
		t.Errorf("with a tag, the text is %q and the tags are %q, want %q and one tag", after.Content, after.Tags, content)
	}
}

func TestMistakesInAMemoryAreReportedBesideTheirField(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	ada := w.SignedIn(servertest.Admin)
	m := w.AddMemory(servertest.Admin, souvenir.NewMemory{Content: "A text",
		ShownMetadata: map[string]any{"a": map[string]any{"b": 1}}})
	path := "/memories/" + m.ID + "/edit"
	for _, mistake := range []struct{ field, value, wrong, says string }{
		{"content", "", "content", "Text"},
		{"event_type", strings.Repeat("x", 65), "event_type", "Type"},
		{"state", strings.Repeat("x", 65), "state", "State"},
		{"importance", "huge", "importance", "low"},
		{"classification", "maybe", "classification", "dont"},
		{"rule_type", "do", "rule_type", "project-rule"},
		{"project", "unknown/nothing", "project", ""},
		{"tags", strings.Repeat("x", 129), "tags", "128"},
		{"related", "nowhere", "related", "nowhere"},
		{"related", m.ID, "related", "itself"},
		{"metadata", "{\"a\": 1,\n}", "metadata", "on line 2"},
		{"metadata", "[1]", "metadata", "not an object"},
		{"metadata", "null", "metadata", "not an object"},
		{"metadata", `{"a": 1} {}`, "metadata", "there is more after"},
		{"metadata", `{"state": "active"}`, "metadata", "field of its own"},
		{"metadata", `{"a": {"b": null}}`, "metadata", "null"},
		{"metadata", `{"x": "` + strings.Repeat("y", 70_000) + `"}`, "metadata", "65536"},
	} {
		_, fields := editForm(ada, m.ID)
		fields.Set(mistake.field, mistake.value)
		fields.Set("tags", "typed before"+fields.Get("tags"))
		if mistake.field == "tags" {
			fields.Set("tags", mistake.value)
		}
		p := ada.Post(path, fields)
		if p.Status != http.StatusBadRequest && p.Status != http.StatusNotFound || p.HTML == nil {
			t.Errorf("got %s %.20q: %d %.300s, want status %v, or %v with a page of HTML", mistake.field, mistake.value,
				p.Status, p.Body, http.StatusBadRequest, http.StatusNotFound)
			continue
		}
		found := false
		for _, e := range p.HTML.All("p") {
			if e.Attr("id") == mistake.wrong+"-wrong" {
				found = true
				if !strings.Contains(e.Text, mistake.says) {
					t.Errorf("%s %.20q: %q, want in it %v", mistake.field, mistake.value, e.Text, mistake.says)
				}
			}
		}
		if !found {
			t.Errorf("%s %.20q: got no message beside the field, status %d, want one", mistake.field, mistake.value,
				p.Status)
		}
		if got := typed(p, path).Get(mistake.field); got != mistake.value && len(mistake.value) < 1000 &&
			mistake.field != "importance" && mistake.field != "classification" && mistake.field != "project" {
			t.Errorf(`%s has %q after %q was typed, want "importance", "classification" or "project"`, mistake.field, got,
				mistake.value)
		}
		if mistake.field == "related" {
			servertest.CheckPage(w, p)
		}
	}
	if after := memoryOf(w, servertest.Admin, m.ID); after.Revision != 1 {
		t.Errorf("a mistake has changed it: %+v; want revision 1", after)
	}
	_, fields := editForm(ada, m.ID)
	for _, base := range []string{"", "x", "0", "-1"} {
		fields.Set("base", base)
		ada.Post(path, fields).Expect(http.StatusBadRequest, "open the page again")
	}
}

// A save never silently overwrites another user's changes, and no typed text is lost.
func TestTwoChangeAMemoryAtOnce(t *testing.T) {
	w := servertest.New(t, server.Options{})
	walter := w.SignedIn(servertest.Writer)
	m := w.AddMemory(servertest.Owner, souvenir.NewMemory{Content: "one\ntwo\nthree\nfour\nfive\n", ProjectID: "shop",
		Tags: []string{"a"}, State: "active", Importance: "low"})
	path := "/memories/" + m.ID + "/edit"
	text := func(s string) *string { return &s }

	_, fields := editForm(walter, m.ID) // different lines, and different fields
	patchMemory(w, servertest.Owner, m.ID, souvenir.MemoryUpdate{Content: text("one\ntwo\nthree\nfour\nFIVE\n"),
		ShownMetadata: map[string]any{"state": "completed", "mood": "good"}})
	fields.Set("content", "ONE\ntwo\nthree\nfour\nfive\n")
	fields.Set("tags", "a, b")
	p := walter.Post(path, fields).Stays(http.StatusConflict, "Someone else saved this memory", "different lines")
	servertest.CheckPage(w, p)
	if now := memoryOf(w, servertest.Owner, m.ID); now.Revision != 2 {
		t.Fatalf("it was written over: %+v; want revision 2", now)
	}
	fields = typed(p, path)
	if fields.Get("content") != "ONE\ntwo\nthree\nfour\nFIVE\n" || fields.Get("tags") != "a, b" ||
		fields.Get("state") != "completed" || fields.Get("metadata") == "" {
		t.Errorf("the form has %v, want both changes", fields)
	}
	walter.Post(path, fields).GoesTo("/memories/" + m.ID + "?undo=")
	now := memoryOf(w, servertest.Owner, m.ID)
	if now.Content != "ONE\ntwo\nthree\nfour\nFIVE\n" || strings.Join(now.Tags, "") != "ab" || now.State != "completed" ||
		now.Metadata["mood"] != "good" {
		t.Errorf("saved as %+v, want both changes", now)
	}

	_, fields = editForm(walter, m.ID) // the same line, and the same field
	patchMemory(w, servertest.Owner, m.ID, souvenir.MemoryUpdate{Content: text("theirs\ntwo\nthree\nfour\nFIVE\n"),
		ShownMetadata: map[string]any{"importance": "high"}})
	fields.Set("content", "mine\ntwo\nthree\nfour\nFIVE\n")
	fields.Set("importance", "critical")
	p = walter.Post(path, fields).Stays(http.StatusConflict, "the same lines", "theirs", "<td>high</td><td>critical</td>")
	servertest.CheckPage(w, p)
	fields = typed(p, path)
	if fields.Get("content") != "mine\ntwo\nthree\nfour\nFIVE\n" || fields.Get("importance") != "critical" {
		t.Errorf("the form has %v, want what was typed", fields)
	}
	patchMemory(w, servertest.Owner, m.ID,
		souvenir.MemoryUpdate{ShownMetadata: map[string]any{"mood": "better"}}) // once more
	p = walter.Post(path, fields).Stays(http.StatusConflict)
	walter.Post(path, typed(p, path)).GoesTo("/memories/" + m.ID + "?undo=")
	if now := memoryOf(w, servertest.Owner, m.ID); now.Content != "mine\ntwo\nthree\nfour\nFIVE\n" ||
		now.Importance != "critical" ||
		now.Metadata["mood"] != "better" {
		t.Errorf("saved as %+v, want what was typed", now)
	}

	_, fields = editForm(walter, m.ID) // the version the form started from is no longer kept
	patchMemory(w, servertest.Owner, m.ID, souvenir.MemoryUpdate{Content: text("newest")})
	fields.Set("base", "1")
	fields.Set("content", "mine again")
	if _, err := w.Store.Upkeep().Purge(t.Context(), &souvenir.PurgeOptions{KeepRevisions: 1}); err != nil {
		t.Fatal(err)
	}
	p = walter.Post(path, fields).Stays(http.StatusConflict, "newest")
	if typed(p, path).Get("content") != "mine again" {
		t.Errorf(`the form has %v, want "mine again"`, typed(p, path))
	}
}

func TestReadersCannotChangeMemories(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	rita, sam := w.SignedIn(servertest.Reader), w.SignedIn(servertest.Stranger)
	before := memoryOf(w, servertest.Owner, w.Memory)
	path := "/memories/" + w.Memory
	for _, page := range []string{"", "/history", "/similar"} {
		p := rita.Get(path+page).Expect(http.StatusOK).Without("/edit", `action="`+path)
		if page != "" { // whose file the admin does not see, as whom addresses are looked at
			servertest.CheckPage(w, p)
		}
		sam.Get(path + page).Expect(http.StatusNotFound)
	}
	rita.Get(path+"/edit").Expect(http.StatusForbidden, "read-only")
	sam.Get(path + "/edit").Expect(http.StatusNotFound)
	_, fields := editForm(w.SignedIn(servertest.Owner), w.Memory)
	for name, b := range map[string]*servertest.Browser{"reader": rita, "stranger": sam} {
		want := map[string]int{"reader": http.StatusForbidden, "stranger": http.StatusNotFound}[name]
		csrf := b.Get("/profile").HTML.All("form")[0].Fields().Get("csrf")
		send := func(action string, fields url.Values) {
			sent := url.Values{"csrf": {csrf}}
			for key, values := range fields {
				if key != "csrf" {
					sent[key] = values
				}
			}
			if p := b.Post(path+action, sent); p.Status != want {
				t.Errorf("%s by a %s: %d %.200s, want %v", action, name, p.Status, p.Body, want)
			}
		}
		fields.Set("content", "changed")
		send("/edit", fields)
		send("/delete", nil)
		send("/set", url.Values{"key": {"state"}, "value": {"archived"}})
		send("/files/unlink", url.Values{"file": {w.File}})
		send("/restore", url.Values{"revision": {"1"}})
		if p := upload(b, path+"/files/add", csrf, "note.txt", "text"); p.Status != want {
			t.Errorf("a file by a %s: %d %.200s, want %v", name, p.Status, p.Body, want)
		}
	}
	if after := memoryOf(w, servertest.Owner, w.Memory); after.Revision != before.Revision ||
		after.Content != before.Content {
		t.Errorf("it is %+v now, want revision %v and content %v", after, before.Revision, before.Content)
	}
}

func TestPreviewsOfATextAreRendered(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	ada := w.SignedIn(servertest.Admin)
	m := w.AddMemory(servertest.Admin, souvenir.NewMemory{Content: "A text"})
	_, fields := editForm(ada, m.ID)
	p := ada.Post("/memories/preview",
		url.Values{"csrf": fields["csrf"], "content": {"**bold** <script>alert(1)</script>"}})
	p.Expect(http.StatusOK, "<strong>bold</strong>", "&lt;script&gt;").Without("<script>alert")
	ada.Get("/activity").Without("preview") // requested with each key
	fields.Set("content", "*typed*")        // without scripts, with the button
	fields.Set("preview", "yes")
	p = ada.Post("/memories/"+m.ID+"/edit", fields).Stays(http.StatusOK, "<em>typed</em>")
	if typed(p, "/memories/"+m.ID+"/edit").Get("content") != "*typed*" || memoryOf(w, servertest.Admin,
		m.ID).Revision != 1 {
		t.Error("looking at it has changed it, want the text as typed and revision 1")
	}
}

func TestMemoriesToLinkAreFoundBySearch(t *testing.T) {
	w := servertest.New(t, server.Options{})
	ids := fill(w, servertest.Owner, souvenir.NewMemory{Content: "Otters sleep under the pier."},
		souvenir.NewMemory{Content: "The pier was built for the otters."},
		souvenir.NewMemory{Content: "Three otters, one pier."})
	olivia := w.SignedIn(servertest.Owner)
	found := "/memories/found?" + url.Values{"seek": {"otters pier"}, "self": ids[:1], "related": ids[1:2]}.Encode()
	olivia.Get(found).Expect(http.StatusOK, `value="`+ids[2]+`"`).Without(`name="related" value="`+ids[0]+`"`,
		`name="related" value="`+ids[1]+`"`)
	w.SignedIn(servertest.Stranger).Get(found).Expect(http.StatusOK).Without("otters, one", "Otters sleep", "was built")
	w.SignedIn(servertest.Stranger).Get("/memories/found?seek=" + ids[2]).Expect(http.StatusOK).Without("Three otters")
	olivia.Get("/memories/found?seek="+url.QueryEscape("http://memory.test/memories/"+ids[2])).Expect(http.StatusOK,
		"Three otters, one pier.").Without("Otters sleep")

	edit := "/memories/" + ids[0] + "/edit"
	page := olivia.Get(edit)
	again := olivia.Submit(page, edit, url.Values{"preview": {"yes"}, "seek": {"otters pier"}, "related": ids[1:2]})
	servertest.CheckPage(w, again.Expect(http.StatusOK, `value="`+ids[1]+`" checked`, `value="`+ids[2]+`"> <span>Three`))
	_, fields := editForm(olivia, ids[0])
	fields["related"] = ids[1:]
	olivia.Post(edit, fields).Expect(http.StatusSeeOther)
	if got := memoryOf(w, servertest.Owner, ids[0]).Related; !slices.Equal(got, ids[1:]) {
		t.Errorf("it is linked to %v, want %v", got, ids[1:])
	}
	olivia.Get(edit).Expect(http.StatusOK, `value="`+ids[1]+`" checked`).Without("<code>" + ids[1])
}

// A form could hold a million ids, each of which would be compared with all others. The form keeps one more than
// allowed, and the store refuses them.
func TestAFormWithManyLinksIsCutShort(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	ada := w.SignedIn(servertest.Admin)
	m := w.AddMemory(servertest.Admin, souvenir.NewMemory{Content: "A text"})
	_, fields := editForm(ada, m.ID)
	var typed strings.Builder
	for i := range 2 * souvenir.MaxRelated {
		fmt.Fprintf(&typed, "other-%d\n", i)
	}
	fields.Set("related", typed.String())
	p := ada.Post("/memories/"+m.ID+"/edit", fields)
	p.Expect(http.StatusBadRequest, "at most "+strconv.Itoa(souvenir.MaxRelated))
	if kept := strings.Count(p.Body, `name="related"`); kept != souvenir.MaxRelated+1 {
		t.Errorf("the form has %d links again, want %d", kept, souvenir.MaxRelated+1)
	}
}
