package storetest

import (
	"bytes"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func keys() concept {
	return concept{"Keys", []promise{
		{"a put stores, changes, or leaves as it is", putOutcomes},
		{"a put replaces everything that the memory holds", putReplaces},
		{"many puts of one key store one memory", putTogether},
		{"puts through two handles store one memory", putTwoHandles},
		{"a key is unique within its place alone", keyPlaces},
		{"a key that is taken is refused, and nothing is lost", keyTaken},
		{"a memory comes back from the trash with its key if that is free", keyTrash},
		{"keys and times are exported and imported", keyExport},
		{"a memory tells when it was made and when it happened", memoryTimes},
		{"many puts are one commit", putMany},
		{"one's own vectors are put once", putVectors},
		{"invalid keys and times are refused", keyRefusals},
	}}
}

func (f *fixture) put(m souvenir.NewMemory) souvenir.StoredMemory {
	f.Helper()
	stored, err := f.store.PutMemory(f.ctx, m)
	f.check("PutMemory", err)
	return stored
}

func (f *fixture) byKey(k souvenir.MemoryKey) souvenir.Memory {
	f.Helper()
	m, err := f.reader.GetMemoryByKey(f.ctx, k)
	f.check("GetMemoryByKey", err)
	return m
}

func putOutcomes(f *fixture) {
	m := souvenir.NewMemory{Key: "user/7 é\x01", Content: "a heron", Tags: []string{"bird"}}
	first := f.put(m)
	f.equal("first", []any{first.Effect, first.Revision, first.Key, first.Indexed},
		[]any{souvenir.EffectAdded, 1, m.Key, true})
	f.clock.Pass(time.Hour)
	again := f.put(m)
	f.equal("again", []any{again.Effect, again.Revision, again.ID, again.UpdatedAt, again.Indexed},
		[]any{souvenir.EffectUnchanged, 1, first.ID, start, true})
	m.Content = "an otter"
	changed := f.put(m)
	f.equal("changed", []any{changed.Effect, changed.Revision, changed.ID, changed.UpdatedAt, changed.Indexed},
		[]any{souvenir.EffectUpdated, 2, first.ID, start.Add(time.Hour), true})
	m.EventTime = start
	f.equal("at another time", f.put(m).Effect, souvenir.EffectUpdated)
	f.equal("at the same time", f.put(m).Effect, souvenir.EffectUnchanged)
	f.equal("revisions", len(f.revisions(first.ID)), 3)
	f.same("found", f.find("otter"), "an otter")
	f.equal("read", f.byKey(souvenir.MemoryKey{Key: m.Key}), f.get(first.ID))
}

func putReplaces(f *fixture) {
	target := f.addTexts("the calendar")[0]
	m := complete(f, target)
	m.Key, m.EventType, m.RuleType = "k", "decision", ""
	first := f.put(m)
	f.equal("the same again", f.put(m).Effect, souvenir.EffectUnchanged)
	bare := f.put(souvenir.NewMemory{Key: "k", Collection: m.Collection, ProjectID: m.ProjectID,
		ProjectName: m.ProjectName, Content: m.Content})
	f.equal("bare", []any{bare.ID, bare.Effect, bare.Tags, bare.Related, len(bare.Metadata), bare.EventType, bare.State},
		[]any{first.ID, souvenir.EffectUpdated, []string(nil), []string(nil), 0, "", ""})
	restored, err := f.store.RestoreRevision(f.ctx, first.ID, 1)
	f.check("RestoreRevision", err)
	f.equal("restored", []any{restored.Key, restored.Tags, restored.Related},
		[]any{"k", first.Tags, first.Related})
}

func putTogether(f *fixture) {
	var added, updated atomic.Int32
	together(func(worker int) {
		for range 4 {
			stored, err := f.store.PutMemory(f.ctx, souvenir.NewMemory{Key: "one", Content: nameOf(worker)})
			if err != nil {
				f.Errorf("PutMemory: %v", err)
				return
			}
			switch stored.Effect {
			case souvenir.EffectAdded:
				added.Add(1)
			case souvenir.EffectUpdated:
				updated.Add(1)
			}
		}
	})
	all := f.list(souvenir.MemoryList{})
	f.equal("memories", len(all), 1)
	f.equal("added", int(added.Load()), 1)
	f.equal("revision", all[0].Revision, int(updated.Load())+1)
	f.same("found", f.byWord(all[0].Content), all[0].Content)
}

func putTwoHandles(f *fixture) {
	other := f.store
	if f.reader != f.store {
		other = f.reader
	}
	together(func(worker int) {
		s := f.store
		if worker%2 == 0 {
			s = other
		}
		for i := range 4 {
			_, err := s.PutMemory(f.ctx, souvenir.NewMemory{Key: fmt.Sprint("k", i), Content: nameOf(worker)})
			if err != nil {
				f.Errorf("PutMemory: %v", err)
			}
		}
	})
	f.equal("memories", len(f.list(souvenir.MemoryList{})), 4)
}

func keyPlaces(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "other"})
	places := []souvenir.NewMemory{{}, {Collection: "other"}, {ProjectID: "p"}, {ProjectID: "q"},
		{Collection: "other", ProjectID: "p"}}
	seen := map[string]bool{}
	for i, m := range places {
		m.Key, m.Content = "k", fmt.Sprint("number ", i)
		stored := f.put(m)
		seen[stored.ID] = true
		f.equal("read", f.byKey(souvenir.MemoryKey{Key: "k", Collection: m.Collection, ProjectID: m.ProjectID}).Content,
			m.Content)
	}
	f.equal("memories", len(seen), len(places))
	stranger := f.as(souvenir.Access{User: "stranger"})
	_, err := stranger.reader.GetMemoryByKey(f.ctx, souvenir.MemoryKey{Key: "k"})
	f.failsAt("another user's key", err, souvenir.ErrNotFound, "key")
	_, err = stranger.reader.GetMemoryByKey(f.ctx, souvenir.MemoryKey{Key: "k", ProjectID: "p"})
	f.failsAt("a key of another user's project", err, souvenir.ErrNotFound, "key")
	f.equal("another user's put", stranger.put(souvenir.NewMemory{Key: "k", Content: "own"}).Effect, souvenir.EffectAdded)

	limited := f.as(souvenir.Access{User: souvenir.LocalUser, Projects: []string{"p"}})
	f.equal("limited", limited.byKey(souvenir.MemoryKey{Key: "k"}).Content, "number 2")
	f.equal("limited put", limited.put(souvenir.NewMemory{Key: "k", Content: "number 2"}).Effect, souvenir.EffectUnchanged)
}

