package storetest

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

func memories() concept {
	return concept{"Memories", []promise{
		{"a stored one is returned and read back alike", memoryRoundTrip},
		{"content alone is enough", memoryOfContentAlone},
		{"content keeps every byte", memoryContents},
		{"known keys may stand inside metadata", memoryKnownKeysInMetadata},
		{"a field wins over the same key in metadata", memoryFieldWins},
		{"JSON shows known keys inside metadata", memoryJSON},
		{"errors name bad arguments and the allowed values, and nothing is stored", memoryArguments},
		{"values at the limits are taken", memoryLimits},
		{"what the caller passed is neither changed nor kept", memoryShares},
		{"a deleted one is gone for every method", memoryDelete},
		{"an unknown id is not found", memoryUnknown},
	}}
}

// complete is a memory with every field set, in a project.
func complete(f *fixture, target string) souvenir.NewMemory {
	return souvenir.NewMemory{
		Content: "never deploy on friday", EventType: souvenir.EventProjectRule, State: "active", ProjectID: "apollo",
		Importance: souvenir.ImportanceHigh, Classification: souvenir.ClassDont, RuleType: souvenir.RuleDont,
		Tags: []string{"deploy", "calendar"}, Related: []string{target}, ShownMetadata: map[string]any{"author": "ann"},
	}
}

func memoryRoundTrip(f *fixture) {
	target := f.addTexts("the calendar")[0]
	f.clock.Pass(time.Minute)
	stored := f.add(complete(f, target))
	f.equal("stored", stored.Memory, souvenir.Memory{
		ID: stored.ID, Collection: souvenir.DefaultCollection, Owner: souvenir.LocalUser, Content: "never deploy on friday",
		EventType: souvenir.EventProjectRule, State: "active", ProjectID: "apollo", ProjectName: "apollo",
		Importance: souvenir.ImportanceHigh, Classification: souvenir.ClassDont, RuleType: souvenir.RuleDont,
		Tags: []string{"deploy", "calendar"}, Related: []string{target}, Metadata: map[string]any{"author": "ann"},
		Revision: 1, CreatedAt: start.Add(time.Minute), UpdatedAt: start.Add(time.Minute),
	})
	f.equal("indexed", stored.Indexed, true)
	same(f, "warnings", stored.Warnings, nil)
	f.equal("read", f.get(stored.ID), stored.Memory)
	f.equal("found", f.search(souvenir.Query{Text: "deploy"}).Hits[0].Memory, stored.Memory)
	f.equal("listed", f.list(souvenir.MemoryList{})[1], stored.Memory)
}

func memoryOfContentAlone(f *fixture) {
	stored := f.add(souvenir.NewMemory{Content: "just this"})
	f.equal("stored", stored.Memory, souvenir.Memory{
		ID: stored.ID, Collection: souvenir.DefaultCollection, Owner: souvenir.LocalUser, Content: "just this",
		Metadata: map[string]any{}, Revision: 1, CreatedAt: start, UpdatedAt: start,
	})
	f.equal("read", f.get(stored.ID), stored.Memory)
	f.equal("shown metadata", stored.ShownMetadata(), map[string]any{})
}

func memoryContents(f *fixture) {
	for _, content := range []string{
		"x", "a\x01b", "\r\n\ttabs and lines\r\n", "  spaces around  ", "👩‍👩‍👧‍👦 family", "ﷺ", "e\u0301 is not \u00e9",
		"日本語の記憶", "\ufeffbom",
		"'; DROP TABLE memory; --", `{"json": true}`, "<script>&amp;</script>", "a\u2028b\u2029", "\U0010ffff",
	} {
		id := f.addTexts(content)[0]
		f.equal("content", f.get(id).Content, content)
		f.rewrite(id, content+"!")
		f.equal("content before the update", f.revisions(id)[1].Content, content)
	}
}

