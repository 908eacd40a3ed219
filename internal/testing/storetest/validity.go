package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func validities() concept {
	return concept{"Validity", []promise{
		{"searches, lists and contexts show memories that are valid now", validNow},
		{"a memory that supersedes another takes its place, and gives it back", supersedes},
		{"a search as of a time finds what was known and valid then", asOfSearch},
		{"a list as of a time has the words of then", asOfWords},
		{"pages are full although most memories are superseded", supersededPages},
		{"pages are full if two memories supersede the same one", supersededTwice},
		{"contexts and graphs leave out superseded memories", supersededWhileKept},
		{"who may not change a memory cannot supersede it", supersedesAccess},
		{"a deletion of many covers memories that are not valid", validityBulk},
		{"validity is exported, imported, and kept in the trash", validityExport},
		{"invalid times of validity are refused", validityRefusals},
	}}
}

func (f *fixture) contents(l souvenir.MemoryList) []string {
	f.Helper()
	var all []string
	for _, m := range f.list(l) {
		all = append(all, m.Content)
	}
	return all
}

func validNow(f *fixture) {
	past := f.add(souvenir.NewMemory{Content: "the office is in Bonn", Key: "bonn", ValidUntil: start.Add(time.Hour)})
	f.add(souvenir.NewMemory{Content: "the office is in Rome", ValidFrom: start.Add(time.Hour)})
	f.same("before", f.find("office"), "the office is in Bonn")
	f.same("listed before", f.contents(souvenir.MemoryList{}), "the office is in Bonn")
	f.clock.Pass(time.Hour)
	f.same("after", f.find("office"), "the office is in Rome")
	f.same("by word", f.byWord("Bonn"))
	f.same("listed", f.contents(souvenir.MemoryList{}), "the office is in Rome")
	f.equal("pages by time", f.search(souvenir.Query{}).Total, 1)
	context, err := f.reader.GetContext(f.ctx, souvenir.ContextQuery{})
	f.check("GetContext", err)
	f.equal("context", len(context.Related), 1)
	f.equal("by id", f.get(past.ID).ValidUntil, start.Add(time.Hour))
	f.equal("by key", f.byKey(souvenir.MemoryKey{Key: "bonn"}).ID, past.ID)
	f.equal("counted", f.collection("default").MemoryCount, 2)
	f.update(past.ID, souvenir.MemoryUpdate{ValidUntil: &time.Time{}})
	f.same("without an end", f.contents(souvenir.MemoryList{}), "the office is in Rome", "the office is in Bonn")
	f.equal("as JSON", f.read(f.get(past.ID)), f.get(past.ID))
}

// read returns a memory decoded from its JSON.
func (f *fixture) read(m souvenir.Memory) (read souvenir.Memory) {
	f.Helper()
	f.check("JSON", read.UnmarshalJSON([]byte(toJSON(m))))
	return read
}

func supersedes(f *fixture) {
	berlin := f.add(souvenir.NewMemory{Content: "Anna works in Berlin"})
	f.clock.Pass(time.Hour)
	moved := start.Add(24 * time.Hour)
	rome := f.add(souvenir.NewMemory{Content: "Anna works in Rome", Supersedes: berlin.ID, ValidFrom: moved})
	f.same("not yet", f.find("Anna"), "Anna works in Berlin")
	f.clock.Pass(23 * time.Hour)
	f.same("moved", f.find("Anna"), "Anna works in Rome")
	old := f.get(berlin.ID)
	f.equal("the old one", []any{old.SupersededBy, old.ValidUntil, old.Revision}, []any{rome.ID, moved, 1})
	f.equal("as JSON", f.read(old), old)
	f.equal("the new one", []any{rome.Supersedes, f.get(rome.ID).Supersedes}, []any{berlin.ID, berlin.ID})
	oslo := f.put(souvenir.NewMemory{Content: "Anna works in Oslo", Supersedes: rome.ID, Key: "anna"})
	f.same("a chain", f.find("Anna"), "Anna works in Oslo")
	f.equal("put again", f.put(souvenir.NewMemory{Content: "Anna works in Oslo", Supersedes: rome.ID,
		Key: "anna"}).Effect, souvenir.EffectUnchanged)
	f.delete(oslo.ID)
	f.same("undone", f.find("Anna"), "Anna works in Rome")
	_, err := f.store.Trash().Restore(f.ctx, oslo.ID)
	f.check("Restore", err)
	f.same("restored", f.find("Anna"), "Anna works in Oslo")
	f.delete(rome.ID)
	f.same("without the middle, both ends are facts", f.find("Anna"), "Anna works in Berlin", "Anna works in Oslo")
	back := f.add(souvenir.NewMemory{Content: "Anna works in Berlin", IfAbsent: true, Supersedes: oslo.ID})
	f.equal("what is valid is not stored twice", back.Effect, souvenir.EffectUnchanged)
}

