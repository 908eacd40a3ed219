package server_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

func TestTheTrashGoesByScopes(t *testing.T) {
	w := newWorld(t, server.Options{})
	view := w.store.As(souvenir.Access{User: w.users[owner]})
	if err := view.DeleteFile(t.Context(), w.file); err != nil {
		t.Fatal(err)
	}
	if err := view.DeleteMemory(t.Context(), w.memory); err != nil {
		t.Fatal(err)
	}
	only, err := view.Accounts().AddToken(t.Context(),
		souvenir.NewToken{Name: "only", Scopes: []souvenir.Scope{souvenir.ScopeAccount}})
	if err != nil {
		t.Fatal(err)
	}
	w.hold("only", only.Value)
	w.do("only", "GET", "/api/trash", "").expect(http.StatusForbidden, "needs the scope memory:read")
	w.do("only", "POST", "/api/trash/"+w.memory+"/restore", "").expect(http.StatusForbidden,
		"needs the scope memory:write")
	w.do(owner, "GET", "/api/trash", "").expect(http.StatusOK, `"total":2`, w.memory, w.file)
	w.do(owner, "GET", "/api/trash?kind=user", "").expect(http.StatusBadRequest, "kind is")
	w.do(readOnly, "GET", "/api/trash", "").expect(http.StatusOK, `"total":2`)
	for _, c := range []struct{ caller, kind, sees, other, without string }{
		{noFiles, "memory", w.memory, w.file, "files:read"}, {noMemory, "file", w.file, w.memory, "memory:read"},
	} {
		w.do(c.caller, "GET", "/api/trash", "").expect(http.StatusOK, `"total":1`, c.sees).without(c.other)
		other := map[string]string{"memory": "file", "file": "memory"}[c.kind]
		w.do(c.caller, "GET", "/api/trash?kind="+other, "").expect(http.StatusForbidden, "needs the scope "+c.without)
		w.do(c.caller, "GET", "/api/trash?kind="+c.kind, "").expect(http.StatusOK, c.sees)
		w.do(c.caller, "POST", "/api/trash/"+c.other+"/restore", "").expect(http.StatusNotFound, "is not in the trash")
	}
	w.do(readOnly, "POST", "/api/trash/"+w.file+"/restore", "").expect(http.StatusForbidden)
	w.do(noFiles, "POST", "/api/trash/"+w.memory+"/restore", "").expect(http.StatusOK)
	w.do(noMemory, "POST", "/api/trash/"+w.file+"/restore", "").expect(http.StatusOK)
}

