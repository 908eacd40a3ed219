package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func projects() concept {
	return concept{"Projects", []promise{
		{"an unknown id becomes a new project's id and name", projectByID},
		{"an unknown name makes a project with an id of its own", projectByName},
		{"id and name that disagree are refused", projectDisagreement},
		{"a name in the place of an id makes no second project of that name", projectNameAsID},
		{"projects of different users have nothing in common", projectPerUser},
		{"a memory moves to another project and back out", projectMove},
		{"searches and listings stay within one", projectScope},
		{"an unknown one is empty, with a warning", projectUnknown},
		{"one can be added before anything is in it", projectAdd},
		{"errors name bad arguments, and the allowed values", projectArguments},
		{"the list has the own ones by name, with their counts", projectList},
		{"its memories, filters and searches show its new name", projectRename},
		{"a former state comes back into a project that has another name now", projectRenameRestore},
		{"a full one is deleted only with its memories", projectDelete},
		{"the history of what has left a deleted one remains", projectDeleteHistory},
		{"one of thousands of memories is deleted whole", projectDeleteLarge},
	}}
}

func projectByID(f *fixture) {
	m := f.add(souvenir.NewMemory{Content: "x", ProjectID: "apollo"})
	f.equal("project", []string{m.ProjectID, m.ProjectName}, []string{"apollo", "apollo"})
	f.equal("by its name", f.add(souvenir.NewMemory{Content: "y", ProjectName: "apollo"}).ProjectID, "apollo")
	m = f.add(souvenir.NewMemory{Content: "z", ProjectID: "g7", ProjectName: "Gemini 7"})
	f.equal("project of id and name", []string{m.ProjectID, m.ProjectName}, []string{"g7", "Gemini 7"})
	f.equal("by both again", f.add(souvenir.NewMemory{Content: "z", ProjectID: "g7", ProjectName: "Gemini 7"}).ProjectID,
		"g7")
}

func projectByName(f *fixture) {
	m := f.add(souvenir.NewMemory{Content: "x", ProjectName: "Apollo 11"})
	f.equal("name", m.ProjectName, "Apollo 11")
	if m.ProjectID == "" || m.ProjectID == "Apollo 11" {
		f.Errorf("the project has the id %q; want a new one", m.ProjectID)
	}
	f.equal("by its id", f.add(souvenir.NewMemory{Content: "y", ProjectID: m.ProjectID}).ProjectName, "Apollo 11")
	f.equal("memories in it", f.search(souvenir.Query{ProjectName: "Apollo 11"}).Total, 2)
}

func projectDisagreement(f *fixture) {
	f.add(souvenir.NewMemory{Content: "a", ProjectID: "a", ProjectName: "Apollo"})
	f.add(souvenir.NewMemory{Content: "g", ProjectID: "g", ProjectName: "Gemini"})
	for _, c := range []struct{ id, name string }{{"a", "Gemini"}, {"new", "Gemini"}, {"a", "new"}} {
		_, err := f.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "x", ProjectID: c.id, ProjectName: c.name})
		f.fails("AddMemory with "+brief(c), err, souvenir.ErrInvalid, c.id, c.name, "disagree")
		_, err = f.reader.Search(f.ctx, souvenir.Query{ProjectID: c.id, ProjectName: c.name})
		f.fails("Search with "+brief(c), err, souvenir.ErrInvalid, "disagree")
		_, err = f.store.AddMemory(f.ctx,
			souvenir.NewMemory{Content: "x", ShownMetadata: map[string]any{"project_id": c.id, "project_name": c.name}})
		f.fails("AddMemory with metadata "+brief(c), err, souvenir.ErrInvalid, "disagree")
	}
	f.equal("memories", f.search(souvenir.Query{}).Total, 2)
}

