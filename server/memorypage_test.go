package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// The page of a memory is for those who see the memory; of others it says what it says of one that does not exist.
func TestThePageOfAMemory(t *testing.T) {
	w := newWorld(t, server.Options{})
	for _, caller := range []string{owner, reader, writer} {
		w.signedIn(caller).get("/memories/"+w.memory).expect(http.StatusOK, "opens at nine", "shop", "menu.txt",
			"/api/files/"+w.file).without(secret)
	}
	w.signedIn(owner).get("/memories/"+w.private).expect(http.StatusOK, "The word is "+secret, secret+".txt")
	for _, caller := range []string{stranger, admin} {
		w.signedIn(caller).get("/memories/" + w.memory).expect(http.StatusNotFound).without("nine")
	}
	w.signedIn(reader).get("/memories/" + w.private).expect(http.StatusNotFound).without(secret)
	if p := w.browser().get("/memories/" +
		w.memory).expect(http.StatusSeeOther); p.header.Get("Location") != "/login?next=%2Fmemories%2F"+w.memory {
		t.Errorf("who has not signed in is sent to %q, want %v", p.header.Get("Location"), "/login?next=%2Fmemories%2F"+
			w.memory)
	}
}

// furnishMemory gives the pages something to show.
func (w *world) furnishMemory(paths map[string]string) {
	w.t.Helper()
	steps := firstError{}
	ada := w.store.As(souvenir.Access{User: w.users[admin]})
	other, err := ada.AddMemory(w.t.Context(),
		souvenir.NewMemory{Content: hostile + " beside it", EventType: hostile[:30]})
	steps.note(err)
	m, err := ada.AddMemory(w.t.Context(),
		souvenir.NewMemory{Content: "# " + hostile + "\n\n" + hostile, ProjectName: "P " + hostile,
			EventType: "<b>decision</b>", State: "<i>active",
			Tags: []string{`<b>, "quoted"`, "plain"}, Related: []string{other.ID},
			ShownMetadata: map[string]any{hostile: hostile, "deep": map[string]any{"<u>": []any{hostile, nil}}}})
	steps.note(err)
	_, err = ada.AddMemory(w.t.Context(), souvenir.NewMemory{Content: hostile + " links to it", Related: []string{m.ID}})
	steps.note(err)
	text := "# " + hostile + "\n\n" + hostile + " again\n"
	_, err = ada.UpdateMemory(w.t.Context(), m.ID,
		souvenir.MemoryUpdate{Content: &text, ShownMetadata: map[string]any{"state": "archived", hostile: nil}})
	steps.note(err)
	_, err = ada.AddFile(w.t.Context(), souvenir.NewFile{Filename: "<b>linked.txt", MemoryID: m.ID, Description: hostile},
		strings.NewReader("text"))
	steps.note(err)
	_, err = ada.AddFile(w.t.Context(), souvenir.NewFile{Filename: "<b>free.txt"}, strings.NewReader("text"))
	steps.note(err)
	if steps.err != nil {
		w.t.Fatal(steps.err)
	}
	paths["/memories/merge"] = "/memories/merge?id=" + m.ID + "&id=" + other.ID
	for _, page := range []string{"/similar", "/edit", "/history"} {
		paths["/memories/{id}"+page] = "/memories/" + m.ID + page
	}
}
