package dashboard_test

import (
	"bytes"
	"encoding/json"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

func asJSON(t *testing.T, value any) string {
	t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

// upload sends a form with a file, as a page of this server does.
func upload(b *servertest.Browser, path, csrf, name, content string) *servertest.Page {
	b.W.T.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	steps := servertest.FirstError{}
	steps.Note(form.WriteField("csrf", csrf))
	part, err := form.CreateFormFile("file", name)
	steps.Note(err)
	_, err = part.Write([]byte(content))
	steps.Note(err)
	steps.Note(form.Close())
	if steps.Err != nil {
		b.W.T.Fatalf("got %v, want nil", steps.Err)
	}
	r, err := http.NewRequestWithContext(b.W.T.Context(), http.MethodPost, b.W.HTTP.URL+path, &body)
	if err != nil {
		b.W.T.Fatal(err)
	}
	r.Header.Set("Content-Type", form.FormDataContentType())
	r.Header.Set("Origin", b.W.HTTP.URL)
	return b.Send(r)
}

func TestButtonsOfAMemory(t *testing.T) {
	w := servertest.New(t, server.Options{})
	ada := w.SignedIn(servertest.Admin)
	m := w.AddMemory(servertest.Admin, souvenir.NewMemory{Content: "A text", State: "draft", Importance: "low"})
	path := "/memories/" + m.ID
	press := func(says string) *servertest.Page {
		t.Helper()
		p := ada.Get(path).Expect(http.StatusOK)
		for _, form := range p.HTML.All("form") {
			if form.Attr("action") == path+"/set" && strings.Contains(form.Text, says) {
				return ada.Post(path+"/set", form.Fields())
			}
		}
		t.Fatalf("there is no button %q", says)
		return nil
	}
	archived := press("Archive")
	ada.Get(archived.Header.Get("Location")).Expect(http.StatusOK, "The memory is archived", "Make active again")
	if got := memoryOf(w, servertest.Admin, m.ID).State; got != "archived" {
		t.Errorf("its state is %q, want \"archived\"", got)
	}
	important := press("Star")
	if got := memoryOf(w, servertest.Admin, m.ID).Importance; got != "high" {
		t.Errorf("its importance is %q, want \"high\"", got)
	}
	p := ada.Submit(ada.Get(archived.Header.Get("Location")), "/undo", nil) // another change has happened since
	p.Expect(http.StatusConflict, "changed again")
	undoOf(ada, important)
	if got := memoryOf(w, servertest.Admin, m.ID); got.Importance != "low" || got.State != "archived" {
		t.Errorf(`undone, it is %+v, want importance "low" and state "archived"`, got)
	}
	press("Make active again")
	press("Completed")
	completed := memoryOf(w, servertest.Admin, m.ID)
	if completed.State != "completed" {
		t.Errorf("its state is %q, want \"completed\"", completed.State)
	}
	csrf := ada.Get(path).HTML.All("form")[0].Fields().Get("csrf")
	for _, wrong := range []url.Values{{"key": {"content"}, "value": {""}}, {"key": {"state"}, "value": {"gone"}},
		{"key": {"importance"}, "value": {"archived"}}, {}} {
		wrong.Set("csrf", csrf)
		ada.Post(path+"/set", wrong).Expect(http.StatusBadRequest, "the buttons of a memory")
	}
	if after := memoryOf(w, servertest.Admin, m.ID); after.Revision != completed.Revision {
		t.Errorf("a wrong button has changed it: got %v, want %v", after.Revision, completed.Revision)
	}
	same := ada.Post(path+"/set", url.Values{"csrf": {csrf}, "key": {"state"}, "value": {"completed"}})
	ada.Get(same.Header.Get("Location")).Expect(http.StatusOK, "No changes.")
}

func TestDeletingAMemoryIsUndone(t *testing.T) {
	w := servertest.New(t, server.Options{})
	olivia := w.SignedIn(servertest.Owner)
	patchMemory(w, servertest.Owner, w.Memory,
		souvenir.MemoryUpdate{ShownMetadata: map[string]any{"tags": []any{"hours"}}})
	before := memoryOf(w, servertest.Owner, w.Memory)
	path := "/memories/" + w.Memory
	deleted := olivia.Submit(olivia.Get(path), path+"/delete", nil)
	if deleted.Status != http.StatusSeeOther || !strings.Contains(deleted.Header.Get("Location"), "?undo=") {
		t.Fatalf(`%d to %q, want status %v and "?undo=" in the Location`, deleted.Status, deleted.Header.Get("Location"),
			http.StatusSeeOther)
	}
	olivia.Get(path).Expect(http.StatusNotFound)
	olivia.Get(path + "/history").Expect(http.StatusNotFound)

	page := olivia.Get("/profile?undo="+deleted.GoesTo("/").Get("undo")).Expect(http.StatusOK,
		"The shop opens at nine.” is deleted", "Undo")
	sams := w.SignedIn(servertest.Stranger) // who has found out the id of the step
	csrf := sams.Get("/profile").HTML.All("form")[0].Fields().Get("csrf")
	sams.Post("/undo", url.Values{"csrf": {csrf}, "step": {deleted.GoesTo("/").Get("undo")}}).Expect(http.StatusNotFound)
	back := olivia.Submit(page, "/undo", nil)
	if back.Header.Get("Location") != path+"?done=undone" {
		t.Errorf("taking it back leads to %q, want %v", back.Header.Get("Location"), path+"?done=undone")
	}
	olivia.Get(path+"?done=undone").Expect(http.StatusOK, "Undone.", "opens at nine", "menu.txt")
	if after := memoryOf(w, servertest.Owner, w.Memory); asJSON(t, after) != asJSON(t, before) {
		t.Errorf("got %s, want %s as before", asJSON(t, after), asJSON(t, before))
	}
	olivia.Get(path+"/history").Expect(http.StatusOK, "Version 1", "Version 2")
	olivia.Submit(page, "/undo", nil).Expect(http.StatusNotFound, "can no longer be undone")
}

func TestFilesOfAMemory(t *testing.T) {
	w := servertest.New(t, server.Options{})
	olivia := w.SignedIn(servertest.Owner)
	m := w.AddMemory(servertest.Owner, souvenir.NewMemory{Content: "A plan"})
	path := "/memories/" + m.ID
	csrf := olivia.Get(path).HTML.All("form")[0].Fields().Get("csrf")
	view := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]})

	added := upload(olivia, path+"/files/add", csrf, "plan.txt", "the plan")
	olivia.Get(added.Header.Get("Location")).Expect(http.StatusOK, "plan.txt", "uploaded and linked")
	files, err := view.FilePage(t.Context(), souvenir.FileQuery{FileList: souvenir.FileList{MemoryID: m.ID}})
	if err != nil || files.Total != 1 || files.Files[0].Size != 8 {
		t.Fatalf("got %+v %v, want no error, total 1 and size 8", files, err)
	}
	file := files.Files[0].ID
	unlinked := olivia.Submit(olivia.Get(path), path+"/files/unlink", nil)
	olivia.Get(unlinked.Header.Get("Location")).Expect(http.StatusOK, "is unlinked from this memory")
	if f, err := view.GetFile(t.Context(), file); err != nil || f.MemoryID != "" {
		t.Fatalf("%+v %v, want memoryID \"\"", f, err)
	}
	linked := olivia.Submit(olivia.Get(path), path+"/files", url.Values{"file": {file}})
	olivia.Get(linked.Header.Get("Location")).Expect(http.StatusOK, "is linked to this memory")
	undoOf(olivia, linked)
	undoOf(olivia, unlinked) // an earlier step: the link exists again
	if f, err := view.GetFile(t.Context(), file); err != nil || f.MemoryID != m.ID {
		t.Errorf("%+v %v, want memoryID %v", f, err, m.ID)
	}
	for _, refused := range []struct {
		action, file string
		status       int
	}{{"/files", "nowhere", http.StatusNotFound}, {"/files/unlink", w.File, http.StatusBadRequest},
		{"/files", "", http.StatusNotFound}} {
		olivia.Post(path+refused.action, url.Values{"csrf": {csrf}, "file": {refused.file}}).Expect(refused.status)
	}
	undoOf(olivia, added) // the file is already gone
	if _, err := view.GetFile(t.Context(), file); err == nil {
		t.Error("the file is still there, want an error")
	}
	upload(olivia, path+"/files/add", csrf, "", "").Expect(http.StatusBadRequest, "No file was chosen")
	upload(olivia, path+"/files/add", csrf+"x", "plan.txt", "x").Expect(http.StatusForbidden, "out of date")
	olivia.Post(path+"/files/add", url.Values{"csrf": {csrf}}).Expect(http.StatusBadRequest, "File is missing")
	upload(olivia, "/memories/nowhere/files/add", csrf, "plan.txt", "x").Expect(http.StatusNotFound)
	if files, err := view.FilePage(t.Context(),
		souvenir.FileQuery{FileList: souvenir.FileList{MemoryID: m.ID}}); err != nil || files.Total != 0 {
		t.Errorf("%+v %v, want total 0", files, err)
	}
}