func keyTaken(f *fixture) {
	first := f.add(souvenir.NewMemory{Key: "k", Content: "a heron"})
	_, err := f.store.AddMemory(f.ctx, souvenir.NewMemory{Key: "k", Content: "an otter"})
	f.failsAt("AddMemory", err, souvenir.ErrConflict, "key", first.ID)
	there := f.add(souvenir.NewMemory{Key: "k", ProjectID: "p", Content: "a newt"})
	_, err = f.store.UpdateMemory(f.ctx, first.ID, souvenir.MemoryUpdate{ShownMetadata: object(`{"project_id":"p"}`)})
	f.failsAt("a move", err, souvenir.ErrConflict, "key", there.ID)
	f.delete(there.ID)
	moved := f.patch(first.ID, object(`{"project_id":"p"}`))
	f.equal("moved", moved.Key, "k")
	f.equal("read there", f.byKey(souvenir.MemoryKey{Key: "k", ProjectID: "p"}).ID, first.ID)
}

func keyTrash(f *fixture) {
	first := f.put(souvenir.NewMemory{Key: "k", Content: "a heron", EventTime: start})
	f.delete(first.ID)
	_, err := f.reader.GetMemoryByKey(f.ctx, souvenir.MemoryKey{Key: "k"})
	f.failsAt("GetMemoryByKey", err, souvenir.ErrNotFound, "key")
	_, err = f.store.Trash().Restore(f.ctx, first.ID)
	f.check("Trash.Restore", err)
	f.equal("restored", f.byKey(souvenir.MemoryKey{Key: "k"}), first.Memory)
	f.delete(first.ID)
	second := f.put(souvenir.NewMemory{Key: "k", Content: "an otter"})
	f.equal("second", second.Effect, souvenir.EffectAdded)
	_, err = f.store.Trash().Restore(f.ctx, first.ID)
	f.check("Trash.Restore", err)
	f.equal("the key's memory", f.byKey(souvenir.MemoryKey{Key: "k"}).ID, second.ID)
	f.equal("restored without", f.get(first.ID).Key, "")
}

func keyExport(f *fixture) {
	first := f.put(souvenir.NewMemory{Key: "k", Content: "a heron", EventTime: start.Add(-time.Hour)})
	var lines bytes.Buffer
	_, err := f.operator.Upkeep().Export(f.ctx, &lines, nil)
	f.check("Export", err)
	f.check("DeleteMemory", f.store.DeleteMemory(f.ctx, first.ID, &souvenir.DeletionOptions{Erase: true}))
	_, err = f.operator.Upkeep().Import(f.ctx, bytes.NewReader(lines.Bytes()), nil)
	f.check("Import", err)
	f.equal("imported", f.byKey(souvenir.MemoryKey{Key: "k"}), first.Memory)
	f.check("DeleteMemory", f.store.DeleteMemory(f.ctx, first.ID, &souvenir.DeletionOptions{Erase: true}))
	second := f.put(souvenir.NewMemory{Key: "k", Content: "an otter"})
	report, err := f.operator.Upkeep().Import(f.ctx, bytes.NewReader(lines.Bytes()), nil)
	f.check("Import", err)
	f.equal("conflicts", len(report.Conflicts), 1)
	f.equal("kept", f.byKey(souvenir.MemoryKey{Key: "k"}).ID, second.ID)
}

