package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func expiry() concept {
	return concept{"Expiry", []promise{
		{"an expired memory is in no answer", expiredIsGone},
		{"what has expired is gone from everything that counts and lists", expiredIsNotCounted},
		{"searches and pages are full although some memories have expired", expiredLeavesNoGaps},
		{"near duplicates are looked for among what holds", pastLeavesRoom},
		{"the time is shown, changed, removed and kept in the trash", expiryChanges},
		{"a put under the key of an expired memory makes a new one", expiredKey},
		{"content that has expired is stored again", expiredContent},
		{"what has expired is deleted from the file", expiredIsDeleted},
		{"a place whose memories have all expired is empty", expiredLeaveEmpty},
		{"a clock that is ahead deletes nothing", expiryClock},
		{"an export has no expired memories, and keeps the time of the others", expiryExport},
		{"a deleted memory is restored until it expires", expiryTrash},
		{"invalid times are refused", expiryRefusals},
	}}
}

// soon is when the memories of these tests expire.
var soon = start.Add(time.Hour)

// expire stores a memory that expires soon.
func (f *fixture) expire(m souvenir.NewMemory) souvenir.StoredMemory {
	f.Helper()
	m.ExpiresAt = soon
	return f.add(m)
}

func expiredIsGone(f *fixture) {
	stays := f.add(souvenir.NewMemory{Content: "a heron by the lake", Tags: []string{"bird"}})
	goes := f.expire(souvenir.NewMemory{Content: "a heron in the rain", Tags: []string{"bird"}, Key: "k",
		Related: []string{stays.ID}})
	f.update(stays.ID, souvenir.MemoryUpdate{Related: &[]string{goes.ID}})
	f.clock.Pass(time.Hour - time.Microsecond)
	f.same("before", f.find("heron"), "a heron in the rain", "a heron by the lake")
	f.equal("before, related", len(f.walk(stays.ID)), 1)
	f.clock.Pass(time.Microsecond)
	f.same("search", f.find("heron"), "a heron by the lake")
	f.same("by word", f.byWord("rain"))
	f.equal("filter", len(f.list(souvenir.MemoryList{Filter: souvenir.Filter{"tags": "bird"}})), 1)
	_, err := f.reader.GetMemory(f.ctx, goes.ID)
	f.fails("GetMemory", err, souvenir.ErrNotFound)
	_, err = f.reader.GetMemoryByKey(f.ctx, souvenir.MemoryKey{Key: "k"})
	f.fails("GetMemoryByKey", err, souvenir.ErrNotFound)
	_, err = f.reader.Revisions(f.ctx, goes.ID)
	f.fails("Revisions", err, souvenir.ErrNotFound)
	content := "an otter"
	_, err = f.store.UpdateMemory(f.ctx, goes.ID, souvenir.MemoryUpdate{Content: &content})
	f.fails("UpdateMemory", err, souvenir.ErrNotFound)
	f.fails("DeleteMemory", f.store.DeleteMemory(f.ctx, goes.ID, nil), souvenir.ErrNotFound)
	_, err = f.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "x", Related: []string{goes.ID}})
	f.fails("a link to it", err, souvenir.ErrNotFound)
	f.equal("related ids", f.get(stays.ID).Related, []string(nil))
	f.equal("related", len(f.walk(stays.ID)), 0)
	deleted, err := f.store.DeleteMemories(f.ctx, souvenir.MemoriesDeletion{DryRun: true,
		MemoryList: souvenir.MemoryList{Tags: []string{"bird"}}})
	f.check("DeleteMemories", err)
	f.equal("selected", deleted.Selected, 1)
}

func (f *fixture) walk(id string) []souvenir.RelatedMemory {
	f.Helper()
	related, err := f.reader.RelatedMemories(f.ctx, id, 1)
	f.check("RelatedMemories", err)
	return related
}

