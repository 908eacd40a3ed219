package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
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
		{"what cannot come back of a collection keeps nothing else from it", trashPartly},
		{"what lay in something that is in the trash waits for it", trashNested},
		{"the owner of the place and who may write there see and restore, only the owner erases", trashAccess},
		{"what was erased is gone for good", trashErased},
		{"after its time an entry is gone", trashExpires},
		{"without a trash, deletions are for good", trashOff},
		{"many at once delete, restore and erase", trashConcurrent},
		{"pages of the trash", trashPages},
	}}
}

func (f *fixture) trash() []souvenir.TrashEntry {
	f.Helper()
	p, err := f.reader.ListTrash(f.ctx, souvenir.TrashQuery{Limit: souvenir.MaxTrashLimit})
	f.check("ListTrash", err)
	f.equal("total of the trash", p.Total, len(p.Entries))
	return p.Entries
}

// inTrash returns the titles of what is in the trash, the newest first.
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
	e, err := f.store.RestoreTrashed(f.ctx, id)
	f.check("RestoreTrashed "+id, err)
	return e
}

func (f *fixture) deleteFile(id string) {
	f.Helper()
	f.check("DeleteFile "+id, f.store.DeleteFile(f.ctx, id))
}

func (f *fixture) trashProject(id string) souvenir.TrashEntry {
	f.Helper()
	f.check("DeleteProject", f.store.DeleteProject(f.ctx, souvenir.DeleteProject{Project: souvenir.ProjectRef{ID: id}, WithMemories: true}))
	return f.trash()[0]
}

func (f *fixture) deleteCollection(name string) souvenir.TrashEntry {
	f.Helper()
	f.check("DeleteCollection", f.store.DeleteCollection(f.ctx, souvenir.DeleteCollection{Name: name, WithMemories: true}))
	return f.trash()[0]
}

func trashListed(f *fixture) {
	p := share(f)
	m := p.writer.add(souvenir.NewMemory{Content: "  the  engine\nneeds " + strings.Repeat("oil ", 100), ProjectID: apollo.ID})
	f.clock.Pass(time.Hour)
	tool := p.writer.as(souvenir.Access{User: "will", Through: "tool"})
	tool.delete(m.ID)
	entries := p.owner.trash()
	f.equal("entries", len(entries), 1)
	e := entries[0]
	if !strings.HasPrefix(e.Title, "the engine needs oil") || !strings.HasSuffix(e.Title, "…") || len(e.Title) > 130 {
		f.Errorf("title is %q", e.Title)
	}
	if e.Size < 400 {
		f.Errorf("size is %d", e.Size)
	}
	e.Title, e.Size = "", 0
	now := start.Add(time.Hour)
	f.equal("entry", e, souvenir.TrashEntry{
		ID: m.ID, Kind: souvenir.TrashMemory, Collection: souvenir.DefaultCollection, ProjectID: "apollo", ProjectName: "Apollo 11", Owner: "olga", Memories: 1,
		DeletedBy: "will", Through: "tool", DeletedAt: now, Until: now.Add(30 * 24 * time.Hour), Own: true,
	})
	one, err := p.owner.reader.GetTrashed(f.ctx, m.ID)
	f.check("GetTrashed", err)
	f.equal("alone", one, entries[0])
	_, err = p.owner.reader.GetTrashed(f.ctx, "nowhere")
	f.failsAt("GetTrashed", err, souvenir.ErrNotFound, "id", `"nowhere"`)
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
	_, err = f.store.RestoreTrashed(f.ctx, m.ID)
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
	f.check("EraseMemory", f.store.EraseMemory(f.ctx, target))
	f.updateFile(file.ID, souvenir.UpdateFile{MemoryID: &other})
	renamed := "crate"
	_, err := f.store.UpdateCollection(f.ctx, "box", souvenir.UpdateCollection{Name: &renamed})
	f.check("UpdateCollection", err)
	f.restore(m.ID)
	f.equal("links", f.get(m.ID).Related, []string(nil))
	f.equal("its collection", f.get(m.ID).Collection, "crate")
	f.equal("its file is linked to", f.getFile(file.ID).MemoryID, other)

	f.delete(m.ID)
	f.check("DeleteCollection", f.store.DeleteCollection(f.ctx, souvenir.DeleteCollection{Name: "crate", ForGood: true}))
	f.restore(m.ID)
	f.equal("its collection, which was gone for good", f.get(m.ID).Collection, "crate")
}