func projectNameAsID(f *fixture) {
	m := f.add(souvenir.NewMemory{Content: "x", ProjectName: "Apollo"})
	_, err := f.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "y", ProjectID: "Apollo"})
	f.failsAt("AddMemory", err, souvenir.ErrConflict, "project_id", `"Apollo"`, m.ProjectID, "project_name")
	_, err = f.store.SetRule(f.ctx, souvenir.NewRule{ProjectID: "Apollo", Type: souvenir.RuleDo, Content: "y"})
	f.failsAt("SetRule", err, souvenir.ErrConflict, "project_id", m.ProjectID)
	f.equal("stored by name", f.add(souvenir.NewMemory{Content: "y", ProjectName: "Apollo"}).ProjectID, m.ProjectID)
	f.equal("as an id of another user's",
		f.as(souvenir.Access{User: "ann"}).add(souvenir.NewMemory{Content: "y", ProjectID: "Apollo"}).ProjectID, "Apollo")
	limited := f.as(souvenir.Access{Projects: []string{"Apollo"}})
	f.equal("through a view that does not know the name", limited.add(souvenir.NewMemory{Content: "z"}).ProjectID,
		"Apollo")
}

func projectPerUser(f *fixture) {
	ann := f.as(souvenir.Access{User: "ann"})
	f.add(souvenir.NewMemory{Content: "mine", ProjectID: "apollo", ProjectName: "Apollo"})
	other := ann.add(souvenir.NewMemory{Content: "hers", ProjectID: "apollo", ProjectName: "Another Apollo"})
	f.equal("her project", other.ProjectName, "Another Apollo")
	f.same("mine", contents(f.search(souvenir.Query{ProjectID: "apollo"})), "mine")
	f.same("hers", contents(ann.search(souvenir.Query{ProjectID: "apollo"})), "hers")
	if w := ann.search(souvenir.Query{ProjectName: "Apollo"}).Warnings; len(w) == 0 {
		f.Errorf("my project's name is known to another user: got %v warnings, want some", len(w))
	}
}

func projectMove(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "notes"})
	m := f.add(souvenir.NewMemory{Collection: "notes", Content: "the heron " + chapters(), Tags: []string{"bird"}})
	f.add(souvenir.NewMemory{Content: "x", ProjectID: "g7", ProjectName: "Gemini 7"})
	at := func(id, name string) {
		f.Helper()
		got := f.get(m.ID)
		f.equal("project", []string{got.ProjectID, got.ProjectName, got.Collection}, []string{id, name, "notes"})
		for _, project := range []string{"apollo", "g7"} {
			want := 0
			if project == id {
				want = 1
			}
			results := f.search(souvenir.Query{ProjectID: project, Text: "heron bird", Collections: []string{"notes"}})
			f.equal("found in "+project, results.Total, want)
			if want == 1 && (results.Hits[0].Parts.Text == 0 || results.Hits[0].Parts.Vector == 0) {
				f.Errorf("found in %s with %+v; want words and meaning", project, results.Hits[0].Parts)
			}
		}
		f.equal("found everywhere", f.search(souvenir.Query{Text: "heron", Collections: []string{"notes"}}).Total, 1)
	}
	at("", "")
	moved := f.patch(m.ID, map[string]any{"project_id": "apollo"})
	f.equal("moved", []any{moved.ProjectID, moved.ProjectName, moved.Revision, moved.Indexed},
		[]any{"apollo", "apollo", 2, true})
	at("apollo", "apollo")
	f.patch(m.ID, map[string]any{"project_name": "Gemini 7"})
	at("g7", "Gemini 7")
	f.equal("no move", f.patch(m.ID, map[string]any{"project_name": "Gemini 7"}).Revision, 3)
	f.patch(m.ID, map[string]any{"project_name": nil})
	at("", "")
	f.patch(m.ID, map[string]any{"project_id": "apollo", "project_name": nil})
	at("apollo", "apollo")
	f.patch(m.ID, map[string]any{"project_id": nil})
	at("", "")
	_, err := f.store.UpdateMemory(f.ctx, m.ID,
		souvenir.MemoryUpdate{ShownMetadata: map[string]any{"project_id": "apollo", "project_name": "Gemini 7"}})
	f.fails("UpdateMemory to a project of two names", err, souvenir.ErrInvalid, "disagree")
	at("", "")
	if n := len(f.embedder.Texts()); n > 100 {
		f.Errorf("%d texts were embedded; moving keeps the vectors, want at most 100", n)
	}
}