func asOfSearch(f *fixture) {
	one := f.add(souvenir.NewMemory{Content: "the price is one"})
	f.clock.Pass(time.Hour)
	two := f.add(souvenir.NewMemory{Content: "the price is two", Supersedes: one.ID})
	f.clock.Pass(time.Hour)
	// Stored at the second hour: the price has been three for half an hour.
	f.add(souvenir.NewMemory{Content: "the price is three", Supersedes: two.ID, ValidFrom: start.Add(90 * time.Minute)})
	f.clock.Pass(time.Hour)
	for _, at := range []struct {
		hours float64
		want  []string
	}{
		{-1, nil}, {0, []string{"the price is one"}}, {0.5, []string{"the price is one"}},
		{1, []string{"the price is two"}}, {1.75, []string{"the price is two"}}, // as known at that time
		{2, []string{"the price is three"}}, {2.5, []string{"the price is three"}},
	} {
		then := start.Add(time.Duration(at.hours * float64(time.Hour)))
		for _, text := range []string{"price", ""} {
			found := f.search(souvenir.Query{Text: text, AsOf: then})
			var got []string
			for _, h := range found.Hits {
				got = append(got, h.Content)
			}
			f.same(fmt.Sprint("after hours: ", at.hours), got, at.want...)
			f.equal("total", found.Total, len(at.want))
		}
		f.same(fmt.Sprint("listed after hours: ", at.hours), f.contents(souvenir.MemoryList{AsOf: then}), at.want...)
	}
}

func asOfWords(f *fixture) {
	m := f.add(souvenir.NewMemory{Content: "the plan is red", Tags: []string{"draft"}, CreatedAt: start.Add(-time.Hour)})
	f.clock.Pass(time.Hour)
	f.update(m.ID, souvenir.MemoryUpdate{Tags: &[]string{"final"}})
	f.clock.Pass(time.Hour)
	f.rewrite(m.ID, "the plan is blue")
	for hours, want := range map[int]string{-1: "the plan is red 1 [draft]", 0: "the plan is red 1 [draft]",
		1: "the plan is red 2 [final]", 2: "the plan is blue 3 [final]"} {
		then := start.Add(time.Duration(hours) * time.Hour)
		all := f.list(souvenir.MemoryList{AsOf: then})
		f.equal("memories", len(all), 1)
		f.equal("then", fmt.Sprint(all[0].Content, " ", all[0].Revision, " ", all[0].Tags), want)
		hit := f.search(souvenir.Query{Text: "plan", AsOf: then}).Hits[0]
		f.equal("found", fmt.Sprint(hit.Content, " ", hit.Revision, " ", hit.Tags), want)
		f.equal("passage", hit.End, len(hit.Content))
	}
	f.equal("before it was made", len(f.list(souvenir.MemoryList{AsOf: start.Add(-2 * time.Hour)})), 0)
	_, err := f.operator.Upkeep().Purge(f.ctx, &souvenir.PurgeOptions{KeepRevisions: 1})
	f.check("Purge", err)
	f.equal("no longer kept", len(f.list(souvenir.MemoryList{AsOf: start})), 0)
}