func memoryTimes(f *fixture) {
	made, happened := start.Add(-48*time.Hour), start.Add(-72*time.Hour)
	m := f.add(souvenir.NewMemory{Content: "a heron", CreatedAt: made, EventTime: happened})
	f.equal("times", []any{m.CreatedAt, m.UpdatedAt, m.EventTime}, []any{made, start, happened})
	f.equal("read", f.get(m.ID), m.Memory)
	later := happened.Add(time.Minute + 999*time.Nanosecond)
	changed := f.update(m.ID, souvenir.MemoryUpdate{EventTime: &later})
	f.equal("changed", []any{changed.EventTime, changed.Revision}, []any{happened.Add(time.Minute), 2})
	f.equal("again", f.update(m.ID, souvenir.MemoryUpdate{EventTime: &later}).Revision, 2)
	f.equal("none", f.update(m.ID, souvenir.MemoryUpdate{EventTime: &time.Time{}}).EventTime, time.Time{})
}

func putMany(f *fixture) {
	many := []souvenir.NewMemory{{Key: "a", Content: "one"}, {Key: "b", Content: "two"}, {Key: "a", Content: "three"}}
	stored, err := f.store.PutMemories(f.ctx, many, nil)
	f.check("PutMemories", err)
	f.equal("effects", []any{stored[0].Effect, stored[1].Effect, stored[2].Effect},
		[]any{souvenir.EffectAdded, souvenir.EffectAdded, souvenir.EffectUpdated})
	f.equal("the last counts", f.byKey(souvenir.MemoryKey{Key: "a"}).Content, "three")
	many = []souvenir.NewMemory{{Key: "a", Content: "four"}, {Key: "c", Content: "five", Related: []string{"nowhere"}}}
	_, err = f.store.PutMemories(f.ctx, many, nil)
	f.failsAt("PutMemories", err, souvenir.ErrNotFound, "related_memory_ids", "memories[1]")
	f.equal("nothing of it", f.byKey(souvenir.MemoryKey{Key: "a"}).Content, "three")
	f.same("found", f.byWord("three"), "three")
}

func putVectors(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "v", OwnVectors: true, VectorSize: 2})
	m := souvenir.NewMemory{Collection: "v", Key: "k", Content: "a heron", Embedding: []float32{3, 4}}
	first := f.put(m)
	f.equal("again", f.put(m).Effect, souvenir.EffectUnchanged)
	m.Embedding = []float32{4, 3}
	changed := f.put(m)
	f.equal("another vector", []any{changed.Effect, changed.ID, changed.Indexed},
		[]any{souvenir.EffectUpdated, first.ID, true})
}

func keyRefusals(f *fixture) {
	for what, c := range map[string]struct {
		m        souvenir.NewMemory
		kind     *souvenir.Error
		argument string
	}{
		"no key":     {souvenir.NewMemory{Content: "x"}, souvenir.ErrInvalid, "key"},
		"a long key": {souvenir.NewMemory{Content: "x", Key: strings.Repeat("k", 513)}, souvenir.ErrTooLarge, "key"},
		"not UTF-8":  {souvenir.NewMemory{Content: "x", Key: "\xff"}, souvenir.ErrInvalid, "key"},
		"of the future": {souvenir.NewMemory{Content: "x", Key: "k", CreatedAt: start.Add(time.Hour)}, souvenir.ErrInvalid,
			"created_at"},
		"a late year": {souvenir.NewMemory{Content: "x", Key: "k",
			EventTime: time.Date(10000, 1, 2, 0, 0, 0, 0, time.UTC)}, souvenir.ErrInvalid, "event_time"},
		"a rule": {souvenir.NewMemory{Content: "x", Key: "k", ProjectID: "p", EventType: souvenir.EventProjectRule,
			RuleType: souvenir.RuleDo}, souvenir.ErrInvalid, "key"},
	} {
		_, err := f.store.PutMemory(f.ctx, c.m)
		f.failsAt(what, err, c.kind, c.argument)
	}
	f.equal("stored", len(f.list(souvenir.MemoryList{})), 0)
	f.equal("the longest", f.put(souvenir.NewMemory{Content: "x", Key: strings.Repeat("k", 512)}).Effect,
		souvenir.EffectAdded)
}