func TestHistoryOfAMemory(t *testing.T) {
	w := servertest.New(t, server.Options{})
	ada := w.SignedIn(servertest.Admin)
	m := w.AddMemory(servertest.Admin, souvenir.NewMemory{Content: "The kettle is blue.\nIt stands here.",
		Tags: []string{"kitchen"}})
	path := "/memories/" + m.ID
	ada.Get(path+"/history").Expect(http.StatusOK, "Not changed since it was stored").Without(">Restore<")
	_, fields := editForm(ada, m.ID)
	fields.Set("content", "The kettle is red.\nIt stands here.")
	ada.Post(path+"/edit", fields)
	patchMemory(w, servertest.Admin, m.ID, souvenir.MemoryUpdate{ShownMetadata: map[string]any{"tags": nil,
		"mood": "<b>good</b>"}})

	p := ada.Get(path+"/history").Expect(http.StatusOK, "Version 3", "Version 2", "Version 1",
		"<del>The kettle is <b>blue</b>.</del>", "<ins>The kettle is <b>red</b>.</ins>",
		"Removed: ", "Added: ", "<del>kitchen</del>", "removed", "<ins>&lt;b&gt;good&lt;/b&gt;</ins>",
		"by you, in Firefox on Linux")
	servertest.CheckPage(w, p)
	one := ada.Get(path+"/history?revision=1").Expect(http.StatusOK, "Version 1 of", "kitchen", "Changes since")
	servertest.CheckPage(w, one)
	for _, wrong := range []string{"0", "-1", "4", "99999999999999999999", "x", "%00"} {
		ada.Get(path+"/history?revision="+wrong).Expect(http.StatusNotFound, "is not kept")
	}
	restored := ada.Submit(one, path+"/restore", nil)
	ada.Get(restored.Header.Get("Location")).Expect(http.StatusOK, "as it was in version 1")
	if after := memoryOf(w, servertest.Admin, m.ID); after.Content != m.Content || strings.Join(after.Tags,
		"") != "kitchen" ||
		after.Revision != 4 {
		t.Errorf(`restored: %+v, want content %v, tags "kitchen" and revision 4`, after, m.Content)
	}
	undoOf(ada, restored)
	if after := memoryOf(w, servertest.Admin, m.ID); after.Content != "The kettle is red.\nIt stands here." ||
		len(after.Tags) != 0 {
		t.Errorf("undone: %+v, want the text from before, without tags", after)
	}
	csrf := one.HTML.All("form")[0].Fields().Get("csrf")
	ada.Post(path+"/restore", url.Values{"csrf": {csrf}, "revision": {"77"}}).Expect(http.StatusNotFound, "77")
	ada.Post(path+"/restore", url.Values{"csrf": {csrf}, "revision": {"one"}}).Expect(http.StatusBadRequest, "one")
}