func memoryKnownKeysInMetadata(f *fixture) {
	target := f.addTexts("the calendar")[0]
	stored := f.add(souvenir.NewMemory{Content: "x", ShownMetadata: map[string]any{
		"event_type": "project-rule", "state": "active", "project_id": "apollo", "project_name": "Apollo 11",
		"importance":     "critical",
		"classification": "do", "rule_type": "do", "tags": []string{"a", "b"}, "related_memory_ids": []any{target},
		"mine": "yes",
	}})
	m := f.get(stored.ID)
	f.equal("stored and read", stored.Memory, m)
	f.equal("known keys", []any{m.EventType, m.State, m.ProjectID, m.ProjectName, m.Importance, m.Classification,
		m.RuleType, m.Tags, m.Related},
		[]any{"project-rule", "active", "apollo", "Apollo 11", souvenir.ImportanceCritical, souvenir.ClassDo, souvenir.RuleDo,
			[]string{"a", "b"}, []string{target}})
	f.equal("own metadata", m.Metadata, map[string]any{"mine": "yes"})
}

func memoryFieldWins(f *fixture) {
	targets := f.addTexts("one", "two")
	stored := f.add(souvenir.NewMemory{
		Content: "x", EventType: souvenir.EventProjectRule, State: "field", ProjectName: "field", Importance: "low",
		Classification: "do", RuleType: "do",
		Tags: []string{"field"}, Related: targets[:1],
		ShownMetadata: map[string]any{
			"event_type": "metadata", "state": "metadata", "project_name": "metadata", "importance": "high",
			"classification": "dont",
			"rule_type":      "dont", "tags": []string{"metadata"}, "related_memory_ids": targets[1:],
		},
	})
	m := f.get(stored.ID)
	f.equal("known keys", []any{m.EventType, m.State, m.ProjectName, m.Importance, m.Classification, m.RuleType, m.Tags,
		m.Related},
		[]any{"project-rule", "field", "field", souvenir.ImportanceLow, souvenir.ClassDo, souvenir.RuleDo, []string{"field"},
			targets[:1]})
	f.equal("own metadata", m.Metadata, map[string]any{})
}

func memoryJSON(f *fixture) {
	target := f.addTexts("the calendar")[0]
	m := f.get(f.add(complete(f, target)).ID)
	encoded, err := json.Marshal(m)
	f.check("MarshalJSON", err)
	f.sameJSON("as JSON", json.RawMessage(encoded),
		json.RawMessage(`{"id":"`+m.ID+`","content":"never deploy on friday","collection_name":"default","owner":"local",`+
			`"metadata":{"author":"ann","classification":"dont","event_type":"project-rule","importance":"high",`+
			`"project_id":"apollo","project_name":"apollo",`+
			`"related_memory_ids":["`+target+`"],"rule_type":"dont","state":"active","tags":["deploy","calendar"]},`+
			`"revision":1,"created_at":"2026-03-01T09:00:00Z","updated_at":"2026-03-01T09:00:00Z"}`))
}

// badMemory is a memory that must be refused, and the error for it.
type badMemory struct {
	name     string
	m        souvenir.NewMemory
	kind     *souvenir.Error
	argument string
	says     string
}