func expiredIsNotCounted(f *fixture) {
	f.add(souvenir.NewMemory{Content: "the plan of the ferry", ProjectID: "p", Tags: []string{"plan"}})
	for _, m := range []souvenir.NewMemory{
		{Content: "the ferry sails again", ProjectID: "p", Tags: []string{"news"}, EventType: "ferry"},
		{Content: "the ferry, in short", ProjectID: "p", EventType: souvenir.EventProjectMain},
		{Content: "I am Robin", EventType: "IDENTITY"},
		{Content: "never call before nine", Classification: souvenir.ClassDont},
		{Content: "the harbour module", ProjectID: "p", Metadata: map[string]any{"module_name": "harbour"}},
		{Content: "are you there?", EventType: souvenir.EventConversation,
			Metadata: map[string]any{"conversation_id": "c", "role": "user"}},
	} {
		f.expire(m)
	}
	look := func() []any {
		f.Helper()
		collections, err := f.reader.Collections(f.ctx)
		f.check("Collections", err)
		projects, err := f.reader.Projects(f.ctx)
		f.check("Projects", err)
		context, err := f.reader.GetContext(f.ctx, souvenir.ContextQuery{ProjectID: "p"})
		f.check("GetContext", err)
		_, noMain := f.reader.GetMainMemory(f.ctx, souvenir.ProjectRef{ID: "p"})
		module, err := f.reader.GetModuleState(f.ctx, souvenir.ModuleQuery{Module: "harbour", ProjectID: "p"})
		f.check("GetModuleState", err)
		overview, err := f.reader.Insights().Overview(f.ctx, souvenir.OverviewQuery{MemoriesOnly: true})
		f.check("Overview", err)
		tags, err := f.reader.Insights().Tags(f.ctx)
		f.check("Tags", err)
		modules, err := f.reader.Insights().Modules(f.ctx, souvenir.ProjectRef{})
		f.check("Modules", err)
		graph, err := f.reader.Insights().Graph(f.ctx, souvenir.GraphQuery{})
		f.check("Graph", err)
		conversations := 0
		for _, err := range f.reader.Conversations(f.ctx, souvenir.ConversationList{Collection: "default"}) {
			f.check("Conversations", err)
			conversations++
		}
		return []any{collections[0].MemoryCount, projects[0].MemoryCount, context.Identity != nil,
			len(context.GeneralDoDont), context.ConversationID != "", len(context.Related), noMain == nil,
			module.Summary.Total, overview.Memories, len(overview.EventTypes), len(tags), len(modules), graph.Total,
			len(graph.Nodes), conversations}
	}
	f.equal("before", look(), []any{7, 4, true, 1, false, 5, true, 1, 7, 5, 2, 1, 7, 7, 1})
	f.clock.Pass(time.Hour)
	f.equal("after", look(), []any{1, 1, false, 0, false, 1, false, 0, 1, 1, 1, 0, 1, 1, 0})
	similar, err := f.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "the ferry sails again", Similar: 3})
	f.check("AddMemory", err)
	f.equal("near duplicates", len(similar.Similar), 0)
}

// pastLeavesRoom stores a text many times as no longer true, and then as true: the search for near duplicates, which
// looks at few memories, finds the latter.
func pastLeavesRoom(f *fixture) {
	_, err := f.store.AddCollection(f.ctx, souvenir.NewCollection{Name: "own", VectorSize: 2, OwnVectors: true})
	f.check("AddCollection", err)
	for _, m := range []souvenir.NewMemory{{Content: "the ferry sails every day at noon"},
		{Collection: "own", Content: "noon", Embedding: []float32{1, 2}}} {
		past := slices.Repeat([]souvenir.NewMemory{m}, 20)
		for i := range past {
			past[i].ValidUntil = f.clock.Now().Add(-time.Hour)
		}
		_, err := f.store.AddMemories(f.ctx, past, nil)
		f.check("AddMemories", err)
		m.Similar = 1
		first, err := f.store.AddMemory(f.ctx, m)
		f.check("AddMemory", err)
		f.equal("near duplicates among what was true", len(first.Similar), 0)
		again, err := f.store.AddMemory(f.ctx, m)
		f.check("AddMemory", err)
		f.equal("near duplicates", len(again.Similar), 1)
		f.equal("the near duplicate", again.Similar[0].ID, first.ID)
		m.Key = "sailing"
		put, err := f.store.PutMemory(f.ctx, m)
		f.check("PutMemory", err)
		m.Tags = []string{"ferry"}
		again, err = f.store.PutMemory(f.ctx, m)
		f.check("PutMemory", err)
		f.equal("near duplicates of a memory that is put again", len(again.Similar), 1)
		f.equal("which is another one", again.Similar[0].ID != put.ID, true)
	}
}