func projectScope(f *fixture) {
	f.add(souvenir.NewMemory{Content: "car one", ProjectID: "a", ProjectName: "Apollo"})
	f.add(souvenir.NewMemory{Content: "car two", ProjectID: "g", ProjectName: "Gemini"})
	f.add(souvenir.NewMemory{Content: "car three"})
	for _, c := range []struct{ id, name, want string }{{"a", "", "car one"}, {"", "Gemini", "car two"},
		{"g", "Gemini", "car two"}} {
		f.same("search "+brief(c), contents(f.search(souvenir.Query{Text: "automobile", ProjectID: c.id,
			ProjectName: c.name})), c.want)
		f.same("by time "+brief(c), contents(f.search(souvenir.Query{ProjectID: c.id, ProjectName: c.name})), c.want)
		f.same("listing "+brief(c), texts(f.list(souvenir.MemoryList{ProjectID: c.id, ProjectName: c.name})), c.want)
	}
	f.equal("without a project", f.search(souvenir.Query{Text: "car"}).Total, 3)
	f.same("without one only", contents(f.search(souvenir.Query{Filter: souvenir.Filter{"project_id": nil}})), "car three")
}

func projectUnknown(f *fixture) {
	f.addTexts("a car")
	for _, q := range []souvenir.Query{{ProjectID: "nowhere"}, {ProjectName: "nowhere"},
		{Text: "car", ProjectID: "nowhere"}, {Vector: Words{}.Vector("car"), ProjectName: "nowhere"}} {
		results := f.search(q)
		f.equal("found", []int{len(results.Hits), results.Total}, []int{0, 0})
		if len(results.Warnings) != 1 || !contains(results.Warnings, `"nowhere"`) {
			f.Errorf("warnings %q; want one that names the project", results.Warnings)
		}
	}
	same(f, "listed", f.list(souvenir.MemoryList{ProjectID: "nowhere"}), nil)
}

func (f *fixture) addProject(n souvenir.NewProject) souvenir.Project {
	f.Helper()
	added, err := f.store.AddProject(f.ctx, n)
	f.check(fmt.Sprintf("AddProject %+v", n), err)
	return added
}

func (f *fixture) project(ref string) souvenir.Project {
	f.Helper()
	p, err := f.reader.GetProject(f.ctx, souvenir.ProjectRef{ID: ref})
	f.check("GetProject "+ref, err)
	return p
}

// projects returns the visible projects as OWNER/ID.
func (f *fixture) projects() []string {
	f.Helper()
	all, err := f.reader.Projects(f.ctx)
	f.check("Projects", err)
	var refs []string
	for _, p := range all {
		refs = append(refs, p.Owner+"/"+p.ID)
	}
	return refs
}

func (f *fixture) deleteProject(project souvenir.ProjectRef, options *souvenir.DeletionOptions) {
	f.Helper()
	f.check("DeleteProject "+project.ID, f.store.DeleteProject(f.ctx, project, options))
}

