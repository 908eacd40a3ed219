package storetest

import (
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func updates() concept {
	return concept{"Updates", []promise{
		{"metadata is patched as RFC 7396 says", updateMergePatch},
		{"known keys are patched in the same way", updateKnownKeys},
		{"new content is found by its words and meaning, the old no longer", updateContent},
		{"new content of another length is found as a whole", updateLength},
		{"a changed tag changes what finds the memory", updateTags},
		{"each makes a revision and the times tell when", updateRevisions},
		{"what changes nothing makes no revision", updateOfNothing},
		{"an expected revision that is not the current one is a conflict naming both", updateExpected},
		{"bad arguments are named and leave the memory as it was", updateArguments},
		{"a clock that goes back does not take updated_at along", updateClockBack},
		{"says whether the memory is indexed", updateIndexed},
	}}
}

// updateMergePatch runs the test cases of RFC 7396, appendix A. The RFC patches any document, but a memory's
// metadata is an object, so every case is wrapped in one.
func updateMergePatch(f *fixture) {
	for _, c := range []struct{ before, patch, after string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		// Beyond the appendix: depth, order and values that must not be taken for null.
		{`{"a":{"b":{"c":1,"d":2},"e":3}}`, `{"a":{"b":{"c":null}}}`, `{"a":{"b":{"d":2},"e":3}}`},
		{`{"a":1}`, `{"a":false,"b":0,"c":"","d":[],"e":{}}`, `{"a":false,"b":0,"c":"","d":[],"e":{}}`},
		{`{"a":[1,null]}`, `{"b":[null]}`, `{"a":[1,null],"b":[null]}`},
		{`{"a":{"b":1}}`, `{"a":{}}`, `{"a":{"b":1}}`},
	} {
		what := c.before + " patched with " + c.patch
		before := object(`{"k":` + c.before + `,"kept":true}`)
		m := f.add(souvenir.NewMemory{Content: "x", ShownMetadata: before})
		patched := f.patch(m.ID, object(`{"k":`+c.patch+`}`))
		want := object(`{"k":` + c.after + `,"kept":true}`)
		f.sameJSON(what, patched.Metadata, want)
		f.sameJSON(what+", read", f.get(m.ID).Metadata, want)
		f.sameJSON(what+", before", f.revisions(m.ID)[len(f.revisions(m.ID))-1].Metadata, before)
	}
	m := f.add(souvenir.NewMemory{Content: "x", ShownMetadata: object(`{"a":"b","c":{"d":1}}`)})
	f.sameJSON("at the top", f.patch(m.ID, object(`{"a":null,"c":{"d":null,"e":2},"f":{"g":null}}`)).Metadata,
		object(`{"c":{"e":2},"f":{}}`))
}

func updateKnownKeys(f *fixture) {
	target := f.addTexts("the calendar")[0]
	other := f.addTexts("another")[0]
	for _, c := range []struct{ patch, want string }{
		{`{"state":"archived"}`, `{"state":"archived"}`},
		{`{"state":null}`, `{"state":null}`},
		{`{"event_type":null,"rule_type":null}`, `{"event_type":null,"rule_type":null}`},
		{`{"event_type":"decision","rule_type":null}`, `{"event_type":"decision","rule_type":null}`},
		{`{"importance":"low","classification":"notes"}`, `{"importance":"low","classification":"notes"}`},
		{`{"importance":null,"classification":null}`, `{"importance":null,"classification":null}`},
		{`{"rule_type":"do"}`, `{"rule_type":"do"}`},
		{`{"tags":["b","a"," b "]}`, `{"tags":["b","a"]}`},
		{`{"tags":[]}`, `{"tags":null}`},
		{`{"tags":null}`, `{"tags":null}`},
		{`{"related_memory_ids":["` + other + `"]}`, `{"related_memory_ids":["` + other + `"]}`},
		{`{"related_memory_ids":null}`, `{"related_memory_ids":null}`},
		{`{"project_id":null}`, `{"project_id":null,"project_name":null}`},
		{`{"project_name":"new","author":null}`, `{"project_name":"new","author":null}`},
	} {
		m := f.add(complete(f, target))
		want := m.ShownMetadata()
		for key, value := range object(c.want) {
			if want[key] = value; value == nil {
				delete(want, key)
			}
		}
		patched := f.patch(m.ID, object(c.patch))
		if want["project_name"] == "new" {
			want["project_id"] = patched.ProjectID
		}
		f.sameJSON("patched with "+c.patch, patched.ShownMetadata(), want)
		f.equal("read after "+c.patch, f.get(m.ID), patched.Memory)
		f.delete(m.ID) // a project has one such rule
	}
}

func updateContent(f *fixture) {
	id := f.addTexts("a heron by the house")[0]
	updated := f.rewrite(id, "an otter with a coffee")
	f.equal("updated", []any{updated.Content, updated.Indexed, updated.Revision}, []any{"an otter with a coffee", true, 2})
	for _, c := range []struct {
		text  string
		found bool
	}{{"heron", false}, {"dwelling", false}, {"house", false}, {"otter", true}, {"espresso", true}} {
		got := len(f.find(c.text)) > 0
		f.equal("found by "+c.text, got, c.found)
	}
	f.rewrite(id, "a heron again")
	f.same("after the second update", f.find("heron"), "a heron again")
	f.same("the first update's content", f.find("otter"))
	f.equal("passages", f.state().Passages, 1)
}

func updateLength(f *fixture) {
	id := f.addTexts("short")[0]
	f.rewrite(id, chapters())
	for _, animal := range animals {
		hit := f.search(souvenir.Query{Text: animal}).Hits[0]
		if !strings.Contains(hit.Content[hit.Start:hit.End], animal) {
			f.Errorf("%s: the hit points at %q, want a passage with the animal", animal, brief(hit.Content[hit.Start:hit.End]))
		}
	}
	f.rewrite(id, "short and about a walrus")
	f.equal("passages", f.state().Passages, 1)
	hit := f.search(souvenir.Query{Text: "walrus"}).Hits[0]
	f.equal("the passage found", hit.Content[hit.Start:hit.End], "short and about a walrus")
	f.same("former chapters", f.find("badger"))
}

func updateTags(f *fixture) {
	id := f.add(souvenir.NewMemory{Content: "a bird", Tags: []string{"heron", "blue"}}).ID
	f.patch(id, map[string]any{"tags": []string{"blue", "otter"}})
	for tag, want := range map[string]int{"heron": 0, "blue": 1, "otter": 1} {
		f.equal("tagged "+tag, f.search(souvenir.Query{Tags: []string{tag}}).Total, want)
		f.equal("listed with "+tag, len(f.list(souvenir.MemoryList{Tags: []string{tag}})), want)
		f.equal("by the word "+tag, len(f.byWord(tag)), want)
	}
	f.equal("meaning after a change of tags",
		f.search(souvenir.Query{Vector: Words{}.Vector("bird")}).Hits[0].Parts.Vector > 0, true)
	f.equal("texts embedded", f.embedder.Texts()[0], "a bird")
}

func updateRevisions(f *fixture) {
	m := f.add(souvenir.NewMemory{Content: "one"})
	f.clock.Pass(time.Hour)
	updated := f.rewrite(m.ID, "two")
	f.equal("updated", []any{updated.Revision, updated.CreatedAt, updated.UpdatedAt},
		[]any{2, start, start.Add(time.Hour)})
	f.equal("id, collection, owner", []string{updated.ID, updated.Collection, updated.Owner},
		[]string{m.ID, m.Collection, m.Owner})
	f.clock.Pass(time.Hour)
	f.equal("patched", f.patch(m.ID, map[string]any{"a": 1}).Revision, 3)
	f.equal("read", []any{f.get(m.ID).Revision, f.get(m.ID).UpdatedAt}, []any{3, start.Add(2 * time.Hour)})
	both := "three"
	f.equal("content and metadata at once",
		f.update(m.ID, souvenir.MemoryUpdate{Content: &both, ShownMetadata: map[string]any{"a": 2}}).Revision, 4)
}

func updateOfNothing(f *fixture) {
	target := f.addTexts("the calendar")[0]
	m := f.add(complete(f, target))
	f.clock.Pass(time.Hour)
	same := m.Content
	for _, u := range []souvenir.MemoryUpdate{
		{},
		{Content: &same},
		{ShownMetadata: map[string]any{}},
		{ShownMetadata: map[string]any{"missing": nil}},
		{ShownMetadata: map[string]any{"author": "ann"}},
		{ShownMetadata: m.ShownMetadata()},
		{ShownMetadata: map[string]any{"tags": []string{" deploy", "calendar", "deploy"}}},
		{ShownMetadata: map[string]any{"project_name": "apollo"}},
		{Content: &same, ShownMetadata: map[string]any{"state": "active"}, ExpectedRevision: 1},
	} {
		f.equal("after the update "+brief(u), f.update(m.ID, u).Memory, m.Memory)
	}
	f.equal("read", f.get(m.ID), m.Memory)
	f.equal("revisions", len(f.revisions(m.ID)), 1)
	f.equal("the order of tags is a change",
		f.patch(m.ID, map[string]any{"tags": []string{"calendar", "deploy"}}).Revision, 2)
}

func updateExpected(f *fixture) {
	id := f.addTexts("one")[0]
	two, three := "two", "three"
	f.equal("as expected", f.update(id, souvenir.MemoryUpdate{Content: &two, ExpectedRevision: 1}).Revision, 2)
	for _, u := range []souvenir.MemoryUpdate{
		{Content: &three, ExpectedRevision: 1}, {ShownMetadata: map[string]any{"a": 1}, ExpectedRevision: 1},
		{ExpectedRevision: 1}, {ExpectedRevision: 3},
	} {
		_, err := f.store.UpdateMemory(f.ctx, id, u)
		f.failsAt("UpdateMemory "+brief(u), err, souvenir.ErrConflict, "expected_revision", "revision 2",
			brief(u.ExpectedRevision))
	}
	f.equal("content", f.get(id).Content, "two")
	f.equal("revisions", len(f.revisions(id)), 2)
}

func updateArguments(f *fixture) {
	target := f.addTexts("the calendar")[0]
	m := f.add(complete(f, target))
	content := func(s string) *string { return &s }
	in := func(key string, value any) souvenir.MemoryUpdate {
		return souvenir.MemoryUpdate{Content: content("new"), ShownMetadata: map[string]any{"new": true, key: value}}
	}
	for _, c := range []struct {
		name     string
		u        souvenir.MemoryUpdate
		kind     *souvenir.Error
		argument string
		says     string
	}{
		{"no content", souvenir.MemoryUpdate{Content: content("")}, souvenir.ErrInvalid, "content", "empty"},
		{"long content", souvenir.MemoryUpdate{Content: content(strings.Repeat("x", souvenir.MaxContent+1))},
			souvenir.ErrTooLarge, "content", "1048577"},
		{"content that is not UTF-8", souvenir.MemoryUpdate{Content: content("\xff")}, souvenir.ErrInvalid, "content",
			"UTF-8"},
		{"importance", in("importance", "urgent"), souvenir.ErrInvalid, "importance", `expected "low"`},
		{"importance of another type", in("importance", []any{"low"}), souvenir.ErrInvalid, "importance", "string"},
		{"state", in("state", strings.Repeat("s", 65)), souvenir.ErrTooLarge, "state", "64"},
		{"event type away from a rule", in("event_type", "decision"), souvenir.ErrInvalid, "rule_type", "project-rule"},
		{"tags", in("tags", []any{""}), souvenir.ErrInvalid, "tags", "tags[0]"},
		{"tags that are no list", in("tags", map[string]any{"a": nil}), souvenir.ErrInvalid, "tags", "list"},
		{"a link to nowhere", in("related_memory_ids", []any{target, "nowhere"}), souvenir.ErrNotFound, "related_memory_ids",
			"related_memory_ids[1]"},
		{"a link to itself", in("related_memory_ids", []any{m.ID}), souvenir.ErrInvalid, "related_memory_ids", "itself"},
		{"metadata", in("k", func() {}), souvenir.ErrInvalid, "metadata", "JSON"},
		{"large metadata", in("k", strings.Repeat("x", souvenir.MaxMetadata)), souvenir.ErrTooLarge, "metadata", "65536"},
		{"a vector without content", souvenir.MemoryUpdate{Embedding: []float32{1}}, souvenir.ErrInvalid, "embedding",
			"content"},
		{"a vector for an embedded collection",
			souvenir.MemoryUpdate{Content: content("new"), Embedding: make([]float32, wordDimensions)}, souvenir.ErrInvalid,
			"embedding", "own_vectors"},
	} {
		_, err := f.store.UpdateMemory(f.ctx, m.ID, c.u)
		f.failsAt("UpdateMemory with "+c.name, err, c.kind, c.argument, c.says)
	}
	f.equal("the memory", f.get(m.ID), m.Memory)
	f.equal("revisions", len(f.revisions(m.ID)), 1)
	f.equal("found by refused content", len(f.find("new")), 0)
}

func updateClockBack(f *fixture) {
	m := f.add(souvenir.NewMemory{Content: "one"})
	f.clock.Pass(-24 * time.Hour)
	updated := f.rewrite(m.ID, "two")
	f.equal("times", []time.Time{updated.CreatedAt, updated.UpdatedAt}, []time.Time{start, start})
}

func updateIndexed(f *fixture) {
	f.embedder.Break(errOffline)
	m := f.add(souvenir.NewMemory{Content: "one"})
	f.equal("stored while the embedder fails", m.Indexed, false)
	f.equal("patched", f.patch(m.ID, map[string]any{"a": 1}).Indexed, false)
	f.equal("patched to no effect", f.patch(m.ID, map[string]any{"a": 1}).Indexed, false)
	f.equal("tagged", f.patch(m.ID, map[string]any{"tags": []string{"t"}}).Indexed, false)
	f.equal("moved", f.patch(m.ID, map[string]any{"project_id": "p"}).Indexed, false)
	f.embedder.Mend()
	f.waitEmbedded(f.store)
	f.equal("patched once it is embedded", f.patch(m.ID, map[string]any{"a": 2}).Indexed, true)
	f.embedder.Break(errOffline)
	f.equal("patched while the embedder fails again", f.patch(m.ID, map[string]any{"a": 3}).Indexed, true)
	f.equal("rewritten", f.rewrite(m.ID, "two").Indexed, false)
}