func trashTaken(f *fixture) {
	m := f.add(souvenir.NewMemory{Content: "the first"})
	f.delete(m.ID)
	line := `{"souvenir":"export","version":1}` + "\n" + `{"type":"memory","id":"` + m.ID + `","content":"the second"}` + "\n"
	_, err := f.operator.Import(f.ctx, strings.NewReader(line), nil)
	f.check("Import", err)
	_, err = f.store.RestoreTrashed(f.ctx, m.ID)
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
	_, err := f.store.RestoreTrashed(f.ctx, first.ID)
	f.failsAt("beside another", err, souvenir.ErrConflict, "rule_type", second.ID)
	f.check("DeleteRule", f.store.DeleteRule(f.ctx, souvenir.ProjectRef{ID: "apollo"}, souvenir.RuleDo))
	f.same("in the trash", f.inTrash(), "memory be quick", "memory be kind")
	f.restore(first.ID)
	rule, err := f.reader.GetRule(f.ctx, souvenir.ProjectRef{ID: "apollo"}, souvenir.RuleDo)
	f.check("GetRule", err)
	f.equal("restored", rule.ID, first.ID)
	todo, err := f.store.SetTodo(f.ctx, souvenir.NewTodo{ProjectID: "apollo", Content: "## Constitution\n\n## Spec\n\n## Plan\n\n## Tasks\n\n- [ ] T1 first\n\n## Gaps\n"})
	f.check("SetTodo", err)
	f.delete(todo.ID)
	f.restore(todo.ID)
	_, err = f.store.CompleteTask(f.ctx, souvenir.CompleteTask{ProjectID: "apollo", TaskID: "T1"})
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
		f.Errorf("found %+v", hits)
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
	file := f.addFile(souvenir.NewFile{Filename: "plan.txt", MemoryID: m.ID, Tags: []string{"a", "b"}, Category: "plans", Description: "all of it"}, long)
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
	_, err = f.operator.Purge(f.ctx, nil)
	f.check("Purge", err)
	f.equal("its bytes after a purge", f.readFile(file.ID), long)
}

// many stores many memories, every second of which links to the one before.
func (f *fixture) many(n int, m souvenir.NewMemory) []string {
	f.Helper()
	all := make([]souvenir.NewMemory, n)
	for i := range all {
		all[i] = m
		all[i].Content = fmt.Sprintf("number%d of many", i)
	}
	stored, err := f.store.AddMemories(f.ctx, all, nil)
	f.check("AddMemories", err)
	ids := ids(stored)
	for i := 1; i < n; i += n / 8 {
		f.patch(ids[i], map[string]any{"related_memory_ids": []string{ids[i-1], ids[0]}})
	}
	return ids
}

// sameMemories compares all memories with what they were.
func (f *fixture) sameMemories(before []souvenir.Memory) {
	f.Helper()
	now := f.list(souvenir.List{})
	if len(now) != len(before) {
		f.Fatalf("there are %d memories, want %d", len(now), len(before))
	}
	for i := range now {
		f.equal("memory", now[i], before[i])
	}
}

const trashedAtOnce = 3000 // more than one transaction deletes or restores