// expiredLeavesNoGaps stores memories that expire at four times, and compares each page with the remaining ones.
func expiredLeavesNoGaps(f *fixture) {
	const n = 40
	for i := range n {
		m := souvenir.NewMemory{Content: fmt.Sprintf("heron number %d", i), ProjectID: []string{"", "p"}[i%2]}
		if i%5 != 0 {
			m.ExpiresAt = start.Add(time.Duration(i%5) * time.Hour)
		}
		f.clock.Pass(time.Microsecond)
		f.add(m)
	}
	for hour := range 6 {
		want := map[string]bool{}
		for i := range n {
			if i%5 == 0 || i%5 > hour {
				want[fmt.Sprintf("heron number %d", i)] = true
			}
		}
		for _, q := range []souvenir.Query{{Text: "heron"}, {}, {Sort: souvenir.SortCreatedAsc},
			{Text: "heron", Sort: souvenir.SortUpdatedDesc}, {Filter: souvenir.Filter{"created_at": "2026-03-01"}}} {
			q.Limit = 6
			got := map[string]bool{}
			for q.Offset = 0; ; q.Offset += q.Limit {
				page := f.search(q)
				f.equal(fmt.Sprintf("total of %+v in hour %d", q, hour), page.Total, len(want))
				for _, h := range page.Hits {
					got[h.Content] = true
				}
				f.equal("page", len(page.Hits), max(0, min(q.Limit, len(want)-q.Offset)))
				if len(page.Hits) < q.Limit {
					break
				}
			}
			f.equal(fmt.Sprintf("%+v in hour %d", q, hour), got, want)
		}
		f.equal("list", len(f.list(souvenir.MemoryList{})), len(want))
		f.clock.Pass(time.Hour)
	}
}

func expiryChanges(f *fixture) {
	m := f.expire(souvenir.NewMemory{Content: "a parking place", Key: "car"})
	f.equal("stored", []any{m.ExpiresAt, f.get(m.ID).ExpiresAt}, []any{soon, soon})
	var read souvenir.Memory
	f.check("JSON", read.UnmarshalJSON([]byte(toJSON(m.Memory))))
	f.equal("as JSON", read.ExpiresAt, soon)
	later := start.Add(2 * time.Hour)
	f.equal("put off", f.update(m.ID, souvenir.MemoryUpdate{ExpiresAt: &later}).ExpiresAt, later)
	f.clock.Pass(time.Hour)
	f.equal("still there", f.get(m.ID).ExpiresAt, later)
	f.equal("another change keeps it", f.rewrite(m.ID, "the same parking place").ExpiresAt, later)
	f.equal("unchanged", f.update(m.ID, souvenir.MemoryUpdate{ExpiresAt: &later}).Revision, 3)
	f.equal("removed", f.update(m.ID, souvenir.MemoryUpdate{ExpiresAt: &time.Time{}}).ExpiresAt, time.Time{})
	f.clock.Pass(time.Hour)
	f.equal("stays", f.get(m.ID).ID, m.ID)
	again := f.put(souvenir.NewMemory{Key: "car", Content: "the same parking place", ExpiresAt: later.Add(time.Hour)})
	f.equal("put", []any{again.ID, again.ExpiresAt}, []any{m.ID, later.Add(time.Hour)})
	f.equal("put without", f.put(souvenir.NewMemory{Key: "car", Content: "the same parking place"}).ExpiresAt, time.Time{})
}