func supersededPages(f *fixture) {
	last := map[int]string{}
	for round := range 4 {
		for i := range 10 {
			m := souvenir.NewMemory{Content: fmt.Sprintf("heron %d, version %d", i, round), Supersedes: last[i],
				ProjectID: []string{"", "p"}[i%2]}
			last[i] = f.add(m).ID
			f.clock.Pass(time.Second)
		}
	}
	for _, q := range []souvenir.Query{{Text: "heron"}, {}, {ProjectID: "p"},
		{Text: "heron", Sort: souvenir.SortCreatedAsc}} {
		want := 10
		if q.ProjectID != "" {
			want = 5
		}
		q.Limit = 4
		seen := map[string]bool{}
		for q.Offset = 0; q.Offset < want; q.Offset += q.Limit {
			page := f.search(q)
			f.equal("total", page.Total, want)
			for _, h := range page.Hits {
				seen[h.Content] = true
				f.equal("the last version", h.SupersededBy, "")
			}
		}
		f.equal("memories", len(seen), want)
	}
}

func supersededTwice(f *fixture) {
	old := f.add(souvenir.NewMemory{Content: "Anna works in Berlin"})
	want := []string{"Anna works in Rome", "Anna teaches in Rome"}
	for _, content := range want {
		f.clock.Pass(time.Second)
		f.add(souvenir.NewMemory{Content: content, Supersedes: old.ID})
	}
	f.equal("a list", f.contents(souvenir.MemoryList{}), want)
	for _, q := range []souvenir.Query{{Sort: souvenir.SortCreatedAsc}, {Text: "Anna", Sort: souvenir.SortCreatedAsc}} {
		page := f.search(q)
		var got []string
		for _, h := range page.Hits {
			got = append(got, h.Content)
		}
		f.equal("a search", []any{got, page.Total}, []any{want, 2})
	}
}

func supersedesAccess(f *fixture) {
	shared := f.add(souvenir.NewMemory{Content: "the key is under the mat", ProjectID: "p"})
	f.as(souvenir.Access{User: "guest"}).addTexts("so that the store knows the user")
	f.share("p", "guest", souvenir.MemberReader)
	guest := f.as(souvenir.Access{User: "guest"})
	_, err := guest.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "x", Supersedes: shared.ID})
	f.fails("a reader", err, souvenir.ErrForbidden, "supersedes")
	stranger := f.as(souvenir.Access{User: "stranger"})
	_, err = stranger.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "x", Supersedes: shared.ID})
	f.failsAt("a stranger", err, souvenir.ErrNotFound, "supersedes")
	// A handmade file may contain anything.
	line := fmt.Sprintf(`{"souvenir":"export","version":1}`+"\n"+
		`{"type":"memory","content":"y","owner":"stranger","supersedes":%q}`, shared.ID)
	_, err = f.operator.Upkeep().Import(f.ctx, bytes.NewReader([]byte(line)), nil)
	f.check("Import", err)
	f.same("still there", f.find("key"), "the key is under the mat")
	f.equal("superseded by nothing", f.get(shared.ID).SupersededBy, "")
}

func validityBulk(f *fixture) {
	old := f.add(souvenir.NewMemory{Content: "old", Tags: []string{"t"}})
	f.add(souvenir.NewMemory{Content: "new", Tags: []string{"t"}, Supersedes: old.ID})
	f.add(souvenir.NewMemory{Content: "later", Tags: []string{"t"}, ValidFrom: start.Add(time.Hour)})
	_, err := f.store.DeleteMemories(f.ctx, souvenir.MemoriesDeletion{
		MemoryList: souvenir.MemoryList{Tags: []string{"t"}, AsOf: start}})
	f.failsAt("as of", err, souvenir.ErrInvalid, "AsOf")
	gone, err := f.store.DeleteMemories(f.ctx,
		souvenir.MemoriesDeletion{MemoryList: souvenir.MemoryList{Tags: []string{"t"}}})
	f.check("DeleteMemories", err)
	f.equal("deleted", gone.Changed, 3)
}