func trashCollections(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "box", Description: "many"})
	f.clock.Pass(time.Hour)
	ids := f.many(trashedAtOnce, souvenir.NewMemory{Collection: "box", ProjectID: "apollo"})
	was, before := f.collection("box"), f.list(souvenir.List{})
	e := f.deleteCollection("box")
	f.equal("one entry", len(f.trash()), 1)
	f.equal("entry", []any{e.Kind, e.Title, e.Collection, e.Memories}, []any{souvenir.TrashCollection, "box", "box", trashedAtOnce})
	f.equal("left", len(f.list(souvenir.List{})), 0)
	_, err := f.reader.GetCollection(f.ctx, "box")
	f.fails("GetCollection", err, souvenir.ErrNotFound)
	f.restore(e.ID)
	f.equal("collection", f.collection("box"), was)
	f.sameMemories(before)
	f.equal("a link", f.get(ids[1]).Related, []string{ids[0]})
	f.same("left in the trash", f.inTrash())

	e = f.deleteCollection("box")
	f.addCollection(souvenir.NewCollection{Name: "box"})
	_, err = f.store.RestoreTrashed(f.ctx, e.ID)
	f.failsAt("beside another", err, souvenir.ErrConflict, "id", `"box"`)
	other := "crate"
	_, err = f.store.UpdateCollection(f.ctx, "box", souvenir.UpdateCollection{Name: &other})
	f.check("UpdateCollection", err)
	f.restore(e.ID)
	f.sameMemories(before)
}

func trashProjects(f *fixture) {
	p := share(f)
	f.clock.Pass(time.Hour)
	ids := p.owner.many(trashedAtOnce, souvenir.NewMemory{ProjectID: "apollo"})
	p.owner.setRule(souvenir.NewRule{ProjectID: "apollo", Type: souvenir.RuleDo, Content: "be kind"})
	linked := p.owner.addFile(souvenir.NewFile{Filename: "linked.txt", MemoryID: ids[5]}, "linked")
	alone := p.owner.addFile(souvenir.NewFile{Filename: "alone.txt", ProjectID: "apollo"}, "alone")
	p.owner.rewrite(ids[7], "written anew")
	outside := p.owner.add(souvenir.NewMemory{Content: "outside", Related: []string{ids[3]}})
	gone := p.owner.add(souvenir.NewMemory{Content: "deleted before", ProjectID: "apollo"})
	for _, name := range []string{"Moon", "Apollo 11"} { // former names lead to it
		_, err := p.owner.store.UpdateProject(f.ctx, souvenir.ProjectRef{ID: "apollo"}, souvenir.UpdateProject{Name: &name})
		f.check("UpdateProject", err)
	}
	f.clock.Pass(time.Hour)
	p.owner.delete(gone.ID)
	was, members, before, history := p.owner.project("apollo"), p.owner.members(), p.owner.list(souvenir.List{}), p.owner.revisions(ids[7])

	e := p.owner.trashProject("apollo")
	f.equal("entry", []any{e.Kind, e.Title, e.ProjectID, e.Memories}, []any{souvenir.TrashProject, "Apollo 11", "apollo", trashedAtOnce + 2})
	f.same("what a member sees of it", p.writer.inTrash())
	f.equal("outside", p.owner.get(outside.ID).Related, []string(nil))
	f.equal("what a reader finds", p.reader.search(souvenir.Query{}).Total, 0)
	_, err := p.owner.store.RestoreTrashed(f.ctx, gone.ID)
	f.failsAt("what lay in it", err, souvenir.ErrNotFound, "id", e.ID)
	_, err = p.writer.store.RestoreTrashed(f.ctx, e.ID)
	f.failsAt("by a member", err, souvenir.ErrNotFound, "id")

	p.owner.restore(e.ID)
	f.equal("project", p.owner.project("apollo"), was)
	f.equal("members", p.owner.members(), members)
	named, err := p.owner.reader.GetProject(f.ctx, souvenir.ProjectRef{Name: "Moon"})
	f.check("GetProject by a former name", err)
	f.equal("found by a former name", named.ID, "apollo")
	p.owner.sameMemories(before)
	f.equal("history", p.owner.revisions(ids[7]), history)
	f.equal("outside", p.owner.get(outside.ID).Related, []string{ids[3]})
	f.equal("a file of a memory", p.owner.getFile(linked.ID).MemoryID, ids[5])
	f.equal("a file of the project", p.owner.getFile(alone.ID).ProjectID, "apollo")
	f.same("what a writer sees of the trash then", p.writer.inTrash(), "memory deleted before")
	p.writer.restore(gone.ID)
}