func projectAdd(f *fixture) {
	added := f.addProject(souvenir.NewProject{ID: "g7", Name: "Gemini 7"})
	f.equal("added", toJSON(added),
		`{"project_id":"g7","project_name":"Gemini 7","owner":"local","role":"owner","member_count":1,"memory_count":0,`+
			`"created_at":"2026-03-01T09:00:00Z","updated_at":"2026-03-01T09:00:00Z"}`)
	f.equal("named without doubt", added.Ref(), "g7")
	f.equal("found by id", f.project("g7"), added)
	f.equal("found with its owner", f.project("local/g7"), added)
	named, err := f.reader.GetProject(f.ctx, souvenir.ProjectRef{Name: "Gemini 7"})
	f.check("GetProject", err)
	f.equal("found by name", named, added)
	f.equal("named by its id", f.addProject(souvenir.NewProject{ID: "apollo"}).Name, "apollo")
	if id := f.addProject(souvenir.NewProject{Name: "Mercury"}).ID; id == "" || id == "Mercury" {
		f.Errorf("a project added by name has the id %q; want a new one", id)
	}
	f.equal("stored into", f.add(souvenir.NewMemory{Content: "x", ProjectName: "Gemini 7"}).ProjectID, "g7")
	f.equal("memories", f.project("g7").MemoryCount, 1)

	for _, c := range []struct {
		add      souvenir.NewProject
		argument string
		says     string
	}{
		{souvenir.NewProject{ID: "g7"}, "project_id", `"g7"`},
		{souvenir.NewProject{ID: "g7", Name: "other"}, "project_id", `"g7"`},
		{souvenir.NewProject{ID: "g8", Name: "Gemini 7"}, "project_name", `"g7"`},
		{souvenir.NewProject{Name: "Gemini 7"}, "project_name", `"g7"`},
		{souvenir.NewProject{ID: "Gemini 7"}, "project_name", `"g7"`},
	} {
		_, err := f.store.AddProject(f.ctx, c.add)
		f.failsAt(fmt.Sprintf("AddProject %+v", c.add), err, souvenir.ErrConflict, c.argument, c.says)
	}
	ann := f.as(souvenir.Access{User: "ann"})
	f.equal("the same for another user", ann.addProject(souvenir.NewProject{ID: "g7", Name: "Gemini 7"}).Owner, "ann")

	limited := f.as(souvenir.Access{Projects: []string{"fresh", "g7"}})
	f.equal("added through a view for it", limited.addProject(souvenir.NewProject{ID: "fresh", Name: "Mercury"}).Name,
		"Mercury")
	_, err = limited.store.AddProject(f.ctx, souvenir.NewProject{ID: "more"})
	f.failsAt("AddProject beyond a limit", err, souvenir.ErrForbidden, "project_id", `"fresh" or "g7"`)
	_, err = limited.store.AddProject(f.ctx, souvenir.NewProject{Name: "more"})
	f.fails("AddProject of a name, through a limited view", err, souvenir.ErrForbidden)
}

func projectArguments(f *fixture) {
	f.addProject(souvenir.NewProject{ID: "p", Name: "P"})
	unknown := souvenir.ProjectRef{ID: "nowhere"}
	for _, c := range []struct {
		name     string
		ref      souvenir.ProjectRef
		kind     *souvenir.Error
		argument string
		says     string
	}{
		{"nothing", souvenir.ProjectRef{}, souvenir.ErrInvalid, "project_id", "missing"},
		{"a blank id", souvenir.ProjectRef{ID: " "}, souvenir.ErrInvalid, "project_id", "1 to 128"},
		{"a long id", souvenir.ProjectRef{ID: strings.Repeat("é", 129)}, souvenir.ErrTooLarge, "project_id", "129"},
		{"a long owner", souvenir.ProjectRef{ID: strings.Repeat("é", 257) + "/p"}, souvenir.ErrTooLarge, "project_id", "259"},
		{"a name that is not UTF-8", souvenir.ProjectRef{Name: "a\xff"}, souvenir.ErrInvalid, "project_name", "UTF-8"},
		{"id and name that disagree", souvenir.ProjectRef{ID: "p", Name: "Q"}, souvenir.ErrInvalid, "project_name",
			"disagree"},
		{"an unknown id", unknown, souvenir.ErrNotFound, "project_id", `"nowhere"`},
		{"an unknown name", souvenir.ProjectRef{Name: "nowhere"}, souvenir.ErrNotFound, "project_name", `"nowhere"`},
		{"an unknown owner", souvenir.ProjectRef{ID: "ann/p"}, souvenir.ErrNotFound, "project_id", `"ann/p"`},
	} {
		for _, call := range f.projectCalls(c.ref) {
			f.failsAt(call.name+" of "+c.name, call.do(f.store), c.kind, c.argument, c.says)
		}
	}
	_, err := f.store.AddProject(f.ctx, souvenir.NewProject{})
	f.failsAt("AddProject of nothing", err, souvenir.ErrInvalid, "project_id", "missing")
	_, err = f.store.AddProject(f.ctx, souvenir.NewProject{ID: "a/b"})
	f.failsAt("AddProject of an id with a slash", err, souvenir.ErrInvalid, "project_id", `"a/b"`)
	_, err = f.store.AddProject(f.ctx, souvenir.NewProject{Name: strings.Repeat("x", 129)})
	f.failsAt("AddProject of a long name", err, souvenir.ErrTooLarge, "project_name", "128")
	_, err = f.store.UpdateProject(f.ctx, souvenir.ProjectRef{ID: "p"}, souvenir.ProjectUpdate{Name: new(" ")})
	f.failsAt("UpdateProject to a blank name", err, souvenir.ErrInvalid, "name", "1 to 128")
	f.same("projects", f.projects(), "local/p")
}

