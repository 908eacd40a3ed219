package dashboard_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

func TestTheTrashKeepsToScopes(t *testing.T) {
	w := servertest.New(t, server.Options{})
	view := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]})
	if err := view.DeleteFile(t.Context(), w.File, nil); err != nil {
		t.Fatal(err)
	}
	if err := view.DeleteMemory(t.Context(), w.Memory, nil); err != nil {
		t.Fatal(err)
	}
	only, err := view.Accounts().AddToken(t.Context(),
		souvenir.NewToken{Name: "only", Scopes: []souvenir.Scope{souvenir.ScopeAccount}})
	if err != nil {
		t.Fatal(err)
	}
	w.Hold("only", only.Value)
	w.Do("only", "GET", "/api/trash", "").Expect(http.StatusForbidden, "needs the scope memory:read")
	w.Do("only", "POST", "/api/trash/"+w.Memory+"/restore", "").Expect(http.StatusForbidden,
		"needs the scope memory:write")
	w.Do(servertest.Owner, "GET", "/api/trash", "").Expect(http.StatusOK, `"total":2`, w.Memory, w.File)
	w.Do(servertest.Owner, "GET", "/api/trash?kind=user", "").Expect(http.StatusBadRequest, "kind is")
	w.Do(servertest.ReadOnly, "GET", "/api/trash", "").Expect(http.StatusOK, `"total":2`)
	for _, c := range []struct{ caller, kind, sees, other, without string }{
		{servertest.NoFiles, "memory", w.Memory, w.File, "files:read"}, {servertest.NoMemory, "file", w.File, w.Memory,
			"memory:read"},
	} {
		w.Do(c.caller, "GET", "/api/trash", "").Expect(http.StatusOK, `"total":1`, c.sees).Without(c.other)
		other := map[string]string{"memory": "file", "file": "memory"}[c.kind]
		w.Do(c.caller, "GET", "/api/trash?kind="+other, "").Expect(http.StatusForbidden, "needs the scope "+c.without)
		w.Do(c.caller, "GET", "/api/trash?kind="+c.kind, "").Expect(http.StatusOK, c.sees)
		w.Do(c.caller, "POST", "/api/trash/"+c.other+"/restore", "").Expect(http.StatusNotFound, "is not in the trash")
	}
	w.Do(servertest.ReadOnly, "POST", "/api/trash/"+w.File+"/restore", "").Expect(http.StatusForbidden)
	w.Do(servertest.NoFiles, "POST", "/api/trash/"+w.Memory+"/restore", "").Expect(http.StatusOK)
	w.Do(servertest.NoMemory, "POST", "/api/trash/"+w.File+"/restore", "").Expect(http.StatusOK)
}

func TestTheTrash(t *testing.T) {
	w := servertest.New(t, server.Options{})
	view := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]})
	var ids []string
	for _, content := range []string{"first of three", "second of three", servertest.Hostile} {
		m, err := view.AddMemory(t.Context(), souvenir.NewMemory{Content: content})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, m.ID)
	}
	w.Do(servertest.Owner, "POST", "/tools/call", `{"name": "memory", "arguments": {"action": "delete", "id": "`+ids[0]+
		`"}}`).
		Expect(http.StatusOK, ids[0], "restorable_until")
	for _, id := range ids[1:] {
		if err := view.DeleteMemory(t.Context(), id, nil); err != nil {
			t.Fatal(err)
		}
	}
	w.Do(servertest.Owner, "GET", "/api/trash?limit=1", "").Expect(http.StatusOK, `"total":3`, `"count":1`,
		`"has_more":true`)
	w.Do(servertest.Owner, "GET", "/api/trash", "").Expect(http.StatusOK, "first of three", `"deleted_through":"tool"`,
		`"kind":"memory"`)
	w.Do(servertest.Stranger, "GET", "/api/trash", "").Expect(http.StatusOK, `"entries":[]`)
	w.Do(servertest.Stranger, "POST", "/api/trash/"+ids[0]+"/restore", "").Expect(http.StatusNotFound)
	w.Do(servertest.Stranger, "DELETE", "/api/trash/"+ids[0], "").Expect(http.StatusNotFound)
	w.Do(servertest.Owner, "POST", "/api/trash/"+ids[0]+"/restore", "").Expect(http.StatusOK, `"success":true`, ids[0])
	w.Do(servertest.Owner, "POST", "/api/trash/"+ids[0]+"/restore", "").Expect(http.StatusNotFound)

	olivia, sam := w.SignedIn(servertest.Owner), w.SignedIn(servertest.Stranger)
	servertest.CheckPage(w, sam.Get("/trash").Expect(http.StatusOK, "Nothing here").Without("second of three",
		"Empty the trash"))
	p := olivia.Get("/trash").Expect(http.StatusOK, "second of three", "erased permanently",
		"Empty the trash").Without("<script>alert")
	servertest.CheckPage(w, p)
	csrf := p.Hidden().Get("csrf")
	post := func(values url.Values) *servertest.Page {
		values.Set("csrf", csrf)
		return olivia.Post("/trash", values)
	}
	restore := url.Values{"action": {"restore"}, "id": {ids[1]}}
	back := olivia.Get(post(restore).Header.Get("Location")).Expect(http.StatusOK, "“second of three” is restored.",
		"Undo")
	undo(olivia, back).Expect(http.StatusOK, "Undone.", "second of three") // deleted again
	back = olivia.Get(post(restore).Header.Get("Location"))
	if _, err := view.UpdateMemory(t.Context(), ids[1], souvenir.MemoryUpdate{Tags: &[]string{"new"}}); err != nil {
		t.Fatal(err)
	}
	undo(olivia, back).Expect(http.StatusConflict, "has been changed since it was restored")
	post(url.Values{"action": {"restore"}, "id": {ids[1]}}).Expect(http.StatusNotFound, "not in the trash")
	post(url.Values{"action": {servertest.Hostile}}).Expect(http.StatusBadRequest,
		"expected empty").Without("<script>alert")
	olivia.Post("/trash", url.Values{"action": {"empty"}}).Expect(http.StatusForbidden)
	servertest.CheckPage(w, olivia.Get("/trash?empty=ask").Expect(http.StatusOK, "Erase 1 entry?", "1 entry here.",
		"cannot be undone"))
	olivia.LeadsTo(post(url.Values{"action": {"empty"}}), "/trash?done=emptied").Expect(http.StatusOK, "Nothing here")
	w.Do(servertest.Owner, "GET", "/api/trash", "").Expect(http.StatusOK, `"total":0`)
}