func badMemories() []badMemory {
	many := func(n int, prefix string) []string {
		list := make([]string, n)
		for i := range list {
			list[i] = prefix + strings.Repeat("i", i)
		}
		return list
	}
	inMetadata := func(key string, value any) souvenir.NewMemory {
		return souvenir.NewMemory{Content: "x", ShownMetadata: map[string]any{key: value}}
	}
	deep := any("bottom")
	for range 100 {
		deep = []any{deep}
	}
	return []badMemory{
		{"no content", souvenir.NewMemory{}, souvenir.ErrInvalid, "content", "empty"},
		{"content past the limit", souvenir.NewMemory{Content: strings.Repeat("x", souvenir.MaxContent+1)},
			souvenir.ErrTooLarge, "content", "1048577 bytes; at most 1048576"},
		{"content that is not UTF-8", souvenir.NewMemory{Content: "ab\xc3"}, souvenir.ErrInvalid, "content",
			"0xc3 at offset 2"},
		{"unknown collection", souvenir.NewMemory{Content: "x", Collection: "none"}, souvenir.ErrNotFound, "collection_name",
			`"none"`},
		{"blank collection", souvenir.NewMemory{Content: "x", Collection: " "}, souvenir.ErrInvalid, "collection_name",
			"1 to 128"},
		{"long event_type", souvenir.NewMemory{Content: "x", EventType: strings.Repeat("é", 65)}, souvenir.ErrTooLarge,
			"event_type", "at most 64"},
		{"event_type that is not UTF-8", souvenir.NewMemory{Content: "x", EventType: "\xff"}, souvenir.ErrInvalid,
			"event_type", "UTF-8"},
		{"long state", souvenir.NewMemory{Content: "x", State: strings.Repeat("é", 65)}, souvenir.ErrTooLarge, "state",
			"at most 64"},
		{"state of another type", inMetadata("state", 7), souvenir.ErrInvalid, "state", "state is 7"},
		{"unknown importance", souvenir.NewMemory{Content: "x", Importance: "urgent"}, souvenir.ErrInvalid, "importance",
			`"urgent"; expected "low", "medium", "high" or "critical"`},
		{"unknown importance in metadata", inMetadata("importance", "HIGH"), souvenir.ErrInvalid, "importance", `"HIGH"`},
		{"importance of another type", inMetadata("importance", true), souvenir.ErrInvalid, "importance",
			"importance is true"},
		{"unknown classification", souvenir.NewMemory{Content: "x", Classification: "maybe"}, souvenir.ErrInvalid,
			"classification", `"do", "dont", "todo" or "notes"`},
		{"unknown rule_type", souvenir.NewMemory{Content: "x", EventType: "project-rule", RuleType: "notes"},
			souvenir.ErrInvalid, "rule_type", `"do", "dont" or "todo"`},
		{"rule_type of no rule", souvenir.NewMemory{Content: "x", EventType: "decision", RuleType: "do"}, souvenir.ErrInvalid,
			"rule_type", `"decision"`},
		{"blank tag", souvenir.NewMemory{Content: "x", Tags: []string{"ok", " "}}, souvenir.ErrInvalid, "tags", "tags[1]"},
		{"long tag", souvenir.NewMemory{Content: "x", Tags: []string{strings.Repeat("é", 129)}}, souvenir.ErrTooLarge, "tags",
			"128"},
		{"tag that is not UTF-8", souvenir.NewMemory{Content: "x", Tags: []string{"\xff"}}, souvenir.ErrInvalid, "tags",
			"UTF-8"},
		{"too many tags", souvenir.NewMemory{Content: "x", Tags: many(65, "t")}, souvenir.ErrTooLarge, "tags",
			"65 tags; at most 64"},
		{"tags that are no list", inMetadata("tags", "a,b"), souvenir.ErrInvalid, "tags", "a list of strings"},
		{"a tag that is no string", inMetadata("tags", []any{"a", 7}), souvenir.ErrInvalid, "tags", "tags[1] is 7"},
		{"unknown related memory", souvenir.NewMemory{Content: "x", Related: []string{"nowhere"}}, souvenir.ErrNotFound,
			"related_memory_ids", `related_memory_ids[0]: memory "nowhere" not found`},
		{"too many related memories", souvenir.NewMemory{Content: "x", Related: many(257, "r")}, souvenir.ErrTooLarge,
			"related_memory_ids", "257 ids; at most 256"},
		{"long project_id", souvenir.NewMemory{Content: "x", ProjectID: strings.Repeat("p", 129)}, souvenir.ErrTooLarge,
			"project_id", "at most 128"},
		{"project_name with a control character", souvenir.NewMemory{Content: "x", ProjectName: "a\nb"}, souvenir.ErrInvalid,
			"project_name", "U+000A"},
		{"project_id with a slash", souvenir.NewMemory{Content: "x", ProjectID: "ann/apollo"}, souvenir.ErrInvalid,
			"project_id", "ann/apollo"},
		{"metadata past the limit", inMetadata("k", strings.Repeat("x", souvenir.MaxMetadata)), souvenir.ErrTooLarge,
			"metadata", "65536"},
		{"metadata that is no JSON", inMetadata("k", func() {}), souvenir.ErrInvalid, "metadata", "not JSON"},
		{"metadata that is nested too deep", inMetadata("k", deep), souvenir.ErrTooLarge, "metadata", "deep"},
		{"negative Similar", souvenir.NewMemory{Content: "x", Similar: -1}, souvenir.ErrInvalid, "Similar", "0 to 20"},
		{"Similar past the limit", souvenir.NewMemory{Content: "x", Similar: 21}, souvenir.ErrInvalid, "Similar", "0 to 20"},
		{"a vector for an embedded collection", souvenir.NewMemory{Content: "x", Embedding: make([]float32, wordDimensions)},
			souvenir.ErrInvalid, "embedding", "own_vectors"},
	}
}

