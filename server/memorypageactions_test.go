package server_test

import (
	"bytes"
	"encoding/json"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

func asJSON(t *testing.T, value any) string {
	t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

// upload sends a form with a file, as a page of this server would.
func (b *browser) upload(path, csrf, name, content string) *gotPage {
	b.w.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	steps := firstError{}
	steps.note(form.WriteField("csrf", csrf))
	part, err := form.CreateFormFile("file", name)
	steps.note(err)
	_, err = part.Write([]byte(content))
	steps.note(err)
	steps.note(form.Close())
	if steps.err != nil {
		b.w.t.Fatal(steps.err)
	}
	r, err := http.NewRequestWithContext(b.w.t.Context(), http.MethodPost, b.w.at.URL+path, &body)
	if err != nil {
		b.w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", form.FormDataContentType())
	r.Header.Set("Origin", b.w.at.URL)
	return b.send(r)
}

func TestButtonsOfAMemory(t *testing.T) {
	w := newWorld(t, server.Options{})
	ada := w.signedIn(admin)
	m := w.addMemory(admin, souvenir.NewMemory{Content: "A text", State: "draft", Importance: "low"})
	path := "/memories/" + m.ID
	press := func(says string) *gotPage {
		t.Helper()
		p := ada.get(path).expect(http.StatusOK)
		for _, form := range p.html.all("form") {
			if form.attr("action") == path+"/set" && strings.Contains(form.text, says) {
				return ada.post(path+"/set", form.fields())
			}
		}
		t.Fatalf("there is no button %q", says)
		return nil
	}
	archived := press("Archive")
	ada.get(archived.header.Get("Location")).expect(http.StatusOK, "The memory is archived", "Make active again")
	if got := w.memoryOf(admin, m.ID).State; got != "archived" {
		t.Errorf("its state is %q, want \"archived\"", got)
	}
	important := press("Star")
	if got := w.memoryOf(admin, m.ID).Importance; got != "high" {
		t.Errorf("its importance is %q, want \"high\"", got)
	}
	p := ada.submit(ada.get(archived.header.Get("Location")), "/undo", nil) // there was another change since
	p.expect(http.StatusConflict, "changed again")
	ada.undoOf(important)
	if got := w.memoryOf(admin, m.ID); got.Importance != "low" || got.State != "archived" {
		t.Errorf("taken back, it is %+v", got)
	}
	press("Make active again")
	press("Completed")
	completed := w.memoryOf(admin, m.ID)
	if completed.State != "completed" {
		t.Errorf("its state is %q, want \"completed\"", completed.State)
	}
	csrf := ada.get(path).html.all("form")[0].fields().Get("csrf")
	for _, wrong := range []url.Values{{"key": {"content"}, "value": {""}}, {"key": {"state"}, "value": {"gone"}},
		{"key": {"importance"}, "value": {"archived"}}, {}} {
		wrong.Set("csrf", csrf)
		ada.post(path+"/set", wrong).expect(http.StatusBadRequest, "the buttons of a memory")
	}
	if after := w.memoryOf(admin, m.ID); after.Revision != completed.Revision {
		t.Error("a wrong button has changed it")
	}
	same := ada.post(path+"/set", url.Values{"csrf": {csrf}, "key": {"state"}, "value": {"completed"}})
	ada.get(same.header.Get("Location")).expect(http.StatusOK, "No changes.")
}

func TestDeletingAMemoryIsTakenBack(t *testing.T) {
	w := newWorld(t, server.Options{})
	olivia := w.signedIn(owner)
	w.patchMemory(owner, w.memory, souvenir.MemoryUpdate{ShownMetadata: map[string]any{"tags": []any{"hours"}}})
	before := w.memoryOf(owner, w.memory)
	path := "/memories/" + w.memory
	deleted := olivia.submit(olivia.get(path), path+"/delete", nil)
	if deleted.status != http.StatusSeeOther || !strings.Contains(deleted.header.Get("Location"), "?undo=") {
		t.Fatalf("%d to %q", deleted.status, deleted.header.Get("Location"))
	}
	olivia.get(path).expect(http.StatusNotFound)
	olivia.get(path + "/history").expect(http.StatusNotFound)

	page := olivia.get("/profile?undo="+deleted.goesTo("/").Get("undo")).expect(http.StatusOK,
		"The shop opens at nine.” is deleted", "Undo")
	sams := w.signedIn(stranger) // who has found out the name of the step
	csrf := sams.get("/profile").html.all("form")[0].fields().Get("csrf")
	sams.post("/undo", url.Values{"csrf": {csrf}, "step": {deleted.goesTo("/").Get("undo")}}).expect(http.StatusNotFound)
	back := olivia.submit(page, "/undo", nil)
	if back.header.Get("Location") != path+"?done=undone" {
		t.Errorf("taking it back leads to %q, want %v", back.header.Get("Location"), path+"?done=undone")
	}
	olivia.get(path+"?done=undone").expect(http.StatusOK, "Undone.", "opens at nine", "menu.txt")
	if after := w.memoryOf(owner, w.memory); asJSON(t, after) != asJSON(t, before) {
		t.Errorf("it was %s and is %s", asJSON(t, before), asJSON(t, after))
	}
	olivia.get(path+"/history").expect(http.StatusOK, "Version 1", "Version 2")
	olivia.submit(page, "/undo", nil).expect(http.StatusNotFound, "can no longer be undone")
}

func TestFilesOfAMemory(t *testing.T) {
	w := newWorld(t, server.Options{})
	olivia := w.signedIn(owner)
	m := w.addMemory(owner, souvenir.NewMemory{Content: "A plan"})
	path := "/memories/" + m.ID
	csrf := olivia.get(path).html.all("form")[0].fields().Get("csrf")
	view := w.store.As(souvenir.Access{User: w.users[owner]})

	added := olivia.upload(path+"/files/add", csrf, "plan.txt", "the plan")
	olivia.get(added.header.Get("Location")).expect(http.StatusOK, "plan.txt", "uploaded and linked")
	files, err := view.FilePage(t.Context(), souvenir.FileQuery{FileList: souvenir.FileList{MemoryID: m.ID}})
	if err != nil || files.Total != 1 || files.Files[0].Size != 8 {
		t.Fatalf("%+v %v", files, err)
	}
	file := files.Files[0].ID
	unlinked := olivia.submit(olivia.get(path), path+"/files/unlink", nil)
	olivia.get(unlinked.header.Get("Location")).expect(http.StatusOK, "is unlinked from this memory")
	if f, err := view.GetFile(t.Context(), file); err != nil || f.MemoryID != "" {
		t.Fatalf("%+v %v, want memoryID \"\"", f, err)
	}
	linked := olivia.submit(olivia.get(path), path+"/files", url.Values{"file": {file}})
	olivia.get(linked.header.Get("Location")).expect(http.StatusOK, "is linked to this memory")
	olivia.undoOf(linked)
	olivia.undoOf(unlinked) // which is from before: the link is there again
	if f, err := view.GetFile(t.Context(), file); err != nil || f.MemoryID != m.ID {
		t.Errorf("%+v %v, want memoryID %v", f, err, m.ID)
	}
	for _, refused := range []struct {
		action, file string
		status       int
	}{{"/files", "nowhere", http.StatusNotFound}, {"/files/unlink", w.file, http.StatusBadRequest},
		{"/files", "", http.StatusNotFound}} {
		olivia.post(path+refused.action, url.Values{"csrf": {csrf}, "file": {refused.file}}).expect(refused.status)
	}
	olivia.undoOf(added) // the file is gone again
	if _, err := view.GetFile(t.Context(), file); err == nil {
		t.Error("the file is still there")
	}
	olivia.upload(path+"/files/add", csrf, "", "").expect(http.StatusBadRequest, "No file was chosen")
	olivia.upload(path+"/files/add", csrf+"x", "plan.txt", "x").expect(http.StatusForbidden, "out of date")
	olivia.post(path+"/files/add", url.Values{"csrf": {csrf}}).expect(http.StatusBadRequest, "File is missing")
	olivia.upload("/memories/nowhere/files/add", csrf, "plan.txt", "x").expect(http.StatusNotFound)
	if files, err := view.FilePage(t.Context(),
		souvenir.FileQuery{FileList: souvenir.FileList{MemoryID: m.ID}}); err != nil || files.Total != 0 {
		t.Errorf("%+v %v, want total 0", files, err)
	}
}

func TestHistoryOfAMemory(t *testing.T) {
	w := newWorld(t, server.Options{})
	ada := w.signedIn(admin)
	m := w.addMemory(admin, souvenir.NewMemory{Content: "The kettle is blue.\nIt stands here.", Tags: []string{"kitchen"}})
	path := "/memories/" + m.ID
	ada.get(path+"/history").expect(http.StatusOK, "not been changed since it was stored").without(">Restore<")
	_, fields := ada.editForm(m.ID)
	fields.Set("content", "The kettle is red.\nIt stands here.")
	ada.post(path+"/edit", fields)
	w.patchMemory(admin, m.ID, souvenir.MemoryUpdate{ShownMetadata: map[string]any{"tags": nil, "mood": "<b>good</b>"}})

	p := ada.get(path+"/history").expect(http.StatusOK, "Version 3", "Version 2", "Version 1",
		"<del>The kettle is <b>blue</b>.</del>", "<ins>The kettle is <b>red</b>.</ins>",
		"Removed: ", "Added: ", "<del>kitchen</del>", "removed", "<ins>&lt;b&gt;good&lt;/b&gt;</ins>",
		"by you, in Firefox on Linux")
	checkPage(w, p)
	one := ada.get(path+"/history?revision=1").expect(http.StatusOK, "Version 1 of", "kitchen", "Changes since")
	checkPage(w, one)
	for _, wrong := range []string{"0", "-1", "4", "99999999999999999999", "x", "%00"} {
		ada.get(path+"/history?revision="+wrong).expect(http.StatusNotFound, "is not kept")
	}
	restored := ada.submit(one, path+"/restore", nil)
	ada.get(restored.header.Get("Location")).expect(http.StatusOK, "as it was in version 1")
	if after := w.memoryOf(admin, m.ID); after.Content != m.Content || strings.Join(after.Tags, "") != "kitchen" ||
		after.Revision != 4 {
		t.Errorf("restored: %+v", after)
	}
	ada.undoOf(restored)
	if after := w.memoryOf(admin, m.ID); after.Content != "The kettle is red.\nIt stands here." || len(after.Tags) != 0 {
		t.Errorf("taken back: %+v", after)
	}
	csrf := one.html.all("form")[0].fields().Get("csrf")
	ada.post(path+"/restore", url.Values{"csrf": {csrf}, "revision": {"77"}}).expect(http.StatusNotFound, "77")
	ada.post(path+"/restore", url.Values{"csrf": {csrf}, "revision": {"one"}}).expect(http.StatusBadRequest, "one")
}

// However often a memory has changed, and however large it is, the pages of it stay small.
func TestPagesOfALargeMemoryStaySmall(t *testing.T) {
	w := newWorld(t, server.Options{})
	ada := w.signedIn(admin)
	large := strings.Repeat("<b>many</b> *words* of [a link](/profile) & more\n", 10_000)
	m := w.addMemory(admin, souvenir.NewMemory{Content: large,
		ShownMetadata: map[string]any{"deep": strings.Repeat("<x>", 5_000)}})
	for i := range 12 {
		text := strings.ReplaceAll(large, "words", strings.Repeat("w", i+1))[:60_000]
		w.patchMemory(admin, m.ID, souvenir.MemoryUpdate{Content: &text})
	}
	path := "/memories/" + m.ID
	checkPage(w, ada.get(path).expect(http.StatusOK, "Show all"))
	checkPage(w, ada.get(path+"/history").expect(http.StatusOK, "Page 1 of 2", "Version 13"))
	checkPage(w, ada.get(path+"/history?part=2").expect(http.StatusOK, "Version 1", "too large to compare"))
	checkPage(w, ada.get(path+"/history?revision=1").expect(http.StatusOK))
	if p := ada.get(path + "?all=yes").expect(http.StatusOK); !strings.Contains(p.body, "stored") || len(p.body) < 60_000 {
		t.Errorf("all of it is %d bytes", len(p.body))
	}
}

func TestMemoriesLikeAnother(t *testing.T) {
	w := newWorld(t, server.Options{})
	for _, text := range []string{"The shop opens at nine every day, and " + secret + " too.",
		"The shop opens at nine on Sundays."} {
		w.addMemory(owner, souvenir.NewMemory{Content: text})
	}
	like := w.addMemory(owner, souvenir.NewMemory{Content: "Our shop opens at nine.", ProjectID: "shop"})
	r := func(b *browser) *http.Request {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.at.URL+"/memories/"+w.memory+"/similar", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("HX-Request", "true")
		return r
	}
	olivia, rita := w.signedIn(owner), w.signedIn(reader)
	p := olivia.send(r(olivia)).expect(http.StatusOK, "opens at nine on Sundays", like.ID, "% similar").without("<html",
		"/memories/"+w.memory+`"`)
	if strings.Count(p.body, "<li>") != 3 {
		t.Errorf("%s", p.body)
	}
	rita.send(r(rita)).expect(http.StatusOK, like.ID).without(secret, "Sundays")
	rita.get("/memories/"+w.memory+"/similar").expect(http.StatusOK, "<html", like.ID).without(secret)
}
