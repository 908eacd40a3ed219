package server_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// editForm opens the form of a memory and returns what a browser would send of it.
func (b *browser) editForm(id string) (*gotPage, url.Values) {
	b.w.t.Helper()
	p := b.get("/memories/"+id+"/edit").expect(http.StatusOK, "Preview")
	checkPage(b.w, p)
	return p, p.typed("/memories/" + id + "/edit")
}

// typed are the fields of the form of a page, its long texts among them.
func (p *gotPage) typed(action string) url.Values {
	p.t.Helper()
	for _, form := range p.html.all("form") {
		if form.attr("action") != action {
			continue
		}
		fields := form.fields()
		for _, area := range form.all("textarea") {
			if name := area.attr("name"); name != "" {
				fields.Set(name, strings.TrimPrefix(area.text, "\n"))
			}
		}
		return fields
	}
	p.t.Fatalf("the page has no form to %s: %.500s", action, p.body)
	return nil
}

// memoryOf reads a memory as its owner sees it.
func (w *world) memoryOf(user, id string) souvenir.Memory {
	w.t.Helper()
	m, err := w.store.As(souvenir.Access{User: w.users[user]}).GetMemory(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

func (w *world) addMemory(user string, m souvenir.NewMemory) souvenir.Memory {
	w.t.Helper()
	added, err := w.store.As(souvenir.Access{User: w.users[user]}).AddMemory(w.t.Context(), m)
	if err != nil {
		w.t.Fatal(err)
	}
	return added.Memory
}

func (w *world) patchMemory(user, id string, u souvenir.MemoryUpdate) {
	w.t.Helper()
	if _, err := w.store.As(souvenir.Access{User: w.users[user]}).UpdateMemory(w.t.Context(), id, u); err != nil {
		w.t.Fatal(err)
	}
}

// undoOf takes back what the page that a form has led to says was done.
func (b *browser) undoOf(p *gotPage) *gotPage {
	b.w.t.Helper()
	shown := b.get(p.header.Get("Location")).expect(http.StatusOK, "Undo")
	return b.submit(shown, "/undo", nil)
}

func TestEveryFieldOfAMemoryIsSaved(t *testing.T) {
	w := newWorld(t, server.Options{})
	ada := w.signedIn(admin)
	target := w.addMemory(admin, souvenir.NewMemory{Content: "The target", ProjectID: "home", ProjectName: "Home"})
	m := w.addMemory(admin, souvenir.NewMemory{Content: "First line\r\nsecond line",
		Tags: []string{"one, and two", `say "hi"`, "three"}, State: "active",
		ShownMetadata: map[string]any{"votes": 3, "source": map[string]any{"wiki": "Old", "page": 1.5}, "kept": []any{nil, true}}})
	path := "/memories/" + m.ID + "/edit"

	_, fields := ada.editForm(m.ID)
	if got := fields.Get("tags"); got != `"one, and two", "say ""hi""", three` {
		t.Errorf("tags are shown as %s", got)
	}
	saved := ada.post(path, fields) // nothing was typed
	ada.get(saved.header.Get("Location")).expect(http.StatusOK, "No changes.")
	if after := w.memoryOf(admin, m.ID); after.Revision != 1 || after.Content != m.Content {
		t.Errorf("saving what was there makes %+v", after)
	}

	fields.Set("content", "First line\r\nanother second line")
	fields.Set("project", w.users[admin]+"/home")
	fields.Set("event_type", "decision")
	fields.Set("state", "")
	fields.Set("importance", "high")
	fields.Set("classification", "notes")
	fields.Set("tags", `"one, and two", four,, `)
	fields.Set("related", "http://memory.example/memories/"+target.ID+"?view=text\n"+target.ID)
	fields.Set("metadata", `{"source": {"wiki": "New"}, "kept": [null, true], "empty": {}, "list": [{"a": null}]}`)
	saved = ada.post(path, fields)
	if saved.status != http.StatusSeeOther ||
		!strings.HasPrefix(saved.header.Get("Location"), "/memories/"+m.ID+"?undo=") {
		t.Fatalf("%d to %q: %.900s", saved.status, saved.header.Get("Location"), saved.body)
	}
	after := w.memoryOf(admin, m.ID)
	if after.Content != "First line\r\nanother second line" || after.ProjectID != "home" ||
		after.EventType != "decision" || after.State != "" || after.Importance != "high" ||
		after.Classification != "notes" || strings.Join(after.Tags, "|") != "one, and two|four" ||
		strings.Join(after.Related, "|") != target.ID {
		t.Errorf("saved as %+v", after)
	}
	if got := asJSON(t, after.Metadata); got != `{"empty":{},"kept":[null,true],"list":[{"a":null}],`+
		`"source":{"wiki":"New"}}` {
		t.Errorf("metadata is %s; want %v", got, `{"empty":{},"kept":[null,true],"list":[{"a":null}],`+
			`"source":{"wiki":"New"}}`)
	}

	ada.undoOf(saved)
	if back := w.memoryOf(admin, m.ID); back.Content != m.Content ||
		asJSON(t, back.ShownMetadata()) != asJSON(t, m.ShownMetadata()) {
		t.Errorf("taken back, it is %+v", back)
	}
}

// What is wrong is said beside its field, and what was typed stays.
func TestMistakesInAMemoryAreReportedBesideTheirField(t *testing.T) {
	w := newWorld(t, server.Options{})
	ada := w.signedIn(admin)
	m := w.addMemory(admin, souvenir.NewMemory{Content: "A text", ShownMetadata: map[string]any{"a": map[string]any{"b": 1}}})
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
		_, fields := ada.editForm(m.ID)
		fields.Set(mistake.field, mistake.value)
		fields.Set("tags", "typed before"+fields.Get("tags"))
		if mistake.field == "tags" {
			fields.Set("tags", mistake.value)
		}
		p := ada.post(path, fields)
		if p.status != http.StatusBadRequest && p.status != http.StatusNotFound || p.html == nil {
			t.Errorf("%s %.20q: %d %.300s", mistake.field, mistake.value, p.status, p.body)
			continue
		}
		found := false
		for _, e := range p.html.all("p") {
			if e.attr("id") == mistake.wrong+"-wrong" {
				found = true
				if !strings.Contains(e.text, mistake.says) {
					t.Errorf("%s %.20q: %q, want in it %v", mistake.field, mistake.value, e.text, mistake.says)
				}
			}
		}
		if !found {
			t.Errorf("%s %.20q: nothing is said beside the field: %d", mistake.field, mistake.value, p.status)
		}
		if got := p.typed(path).Get(mistake.field); got != mistake.value && len(mistake.value) < 1000 &&
			mistake.field != "importance" && mistake.field != "classification" && mistake.field != "project" {
			t.Errorf("%s has %q after %q was typed", mistake.field, got, mistake.value)
		}
		if mistake.field == "related" {
			checkPage(w, p)
		}
	}
	if after := w.memoryOf(admin, m.ID); after.Revision != 1 {
		t.Errorf("a mistake has changed it: %+v; want revision 1", after)
	}
	_, fields := ada.editForm(m.ID)
	for _, base := range []string{"", "x", "0", "-1"} {
		fields.Set("base", base)
		ada.post(path, fields).expect(http.StatusBadRequest, "open the page again")
	}
}

// What another user has saved meanwhile is never written over unseen, and nothing that was typed is lost.
func TestTwoChangeAMemoryAtOnce(t *testing.T) {
	w := newWorld(t, server.Options{})
	walter := w.signedIn(writer)
	m := w.addMemory(owner, souvenir.NewMemory{Content: "one\ntwo\nthree\nfour\nfive\n", ProjectID: "shop",
		Tags: []string{"a"}, State: "active", Importance: "low"})
	path := "/memories/" + m.ID + "/edit"
	text := func(s string) *string { return &s }

	_, fields := walter.editForm(m.ID) // different lines, and different fields
	w.patchMemory(owner, m.ID, souvenir.MemoryUpdate{Content: text("one\ntwo\nthree\nfour\nFIVE\n"),
		ShownMetadata: map[string]any{"state": "completed", "mood": "good"}})
	fields.Set("content", "ONE\ntwo\nthree\nfour\nfive\n")
	fields.Set("tags", "a, b")
	p := walter.post(path, fields).stays(http.StatusConflict, "Someone else saved this memory", "different lines")
	checkPage(w, p)
	if now := w.memoryOf(owner, m.ID); now.Revision != 2 {
		t.Fatalf("it was written over: %+v; want revision 2", now)
	}
	fields = p.typed(path)
	if fields.Get("content") != "ONE\ntwo\nthree\nfour\nFIVE\n" || fields.Get("tags") != "a, b" ||
		fields.Get("state") != "completed" || fields.Get("metadata") == "" {
		t.Errorf("the form has %v", fields)
	}
	walter.post(path, fields).goesTo("/memories/" + m.ID + "?undo=")
	now := w.memoryOf(owner, m.ID)
	if now.Content != "ONE\ntwo\nthree\nfour\nFIVE\n" || strings.Join(now.Tags, "") != "ab" || now.State != "completed" ||
		now.Metadata["mood"] != "good" {
		t.Errorf("saved as %+v", now)
	}

	_, fields = walter.editForm(m.ID) // the same line, and the same field
	w.patchMemory(owner, m.ID, souvenir.MemoryUpdate{Content: text("theirs\ntwo\nthree\nfour\nFIVE\n"),
		ShownMetadata: map[string]any{"importance": "high"}})
	fields.Set("content", "mine\ntwo\nthree\nfour\nFIVE\n")
	fields.Set("importance", "critical")
	p = walter.post(path, fields).stays(http.StatusConflict, "the same lines", "theirs", "<td>high</td><td>critical</td>")
	checkPage(w, p)
	fields = p.typed(path)
	if fields.Get("content") != "mine\ntwo\nthree\nfour\nFIVE\n" || fields.Get("importance") != "critical" {
		t.Errorf("the form has %v", fields)
	}
	w.patchMemory(owner, m.ID, souvenir.MemoryUpdate{ShownMetadata: map[string]any{"mood": "better"}}) // and once more
	p = walter.post(path, fields).stays(http.StatusConflict)
	walter.post(path, p.typed(path)).goesTo("/memories/" + m.ID + "?undo=")
	if now := w.memoryOf(owner, m.ID); now.Content != "mine\ntwo\nthree\nfour\nFIVE\n" || now.Importance != "critical" ||
		now.Metadata["mood"] != "better" {
		t.Errorf("saved as %+v", now)
	}

	_, fields = walter.editForm(m.ID) // the form's starting point is no longer kept
	w.patchMemory(owner, m.ID, souvenir.MemoryUpdate{Content: text("newest")})
	fields.Set("base", "1")
	fields.Set("content", "mine again")
	if _, err := w.store.Upkeep().Purge(t.Context(), &souvenir.PurgeOptions{KeepRevisions: 1}); err != nil {
		t.Fatal(err)
	}
	p = walter.post(path, fields).stays(http.StatusConflict, "newest")
	if p.typed(path).Get("content") != "mine again" {
		t.Errorf("the form has %v", p.typed(path))
	}
}

func TestWhoReadsOnlyChangesNothingOfAMemory(t *testing.T) {
	w := newWorld(t, server.Options{})
	rita, sam := w.signedIn(reader), w.signedIn(stranger)
	before := w.memoryOf(owner, w.memory)
	path := "/memories/" + w.memory
	for _, page := range []string{"", "/history", "/similar"} {
		p := rita.get(path+page).expect(http.StatusOK).without("/edit", `action="`+path)
		if page != "" { // whose file the admin does not see, as whom addresses are looked at
			checkPage(w, p)
		}
		sam.get(path + page).expect(http.StatusNotFound)
	}
	rita.get(path+"/edit").expect(http.StatusForbidden, "read-only")
	sam.get(path + "/edit").expect(http.StatusNotFound)
	_, fields := w.signedIn(owner).editForm(w.memory)
	for name, b := range map[string]*browser{"reader": rita, "stranger": sam} {
		want := map[string]int{"reader": http.StatusForbidden, "stranger": http.StatusNotFound}[name]
		csrf := b.get("/profile").html.all("form")[0].fields().Get("csrf")
		send := func(action string, fields url.Values) {
			sent := url.Values{"csrf": {csrf}}
			for key, values := range fields {
				if key != "csrf" {
					sent[key] = values
				}
			}
			if p := b.post(path+action, sent); p.status != want {
				t.Errorf("%s by a %s: %d %.200s, want %v", action, name, p.status, p.body, want)
			}
		}
		fields.Set("content", "changed")
		send("/edit", fields)
		send("/delete", nil)
		send("/set", url.Values{"key": {"state"}, "value": {"archived"}})
		send("/files/unlink", url.Values{"file": {w.file}})
		send("/restore", url.Values{"revision": {"1"}})
		if p := b.upload(path+"/files/add", csrf, "note.txt", "text"); p.status != want {
			t.Errorf("a file by a %s: %d %.200s, want %v", name, p.status, p.body, want)
		}
	}
	if after := w.memoryOf(owner, w.memory); after.Revision != before.Revision || after.Content != before.Content {
		t.Errorf("it is %+v now", after)
	}
}

func TestHowATextWillLook(t *testing.T) {
	w := newWorld(t, server.Options{})
	ada := w.signedIn(admin)
	m := w.addMemory(admin, souvenir.NewMemory{Content: "A text"})
	_, fields := ada.editForm(m.ID)
	p := ada.post("/memories/"+m.ID+"/preview",
		url.Values{"csrf": fields["csrf"], "content": {"**bold** <script>alert(1)</script>"}})
	p.expect(http.StatusOK, "<strong>bold</strong>", "&lt;script&gt;").without("<script>alert")
	fields.Set("content", "*typed*") // without scripts, by the button
	fields.Set("preview", "yes")
	p = ada.post("/memories/"+m.ID+"/edit", fields).stays(http.StatusOK, "<em>typed</em>")
	if p.typed("/memories/"+m.ID+"/edit").Get("content") != "*typed*" || w.memoryOf(admin, m.ID).Revision != 1 {
		t.Error("looking at it has changed it")
	}
}