func memoryArguments(f *fixture) {
	for _, c := range badMemories() {
		_, err := f.store.AddMemory(f.ctx, c.m)
		f.failsAt("AddMemory with "+c.name, err, c.kind, c.argument, c.says)
	}
	f.equal("memories after refused ones", f.search(souvenir.Query{}).Total, 0)
	f.equal("passages after refused ones", f.state().Passages, 0)
	f.addTexts("the store is still usable")
}

func memoryLimits(f *fixture) {
	word := strings.Repeat("é", 64)
	name := strings.Repeat("é", 128)
	var tags []string
	for i := range 64 {
		tags = append(tags, strings.Repeat("t", i+1)+strings.Repeat("é", 127-i))
	}
	related := make([]souvenir.NewMemory, 256)
	for i := range related {
		related[i].Content = "target"
	}
	targets, err := f.store.AddMemories(f.ctx, related, nil)
	f.check("AddMemories", err)
	sentence := "Rain fell all night on the tin roof. "
	m := souvenir.NewMemory{
		Content: strings.Repeat(sentence, souvenir.MaxContent/len(sentence)+1)[:souvenir.MaxContent], EventType: word,
		State: word, ProjectID: name, ProjectName: "P",
		Tags: tags, Related: ids(targets),
		ShownMetadata: map[string]any{"k": strings.Repeat("x", souvenir.MaxMetadata-len(`{"k":""}`))},
	}
	stored := f.get(f.add(m).ID)
	f.equal("content", stored.Content == m.Content, true)
	f.equal("words and names", []string{stored.EventType, stored.State, stored.ProjectID}, []string{word, word, name})
	f.equal("tags", stored.Tags, tags)
	f.equal("related", stored.Related, ids(targets))
	f.equal("metadata", stored.Metadata, m.ShownMetadata)
}

func memoryShares(f *fixture) {
	target := f.addTexts("target")[0]
	tags, links, list := []string{" spaced ", "b", "b"}, []string{target, target}, []any{"first"}
	own := map[string]any{"list": list, "tags": []any{" x "}, "state": "active"}
	stored := f.add(souvenir.NewMemory{Content: "x", Tags: tags, Related: links, ShownMetadata: own})
	f.equal("the caller's tags", tags, []string{" spaced ", "b", "b"})
	f.equal("the caller's links", links, []string{target, target})
	f.equal("the caller's metadata", own, map[string]any{"list": []any{"first"}, "tags": []any{" x "}, "state": "active"})
	list[0], tags[0], links[0] = "changed", "changed", "changed"
	f.equal("the stored memory", stored.Memory, f.get(stored.ID))

	read := f.get(stored.ID)
	read.Metadata["list"].([]any)[0] = "changed"
	read.Tags[0] = "changed"
	f.equal("the memory read again", f.get(stored.ID), stored.Memory)

	patch := map[string]any{"tags": []string{" spaced "}, "object": map[string]any{"gone": nil}}
	f.patch(stored.ID, patch)
	f.equal("the caller's patch", patch,
		map[string]any{"tags": []string{" spaced "}, "object": map[string]any{"gone": nil}})
}

