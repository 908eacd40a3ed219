package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func trash() concept {
	return concept{"Trash", []promise{
		{"what was deleted is listed with who deleted it, when, and until when it can be restored", trashListed},
		{"a memory comes back whole: id, times, revision, history, tags, links both ways, files and vectors", trashWhole},
		{"links between memories and files that were deleted one after another come back in any order", trashLinked},
		{"what has gone or found another place meanwhile stays so", trashMeanwhile},
		{"an id that is taken again is a conflict", trashTaken},
		{"a rule comes back only while its place is free", trashRule},
		{"vectors of the caller's own come back", trashOwnVectors},
		{"after a change of the model, what comes back is found", trashOtherModel},
		{"a file comes back with its bytes, to its memory", trashFiles},
		{"a collection comes back as it was, with many memories", trashCollections},
		{"a project comes back as it was, with members, rules, files and many memories", trashProjects},
		{"members of a project restored long after its deletion are asked again", trashConsent},
		{"what cannot come back of a collection keeps nothing else from it", trashPartly},
		{"what was in something that is in the trash waits for it", trashNested},
		{"a memory of a project that is gone goes into the one that has its name now", trashNamesake},
		{"the owner of the place and who may write there see and restore, only the owner erases", trashAccess},
		{"what was erased is gone for good", trashErased},
		{"after its time an entry is gone", trashExpires},
		{"without a trash, deletions are for good", trashOff},
		{"concurrent calls delete, restore and erase", trashConcurrent},
		{"pages of the trash", trashPages},
		{"the trash is listed whole, while its entries are restored and erased", trashIterated},
	}}
}

func (f *fixture) trash() []souvenir.TrashEntry {
	f.Helper()
	p, err := f.reader.Trash().Page(f.ctx, souvenir.TrashQuery{Limit: souvenir.MaxTrashLimit})
	f.check("Trash.Page", err)
	f.equal("total of the trash", p.Total, len(p.Entries))
	return p.Entries
}

// inTrash returns the titles in the trash, the newest first.
func (f *fixture) inTrash() []string {
	f.Helper()
	var titles []string
	for _, e := range f.trash() {
		titles = append(titles, fmt.Sprint(e.Kind, " ", e.Title))
	}
	return titles
}

func (f *fixture) restore(id string) souvenir.TrashEntry {
	f.Helper()
	e, err := f.store.Trash().Restore(f.ctx, id)
	f.check("Trash.Restore "+id, err)
	return e
}

func (f *fixture) deleteFile(id string) {
	f.Helper()
	f.check("DeleteFile "+id, f.store.DeleteFile(f.ctx, id, nil))
}

func (f *fixture) trashProject(id string) souvenir.TrashEntry {
	f.Helper()
	f.check("DeleteProject", f.store.DeleteProject(f.ctx,
		souvenir.ProjectRef{ID: id}, &souvenir.DeletionOptions{WithMemories: true}))
	return f.trash()[0]
}

func (f *fixture) deleteCollection(name string) souvenir.TrashEntry {
	f.Helper()
	f.check("DeleteCollection", f.store.DeleteCollection(f.ctx,
		name, &souvenir.DeletionOptions{WithMemories: true}))
	return f.trash()[0]
}

func trashListed(f *fixture) {
	p := share(f)
	m := p.writer.add(souvenir.NewMemory{Content: "  the  engine\nneeds " + strings.Repeat("oil ", 100),
		ProjectID: apollo.ID})
	f.clock.Pass(time.Hour)
	tool := p.writer.as(souvenir.Access{User: "will", Through: "tool \xff\x00"})
	tool.delete(m.ID)
	entries := p.owner.trash()
	f.equal("entries", len(entries), 1)
	e := entries[0]
	if !strings.HasPrefix(e.Title, "the engine needs oil") || !strings.HasSuffix(e.Title, "…") || len(e.Title) > 130 {
		f.Errorf(`title is %q, want at most 130 bytes from "the engine needs oil" to "…"`, e.Title)
	}
	if e.Size < 400 {
		f.Errorf("size is %d, want at least 400", e.Size)
	}
	e.Title, e.Size = "", 0
	now := start.Add(time.Hour)
	f.equal("entry", e, souvenir.TrashEntry{
		ID: m.ID, Kind: souvenir.TrashMemory, Collection: souvenir.DefaultCollection, ProjectID: "apollo",
		ProjectName: "Apollo 11", Owner: "olga", Memories: 1,
		DeletedBy: "will", Through: "tool \uFFFD\uFFFD", DeletedAt: now, Until: now.Add(30 * 24 * time.Hour), Own: true,
	})
	one, err := p.owner.reader.Trash().Get(f.ctx, m.ID)
	f.check("Trash.Get", err)
	f.equal("alone", one, entries[0])
	_, err = p.owner.reader.Trash().Get(f.ctx, "nowhere")
	f.failsAt("Trash.Get", err, souvenir.ErrNotFound, "id", `"nowhere"`)
}