func TestSeveralEntriesOfTheTrashAtOnce(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	view := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]})
	add := func(m souvenir.NewMemory) string {
		stored, err := view.AddMemory(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		if err := view.DeleteMemory(t.Context(), stored.ID, nil); err != nil {
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
	ids := make([]string, len(trash.Entries)) // the memory comes before the project that it needs
	for i, e := range trash.Entries {
		ids[len(ids)-1-i] = e.ID
	}

	olivia := w.SignedIn(servertest.Owner)
	p := olivia.Get("/trash").Expect(http.StatusOK, "Restore selected", "Erase selected", `form="chosen-entries"`)
	servertest.CheckPage(w, p)
	csrf := p.Hidden().Get("csrf")
	post := func(values url.Values) *servertest.Page {
		values.Set("csrf", csrf)
		return olivia.Post("/trash", values)
	}
	post(url.Values{"action": {"restore"}}).Expect(http.StatusBadRequest, "select 1 to 1000")
	back := olivia.Get(post(url.Values{"action": {"restore"}, "id": ids[:2]}).Header.Get("Location")).
		Expect(http.StatusOK, "2 entries restored.").Without("in a project")
	if _, err := view.GetMemory(t.Context(), inProject); err != nil {
		t.Error(err)
	}
	undo(olivia, back).Expect(http.StatusOK, "Undone.", "in a project", "Gone") // the memory comes before its project
	if trash, err = view.Trash().Page(t.Context(), souvenir.TrashQuery{Limit: 2}); err != nil {
		t.Fatal(err)
	}
	ids[0], ids[1] = trash.Entries[1].ID, trash.Entries[0].ID
	olivia.Get(post(url.Values{"action": {"restore"}, "id": ids[:2]}).Header.Get("Location")).Without("in a project")
	post(url.Values{"action": {"restore"}, "id": {ids[0], ids[1], "nowhere"}}).
		Expect(http.StatusNotFound, "3 of the 3 entries are unchanged", "not in the trash")
	asked := post(url.Values{"action": {"erase"}, "id": ids[2:]}).Expect(http.StatusOK, "Erase 2 entries permanently?",
		"cannot be undone")
	servertest.CheckPage(w, asked)
	if left, err := view.Trash().Page(t.Context(), souvenir.TrashQuery{}); err != nil || left.Total != 2 {
		t.Errorf("before the answer: %+v, %v; want total 2", left, err)
	}
	sure := asked.Hidden()
	if len(sure["id"]) != 2 {
		t.Fatalf("the question keeps %v, got %v, want 2", sure, len(sure["id"]))
	}
	olivia.LeadsTo(olivia.Post("/trash", sure), "/trash?done=erased").Expect(http.StatusOK, "Nothing here")
}
