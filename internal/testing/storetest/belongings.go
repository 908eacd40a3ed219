package storetest

import (
	"fmt"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// sharingBelongs checks that content stored in a project belongs to its owner, for any author: memories, rules,
// the todo, files.
func sharingBelongs(f *fixture) {
	p := share(f)
	p.writer.addCollection(souvenir.NewCollection{Name: "drafts", Description: "of will"})
	p.writer.add(souvenir.NewMemory{Collection: "drafts", Content: "engine", ProjectID: apollo.ID})
	p.coOwner.add(souvenir.NewMemory{Content: "crew", ProjectID: apollo.ID})
	rule, err := p.writer.store.SetRule(f.ctx,
		souvenir.NewRule{ProjectID: apollo.ID, Type: souvenir.RuleDo, Content: "by will"})
	f.check("SetRule", err)
	file := p.writer.addFile(souvenir.NewFile{ProjectID: apollo.ID, Filename: "plan"}, "x")
	f.equal("owners", []string{rule.Owner, file.Owner}, []string{"olga", "olga"})
	describe := func(view *fixture) []string {
		all, err := view.reader.Collections(f.ctx)
		f.check("Collections", err)
		var list []string
		for _, c := range all {
			list = append(list, fmt.Sprintf("%s of %s: %d %s", c.Name, c.Owner, c.MemoryCount, c.Description))
		}
		return list
	}
	f.same("the owner's collections", describe(p.owner), "default of olga: 2 ", "drafts of olga: 1 ",
		"plans of olga: 1 private notes")
	f.same("the writer's", describe(p.writer), "default of olga: 2 ", "drafts of will: 0 of will", "drafts of olga: 1 ",
		"plans of olga: 1 ")
	f.same("a reader's", describe(p.reader), "default of olga: 2 ", "drafts of olga: 1 ", "plans of olga: 1 ")
	same(f, "a stranger's", describe(p.stranger), nil)
}

func sharingCollections(f *fixture) {
	p := share(f)
	p.owner.addCollection(souvenir.NewCollection{Name: "merger talks"})
	p.owner.addCollection(souvenir.NewCollection{Name: "own", VectorSize: 3, OwnVectors: true})
	store := func(name string, vector []float32) (souvenir.StoredMemory, error) {
		return p.writer.store.AddMemory(f.ctx,
			souvenir.NewMemory{Collection: name, Content: "x", ProjectID: apollo.ID, Embedding: vector})
	}
	stored, err := store("plans", nil)
	f.check("storing where memories of the project lie", err)
	f.equal("where it lies", []string{stored.Collection, stored.Owner}, []string{"plans", "olga"})
	_, hidden := store("merger talks", nil)
	_, unknown := store("merger walks", nil)
	for name, err := range map[string]error{"merger talks": hidden, "merger walks": unknown} {
		f.failsAt("storing into one that is not known", err, souvenir.ErrNotFound, "collection_name", name)
		if strings.Contains(err.Error(), "did you mean") {
			f.Errorf(`a member gets a name: %v, want no "did you mean" in the error`, err)
		}
	}
	p.writer.addCollection(souvenir.NewCollection{Name: "merger talks"})
	stored, err = store("merger talks", nil)
	f.check("storing into one that the writer has, too", err)
	f.equal("where it lies", []string{stored.Collection, stored.Owner}, []string{"merger talks", "olga"})
	p.writer.addCollection(souvenir.NewCollection{Name: "own", VectorSize: 2, OwnVectors: true})
	_, err = store("own", []float32{1, 0})
	f.failsAt("storing where the owner has other vectors", err, souvenir.ErrConflict, "collection_name", `"own"`)
	p.reader.addCollection(souvenir.NewCollection{Name: "own", VectorSize: 2, OwnVectors: true})
	for _, name := range []string{"own", "merger talks", "merger walks", souvenir.DefaultCollection} {
		_, err = p.reader.store.AddMemory(f.ctx, souvenir.NewMemory{Collection: name, Content: "x", ProjectID: apollo.ID})
		f.failsAt("storing as a reader, whatever the owner has", err, souvenir.ErrForbidden, "project_id", "read-only")
	}
	p.writer.addCollection(souvenir.NewCollection{Name: "will's", VectorSize: 2, OwnVectors: true})
	stored, err = store("will's", []float32{1, 0})
	f.check("storing with an own vector", err)
	c, err := p.owner.reader.GetCollection(f.ctx, "will's")
	f.check("GetCollection", err)
	f.equal("the owner's collection", []any{stored.Indexed, c.Owner, c.VectorSize, c.Embedder, c.MemoryCount},
		[]any{true, "olga", 2, souvenir.OwnVectors, 1})
}

// sharingGiven moves a memory with a file and a history into a project, and back.
func sharingGiven(f *fixture) {
	p := share(f)
	p.writer.addCollection(souvenir.NewCollection{Name: "drafts"})
	m := p.writer.add(souvenir.NewMemory{Collection: "drafts", Content: "a private draft"})
	file := p.writer.addFile(souvenir.NewFile{MemoryID: m.ID}, "x")
	p.writer.rewrite(m.ID, "the rocket engine")
	given := p.writer.patch(m.ID, map[string]any{"project_id": apollo.ID})
	f.equal("given", []string{given.Owner, given.Collection, given.ProjectID}, []string{"olga", "drafts", "apollo"})
	for _, view := range []*fixture{p.owner, p.writer, p.coOwner, p.reader} {
		who, states := view.name(), 1
		if view == p.writer {
			states = 3 // its own, from before
		}
		f.equal(who+"'s history of it", len(view.revisions(m.ID)), states)
		f.equal(who+"'s file of it", view.getFile(file.ID).Owner, "olga")
		f.equal(who+" finds it", len(view.search(souvenir.Query{Text: "engine"}).Hits) > 0, true)
	}
	var out strings.Builder
	_, err := p.owner.store.Upkeep().Export(f.ctx, &out, nil)
	f.check("Export", err)
	if !strings.Contains(out.String(), "the rocket engine") || strings.Contains(out.String(), "a private draft") {
		f.Errorf("the owner's export is, want \"the rocket engine\" in the out and no \"a private draft\" in the out\n%s",
			out.String())
	}
	_, err = p.writer.store.UpdateMemory(f.ctx, m.ID,
		souvenir.MemoryUpdate{ShownMetadata: map[string]any{"project_id": nil, "project_name": nil}})
	f.failsAt("taking it back", err, souvenir.ErrForbidden, "project_id", `"olga"`)
	p.owner.patch(m.ID, map[string]any{"project_id": nil, "project_name": nil})
	for _, view := range p.members() {
		_, err := view.reader.GetMemory(f.ctx, m.ID)
		f.fails("GetMemory of what the owner took out", err, souvenir.ErrNotFound)
		_, err = view.reader.GetFile(f.ctx, file.ID)
		f.fails("GetFile of what the owner took out", err, souvenir.ErrNotFound)
	}
}