func memoryDelete(f *fixture) {
	all := f.addTexts("the blue heron", "the grey heron")
	f.patch(all[0], map[string]any{"tags": []string{"bird"}, "related_memory_ids": []string{all[1]}})
	f.patch(all[1], map[string]any{"related_memory_ids": []string{all[0]}})
	f.delete(all[0])

	calls := map[string]error{
		"DeleteMemory": f.store.DeleteMemory(f.ctx, all[0], nil),
	}
	_, calls["GetMemory"] = f.reader.GetMemory(f.ctx, all[0])
	_, calls["UpdateMemory"] = f.store.UpdateMemory(f.ctx, all[0],
		souvenir.MemoryUpdate{ShownMetadata: map[string]any{"a": 1}})
	_, calls["Revisions"] = f.reader.Revisions(f.ctx, all[0])
	_, calls["RestoreRevision"] = f.store.RestoreRevision(f.ctx, all[0], 1)
	_, calls["RelatedMemories"] = f.reader.RelatedMemories(f.ctx, all[0], 1)
	for method, err := range calls {
		f.failsAt(method+" of a deleted memory", err, souvenir.ErrNotFound, "id", all[0])
	}
	f.same("found", f.find("heron"), "the grey heron")
	f.same("found by its tag", f.find("bird"))
	f.equal("found at all", f.search(souvenir.Query{Text: "heron"}).Total, 1)
	f.same("listed", texts(f.list(souvenir.MemoryList{})), "the grey heron")
	same(f, "links of the other", f.get(all[1]).Related, nil)
	related, err := f.reader.RelatedMemories(f.ctx, all[1], 3)
	f.check("RelatedMemories", err)
	same(f, "related to the other", related, nil)
	tags, err := f.reader.Insights().Tags(f.ctx)
	f.check("Tags", err)
	same(f, "tags", tags, nil)
	f.equal("passages", f.state().Passages, 1)
}

func memoryUnknown(f *fixture) {
	f.addTexts("some memory")
	for _, id := range []string{"", "nowhere", "%", "'", "1", strings.Repeat("x", 10_000), "\xff", "a\x00"} {
		_, err := f.reader.GetMemory(f.ctx, id)
		f.failsAt("GetMemory", err, souvenir.ErrNotFound, "id")
		f.failsAt("DeleteMemory", f.store.DeleteMemory(f.ctx, id, nil), souvenir.ErrNotFound, "id")
		_, err = f.store.UpdateMemory(f.ctx, id, souvenir.MemoryUpdate{})
		f.failsAt("UpdateMemory", err, souvenir.ErrNotFound, "id")
		if err != nil && len(err.Error()) > 300 {
			f.Errorf("the error for an id of %d bytes has %d bytes; want a short one", len(id), len(err.Error()))
		}
	}
	f.equal("memories", f.search(souvenir.Query{}).Total, 1)
}

func manyMemories() concept {
	return concept{"AddMemories", []promise{
		{"stores them in order", manyInOrder},
		{"stores all or none, and the error names the position", manyAllOrNone},
		{"tells how far it has come, never backwards", manyProgress},
		{"takes none", manyNone},
		{"takes two thousand", manyTwoThousand},
		{"may mix collections and projects", manyMixed},
	}}
}

func manyInOrder(f *fixture) {
	stored, err := f.store.AddMemories(f.ctx,
		[]souvenir.NewMemory{{Content: "a"}, {Content: "b", Tags: []string{"t"}}, {Content: "a"}}, nil)
	f.check("AddMemories", err)
	var got []string
	for _, s := range stored {
		got = append(got, s.Content)
		f.equal("stored and read", f.get(s.ID), s.Memory)
		f.equal("indexed", s.Indexed, true)
	}
	f.same("contents", got, "a", "b", "a")
}

func manyAllOrNone(f *fixture) {
	f.addTexts("there before")
	for _, bad := range badMemories() {
		batch := []souvenir.NewMemory{{Content: "fine", ProjectID: "fresh"}, {Content: "fine too"}, bad.m,
			{Content: "also fine"}}
		stored, err := f.store.AddMemories(f.ctx, batch, nil)
		f.failsAt("AddMemories with "+bad.name, err, bad.kind, bad.argument, "memories[2]", bad.says)
		if stored != nil {
			f.Errorf("AddMemories with %s returns memories along with the error: got %v, want nil", bad.name, stored)
		}
	}
	f.same("contents after refused batches", contents(f.search(souvenir.Query{})), "there before")
	f.equal("passages", f.state().Passages, 1)
	if w := f.search(souvenir.Query{ProjectID: "fresh"}).Warnings; len(w) == 0 {
		f.Errorf("the project of a refused batch exists; want none")
	}
}