// projectCalls returns all methods that name an existing project.
func (f *fixture) projectCalls(ref souvenir.ProjectRef) []call {
	return []call{
		{"GetProject", false, func(s *souvenir.Store) error { _, err := s.GetProject(f.ctx, ref); return err }},
		{"Members", false, func(s *souvenir.Store) error { _, err := s.Members(f.ctx, ref); return err }},
		{"UpdateProject", true, func(s *souvenir.Store) error {
			_, err := s.UpdateProject(f.ctx, ref, souvenir.ProjectUpdate{Name: new("changed")})
			return err
		}},
		{"AddMember", true, func(s *souvenir.Store) error {
			_, err := s.AddMember(f.ctx, souvenir.NewMember{Project: ref, User: "zoe", Role: souvenir.MemberReader})
			return err
		}},
		{"UpdateMember", true, func(s *souvenir.Store) error {
			_, err := s.UpdateMember(f.ctx, ref, "zoe", souvenir.MemberUpdate{Role: souvenir.MemberWriter})
			return err
		}},
		{"DeleteMember", true, func(s *souvenir.Store) error {
			return s.DeleteMember(f.ctx, ref, "zoe")
		}},
		{"DeleteProject", true, func(s *souvenir.Store) error {
			return s.DeleteProject(f.ctx, ref, &souvenir.DeletionOptions{WithMemories: true})
		}},
	}
}

// projectLists returns the methods about projects that name none.
func (f *fixture) projectLists() []call {
	return []call{
		{"Projects", false, func(s *souvenir.Store) error { _, err := s.Projects(f.ctx); return err }},
		{"Owners", false, func(s *souvenir.Store) error { _, err := s.Insights().Owners(f.ctx); return err }},
		{"AddProject", true, func(s *souvenir.Store) error {
			_, err := s.AddProject(f.ctx, souvenir.NewProject{ID: "more"})
			return err
		}},
	}
}

func projectList(f *fixture) {
	f.add(souvenir.NewMemory{Content: "one", ProjectID: "z", ProjectName: "B"})
	f.add(souvenir.NewMemory{Content: "two", ProjectID: "z"})
	f.add(souvenir.NewMemory{Content: "three", ProjectID: "y", ProjectName: "A"})
	gone := f.add(souvenir.NewMemory{Content: "four", ProjectID: "y"})
	f.delete(gone.ID)
	f.addProject(souvenir.NewProject{ID: "x", Name: "C"})
	f.addTexts("elsewhere")
	f.same("all", f.projects(), "local/y", "local/z", "local/x")
	all, err := f.reader.Projects(f.ctx)
	f.check("Projects", err)
	f.equal("memories", []int{all[0].MemoryCount, all[1].MemoryCount, all[2].MemoryCount}, []int{1, 2, 0})
	f.same("through a limited view", f.as(souvenir.Access{Projects: []string{"z", "unknown"}}).projects(), "local/z")
	owners, err := f.reader.Insights().Owners(f.ctx)
	f.check("Owners", err)
	f.equal("owners", owners, []souvenir.Owner{{ID: "local", Projects: all}})
}

