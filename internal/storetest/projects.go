package storetest

import (
	"github.com/souvenir-ai/souvenir"
)

func projects() concept {
	return concept{"Projects", []promise{
		{"an unknown id becomes a new project's id and name", projectByID},
		{"an unknown name makes a project with an id of its own", projectByName},
		{"id and name that disagree are refused", projectDisagreement},
		{"projects of different users have nothing in common", projectPerUser},
		{"a memory moves to another project and back out", projectMove},
		{"searches and listings stay within one", projectScope},
		{"an unknown one is empty, with a warning", projectUnknown},
	}}
}

func projectByID(f *fixture) {
	m := f.add(souvenir.NewMemory{Content: "x", ProjectID: "apollo"})
	f.equal("project", []string{m.ProjectID, m.ProjectName}, []string{"apollo", "apollo"})
	f.equal("by its name", f.add(souvenir.NewMemory{Content: "y", ProjectName: "apollo"}).ProjectID, "apollo")
	m = f.add(souvenir.NewMemory{Content: "z", ProjectID: "g7", ProjectName: "Gemini 7"})
	f.equal("project of id and name", []string{m.ProjectID, m.ProjectName}, []string{"g7", "Gemini 7"})
	f.equal("by both again", f.add(souvenir.NewMemory{Content: "z", ProjectID: "g7", ProjectName: "Gemini 7"}).ProjectID, "g7")
}

func projectByName(f *fixture) {
	m := f.add(souvenir.NewMemory{Content: "x", ProjectName: "Apollo 11"})
	f.equal("name", m.ProjectName, "Apollo 11")
	if m.ProjectID == "" || m.ProjectID == "Apollo 11" {
		f.Errorf("the project has the id %q; want one of its own", m.ProjectID)
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
		_, err = f.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "x", Metadata: map[string]any{"project_id": c.id, "project_name": c.name}})
		f.fails("AddMemory with metadata "+brief(c), err, souvenir.ErrInvalid, "disagree")
	}
	f.equal("memories", f.search(souvenir.Query{}).Total, 2)
}

func projectPerUser(f *fixture) {
	ann := f.as(souvenir.Access{User: "ann"})
	f.add(souvenir.NewMemory{Content: "mine", ProjectID: "apollo", ProjectName: "Apollo"})
	other := ann.add(souvenir.NewMemory{Content: "hers", ProjectID: "apollo", ProjectName: "Another Apollo"})
	f.equal("her project", other.ProjectName, "Another Apollo")
	f.same("mine", contents(f.search(souvenir.Query{ProjectID: "apollo"})), "mine")
	f.same("hers", contents(ann.search(souvenir.Query{ProjectID: "apollo"})), "hers")
	if w := ann.search(souvenir.Query{ProjectName: "Apollo"}).Warnings; len(w) == 0 {
		f.Errorf("my project's name is known to another user")
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
	f.equal("moved", []any{moved.ProjectID, moved.ProjectName, moved.Revision, moved.Indexed}, []any{"apollo", "apollo", 2, true})
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
	_, err := f.store.UpdateMemory(f.ctx, m.ID, souvenir.UpdateMemory{Metadata: map[string]any{"project_id": "apollo", "project_name": "Gemini 7"}})
	f.fails("UpdateMemory to a project of two names", err, souvenir.ErrInvalid, "disagree")
	at("", "")
	if n := len(f.embedder.Texts()); n > 100 {
		f.Errorf("%d texts were embedded; moving keeps the vectors", n)
	}
}

func projectScope(f *fixture) {
	f.add(souvenir.NewMemory{Content: "car one", ProjectID: "a", ProjectName: "Apollo"})
	f.add(souvenir.NewMemory{Content: "car two", ProjectID: "g", ProjectName: "Gemini"})
	f.add(souvenir.NewMemory{Content: "car three"})
	for _, c := range []struct{ id, name, want string }{{"a", "", "car one"}, {"", "Gemini", "car two"}, {"g", "Gemini", "car two"}} {
		f.same("search "+brief(c), contents(f.search(souvenir.Query{Text: "automobile", ProjectID: c.id, ProjectName: c.name})), c.want)
		f.same("by time "+brief(c), contents(f.search(souvenir.Query{ProjectID: c.id, ProjectName: c.name})), c.want)
		f.same("listing "+brief(c), texts(f.list(souvenir.List{ProjectID: c.id, ProjectName: c.name})), c.want)
	}
	f.equal("without a project", f.search(souvenir.Query{Text: "car"}).Total, 3)
	f.same("without one only", contents(f.search(souvenir.Query{Filter: souvenir.Filter{"project_id": nil}})), "car three")
}

func projectUnknown(f *fixture) {
	f.addTexts("a car")
	for _, q := range []souvenir.Query{{ProjectID: "nowhere"}, {ProjectName: "nowhere"}, {Text: "car", ProjectID: "nowhere"}, {Vector: Words{}.Vector("car"), ProjectName: "nowhere"}} {
		results := f.search(q)
		f.equal("found", []int{len(results.Hits), results.Total}, []int{0, 0})
		if len(results.Warnings) != 1 || !contains(results.Warnings, `"nowhere"`) {
			f.Errorf("warnings %q; want one that names the project", results.Warnings)
		}
	}
	same(f, "listed", f.list(souvenir.List{ProjectID: "nowhere"}), nil)
}