func trashWhole(f *fixture) {
	target := f.addTexts("the calendar")[0]
	m := f.add(complete(f, target))
	from := f.add(souvenir.NewMemory{Content: "the beginning", Related: []string{target, m.ID}})
	file := f.addFile(souvenir.NewFile{MemoryID: m.ID}, "still here")
	f.clock.Pass(time.Hour)
	f.rewrite(m.ID, "an otter. "+strings.Repeat("It swims in the river all day. ", 200))
	was, history, hits := f.get(m.ID), f.revisions(m.ID), f.search(souvenir.Query{Text: "otter"})
	f.clock.Pass(time.Hour)

	f.delete(m.ID)
	_, err := f.reader.GetMemory(f.ctx, m.ID)
	f.failsAt("GetMemory", err, souvenir.ErrNotFound, "id")
	f.same("found", f.find("otter"))
	f.equal("links to it", f.get(from.ID).Related, []string{target})
	f.equal("its file is linked to", f.getFile(file.ID).MemoryID, "")

	f.clock.Pass(time.Hour)
	f.equal("restored", f.restore(m.ID).ID, m.ID)
	f.equal("read", f.get(m.ID), was)
	f.equal("history", f.revisions(m.ID), history)
	f.sameHits("found again", hits, f.search(souvenir.Query{Text: "otter"}))
	f.equal("links to it", f.get(from.ID).Related, []string{target, m.ID})
	f.equal("its file is linked to", f.getFile(file.ID).MemoryID, m.ID)
	f.equal("its tags", f.search(souvenir.Query{Tags: []string{"deploy"}}).Total, 1)
	f.equal("waiting for vectors", f.state().Pending, 0)
	f.same("left in the trash", f.inTrash())
	_, err = f.store.Trash().Restore(f.ctx, m.ID)
	f.failsAt("a second time", err, souvenir.ErrNotFound, "id", m.ID)
}

func trashLinked(f *fixture) {
	ids := f.addTexts("one", "two", "three")
	f.patch(ids[0], map[string]any{"related_memory_ids": []string{ids[2], ids[1]}})
	f.patch(ids[2], map[string]any{"related_memory_ids": []string{ids[0]}})
	file := f.addFile(souvenir.NewFile{MemoryID: ids[0]}, "here")
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}} {
		f.deleteFile(file.ID)
		for _, id := range ids {
			f.delete(id)
		}
		if order[0] == 1 {
			f.restore(file.ID)
			f.equal("its file is linked to", f.getFile(file.ID).MemoryID, "")
		}
		for _, i := range order {
			f.restore(ids[i])
		}
		if order[0] != 1 {
			f.restore(file.ID)
		}
		f.equal("links of the first", f.get(ids[0]).Related, []string{ids[2], ids[1]})
		f.equal("links of the third", f.get(ids[2]).Related, []string{ids[0]})
		f.equal("its file is linked to", f.getFile(file.ID).MemoryID, ids[0])
	}
}

func trashMeanwhile(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "box"})
	target, other := f.addTexts("the calendar")[0], f.addTexts("another")[0]
	m := f.add(souvenir.NewMemory{Content: "x", Collection: "box", Related: []string{target}})
	file := f.addFile(souvenir.NewFile{MemoryID: m.ID}, "still here")
	f.delete(m.ID)
	f.check("DeleteMemory", f.store.DeleteMemory(f.ctx, target, &souvenir.DeletionOptions{Erase: true}))
	f.updateFile(file.ID, souvenir.FileUpdate{MemoryID: &other})
	renamed := "crate"
	_, err := f.store.UpdateCollection(f.ctx, "box", souvenir.CollectionUpdate{Name: &renamed})
	f.check("UpdateCollection", err)
	f.restore(m.ID)
	f.equal("links", f.get(m.ID).Related, []string(nil))
	f.equal("its collection", f.get(m.ID).Collection, "crate")
	f.equal("its file is linked to", f.getFile(file.ID).MemoryID, other)

	f.delete(m.ID)
	f.check("DeleteCollection", f.store.DeleteCollection(f.ctx, "crate", &souvenir.DeletionOptions{Erase: true}))
	f.restore(m.ID)
	f.equal("its collection, which was gone for good", f.get(m.ID).Collection, "crate")
}