func projectRename(f *fixture) {
	m := f.add(souvenir.NewMemory{Content: "a car", ProjectID: "p", ProjectName: "before"})
	f.add(souvenir.NewMemory{Content: "other", ProjectID: "q", ProjectName: "taken"})
	f.clock.Pass(time.Hour)
	ref := souvenir.ProjectRef{ID: "p"}
	renamed, err := f.store.UpdateProject(f.ctx, ref, souvenir.ProjectUpdate{Name: new("after")})
	f.check("UpdateProject", err)
	f.equal("renamed", []any{renamed.ID, renamed.Name, renamed.MemoryCount, renamed.CreatedAt, renamed.UpdatedAt},
		[]any{"p", "after", 1, start, start.Add(time.Hour)})
	f.equal("found", f.project("p"), renamed)
	f.equal("the memory", []any{f.get(m.ID).ProjectName, f.get(m.ID).Revision,
		f.get(m.ID).ShownMetadata()["project_name"]}, []any{"after", 1, "after"})
	for name, filtered := range map[string][]string{"before": nil,
		"after": {"a car"}} { // a filter compares the present names
		f.same("searched by "+name, contents(f.search(souvenir.Query{Text: "car", ProjectName: name})), "a car")
		f.same("filtered by "+name, contents(f.search(souvenir.Query{Filter: souvenir.Filter{"project_name": name}})),
			filtered...)
		f.same("listed by "+name, texts(f.list(souvenir.MemoryList{ProjectName: name})), "a car")
	}
	f.equal("stored by the new name", f.add(souvenir.NewMemory{Content: "y", ProjectName: "after"}).ProjectID, "p")
	_, err = f.store.UpdateProject(f.ctx, ref, souvenir.ProjectUpdate{Name: new("taken")})
	f.failsAt("UpdateProject to a name that is taken", err, souvenir.ErrConflict, "name", `"taken"`, `"q"`)
	f.clock.Pass(time.Hour)
	for _, u := range []souvenir.ProjectUpdate{{}, {Name: new("after")}} {
		same, err := f.store.UpdateProject(f.ctx, ref, u)
		f.check("UpdateProject of nothing", err)
		f.equal("after a change of nothing", []any{same.Name, same.UpdatedAt}, []any{"after", start.Add(time.Hour)})
	}
	_, err = f.as(souvenir.Access{Projects: []string{"p"}}).store.UpdateProject(f.ctx, ref,
		souvenir.ProjectUpdate{Name: new("x")})
	f.failsAt("UpdateProject through a limited view", err, souvenir.ErrForbidden, "project_id", `"p"`)
}

func projectRenameRestore(f *fixture) {
	rename := func(id, name string) {
		f.Helper()
		_, err := f.store.UpdateProject(f.ctx, souvenir.ProjectRef{ID: id}, souvenir.ProjectUpdate{Name: &name})
		f.check("UpdateProject", err)
	}
	restore := func(id string, revision int) souvenir.StoredMemory {
		f.Helper()
		restored, err := f.store.RestoreRevision(f.ctx, id, revision)
		f.check("RestoreRevision", err)
		return restored
	}
	m := f.add(souvenir.NewMemory{Content: "draft", ProjectID: "p", ProjectName: "before"})
	f.rewrite(m.ID, "final")
	rename("p", "after")
	f.equal("within the project", []string{restore(m.ID, 1).Content, f.get(m.ID).ProjectName}, []string{"draft", "after"})
	f.patch(m.ID, map[string]any{"project_id": nil, "project_name": nil})
	rename("p", "later")
	back := restore(m.ID, 1)
	f.equal("back into the project", []string{back.ProjectID, back.ProjectName}, []string{"p", "later"})
}