func expiredKey(f *fixture) {
	old := f.expire(souvenir.NewMemory{Content: "a heron", Key: "k"})
	other := f.expire(souvenir.NewMemory{Content: "a swan", Key: "other"})
	f.clock.Pass(time.Hour)
	fresh := f.put(souvenir.NewMemory{Content: "a heron", Key: "k"})
	f.equal("put", []any{fresh.Effect, fresh.ID != old.ID, fresh.Revision, fresh.Indexed},
		[]any{souvenir.EffectAdded, true, 1, true})
	f.equal("by key", f.byKey(souvenir.MemoryKey{Key: "k"}).ID, fresh.ID)
	added := f.add(souvenir.NewMemory{Content: "another swan", Key: "other"})
	f.equal("added", added.ID != other.ID, true)
	f.same("found", f.find("heron"), "a heron")
}

func expiredContent(f *fixture) {
	old := f.expire(souvenir.NewMemory{Content: "a heron", IfAbsent: true})
	f.clock.Pass(time.Hour)
	fresh := f.add(souvenir.NewMemory{Content: "a heron", IfAbsent: true})
	f.equal("stored again", []any{fresh.Effect, fresh.ID != old.ID}, []any{souvenir.EffectAdded, true})
	again := f.add(souvenir.NewMemory{Content: "a heron", IfAbsent: true})
	f.equal("once", []any{again.Effect, again.ID}, []any{souvenir.EffectUnchanged, fresh.ID})
}

func (f *fixture) purged() souvenir.PurgeReport {
	f.Helper()
	report, err := f.operator.Upkeep().Purge(f.ctx, nil)
	f.check("Purge", err)
	return report
}

func (f *fixture) stats() souvenir.Stats {
	f.Helper()
	stats, err := f.operator.Upkeep().Stats(f.ctx)
	f.check("Stats", err)
	return stats
}

func expiredIsDeleted(f *fixture) {
	stays := f.add(souvenir.NewMemory{Content: "a lake"})
	for i := range 5 {
		m := f.expire(souvenir.NewMemory{Content: fmt.Sprint("heron ", i), Tags: []string{"t"}, Related: []string{stays.ID},
			Metadata: map[string]any{"n": i}})
		f.rewrite(m.ID, fmt.Sprint("grey heron ", i))
	}
	m := f.list(souvenir.MemoryList{Tags: []string{"t"}})[0]
	file, err := f.store.AddFile(f.ctx, souvenir.NewFile{Filename: "a.txt", MemoryID: m.ID}, strings.NewReader("a"))
	f.check("AddFile", err)
	f.equal("nothing is due", f.purged().Memories, 0)
	f.clock.Pass(time.Hour)
	shown, err := f.reader.GetFile(f.ctx, file.ID)
	f.check("GetFile", err)
	f.equal("the file is there without its memory", shown.MemoryID, "")
	f.purged() // or the worker, before it
	stats := f.stats()
	f.equal("left", []any{stats.Memories, stats.Revisions, stats.Passages, stats.Files}, []any{1, 0, 1, 1})
	trash, err := f.reader.Trash().Page(f.ctx, souvenir.TrashQuery{})
	f.check("TrashPage", err)
	f.equal("nothing is in the trash", len(trash.Entries), 0)
	report, err := f.operator.Upkeep().Check(f.ctx, nil)
	f.check("Check", err)
	f.equal("findings", len(report.Findings), 0)
}

func expiredLeaveEmpty(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "c"})
	f.expire(souvenir.NewMemory{Content: "a heron", Collection: "c"})
	f.expire(souvenir.NewMemory{Content: "a swan", ProjectID: "p"})
	delete := func() (collection, project error) {
		return f.store.DeleteCollection(f.ctx, "c", nil), f.store.DeleteProject(f.ctx, souvenir.ProjectRef{ID: "p"}, nil)
	}
	collection, project := delete()
	f.fails("a collection with a memory", collection, souvenir.ErrConflict, "holds 1 memories")
	f.fails("a project with a memory", project, souvenir.ErrConflict, "holds 1 memories")
	f.clock.Pass(time.Hour)
	collection, project = delete()
	f.check("DeleteCollection", collection)
	f.check("DeleteProject", project)
}