func trashTaken(f *fixture) {
	m := f.add(souvenir.NewMemory{Content: "the first"})
	f.delete(m.ID)
	line := `{"souvenir":"export","version":1}` + "\n" + `{"type":"memory","id":"` + m.ID + `","content":"the second"}` +
		"\n"
	_, err := f.operator.Upkeep().Import(f.ctx, strings.NewReader(line), nil)
	f.check("Import", err)
	_, err = f.store.Trash().Restore(f.ctx, m.ID)
	f.failsAt("beside another", err, souvenir.ErrConflict, "id", m.ID)
	f.delete(m.ID)
	f.same("both are kept", f.inTrash(), "memory the second", "memory the first")
	f.equal("the newest has the id", f.trash()[0].ID, m.ID)
	f.restore(f.trash()[1].ID)
	f.equal("restored", f.get(m.ID).Content, "the first")
}

func trashRule(f *fixture) {
	first := f.setRule(souvenir.NewRule{ProjectID: "apollo", Type: souvenir.RuleDo, Content: "be kind"})
	f.delete(first.ID)
	second := f.setRule(souvenir.NewRule{ProjectID: "apollo", Type: souvenir.RuleDo, Content: "be quick"})
	_, err := f.store.Trash().Restore(f.ctx, first.ID)
	f.failsAt("beside another", err, souvenir.ErrConflict, "rule_type", second.ID)
	f.check("DeleteRule", f.store.DeleteRule(f.ctx, souvenir.ProjectRef{ID: "apollo"}, souvenir.RuleDo))
	f.same("in the trash", f.inTrash(), "memory be quick", "memory be kind")
	f.restore(first.ID)
	rule, err := f.reader.GetRule(f.ctx, souvenir.ProjectRef{ID: "apollo"}, souvenir.RuleDo)
	f.check("GetRule", err)
	f.equal("restored", rule.ID, first.ID)
	todo, err := f.store.SetTodo(f.ctx,
		souvenir.NewTodo{ProjectID: "apollo",
			Content: "## Constitution\n\n## Spec\n\n## Plan\n\n## Tasks\n\n- [ ] T1 first\n\n## Gaps\n"})
	f.check("SetTodo", err)
	f.delete(todo.ID)
	f.restore(todo.ID)
	_, err = f.store.CompleteTask(f.ctx, souvenir.TaskRef{ProjectID: "apollo", TaskID: "T1"})
	f.check("CompleteTask", err)
}

func trashOwnVectors(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "own", OwnVectors: true, VectorSize: 3})
	m := f.add(souvenir.NewMemory{Collection: "own", Content: "to the left", Embedding: []float32{-1, 0, 0}})
	f.delete(m.ID)
	f.restore(m.ID)
	query := souvenir.Query{Vector: []float32{-1, 0, 0}, Collections: []string{"own"}}
	f.same("found by its vector", contents(f.search(query)), "to the left")
	e := f.deleteCollection("own")
	f.restore(e.ID)
	f.equal("dimensions", f.collection("own").VectorSize, 3)
	hits := f.search(query).Hits
	if len(hits) != 1 || hits[0].Score < 0.9 {
		f.Errorf("found %+v, want 1 hit and score at least 0.9", hits)
	}
}

func trashOtherModel(f *fixture) {
	m := f.add(souvenir.NewMemory{Content: "an otter in the river"})
	f.delete(m.ID)
	f.reopen(Words{Version: "2"})
	f.restore(m.ID)
	f.waitEmbedded(f.store)
	f.same("found", f.find("otter"), "an otter in the river")
	f.equal("waiting for vectors", f.state().Pending, 0)
}