// However often a memory has changed, and however large it is, its pages stay small.
func TestPagesOfALargeMemoryStaySmall(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	ada := w.SignedIn(servertest.Admin)
	large := strings.Repeat("<b>many</b> *words* of [a link](/profile) & more\n", 10_000)
	m := w.AddMemory(servertest.Admin, souvenir.NewMemory{Content: large,
		ShownMetadata: map[string]any{"deep": strings.Repeat("<x>", 5_000)}})
	for i := range 12 {
		text := strings.ReplaceAll(large, "words", strings.Repeat("w", i+1))[:60_000]
		patchMemory(w, servertest.Admin, m.ID, souvenir.MemoryUpdate{Content: &text})
	}
	path := "/memories/" + m.ID
	servertest.CheckPage(w, ada.Get(path).Expect(http.StatusOK, "Show all"))
	servertest.CheckPage(w, ada.Get(path+"/history").Expect(http.StatusOK, "Page 1 of 2", "Version 13"))
	servertest.CheckPage(w, ada.Get(path+"/history?part=2").Expect(http.StatusOK, "Version 1", "too large to compare"))
	servertest.CheckPage(w, ada.Get(path+"/history?revision=1").Expect(http.StatusOK))
	if p := ada.Get(path + "?all=yes").Expect(http.StatusOK); !strings.Contains(p.Body, "stored") || len(p.Body) < 60_000 {
		t.Errorf(`all of it: got %d bytes, want at least 60000 with "stored"`, len(p.Body))
	}
}

func TestMemoriesLikeAnother(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	for _, text := range []string{"The shop opens at nine every day, and " + servertest.Secret + " too.",
		"The shop opens at nine on Sundays."} {
		w.AddMemory(servertest.Owner, souvenir.NewMemory{Content: text})
	}
	like := w.AddMemory(servertest.Owner, souvenir.NewMemory{Content: "Our shop opens at nine.", ProjectID: "shop"})
	r := func(b *servertest.Browser) *http.Request {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.HTTP.URL+"/memories/"+w.Memory+"/similar", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("HX-Request", "true")
		return r
	}
	olivia, rita := w.SignedIn(servertest.Owner), w.SignedIn(servertest.Reader)
	p := olivia.Send(r(olivia)).Expect(http.StatusOK, "opens at nine on Sundays", like.ID, "% similar").Without("<html",
		"/memories/"+w.Memory+`"`)
	if strings.Count(p.Body, "<li>") != 3 {
		t.Errorf("got %s, want 3", p.Body)
	}
	rita.Send(r(rita)).Expect(http.StatusOK, like.ID).Without(servertest.Secret, "Sundays")
	rita.Get("/memories/"+w.Memory+"/similar").Expect(http.StatusOK, "<html", like.ID).Without(servertest.Secret)
}