func TestTheTrash(t *testing.T) {
	w := newWorld(t, server.Options{})
	view := w.store.As(souvenir.Access{User: w.users[owner]})
	var ids []string
	for _, content := range []string{"first of three", "second of three", hostile} {
		m, err := view.AddMemory(t.Context(), souvenir.NewMemory{Content: content})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, m.ID)
	}
	w.do(owner, "POST", "/tools/call", `{"name": "memory", "arguments": {"action": "delete", "id": "`+ids[0]+`"}}`).
		expect(http.StatusOK, ids[0], "restorable_until")
	for _, id := range ids[1:] {
		if err := view.DeleteMemory(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	w.do(owner, "GET", "/api/trash?limit=1", "").expect(http.StatusOK, `"total":3`, `"count":1`, `"has_more":true`)
	w.do(owner, "GET", "/api/trash", "").expect(http.StatusOK, "first of three", `"deleted_through":"tool"`,
		`"kind":"memory"`)
	w.do(stranger, "GET", "/api/trash", "").expect(http.StatusOK, `"entries":[]`)
	w.do(stranger, "POST", "/api/trash/"+ids[0]+"/restore", "").expect(http.StatusNotFound)
	w.do(stranger, "DELETE", "/api/trash/"+ids[0], "").expect(http.StatusNotFound)
	w.do(owner, "POST", "/api/trash/"+ids[0]+"/restore", "").expect(http.StatusOK, `"success":true`, ids[0])
	w.do(owner, "POST", "/api/trash/"+ids[0]+"/restore", "").expect(http.StatusNotFound)

	olivia, sam := w.signedIn(owner), w.signedIn(stranger)
	checkPage(w, sam.get("/trash").expect(http.StatusOK, "Nothing here").without("second of three", "Empty the trash"))
	p := olivia.get("/trash").expect(http.StatusOK, "second of three", "erased for good",
		"Empty the trash").without("<script>alert")
	checkPage(w, p)
	csrf := p.hidden().Get("csrf")
	post := func(values url.Values) *gotPage {
		values.Set("csrf", csrf)
		return olivia.post("/trash", values)
	}
	olivia.leadsTo(post(url.Values{"action": {"restore"}, "id": {ids[1]}}), "/trash?done=restored").expect(http.StatusOK,
		"Restored.").without("second of three")
	post(url.Values{"action": {"restore"}, "id": {ids[1]}}).expect(http.StatusNotFound, "not in the trash")
	post(url.Values{"action": {hostile}}).expect(http.StatusBadRequest, "allowed are empty").without("<script>alert")
	olivia.post("/trash", url.Values{"action": {"empty"}}).expect(http.StatusForbidden)
	checkPage(w, olivia.get("/trash?empty=ask").expect(http.StatusOK, "Erase everything here?", "cannot be undone"))
	olivia.leadsTo(post(url.Values{"action": {"empty"}}), "/trash?done=emptied").expect(http.StatusOK, "Nothing here")
	w.do(owner, "GET", "/api/trash", "").expect(http.StatusOK, `"total":0`)
}

func TestSeveralEntriesOfTheTrashAtOnce(t *testing.T) {
	w := newWorld(t, server.Options{})
	view := w.store.As(souvenir.Access{User: w.users[owner]})
	add := func(m souvenir.NewMemory) string {
		stored, err := view.AddMemory(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		if err := view.DeleteMemory(t.Context(), stored.ID); err != nil {
			t.Fatal(err)
		}
		return stored.ID
	}
	inProject := add(souvenir.NewMemory{Content: "in a project", ProjectName: "Gone"})
	if err := view.DeleteProject(t.Context(),
		souvenir.ProjectRef{Name: "Gone"}, nil); err != nil {
		t.Fatal(err)
	}
	add(souvenir.NewMemory{Content: "to be erased"})
	add(souvenir.NewMemory{Content: "to be erased"})
	trash, err := view.Trash().Page(t.Context(), souvenir.TrashQuery{})
	if err != nil || len(trash.Entries) != 4 {
		t.Fatalf("%+v, %v; got %v, want 4", trash, err, len(trash.Entries))
	}
	ids := make([]string, len(trash.Entries)) // the memory before the project that it waits for
	for i, e := range trash.Entries {
		ids[len(ids)-1-i] = e.ID
	}

	olivia := w.signedIn(owner)
	p := olivia.get("/trash").expect(http.StatusOK, "Restore selected", "Erase selected", `form="chosen-entries"`)
	checkPage(w, p)
	csrf := p.hidden().Get("csrf")
	post := func(values url.Values) *gotPage {
		values.Set("csrf", csrf)
		return olivia.post("/trash", values)
	}
	post(url.Values{"action": {"restore"}}).expect(http.StatusBadRequest, "select 1 to 1000")
	olivia.leadsTo(post(url.Values{"action": {"restore"}, "id": ids[:2]}), "/trash?done=restored").without("in a project")
	if _, err := view.GetMemory(t.Context(), inProject); err != nil {
		t.Error(err)
	}
	post(url.Values{"action": {"restore"}, "id": {ids[0], ids[1], "nowhere"}}).
		expect(http.StatusNotFound, "3 of the 3 entries are unchanged", "not in the trash")
	asked := post(url.Values{"action": {"erase"}, "id": ids[2:]}).expect(http.StatusOK, "Erase 2 entries permanently?",
		"cannot be undone")
	checkPage(w, asked)
	if left, err := view.Trash().Page(t.Context(), souvenir.TrashQuery{}); err != nil || left.Total != 2 {
		t.Errorf("before the answer: %+v, %v; want total 2", left, err)
	}
	sure := asked.hidden()
	if len(sure["id"]) != 2 {
		t.Fatalf("the question keeps %v, got %v, want 2", sure, len(sure["id"]))
	}
	olivia.leadsTo(olivia.post("/trash", sure), "/trash?done=erased").expect(http.StatusOK, "Nothing here")
}