func trashFiles(f *fixture) {
	m := f.add(souvenir.NewMemory{Content: "with a plan", ProjectID: "apollo"})
	long := strings.Repeat("0123456789", 60_000)
	file := f.addFile(souvenir.NewFile{Filename: "plan.txt", MemoryID: m.ID, Tags: []string{"a", "b"}, Category: "plans",
		Description: "all of it"}, long)
	alone := f.addFile(souvenir.NewFile{Filename: "alone.txt", ProjectID: "apollo"}, "alone")
	was := f.getFile(file.ID)
	f.deleteFile(file.ID)
	f.deleteFile(alone.ID)
	_, err := f.reader.GetFile(f.ctx, file.ID)
	f.failsAt("GetFile", err, souvenir.ErrNotFound, "file_id")
	f.same("in the trash", f.inTrash(), "file alone.txt", "file plan.txt")
	f.equal("its project", f.trash()[1].ProjectID, "apollo")
	f.equal("its size", f.trash()[1].Size, int64(len(long)))
	f.restore(file.ID)
	f.equal("restored", f.getFile(file.ID), was)
	f.equal("its bytes", f.readFile(file.ID), long)
	f.restore(alone.ID)
	f.equal("restored", f.getFile(alone.ID), alone)
	_, err = f.operator.Upkeep().Purge(f.ctx, nil)
	f.check("Purge", err)
	f.equal("its bytes after a purge", f.readFile(file.ID), long)
}

func trashIterated(f *fixture) {
	var texts []string
	for i := range 300 { // more than one read returns
		texts = append(texts, fmt.Sprint("memory ", i))
	}
	ids := f.addTexts(texts...)
	f.deleteFile(f.addFile(souvenir.NewFile{Filename: "a file"}, "x").ID)
	_, err := f.store.DeleteMemories(f.ctx, souvenir.MemoriesDeletion{All: true})
	f.check("DeleteMemories", err)
	listed := map[string]bool{}
	for e, err := range f.store.Trash().All(f.ctx, souvenir.TrashList{Kinds: []souvenir.TrashKind{souvenir.TrashMemory}}) {
		f.check("Trash", err)
		if listed[e.ID] {
			f.Errorf("got %s twice, want it once", e.ID)
		}
		listed[e.ID] = true
		switch len(listed) {
		case 1:
			f.restore(e.ID)
			f.delete(e.ID) // deleted after the list began
		case 2:
			f.check("Trash.Erase", f.store.Trash().Erase(f.ctx, e.ID))
		}
	}
	f.equal("listed", len(listed), len(ids))
	f.equal("left, with the file", len(f.trash()), len(ids))
	for e, err := range f.reader.Trash().All(f.ctx, souvenir.TrashList{}) {
		f.check("Trash", err)
		f.equal("the newest deletion", e, f.trash()[0])
		break
	}
	for _, err := range f.reader.Trash().All(f.ctx, souvenir.TrashList{Kinds: []souvenir.TrashKind{"user"}}) {
		f.failsAt("Trash", err, souvenir.ErrInvalid, "kinds")
	}
}

func trashPages(f *fixture) {
	ids := f.addTexts("one", "two", "three")
	for _, id := range ids {
		f.delete(id)
	}
	f.deleteFile(f.addFile(souvenir.NewFile{Filename: "four"}, "x").ID)
	for _, c := range []struct {
		query souvenir.TrashQuery
		want  []string
		total int
	}{
		{souvenir.TrashQuery{Limit: 2}, []string{"four", "three"}, 4},
		{souvenir.TrashQuery{Limit: 2, Offset: 3}, []string{"one"}, 4},
		{souvenir.TrashQuery{Offset: 4}, nil, 4},
		{souvenir.TrashQuery{Kinds: []souvenir.TrashKind{souvenir.TrashMemory, souvenir.TrashProject}},
			[]string{"three", "two", "one"}, 3},
		{souvenir.TrashQuery{Kinds: []souvenir.TrashKind{souvenir.TrashFile}}, []string{"four"}, 1},
	} {
		p, err := f.reader.Trash().Page(f.ctx, c.query)
		f.check("Trash.Page", err)
		var titles []string
		for _, e := range p.Entries {
			titles = append(titles, e.Title)
		}
		f.equal(fmt.Sprintf("%+v", c.query), []any{titles, p.Total, p.HasMore()},
			[]any{c.want, c.total, c.query.Limit == 2 && c.query.Offset == 0})
	}
	for argument, q := range map[string]souvenir.TrashQuery{"limit": {Limit: 1001}, "offset": {Offset: -1},
		"kinds": {Kinds: []souvenir.TrashKind{souvenir.TrashFile, "user"}}} {
		_, err := f.reader.Trash().Page(f.ctx, q)
		f.failsAt("Trash.Page", err, souvenir.ErrInvalid, argument)
	}
}