func validityExport(f *fixture) {
	old := f.add(souvenir.NewMemory{Content: "the old heron", ValidFrom: start.Add(-time.Hour)})
	fresh := f.add(souvenir.NewMemory{Content: "the new heron", Supersedes: old.ID, ValidUntil: start.Add(time.Hour)})
	was := []souvenir.Memory{f.get(old.ID), f.get(fresh.ID)}
	f.delete(old.ID)
	_, err := f.store.Trash().Restore(f.ctx, old.ID)
	f.check("Restore", err)
	f.equal("from the trash", f.get(old.ID), was[0])
	var out bytes.Buffer
	_, err = f.reader.Upkeep().Export(f.ctx, &out, nil)
	f.check("Export", err)
	f.check("DeleteMemory", f.store.DeleteMemory(f.ctx, old.ID, &souvenir.DeletionOptions{Erase: true}))
	f.check("DeleteMemory", f.store.DeleteMemory(f.ctx, fresh.ID, &souvenir.DeletionOptions{Erase: true}))
	_, err = f.operator.Upkeep().Import(f.ctx, &out, nil)
	f.check("Import", err)
	f.equal("imported", []souvenir.Memory{f.get(old.ID), f.get(fresh.ID)}, was)
	f.same("found", f.find("heron"), "the new heron")
}

func validityRefusals(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "other"})
	old := f.put(souvenir.NewMemory{Content: "old", Key: "old"})
	mid := f.add(souvenir.NewMemory{Content: "mid", Supersedes: old.ID})
	fresh := f.add(souvenir.NewMemory{Content: "new", Supersedes: mid.ID})
	rule := f.add(souvenir.NewMemory{Content: "a rule", ProjectID: "p", EventType: souvenir.EventProjectRule,
		RuleType: souvenir.RuleDo})
	for _, c := range []struct {
		m        souvenir.NewMemory
		argument string
		says     string
	}{
		{souvenir.NewMemory{ValidFrom: start, ValidUntil: start}, "valid_until", "not after valid_from"},
		{souvenir.NewMemory{Collection: "other", Supersedes: old.ID}, "supersedes", "its own collection"},
		{souvenir.NewMemory{ProjectID: "p", Supersedes: rule.ID}, "supersedes", "rule"},
		{souvenir.NewMemory{Key: "old", Supersedes: old.ID}, "supersedes", "this memory"},
		{souvenir.NewMemory{Key: "old", Supersedes: fresh.ID}, "supersedes", "replaces it"},
	} {
		c.m.Content = "x"
		var err error
		if c.m.Key != "" {
			_, err = f.store.PutMemory(f.ctx, c.m)
		} else {
			_, err = f.store.AddMemory(f.ctx, c.m)
		}
		f.failsAt(c.says, err, souvenir.ErrInvalid, c.argument, c.says)
	}
	from := start
	f.update(old.ID, souvenir.MemoryUpdate{ValidUntil: &from})
	_, err := f.store.UpdateMemory(f.ctx, old.ID, souvenir.MemoryUpdate{ValidFrom: &from})
	f.failsAt("an update", err, souvenir.ErrInvalid, "valid_until")
	_, err = f.reader.Search(f.ctx, souvenir.Query{AsOf: time.Date(12_000, 1, 1, 0, 0, 0, 0, time.UTC)})
	f.failsAt("as of", err, souvenir.ErrInvalid, "as_of")
}

// supersededWhileKept looks at the same context and graph again and again: a memory that was superseded, or stands
// again, has no change of its own.
func supersededWhileKept(f *fixture) {
	look := func(when string, want ...string) {
		var dos, nodes []string
		for _, m := range f.context(souvenir.ContextQuery{}).GeneralDoDont {
			dos = append(dos, m.Content)
		}
		for _, node := range f.graph(souvenir.GraphQuery{}).Nodes {
			nodes = append(nodes, node.Label)
		}
		slices.Sort(dos)
		f.same("dos "+when, dos, want...)
		f.same("nodes "+when, nodes, want...)
	}
	do := func(content, supersedes string) string {
		return f.add(souvenir.NewMemory{Content: content, Classification: souvenir.ClassDo,
			Supersedes: supersedes}).ID
	}
	do("knock twice", do("knock", ""))
	ring := do("ring", "")
	look("at first", "knock twice", "ring")
	twice := do("ring twice", ring)
	look("after a replacement", "knock twice", "ring twice")
	f.check("DeleteMemory", f.store.DeleteMemory(f.ctx, twice, nil))
	look("after it was undone", "knock twice", "ring")
}