func projectDelete(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "notes"})
	p := souvenir.ProjectRef{ID: "p"}
	inside := f.add(souvenir.NewMemory{Content: "a walrus", ProjectID: "p", Tags: []string{"arctic"}})
	also := f.add(souvenir.NewMemory{Collection: "notes", Content: "a seal", ProjectID: "p", ProjectName: "p"})
	outside := f.add(souvenir.NewMemory{Content: "a penguin", Related: []string{inside.ID}})
	f.failsAt("DeleteProject of a full one", f.store.DeleteProject(f.ctx, p, nil),
		souvenir.ErrConflict, "project_id", `"p"`, "2 memories", "together")
	f.equal("after the refusal", f.project("p").MemoryCount, 2)
	limited := f.as(souvenir.Access{Projects: []string{"p"}})
	f.fails("DeleteProject through a limited view",
		limited.store.DeleteProject(f.ctx, p, &souvenir.DeletionOptions{WithMemories: true}), souvenir.ErrForbidden)
	f.deleteProject(p, &souvenir.DeletionOptions{WithMemories: true})
	for _, id := range []string{inside.ID, also.ID} {
		_, err := f.reader.GetMemory(f.ctx, id)
		f.fails("GetMemory", err, souvenir.ErrNotFound)
	}
	for _, text := range []string{"walrus", "seal", "arctic"} {
		f.same("found by "+text, f.find(text))
	}
	same(f, "links to it", f.get(outside.ID).Related, nil)
	same(f, "projects", f.projects(), nil)
	f.fails("DeleteProject again", f.store.DeleteProject(f.ctx, p, nil),
		souvenir.ErrNotFound)
	f.equal("a new one of that id", f.add(souvenir.NewMemory{Content: "a kiwi", ProjectID: "p"}).ProjectID, "p")
	f.same("all of it", texts(f.list(souvenir.MemoryList{ProjectID: "p"})), "a kiwi")

	f.addProject(souvenir.NewProject{ID: "empty"})
	f.deleteProject(souvenir.ProjectRef{Name: "empty"}, nil)
	f.same("projects", f.projects(), "local/p")
}

func projectDeleteHistory(f *fixture) {
	m := f.add(souvenir.NewMemory{Content: "draft", ProjectID: "p"})
	f.rewrite(m.ID, "second")
	f.patch(m.ID, map[string]any{"project_id": "q", "project_name": nil})
	before := f.revisions(m.ID)
	f.deleteProject(souvenir.ProjectRef{ID: "p"}, nil)
	f.equal("history", f.revisions(m.ID), before)
	limited := f.as(souvenir.Access{Projects: []string{"q"}})
	f.equal("states for those who see project q only", len(limited.revisions(m.ID)), 1)
	back, err := f.store.RestoreRevision(f.ctx, m.ID, 1)
	f.check("RestoreRevision", err)
	f.equal("back in a new project", []string{back.Content, back.ProjectID, back.ProjectName}, []string{"draft", "p", "p"})
}

func projectDeleteLarge(f *fixture) {
	many := make([]souvenir.NewMemory, manyAtOnce())
	for i := range many {
		many[i] = souvenir.NewMemory{Content: fmt.Sprint("w", i), ProjectID: "p", Collection: "notes"}
	}
	f.addCollection(souvenir.NewCollection{Name: "notes"})
	add := func() {
		f.Helper()
		_, err := f.store.AddMemories(f.ctx, many, nil)
		f.check("AddMemories", err)
	}
	add()
	f.deleteProject(souvenir.ProjectRef{ID: "p"}, &souvenir.DeletionOptions{WithMemories: true})
	f.equal("memories", f.search(souvenir.Query{}).Total, 0)
	same(f, "projects", f.projects(), nil)
	add()
	f.check("DeleteCollection", f.store.DeleteCollection(f.ctx,
		"notes", &souvenir.DeletionOptions{WithMemories: true}))
	f.equal("memories", f.search(souvenir.Query{}).Total, 0)
	f.equal("in the project", f.project("p").MemoryCount, 0)
}