func trashPartly(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "box"})
	rule := f.add(souvenir.NewMemory{Collection: "box", EventType: souvenir.EventProjectRule, RuleType: souvenir.RuleDo, Content: "be kind"})
	f.many(300, souvenir.NewMemory{Collection: "box"})
	e := f.deleteCollection("box")
	second := f.setRule(souvenir.NewRule{Type: souvenir.RuleDo, Content: "be quick"})
	_, err := f.store.RestoreTrashed(f.ctx, e.ID)
	f.failsAt("RestoreTrashed", err, souvenir.ErrConflict, "rule_type", second.ID)
	f.equal("back", f.collection("box").MemoryCount, 300)
	f.equal("left", f.trash()[0].Memories, 1)
	f.delete(second.ID)
	f.restore(e.ID)
	f.equal("restored", f.get(rule.ID).Content, "be kind")
	f.same("left in the trash", f.inTrash(), "memory be quick")
}

func trashNested(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "box"})
	m := f.add(souvenir.NewMemory{Collection: "box", ProjectID: "apollo", Content: "in both"})
	f.delete(m.ID)
	project, box := f.trashProject("apollo"), f.deleteCollection("box")
	_, err := f.store.RestoreTrashed(f.ctx, m.ID)
	f.failsAt("the memory", err, souvenir.ErrNotFound, "id", box.ID)
	f.restore(box.ID)
	_, err = f.store.RestoreTrashed(f.ctx, m.ID)
	f.failsAt("the memory", err, souvenir.ErrNotFound, "id", project.ID)
	f.check("EraseTrashed", f.store.EraseTrashed(f.ctx, project.ID))
	f.restore(m.ID)
	f.equal("in a project that was gone for good", f.get(m.ID).ProjectID, "apollo")
}

