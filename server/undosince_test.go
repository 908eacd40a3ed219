package server_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// What others have done since a step stays when someone wants to take that step back.
func TestTakingBackKeepsWhatWasDoneSince(t *testing.T) {
	w := newWorld(t, server.Options{})
	olivia := w.signedIn(owner)
	view := w.store.As(souvenir.Access{User: w.users[owner]})
	steps := firstError{}

	preference := olivia.submit(olivia.get("/settings"), "/settings", url.Values{"key": {"answers"}, "value": {"short"}})
	_, err := view.UpdatePreferences(t.Context(), map[string]any{"answers": "long"})
	steps.note(err)
	olivia.undoOf(preference).expect(http.StatusConflict, "changed again since")
	if got := w.preferences(owner)["answers"]; got != "long" {
		t.Errorf("answers is %v, want \"long\"", got)
	}
	whole := olivia.submit(olivia.get("/settings"), "/settings/whole", url.Values{"whole": {`{"theme": "dark"}`}})
	_, err = view.UpdatePreferences(t.Context(), map[string]any{"fresh": true})
	steps.note(err)
	olivia.undoOf(whole).expect(http.StatusConflict, "changed again since")
	if got := w.preferences(owner); got["fresh"] != true || got["answers"] != nil {
		t.Errorf("preferences are %v", got)
	}

	ref, settings, members := souvenir.ProjectRef{ID: w.users[owner] + "/shop"}, w.shop()+"/settings", w.shop()+"/members"
	renamed := olivia.submit(olivia.get(settings), settings, url.Values{"name": {"Second"}})
	third := "Third"
	_, err = view.UpdateProject(t.Context(), ref, souvenir.ProjectUpdate{Name: &third})
	steps.note(err)
	olivia.undoOf(renamed).expect(http.StatusConflict, "renamed again since")
	if p, err := view.GetProject(t.Context(), ref); err != nil || p.Name != third {
		t.Errorf("%+v %v, want name %v", p, err, third)
	}
	csrf := olivia.get(members).hidden().Get("csrf")
	added := olivia.post(members,
		url.Values{"csrf": {csrf}, "change": {"add"}, "user": {w.users[stranger]}, "role": {"reader"}})
	steps.note(w.acceptAll(stranger))
	olivia.undoOf(added).expect(http.StatusConflict, "is no longer pending")
	role := olivia.post(members, url.Values{"csrf": {csrf}, "change": {"role"}, "user": {w.users[stranger]},
		"role": {"reader"}})
	_, err = w.store.UpdateMember(t.Context(),
		ref, w.users[stranger], souvenir.MemberUpdate{Role: souvenir.MemberOwner})
	steps.note(err)
	olivia.undoOf(role).expect(http.StatusConflict, "another role since")
	if steps.err != nil {
		t.Fatal(steps.err)
	}
}

// A file that lay in no project comes into that of a memory that it is linked to, and out of it when that is taken
// back.
func TestTakingBackALinkTakesTheFileOutOfTheProject(t *testing.T) {
	w := newWorld(t, server.Options{})
	olivia := w.signedIn(owner)
	shared := w.addMemory(owner, souvenir.NewMemory{Content: "For all of the shop", ProjectID: "shop"})
	file := w.fileOf(owner, souvenir.NewFile{Filename: "private.txt"}, secret)
	path := "/memories/" + shared.ID
	linked := olivia.submit(olivia.get(path), path+"/files", url.Values{"file": {file.ID}})
	rita := w.store.As(souvenir.Access{User: w.users[reader]})
	if _, err := rita.GetFile(t.Context(), file.ID); err != nil {
		t.Fatalf("linked, it is not in the project: %v", err)
	}
	olivia.undoOf(linked).expect(http.StatusSeeOther)
	if f, err := rita.GetFile(t.Context(), file.ID); err == nil {
		t.Errorf("the readers of the project see it still: %+v", f)
	}
}

// Pages lead to a project whose id has dots alone, or is the name of another page.
func TestFilesAndCallsLeadToProjectsOfAllNames(t *testing.T) {
	w := newWorld(t, server.Options{})
	olivia := w.signedIn(owner)
	view := w.store.As(souvenir.Access{User: w.users[owner]})
	for _, id := range []string{"..", "rules", "~x"} {
		p, err := view.AddProject(t.Context(), souvenir.NewProject{ID: id, Name: "Named " + id})
		if err != nil {
			t.Fatal(err)
		}
		file := w.fileOf(owner, souvenir.NewFile{Filename: "a.txt", ProjectID: id}, "text")
		w.callOf(owner, souvenir.NewActivity{Tool: "memory", Project: souvenir.ProjectRef{ID: id}})
		address := `href="` + server.ProjectPath(p) + `"`
		m := w.addMemory(owner, souvenir.NewMemory{Content: "A note", ProjectID: id})
		for _, path := range []string{"/files", "/files/" + file.ID, "/activity", "/memories/" + m.ID} {
			if page := olivia.get(path).expect(http.StatusOK); !strings.Contains(page.body, address) {
				t.Errorf("%s has no %s", path, address)
			}
		}
	}
}
