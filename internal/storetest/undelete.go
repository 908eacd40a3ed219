package storetest

import (
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func undeletion() concept {
	return concept{"Deletions that are taken back", []promise{
		{"taking a memory deletes it, restoring it brings all of it back", undeleteWhole},
		{"links between memories that were deleted one after another come back with them", undeleteLinked},
		{"what has gone or found another place meanwhile stays so", undeleteMeanwhile},
		{"a rule comes back only while its place is free", undeleteRule},
		{"only who may write where it lay brings it back", undeleteAccess},
	}}
}

// take deletes a memory in such a way that it can come back.
func (f *fixture) take(id string) *souvenir.DeletedMemory {
	f.Helper()
	taken, err := f.store.TakeMemory(f.ctx, id)
	f.check("TakeMemory "+id, err)
	return taken
}

func (f *fixture) restore(taken *souvenir.DeletedMemory) souvenir.Memory {
	f.Helper()
	m, err := f.store.RestoreMemory(f.ctx, taken)
	f.check("RestoreMemory "+taken.ID, err)
	return m
}

func undeleteWhole(f *fixture) {
	target := f.addTexts("the calendar")[0]
	m := f.add(complete(f, target))
	from := f.add(souvenir.NewMemory{Content: "the beginning", Related: []string{target, m.ID}})
	file := f.addFile(souvenir.NewFile{MemoryID: m.ID}, "still here")
	f.clock.Pass(time.Hour)
	f.rewrite(m.ID, "an otter. "+strings.Repeat("It swims in the river all day. ", 200))
	was, history, hits := f.get(m.ID), f.revisions(m.ID), f.search(souvenir.Query{Text: "otter"})
	f.clock.Pass(time.Hour)

	taken := f.take(m.ID)
	f.equal("what was taken", taken.Memory, was)
	if taken.Bytes() < int64(len(was.Content)) {
		f.Errorf("it takes %d bytes", taken.Bytes())
	}
	_, err := f.reader.GetMemory(f.ctx, m.ID)
	f.failsAt("GetMemory", err, souvenir.ErrNotFound, "id")
	f.same("found", f.find("otter"))
	f.equal("links to it", f.get(from.ID).Related, []string{target})
	f.equal("its file is linked to", f.getFile(file.ID).MemoryID, "")

	f.clock.Pass(time.Hour)
	f.equal("restored", f.restore(taken), was)
	f.equal("read", f.get(m.ID), was)
	f.equal("history", f.revisions(m.ID), history)
	f.sameHits("found again", hits, f.search(souvenir.Query{Text: "otter"}))
	f.equal("links to it", f.get(from.ID).Related, []string{target, m.ID})
	f.equal("its file is linked to", f.getFile(file.ID).MemoryID, m.ID)
	f.equal("its tags", f.search(souvenir.Query{Tags: []string{"deploy"}}).Total, 1)
	f.equal("waiting for vectors", f.state().Pending, 0)
	_, err = f.store.RestoreMemory(f.ctx, taken)
	f.failsAt("a second time", err, souvenir.ErrConflict, "deleted", m.ID)
	_, err = f.store.RestoreMemory(f.ctx, nil)
	f.failsAt("nothing", err, souvenir.ErrInvalid, "deleted")
}

func undeleteLinked(f *fixture) {
	ids := f.addTexts("one", "two", "three")
	f.patch(ids[0], map[string]any{"related_memory_ids": []string{ids[2], ids[1]}})
	f.patch(ids[2], map[string]any{"related_memory_ids": []string{ids[0]}})
	first, second, third := f.take(ids[0]), f.take(ids[1]), f.take(ids[2])
	f.addTexts("a memory in their place")
	f.restore(third)
	f.restore(second)
	f.restore(first)
	f.equal("links of the first", f.get(ids[0]).Related, []string{ids[2], ids[1]})
	f.equal("links of the third", f.get(ids[2]).Related, []string{ids[0]})
}

func undeleteMeanwhile(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "box"})
	target, other := f.addTexts("the calendar")[0], f.addTexts("another")[0]
	m := f.add(souvenir.NewMemory{Content: "x", Collection: "box", Related: []string{target}})
	file := f.addFile(souvenir.NewFile{MemoryID: m.ID}, "still here")
	taken := f.take(m.ID)
	f.delete(target)
	f.updateFile(file.ID, souvenir.UpdateFile{MemoryID: &other})
	f.equal("links", f.restore(taken).Related, []string(nil))
	f.equal("its file is linked to", f.getFile(file.ID).MemoryID, other)

	taken = f.take(m.ID)
	f.check("DeleteCollection", f.store.DeleteCollection(f.ctx, souvenir.DeleteCollection{Name: "box", WithMemories: true}))
	_, err := f.store.RestoreMemory(f.ctx, taken)
	f.failsAt("where its collection is gone", err, souvenir.ErrNotFound, "deleted", "box")
}

func undeleteRule(f *fixture) {
	first := f.setRule(souvenir.NewRule{ProjectID: "apollo", Type: souvenir.RuleDo, Content: "be kind"})
	taken := f.take(first.ID)
	f.setRule(souvenir.NewRule{ProjectID: "apollo", Type: souvenir.RuleDo, Content: "be quick"})
	_, err := f.store.RestoreMemory(f.ctx, taken)
	f.failsAt("beside another", err, souvenir.ErrConflict, "rule_type")
	f.check("DeleteRule", f.store.DeleteRule(f.ctx, souvenir.ProjectRef{ID: "apollo"}, souvenir.RuleDo))
	f.equal("restored", f.restore(taken).Content, "be kind")
}

func undeleteAccess(f *fixture) {
	p := share(f)
	id := p.owner.search(souvenir.Query{}).Hits[0].ID
	for _, view := range []*fixture{p.reader, p.stranger} {
		_, err := view.store.TakeMemory(f.ctx, id)
		if err == nil {
			f.Fatalf("%s has taken it", view.name())
		}
	}
	taken := p.writer.take(id)
	for _, view := range []*fixture{p.reader, p.stranger} {
		_, err := view.store.RestoreMemory(f.ctx, taken)
		f.failsAt("RestoreMemory by "+view.name(), err, souvenir.ErrForbidden, "deleted")
	}
	p.owner.updateMember("will", souvenir.MemberReader)
	_, err := p.writer.store.RestoreMemory(f.ctx, taken)
	f.failsAt("by who writes no more", err, souvenir.ErrForbidden, "deleted")
	f.equal("restored by the owner", p.owner.restore(taken).Content, "the rocket")
	f.equal("and seen", p.reader.get(id).Content, "the rocket")
}