func trashAccess(f *fixture) {
	p := share(f)
	former := f.user("fred")
	p.owner.addMember("fred", souvenir.MemberWriter)
	shared := p.owner.search(souvenir.Query{}).Hits[0].ID
	private := p.owner.add(souvenir.NewMemory{Content: "a diary"})
	file := p.owner.addFile(souvenir.NewFile{Filename: "plan.txt", ProjectID: "apollo"}, "plan")
	former.delete(shared)
	former.deleteFile(file.ID)
	p.owner.delete(private.ID)
	p.owner.deleteMember("fred")
	limited := func(ref string, readOnly bool) *fixture {
		return f.as(souvenir.Access{User: "olga", Projects: []string{ref}, ReadOnly: readOnly})
	}
	p.owner.addProject(souvenir.NewProject{ID: "gemini"})
	all := []string{"memory a diary", "file plan.txt", "memory the rocket"}
	const no, restores, erases = 0, 1, 2
	for _, c := range []struct {
		name string
		view *fixture
		sees []string
		may  int
	}{
		{"owner", p.owner, all, erases}, {"writer", p.writer, all[1:], restores}, {"co-owner", p.coOwner, all[1:], restores}, {"reader", p.reader, nil, no},
		{"former member, who deleted it", former, nil, no}, {"stranger", p.stranger, nil, no}, {"another stranger", f, nil, no},
		{"limited to the project", limited("apollo", false), all[1:], erases}, {"limited to another project", limited("gemini", false), nil, no},
		{"limited to nothing", f.as(souvenir.Access{User: "olga", Projects: []string{}}), nil, no},
		{"read-only", f.as(souvenir.Access{User: "olga", ReadOnly: true}), all, -1}, {"read-only and limited", limited("apollo", true), all[1:], -1},
	} {
		f.equal(c.name+" sees", c.view.inTrash(), c.sees)
		for _, id := range []string{shared, file.ID} {
			_, restored := c.view.store.RestoreTrashed(f.ctx, id)
			if restored == nil {
				if id == shared {
					p.owner.delete(id)
				} else {
					p.owner.deleteFile(id)
				}
			}
			erased := c.view.store.EraseTrashed(f.ctx, id)
			switch c.may {
			case -1:
				f.fails(c.name+" restores", restored, souvenir.ErrReadOnly)
				f.fails(c.name+" erases", erased, souvenir.ErrReadOnly)
			case no:
				f.failsAt(c.name+" restores", restored, souvenir.ErrNotFound, "id")
				f.failsAt(c.name+" erases", erased, souvenir.ErrNotFound, "id")
			case restores:
				f.check(c.name+" restores", restored)
				f.failsAt(c.name+" erases", erased, souvenir.ErrForbidden, "id", "olga")
			case erases:
				f.check(c.name+" restores", restored)
				f.check(c.name+" erases", erased)
				if id == shared {
					shared = p.owner.add(souvenir.NewMemory{Content: "the rocket", ProjectID: "apollo"}).ID
					p.owner.delete(shared)
				} else {
					file = p.owner.addFile(souvenir.NewFile{Filename: "plan.txt", ProjectID: "apollo"}, "plan")
					p.owner.deleteFile(file.ID)
					p.owner.check("EraseTrashed", p.owner.store.EraseTrashed(f.ctx, private.ID))
					private = p.owner.add(souvenir.NewMemory{Content: "a diary"})
					p.owner.delete(private.ID)
				}
			}
		}
		if c.may == restores { // which changed the order
			p.owner.restore(private.ID)
			p.owner.delete(private.ID)
		}
	}
	n, err := p.writer.store.EmptyTrash(f.ctx)
	f.check("EmptyTrash", err)
	f.equal("emptied by a writer", n, 0)
	again := p.owner.add(souvenir.NewMemory{Content: "again", ProjectID: "apollo"})
	f.failsAt("EraseMemory by a writer", p.writer.store.EraseMemory(f.ctx, again.ID), souvenir.ErrForbidden, "id")
	kept := p.owner.addFile(souvenir.NewFile{ProjectID: "apollo"}, "again")
	f.failsAt("EraseFile by a writer", p.writer.store.EraseFile(f.ctx, kept.ID), souvenir.ErrForbidden, "file_id")
	f.check("EraseFile", p.owner.store.EraseFile(f.ctx, kept.ID))
	n, err = p.owner.store.EmptyTrash(f.ctx)
	f.check("EmptyTrash", err)
	f.equal("emptied by the owner", n, 3)
	f.same("left", p.owner.inTrash())
}

func trashErased(f *fixture) {
	ids := f.addTexts("one", "two", "three")
	file := f.addFile(souvenir.NewFile{Filename: "x.txt"}, strings.Repeat("x", 20<<20))
	f.delete(ids[0])
	f.delete(ids[1])
	f.deleteFile(file.ID)
	f.check("EraseTrashed", f.store.EraseTrashed(f.ctx, ids[0]))
	f.same("left", f.inTrash(), "file x.txt", "memory two")
	_, err := f.store.RestoreTrashed(f.ctx, ids[0])
	f.failsAt("RestoreTrashed", err, souvenir.ErrNotFound, "id")
	n, err := f.store.EmptyTrash(f.ctx)
	f.check("EmptyTrash", err)
	f.equal("emptied", n, 2)
	f.check("EraseMemory", f.store.EraseMemory(f.ctx, ids[2]))
	f.same("left", f.inTrash())
	stats, err := f.operator.Stats(f.ctx)
	f.check("Stats", err)
	f.equal("files", stats.Files, 0)
}

