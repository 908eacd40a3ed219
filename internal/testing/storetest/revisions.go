package storetest

import (
	"fmt"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func revisions() concept {
	return concept{"Revisions", []promise{
		{"tell every state, the current one first", revisionHistory},
		{"come in parts, which say how far back they reach", revisionParts},
		{"restoring is an update to a former state", revisionRestore},
		{"restoring replaces metadata and merges nothing", revisionRestoreMetadata},
		{"restoring leaves out links to deleted memories", revisionRestoreLinks},
		{"restoring brings a memory back to its project", revisionRestoreProject},
		{"restoring takes no memory into another user's project of the same id", revisionRestoreOthers},
		{"restoring the present content makes no revision", revisionRestoreSame},
		{"only a former revision can be restored", revisionRestoreUnknown},
	}}
}

func revisionHistory(f *fixture) {
	target := f.addTexts("the calendar")[0]
	m := f.add(complete(f, target))
	first := m.ShownMetadata()
	f.clock.Pass(time.Hour)
	f.rewrite(m.ID, "second")
	f.clock.Pass(time.Hour)
	last := f.patch(m.ID, object(`{"tags":null,"state":"archived","author":{"name":"bob"}}`))

	type revision struct {
		Number   int
		Content  string
		Metadata map[string]any
		At       time.Time
		Current  bool
	}
	var got []revision
	for _, r := range f.revisions(m.ID) {
		got = append(got, revision{r.Number, r.Content, r.Metadata, r.CreatedAt, r.Current})
	}
	f.sameJSON("revisions", got, []revision{
		{3, "second", last.ShownMetadata(), start.Add(2 * time.Hour), true},
		{2, "second", first, start.Add(time.Hour), false},
		{1, "never deploy on friday", first, start, false},
	})
	f.equal("of a memory that never changed", len(f.revisions(target)), 1)
}

func revisionParts(f *fixture) {
	m := f.addTexts("state 1")[0]
	for i := 2; i <= 30; i++ {
		f.clock.Pass(time.Hour)
		f.rewrite(m, fmt.Sprintf("state %d", i))
	}
	all := f.revisions(m)
	for _, part := range []struct {
		query    souvenir.RevisionQuery
		from, to int
	}{
		{souvenir.RevisionQuery{}, 30, 6},
		{souvenir.RevisionQuery{Limit: 1}, 30, 30},
		{souvenir.RevisionQuery{Before: 30, Limit: 2}, 29, 28},
		{souvenir.RevisionQuery{Before: 1 << 40, Limit: 100}, 30, 1},
		{souvenir.RevisionQuery{Before: 3}, 2, 1},
		{souvenir.RevisionQuery{Before: 1}, 0, 1},
	} {
		page, err := f.reader.Insights().RevisionPage(f.ctx, m, part.query)
		f.check("RevisionPage", err)
		f.sameJSON(fmt.Sprintf("the part %+v", part.query), page,
			souvenir.RevisionPage{Revisions: all[30-part.from : 31-part.to], Oldest: 1})
	}
	for _, q := range []souvenir.RevisionQuery{{Before: -1}, {Limit: -1}, {Limit: souvenir.MaxRevisionLimit + 1}} {
		_, err := f.reader.Insights().RevisionPage(f.ctx, m, q)
		f.fails(fmt.Sprintf("RevisionPage(%+v)", q), err, souvenir.ErrInvalid)
	}
	for at, want := range map[time.Duration]string{0: "state 1", 90 * time.Minute: "state 2", 28 * time.Hour: "state 29"} {
		found, err := f.reader.Search(f.ctx, souvenir.Query{AsOf: start.Add(at), Filter: souvenir.Filter{"id": m}})
		f.check("Search", err)
		f.equal("as of "+at.String(), found.Hits[0].Content, want)
	}
	_, err := f.store.RestoreRevision(f.ctx, m, 31)
	f.fails("RestoreRevision", err, souvenir.ErrNotFound)
}

func revisionRestore(f *fixture) {
	m := f.add(souvenir.NewMemory{Content: "a heron", Tags: []string{"bird"}, State: "active"})
	f.rewrite(m.ID, "an otter")
	f.patch(m.ID, object(`{"tags":["mammal"],"state":null}`))
	f.clock.Pass(time.Hour)
	restored, err := f.store.RestoreRevision(f.ctx, m.ID, 1)
	f.check("RestoreRevision", err)
	f.equal("restored", []any{restored.Content, restored.Tags, restored.State, restored.Revision, restored.Indexed,
		restored.CreatedAt, restored.UpdatedAt},
		[]any{"a heron", []string{"bird"}, "active", 4, true, start, start.Add(time.Hour)})
	f.equal("read", f.get(m.ID), restored.Memory)
	f.same("found", f.find("heron"), "a heron")
	f.same("found by what it was", f.find("otter"))
	f.equal("tagged again", f.search(souvenir.Query{Tags: []string{"bird"}}).Total, 1)
	f.equal("tagged as it was", f.search(souvenir.Query{Tags: []string{"mammal"}}).Total, 0)
	f.equal("the state before is kept", f.revisions(m.ID)[1].Content, "an otter")
	_, err = f.store.RestoreRevision(f.ctx, m.ID, 3)
	f.check("RestoreRevision back", err)
	f.equal("content", f.get(m.ID).Content, "an otter")
}

func revisionRestoreMetadata(f *fixture) {
	for _, c := range []struct{ first, second string }{
		{`{"a":{"b":1,"c":2},"d":[1]}`, `{"a":{"b":null,"e":3},"d":null,"f":1}`},
		{`{"a":1}`, `{"a":{"deep":{"er":1}}}`},
		{`{}`, `{"a":{"b":1}}`},
		{`{"n":9007199254740993,"list":[null]}`, `{"n":1,"list":null}`},
		{`{"a":{"b":null}}`, `{"a":{"c":1}}`},
		{`{"a":null}`, `{"b":1}`},
	} {
		first := object(c.first)
		if _, big := first["n"]; big {
			first["n"] = 9007199254740993 // valid in JSON, but the table's reader would round it
		}
		m := f.add(souvenir.NewMemory{Content: "x", ShownMetadata: first})
		f.patch(m.ID, object(c.second))
		restored, err := f.store.RestoreRevision(f.ctx, m.ID, 1)
		f.check("RestoreRevision", err)
		f.sameJSON("restored after "+c.second, restored.Metadata, first)
		f.sameJSON("read", f.get(m.ID).Metadata, first)
	}
}

func revisionRestoreLinks(f *fixture) {
	targets := f.addTexts("one", "two")
	m := f.add(souvenir.NewMemory{Content: "x", Related: targets})
	f.patch(m.ID, map[string]any{"related_memory_ids": nil})
	f.delete(targets[0])
	f.sameJSON("links in the history", f.revisions(m.ID)[1].Metadata["related_memory_ids"], targets[1:])
	restored, err := f.store.RestoreRevision(f.ctx, m.ID, 1)
	f.check("RestoreRevision", err)
	f.equal("links", restored.Related, targets[1:])
	f.delete(targets[1])
	f.rewrite(m.ID, "y")
	_, err = f.store.RestoreRevision(f.ctx, m.ID, 1)
	f.check("RestoreRevision without any target", err)
	same(f, "links", f.get(m.ID).Related, nil)
}

func revisionRestoreProject(f *fixture) {
	m := f.add(souvenir.NewMemory{Content: "x", ProjectID: "a", ProjectName: "Apollo"})
	f.patch(m.ID, map[string]any{"project_id": "g"})
	f.patch(m.ID, map[string]any{"project_id": nil})
	for revision, want := range map[int]string{1: "Apollo", 2: "g"} {
		_, err := f.store.RestoreRevision(f.ctx, m.ID, revision)
		f.check("RestoreRevision", err)
		f.equal("project", f.get(m.ID).ProjectName, want)
		f.equal("found in it", f.search(souvenir.Query{ProjectName: want, Text: "x"}).Total, 1)
	}
}

// revisionRestoreOthers restores versions from projects of the caller's while others share projects with the same ids.
func revisionRestoreOthers(f *fixture) {
	ann, bob := f.user("ann"), f.user("bob")
	for _, id := range []string{"gone", "kept"} {
		bob.addProject(souvenir.NewProject{ID: id})
	}
	restore := func(id string) souvenir.StoredMemory {
		f.Helper()
		restored, err := ann.store.RestoreRevision(f.ctx, id, 1)
		f.check("RestoreRevision", err)
		return restored
	}
	out := func(project string) string {
		f.Helper()
		m := ann.add(souvenir.NewMemory{Content: "a diary", ProjectID: project})
		ann.patch(m.ID, map[string]any{"project_id": nil})
		return m.ID
	}
	gone, kept := out("gone"), out("kept")
	ann.deleteProject(souvenir.ProjectRef{ID: "gone"}, nil)
	f.clock.Pass(time.Hour)
	bob.share("gone", "ann", souvenir.MemberWriter)
	bob.share("kept", "ann", souvenir.MemberWriter)
	back := restore(kept)
	f.equal("into one's own project", []string{back.ProjectID, back.Owner}, []string{"kept", "ann"})
	back = restore(gone)
	f.equal("not into another's", []string{back.ProjectID, back.Owner}, []string{"", "ann"})
	f.warned("not into another's", back.Warnings, `"gone"`, "another user", "stays")
	f.equal("the other user's memories", len(bob.list(souvenir.MemoryList{ProjectID: "gone"})), 0)

	ann.share("kept", "bob", souvenir.MemberWriter)
	given, to := ann.add(souvenir.NewMemory{Content: "a map", ProjectID: "kept"}).ID, "bob/gone"
	ann.update(given, souvenir.MemoryUpdate{ProjectID: &to})
	taken, err := bob.store.RestoreRevision(f.ctx, given, 1)
	f.check("RestoreRevision by the one to whom it was given", err)
	f.equal("into the project of that version", []string{taken.ProjectID, taken.Owner}, []string{"kept", "ann"})
}

func revisionRestoreSame(f *fixture) {
	m := f.add(souvenir.NewMemory{Content: "x", ShownMetadata: map[string]any{"a": map[string]any{"b": 1}}})
	f.patch(m.ID, object(`{"a":{"b":2}}`))
	f.patch(m.ID, object(`{"a":{"b":1}}`))
	restored, err := f.store.RestoreRevision(f.ctx, m.ID, 1)
	f.check("RestoreRevision", err)
	f.equal("revision", restored.Revision, 3)
	f.equal("history", len(f.revisions(m.ID)), 3)
}

func revisionRestoreUnknown(f *fixture) {
	m := f.add(souvenir.NewMemory{Content: "x"})
	f.rewrite(m.ID, "y")
	for _, n := range []int{-1, 0, 2, 3, 1 << 40} {
		_, err := f.store.RestoreRevision(f.ctx, m.ID, n)
		f.failsAt("RestoreRevision", err, souvenir.ErrNotFound, "revision", brief(n), "revision 2")
	}
	f.equal("content", f.get(m.ID).Content, "y")
}
