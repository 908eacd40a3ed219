package dashboard_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
	"github.com/souvenir-ai/souvenir/server/internal/web"

	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

// Undoing a step keeps what others have done since.
func TestUndoKeepsLaterChanges(t *testing.T) {
	w := servertest.New(t, server.Options{})
	olivia := w.SignedIn(servertest.Owner)
	view := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]})
	steps := servertest.FirstError{}

	preference := olivia.Submit(olivia.Get("/settings"), "/settings", url.Values{"key": {"answers"}, "value": {"short"}})
	_, err := view.UpdatePreferences(t.Context(), map[string]any{"answers": "long"})
	steps.Note(err)
	undoOf(olivia, preference).Expect(http.StatusConflict, "changed again since")
	if got := preferences(w, servertest.Owner)["answers"]; got != "long" {
		t.Errorf("answers is %v, want \"long\"", got)
	}
	whole := olivia.Submit(olivia.Get("/settings"), "/settings/whole", url.Values{"whole": {`{"theme": "dark"}`}})
	_, err = view.UpdatePreferences(t.Context(), map[string]any{"fresh": true})
	steps.Note(err)
	undoOf(olivia, whole).Expect(http.StatusConflict, "changed again since")
	if got := preferences(w, servertest.Owner); got["fresh"] != true || got["answers"] != nil {
		t.Errorf("preferences are %v, want fresh preferences without answers", got)
	}

	ref, settings, members := souvenir.ProjectRef{ID: w.Users[servertest.Owner] + "/shop"}, shop(w)+"/settings", shop(w)+
		"/members"
	renamed := olivia.Submit(olivia.Get(settings), settings, url.Values{"name": {"Second"}})
	third := "Third"
	_, err = view.UpdateProject(t.Context(), ref, souvenir.ProjectUpdate{Name: &third})
	steps.Note(err)
	undoOf(olivia, renamed).Expect(http.StatusConflict, "renamed again since")
	if p, err := view.GetProject(t.Context(), ref); err != nil || p.Name != third {
		t.Errorf("%+v %v, want name %v", p, err, third)
	}
	csrf := olivia.Get(members).Hidden().Get("csrf")
	added := olivia.Post(members,
		url.Values{"csrf": {csrf}, "change": {"add"}, "user": {w.Users[servertest.Stranger]}, "role": {"reader"}})
	steps.Note(acceptAll(w, servertest.Stranger))
	undoOf(olivia, added).Expect(http.StatusConflict, "is no longer pending")
	role := olivia.Post(members, url.Values{"csrf": {csrf}, "change": {"role"}, "user": {w.Users[servertest.Stranger]},
		"role": {"reader"}})
	_, err = w.Store.UpdateMember(t.Context(),
		ref, w.Users[servertest.Stranger], souvenir.MemberUpdate{Role: souvenir.MemberOwner})
	steps.Note(err)
	undoOf(olivia, role).Expect(http.StatusConflict, "another role since")
	if steps.Err != nil {
		t.Fatalf("got %v, want nil", steps.Err)
	}
}

// A file outside of projects joins the project of a memory when linked to it, and leaves it when the link is undone.
func TestTakingBackALinkTakesTheFileOutOfTheProject(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	olivia := w.SignedIn(servertest.Owner)
	shared := w.AddMemory(servertest.Owner, souvenir.NewMemory{Content: "For all of the shop", ProjectID: "shop"})
	file := w.FileOf(servertest.Owner, souvenir.NewFile{Filename: "private.txt"}, servertest.Secret)
	path := "/memories/" + shared.ID
	linked := olivia.Submit(olivia.Get(path), path+"/files", url.Values{"file": {file.ID}})
	rita := w.Store.As(souvenir.Access{User: w.Users[servertest.Reader]})
	if _, err := rita.GetFile(t.Context(), file.ID); err != nil {
		t.Fatalf("linked, it is not in the project: %v", err)
	}
	undoOf(olivia, linked).Expect(http.StatusSeeOther)
	if f, err := rita.GetFile(t.Context(), file.ID); err == nil {
		t.Errorf("the readers of the project see it still: %+v, want an error", f)
	}
}

// Pages link to projects whose id consists of dots, or equals the name of another page.
func TestFilesAndCallsLeadToProjectsOfAllNames(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	olivia := w.SignedIn(servertest.Owner)
	view := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]})
	for _, id := range []string{"..", "rules", "~x"} {
		p, err := view.AddProject(t.Context(), souvenir.NewProject{ID: id, Name: "Named " + id})
		if err != nil {
			t.Fatal(err)
		}
		file := w.FileOf(servertest.Owner, souvenir.NewFile{Filename: "a.txt", ProjectID: id}, "text")
		callOf(w, servertest.Owner, souvenir.NewActivity{Tool: "memory", Project: souvenir.ProjectRef{ID: id}})
		address := `href="` + web.ProjectPath(p) + `"`
		m := w.AddMemory(servertest.Owner, souvenir.NewMemory{Content: "A note", ProjectID: id})
		for _, path := range []string{"/files", "/files/" + file.ID, "/activity", "/memories/" + m.ID} {
			if page := olivia.Get(path).Expect(http.StatusOK); !strings.Contains(page.Body, address) {
				t.Errorf("%s: got a page without %s, want one that contains it", path, address)
			}
		}
	}
}