func trashExpires(f *fixture) {
	ids := f.addTexts("one", "two")
	f.delete(ids[0])
	f.clock.Pass(20 * 24 * time.Hour)
	f.delete(ids[1])
	f.clock.Pass(10 * 24 * time.Hour)
	f.same("after thirty days", f.inTrash(), "memory two")
	_, err := f.store.RestoreTrashed(f.ctx, ids[0])
	f.failsAt("RestoreTrashed", err, souvenir.ErrNotFound, "id")
	_, err = f.operator.Purge(f.ctx, nil) // unless background work was quicker
	f.check("Purge", err)
	f.restore(ids[1])
	f.same("left", f.inTrash())
}

func trashOff(f *fixture) {
	f.close()
	o := f.options(f.embedder)
	o.KeepTrash = -1
	f.store = f.open(f.T, o)
	f.reader, f.operator = f.store, f.store
	m := f.add(souvenir.NewMemory{Content: "an otter", ProjectID: "apollo"})
	file := f.addFile(souvenir.NewFile{MemoryID: m.ID}, "x")
	f.delete(m.ID)
	f.deleteFile(file.ID)
	f.add(souvenir.NewMemory{Content: "another", ProjectID: "apollo"})
	f.check("DeleteProject", f.store.DeleteProject(f.ctx, souvenir.DeleteProject{Project: souvenir.ProjectRef{ID: "apollo"}, WithMemories: true}))
	f.same("in the trash", f.inTrash())
	_, err := f.store.RestoreTrashed(f.ctx, m.ID)
	f.failsAt("RestoreTrashed", err, souvenir.ErrNotFound, "id")
}

func trashConcurrent(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "box"})
	ids := f.many(40, souvenir.NewMemory{Collection: "box"})
	var done sync.WaitGroup
	expected := func(what string, err error) {
		for _, kind := range []error{souvenir.ErrNotFound, souvenir.ErrConflict} {
			if errors.Is(err, kind) {
				return
			}
		}
		if err != nil {
			f.Errorf("%s: %v", what, err)
		}
	}
	for worker := range 4 {
		done.Go(func() {
			for i := range ids {
				id := ids[(i+10*worker)%len(ids)]
				expected("DeleteMemory", f.store.DeleteMemory(f.ctx, id))
				if i%10 == 5 {
					expected("DeleteCollection", f.store.DeleteCollection(f.ctx, souvenir.DeleteCollection{Name: "box", WithMemories: true}))
				}
				_, err := f.store.RestoreTrashed(f.ctx, id)
				expected("RestoreTrashed", err)
				if i%10 == 7 {
					_, err := f.operator.Purge(f.ctx, nil)
					expected("Purge", err)
				}
			}
		})
	}
	done.Wait()
	for range 3 { // first what others lay in
		for _, e := range f.trash() {
			_, err := f.store.RestoreTrashed(f.ctx, e.ID)
			expected("RestoreTrashed", err)
		}
	}
	f.same("left in the trash", f.inTrash())
	f.equal("memories", len(f.list(souvenir.List{})), len(ids))
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
		{souvenir.TrashQuery{Kinds: []souvenir.TrashKind{souvenir.TrashMemory, souvenir.TrashProject}}, []string{"three", "two", "one"}, 3},
		{souvenir.TrashQuery{Kinds: []souvenir.TrashKind{souvenir.TrashFile}}, []string{"four"}, 1},
	} {
		p, err := f.reader.ListTrash(f.ctx, c.query)
		f.check("ListTrash", err)
		var titles []string
		for _, e := range p.Entries {
			titles = append(titles, e.Title)
		}
		f.equal(fmt.Sprintf("%+v", c.query), []any{titles, p.Total, p.HasMore()}, []any{c.want, c.total, c.query.Limit == 2 && c.query.Offset == 0})
	}
	for argument, q := range map[string]souvenir.TrashQuery{"limit": {Limit: 1001}, "offset": {Offset: -1}, "kinds": {Kinds: []souvenir.TrashKind{souvenir.TrashFile, "user"}}} {
		_, err := f.reader.ListTrash(f.ctx, q)
		f.failsAt("ListTrash", err, souvenir.ErrInvalid, argument)
	}
}
