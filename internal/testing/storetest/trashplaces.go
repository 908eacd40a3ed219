package storetest

import (
	"fmt"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// many stores many memories; every second one links to the one before.
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

// sameMemories compares all memories with their state before.
func (f *fixture) sameMemories(before []souvenir.Memory) {
	f.Helper()
	now := f.list(souvenir.MemoryList{})
	if len(now) != len(before) {
		f.Fatalf("there are %d memories, want %d", len(now), len(before))
	}
	for i := range now {
		f.equal("memory", now[i], before[i])
	}
}

// manyAtOnce is more than one transaction deletes or restores.
func manyAtOnce() int { return longtest.Size(3000, 1100) }

func trashCollections(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "box", Description: "many"})
	f.clock.Pass(time.Hour)
	n := manyAtOnce()
	ids := f.many(n, souvenir.NewMemory{Collection: "box", ProjectID: "apollo"})
	was, before := f.collection("box"), f.list(souvenir.MemoryList{})
	e := f.deleteCollection("box")
	f.equal("one entry", len(f.trash()), 1)
	f.equal("entry", []any{e.Kind, e.Title, e.Collection, e.Memories},
		[]any{souvenir.TrashCollection, "box", "box", n})
	f.equal("left", len(f.list(souvenir.MemoryList{})), 0)
	_, err := f.reader.GetCollection(f.ctx, "box")
	f.fails("GetCollection", err, souvenir.ErrNotFound)
	f.restore(e.ID)
	f.equal("collection", f.collection("box"), was)
	f.sameMemories(before)
	f.equal("a link", f.get(ids[1]).Related, []string{ids[0]})
	f.same("left in the trash", f.inTrash())

	e = f.deleteCollection("box")
	f.addCollection(souvenir.NewCollection{Name: "box"})
	_, err = f.store.Trash().Restore(f.ctx, e.ID)
	f.failsAt("beside another", err, souvenir.ErrConflict, "id", `"box"`)
	other := "crate"
	_, err = f.store.UpdateCollection(f.ctx, "box", souvenir.CollectionUpdate{Name: &other})
	f.check("UpdateCollection", err)
	f.restore(e.ID)
	f.sameMemories(before)
}

func trashProjects(f *fixture) {
	p := share(f)
	f.clock.Pass(time.Hour)
	n := manyAtOnce()
	ids := p.owner.many(n, souvenir.NewMemory{ProjectID: "apollo"})
	p.owner.setRule(souvenir.NewRule{ProjectID: "apollo", Type: souvenir.RuleDo, Content: "be kind"})
	linked := p.owner.addFile(souvenir.NewFile{Filename: "linked.txt", MemoryID: ids[5]}, "linked")
	alone := p.owner.addFile(souvenir.NewFile{Filename: "alone.txt", ProjectID: "apollo"}, "alone")
	p.owner.rewrite(ids[7], "rewritten")
	outside := p.owner.add(souvenir.NewMemory{Content: "outside", Related: []string{ids[3]}})
	gone := p.owner.add(souvenir.NewMemory{Content: "deleted before", ProjectID: "apollo"})
	for _, name := range []string{"Moon", "Apollo 11"} { // former names lead to it
		_, err := p.owner.store.UpdateProject(f.ctx, souvenir.ProjectRef{ID: "apollo"}, souvenir.ProjectUpdate{Name: &name})
		f.check("UpdateProject", err)
	}
	f.clock.Pass(time.Hour)
	p.owner.delete(gone.ID)
	was, members, before, history := p.owner.project("apollo"), p.owner.members(), p.owner.list(souvenir.MemoryList{}),
		p.owner.revisions(ids[7])

	e := p.owner.trashProject("apollo")
	f.equal("entry", []any{e.Kind, e.Title, e.ProjectID, e.Memories},
		[]any{souvenir.TrashProject, "Apollo 11", "apollo", n + 2})
	f.same("what a member sees of it", p.writer.inTrash())
	f.equal("outside", p.owner.get(outside.ID).Related, []string(nil))
	f.equal("what a reader finds", p.reader.search(souvenir.Query{}).Total, 0)
	_, err := p.owner.store.Trash().Restore(f.ctx, gone.ID)
	f.failsAt("what was in it", err, souvenir.ErrNotFound, "id", e.ID)
	_, err = p.writer.store.Trash().Restore(f.ctx, e.ID)
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

// trashConsent restores a project long after its deletion. Its former members could not leave it in the meantime.
func trashConsent(f *fixture) {
	p := share(f)
	e := p.owner.trashProject("apollo")
	p.owner.restore(e.ID)
	f.equal("found after an undo", p.reader.search(souvenir.Query{}).Total, 1)

	e = p.owner.trashProject("apollo")
	f.clock.Pass(2 * time.Hour)
	_, err := p.owner.store.Trash().Restore(f.ctx, e.ID)
	f.check("Trash.Restore", err)
	before := len(p.owner.members())
	for _, member := range p.members() {
		f.equal("found before they agree", member.search(souvenir.Query{}).Total, 0)
		waiting, err := member.store.Accounts().ProjectInvitations(f.ctx)
		f.check("ProjectInvitations", err)
		f.equal("invitations", len(waiting), 1)
		_, err = member.store.Accounts().AcceptProjectInvitation(f.ctx, waiting[0].ID)
		f.check("AcceptProjectInvitation", err)
		f.equal("found then", member.search(souvenir.Query{}).Total, 1)
	}
	f.equal("members who agreed", len(p.owner.members())-before, 3)
}

func trashPartly(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "box"})
	rule := f.add(souvenir.NewMemory{Collection: "box", EventType: souvenir.EventProjectRule, RuleType: souvenir.RuleDo,
		Content: "be kind"})
	f.many(300, souvenir.NewMemory{Collection: "box"})
	e := f.deleteCollection("box")
	second := f.setRule(souvenir.NewRule{Type: souvenir.RuleDo, Content: "be quick"})
	_, err := f.store.Trash().Restore(f.ctx, e.ID)
	f.failsAt("Trash.Restore", err, souvenir.ErrConflict, "rule_type", second.ID)
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
	_, err := f.store.Trash().Restore(f.ctx, m.ID)
	f.failsAt("the memory", err, souvenir.ErrNotFound, "id", box.ID)
	f.restore(box.ID)
	_, err = f.store.Trash().Restore(f.ctx, m.ID)
	f.failsAt("the memory", err, souvenir.ErrNotFound, "id", project.ID)
	f.check("Trash.Erase", f.store.Trash().Erase(f.ctx, project.ID))
	f.restore(m.ID)
	f.equal("in a project that was gone for good", f.get(m.ID).ProjectID, "apollo")
}

func trashNamesake(f *fixture) {
	m := f.add(souvenir.NewMemory{ProjectName: "Apollo", Content: "a rocket"})
	f.delete(m.ID)
	f.deleteProject(souvenir.ProjectRef{Name: "Apollo"}, &souvenir.DeletionOptions{Erase: true})
	again := f.add(souvenir.NewMemory{ProjectName: "apollo", Content: "a capsule"})
	f.equal("another project", again.ProjectID != m.ProjectID, true)
	f.restore(m.ID)
	f.equal("restored into the project of the name", f.get(m.ID).ProjectID, again.ProjectID)
	f.equal("found by the name", f.search(souvenir.Query{ProjectName: "Apollo"}).Total, 2)
}