func expiryClock(f *fixture) {
	f.purged() // records the time
	m := f.add(souvenir.NewMemory{Content: "a heron", ExpiresAt: start.Add(24 * time.Hour)})
	f.clock.Pass(366 * 24 * time.Hour)
	report := f.purged()
	f.equal("held", []any{report.Memories, report.HeldUntil.IsZero()}, []any{0, false})
	f.same("not there by this clock", f.find("heron"))
	f.clock.Pass(-366 * 24 * time.Hour)
	f.equal("the clock is right again", f.get(m.ID).Content, "a heron")
	f.clock.Pass(366 * 24 * time.Hour)
	f.purged()
	f.equal("not yet", f.stats().Memories, 1)
	for range 3 { // a worker that recorded the earlier time late adds a day
		f.clock.Pass(24 * time.Hour)
		f.purged() // or the worker, before it
		if f.stats().Memories == 0 {
			break
		}
	}
	f.equal("the clock has said so for a day", f.stats().Memories, 0)
}

func expiryExport(f *fixture) {
	goes := f.expire(souvenir.NewMemory{Content: "a swan"})
	later := start.Add(48 * time.Hour)
	stays := f.add(souvenir.NewMemory{Content: "a heron", ExpiresAt: later, Related: []string{goes.ID}})
	f.rewrite(goes.ID, "two swans")
	f.clock.Pass(time.Hour)
	var out bytes.Buffer
	_, err := f.reader.Upkeep().Export(f.ctx, &out, nil)
	f.check("Export", err)
	f.equal("expired", bytes.Contains(out.Bytes(), []byte("swan")), false)
	f.check("DeleteMemory", f.store.DeleteMemory(f.ctx, stays.ID, &souvenir.DeletionOptions{Erase: true}))
	_, err = f.operator.Upkeep().Import(f.ctx, &out, nil)
	f.check("Import", err)
	f.equal("imported", f.get(stays.ID).ExpiresAt, later)
}

func expiryTrash(f *fixture) {
	m := f.add(souvenir.NewMemory{Content: "a heron", ExpiresAt: start.Add(48 * time.Hour)})
	f.delete(m.ID)
	_, err := f.store.Trash().Restore(f.ctx, m.ID)
	f.check("RestoreTrashed", err)
	f.equal("restored", f.get(m.ID).ExpiresAt, start.Add(48*time.Hour))
	f.delete(m.ID)
	page, err := f.reader.Trash().Page(f.ctx, souvenir.TrashQuery{})
	f.check("TrashPage", err)
	f.equal("until", page.Entries[0].Until, start.Add(48*time.Hour))
	f.clock.Pass(48 * time.Hour)
	_, err = f.store.Trash().Restore(f.ctx, m.ID)
	f.fails("too late", err, souvenir.ErrNotFound)
	f.purged() // or the worker, before it
	page, err = f.reader.Trash().Page(f.ctx, souvenir.TrashQuery{})
	f.check("Page", err)
	f.equal("erased", len(page.Entries), 0)
}

func expiryRefusals(f *fixture) {
	m := f.addTexts("a heron")[0]
	for _, at := range []time.Time{start, start.Add(-time.Second)} {
		_, err := f.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "x", ExpiresAt: at})
		f.failsAt("AddMemory", err, souvenir.ErrInvalid, "expires_at", at.Format(time.RFC3339), "is in the past")
		_, err = f.store.UpdateMemory(f.ctx, m, souvenir.MemoryUpdate{ExpiresAt: &at})
		f.failsAt("UpdateMemory", err, souvenir.ErrInvalid, "expires_at", "is in the past")
	}
	_, err := f.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "x",
		ExpiresAt: time.Date(12_000, 1, 1, 0, 0, 0, 0, time.UTC)})
	f.failsAt("a year", err, souvenir.ErrInvalid, "expires_at", "12000")
	_, err = f.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "x", ExpiresAt: soon, ProjectID: "p",
		EventType: souvenir.EventProjectRule, RuleType: souvenir.RuleDo})
	f.failsAt("a rule", err, souvenir.ErrInvalid, "rule_type", "expires_at")
	_, err = f.store.UpdateMemories(f.ctx, souvenir.MemoriesUpdate{All: true,
		Change: souvenir.MemoryUpdate{ExpiresAt: &soon}})
	f.fails("many", err, souvenir.ErrInvalid)
}