func manyProgress(f *fixture) {
	batch := make([]souvenir.NewMemory, 1200)
	for i := range batch {
		batch[i].Content = "memory"
	}
	batch[0].Content = strings.Repeat("A long one has many passages. ", 200)
	type step struct {
		stage       string
		done, total int
	}
	var heard []step
	_, err := f.store.AddMemories(f.ctx, batch, &souvenir.BatchOptions{Progress: func(stage string, done, total int) {
		heard = append(heard, step{stage, done, total})
	}})
	f.check("AddMemories", err)
	last := map[string]step{}
	for _, h := range heard {
		if before, known := last[h.stage]; known && (h.done < before.done || h.total != before.total) {
			f.Errorf("progress went from %+v to %+v, want it to rise", before, h)
		}
		last[h.stage] = h
	}
	passages := f.state().Passages
	if passages <= len(batch) {
		f.Fatalf("the store has %d passages of %d memories, one of them long; want more", passages, len(batch))
	}
	f.equal("last steps", last, map[string]step{"embed": {"embed", passages, passages},
		"store": {"store", len(batch), len(batch)}})
	if i := slices.IndexFunc(heard, func(h step) bool { return h.stage == "store" }); slices.ContainsFunc(heard[i:],
		func(h step) bool { return h.stage == "embed" }) {
		f.Errorf("the stages are mixed: %+v, want one after the other", heard)
	}
}

func manyNone(f *fixture) {
	stored, err := f.store.AddMemories(f.ctx, nil, nil)
	f.check("AddMemories of none", err)
	same(f, "stored", stored, nil)
}

func manyTwoThousand(f *fixture) {
	names := []string{"heron", "otter", "badger", "lynx", "walrus"}
	n, from := 2000, 1000
	if !longtest.All() {
		n, from = 500, 300
	}
	batch := make([]souvenir.NewMemory, n)
	for i := range batch {
		batch[i] = souvenir.NewMemory{Content: names[i%5] + " seen at place " + strings.Repeat("i", i%7+1),
			Tags: []string{names[i%5]}, ShownMetadata: map[string]any{"n": i}}
	}
	stored, err := f.store.AddMemories(f.ctx, batch, nil)
	f.check("AddMemories", err)
	distinct := ids(stored)
	slices.Sort(distinct)
	f.equal("distinct ids", len(slices.Compact(distinct)), n)
	f.equal("memories", f.collection(souvenir.DefaultCollection).MemoryCount, n)
	f.equal("tagged", f.search(souvenir.Query{Tags: []string{"lynx"}}).Total, n/5)
	f.equal("listed", len(f.list(souvenir.MemoryList{})), n)
	results := f.search(souvenir.Query{Text: "otter", Filter: souvenir.Filter{"n": souvenir.Between(from, from+9)}})
	found := fitting(results)
	slices.Sort(found)
	f.same("found in a range", found, "otter seen at place i", "otter seen at place iiiiii")
}

func manyMixed(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "a"})
	f.addCollection(souvenir.NewCollection{Name: "b"})
	stored, err := f.store.AddMemories(f.ctx, []souvenir.NewMemory{
		{Content: "1", Collection: "a", ProjectID: "p"}, {Content: "2", Collection: "b", ProjectID: "p"},
		{Content: "3", Collection: "a"},
		{Content: "4", ProjectName: "p"}, {Content: "5", ProjectName: "fresh"},
		{Content: "6", ProjectName: "fresh", Collection: "b"},
	}, nil)
	f.check("AddMemories", err)
	var got []string
	for _, s := range stored {
		got = append(got, s.Collection+":"+s.ProjectName)
	}
	f.same("places", got, "a:p", "b:p", "a:", "default:p", "default:fresh", "b:fresh")
	f.equal("one project of that name", stored[4].ProjectID, stored[5].ProjectID)
}
