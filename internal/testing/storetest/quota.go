package storetest

import (
	"fmt"
	"strings"
	"sync"

	"github.com/souvenir-ai/souvenir"
)

func quotas() concept {
	return concept{"Quotas", []promise{
		{"memories, past versions and bytes are bounded for each owner", quotasHold},
		{"a quota holds under concurrent writes", quotasHoldAtOnce},
		{"deleted, moved and purged memories no longer count", quotasCount},
		{"what comes back from the trash counts again", quotasRestore},
		{"the trash holds at most as much again", quotasTrash},
		{"collections, projects and files are bounded, with those in the trash", quotasItems},
	}}
}

// bounded opens the store with quotas.
func (f *fixture) bounded(q souvenir.Quota) {
	f.Helper()
	o := f.options(f.embedder)
	o.Quota = q
	f.close()
	f.store = f.open(f.T, o)
	f.reader, f.operator = f.store, f.store
}

func (f *fixture) usage() souvenir.Usage {
	f.Helper()
	u, err := f.store.Insights().Usage(f.ctx)
	f.check("Usage", err)
	return u
}

func quotasHold(f *fixture) {
	most := int64(1000)
	if Sealed != nil {
		most = 2000
	}
	f.bounded(souvenir.Quota{Memories: 3, Revisions: 2, Bytes: most})
	ids := f.addTexts("one", "two", "three")
	_, err := f.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "four"})
	f.failsAt("AddMemory past the quota", err, souvenir.ErrTooLarge, "content", "4 memories", "is 3", "delete")
	_, err = f.store.AddMemories(f.ctx, []souvenir.NewMemory{{Content: "four"}, {Content: "five"}}, nil)
	f.fails("AddMemories past the quota", err, souvenir.ErrTooLarge, "5 memories")
	_, err = f.store.SetRule(f.ctx, souvenir.NewRule{Type: souvenir.RuleDo, Content: "four"})
	f.fails("SetRule past the quota", err, souvenir.ErrTooLarge)
	f.as(souvenir.Access{User: "anna"}).addTexts("one", "two", "three") // has a quota of her own
	f.delete(ids[0])
	f.addTexts("four")

	f.rewrite(ids[1], "two, again")
	f.rewrite(ids[1], "two, once more")
	content := "two, for the last time"
	_, err = f.store.UpdateMemory(f.ctx, ids[1], souvenir.MemoryUpdate{Content: &content})
	f.fails("UpdateMemory past the quota", err, souvenir.ErrTooLarge, "past versions", "is 2")
	f.equal("after a refused update", f.get(ids[1]).Content, "two, once more")

	f.delete(ids[2])
	long := strings.Repeat("é", 600)
	_, err = f.store.AddMemory(f.ctx, souvenir.NewMemory{Content: long})
	f.fails("AddMemory of many bytes", err, souvenir.ErrTooLarge, "bytes", fmt.Sprint("is ", most), "empty the trash")
	f.add(souvenir.NewMemory{Content: long[:800]})
}

func quotasHoldAtOnce(f *fixture) {
	f.bounded(souvenir.Quota{Memories: 10})
	var working sync.WaitGroup
	for range 4 {
		working.Go(func() {
			for range 5 {
				_, _ = f.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "a car"})
			}
		})
	}
	working.Wait()
	f.equal("memories", f.usage().Memories, 10)
}

func quotasCount(f *fixture) {
	f.equal("of a new user", f.usage(), souvenir.Usage{})
	f.addProject(souvenir.NewProject{ID: "p"})
	id := f.addTexts("a car")[0]
	content := int64(5)
	if Sealed != nil {
		content = int64(Sealed(5))
	}
	f.equal("stored", f.usage(), souvenir.Usage{Memories: 1, Bytes: content + 2})
	f.rewrite(id, "an automobile")
	f.patch(id, map[string]any{"project_id": "p", "colour": "red"})
	u := f.usage()
	f.equal("changed twice", []int{u.Memories, u.Revisions}, []int{1, 2})
	f.addFile(souvenir.NewFile{Filename: "a.txt"}, "12345")
	f.equal("with a file", f.usage().FileBytes, int64(5))
	_, err := f.store.As(souvenir.Access{User: souvenir.LocalUser, Projects: []string{"p"}}).Insights().Usage(f.ctx)
	f.fails("Usage of a limited view", err, souvenir.ErrForbidden)
	f.delete(id)
	u = f.usage()
	f.equal("in the trash", []any{u.Memories, u.Revisions, u.Bytes > 0}, []any{0, 0, true})
	_, err = f.store.Trash().Empty(f.ctx)
	f.check("Trash.Empty", err)
	u = f.usage()
	f.equal("deleted", []int64{int64(u.Memories), int64(u.Revisions), u.Bytes}, []int64{0, 0, 0})
}

func quotasRestore(f *fixture) {
	f.bounded(souvenir.Quota{Memories: 2, Revisions: 2, Bytes: 1000})
	ids := f.addTexts("one", "two")
	f.rewrite(ids[0], "one, again")
	f.rewrite(ids[0], "one, once more")
	f.delete(ids[0])
	three := f.addTexts("three")[0]
	_, err := f.store.Trash().Restore(f.ctx, ids[0])
	f.failsAt("Trash.Restore past the quota", err, souvenir.ErrTooLarge, "id", "3 memories", "is 2", "delete")
	f.same("in the trash", f.inTrash(), "memory one, once more")
	f.delete(three)
	f.rewrite(ids[1], "two, again")
	_, err = f.store.Trash().Restore(f.ctx, ids[0])
	f.failsAt("Trash.Restore of past versions", err, souvenir.ErrTooLarge, "id", "3 past versions", "is 2")
	f.delete(ids[1])
	f.restore(ids[0])
	f.equal("restored", []any{f.usage().Memories, f.usage().Revisions, f.get(ids[0]).Revision}, []any{1, 2, 3})

	f.bounded(souvenir.Quota{Memories: 2, Revisions: 3, Bytes: 1000})
	collection := f.addCollection(souvenir.NewCollection{Name: "box"})
	f.add(souvenir.NewMemory{Content: "four", Collection: collection.Name})
	entry := f.deleteCollection("box")
	f.restore(ids[1])
	_, err = f.store.Trash().Restore(f.ctx, entry.ID)
	f.fails("Trash.Restore of a collection past the quota", err, souvenir.ErrTooLarge, "3 memories")
	f.delete(ids[1])
	f.restore(entry.ID)

	// A quota below the present use: the bytes in the trash have always counted.
	f.delete(ids[0])
	f.bounded(souvenir.Quota{Bytes: 1})
	f.restore(ids[0])
}

func quotasTrash(f *fixture) {
	f.bounded(souvenir.Quota{Memories: 2, Revisions: 3})
	for range 3 {
		f.delete(f.addTexts("again")[0])
	}
	_, err := f.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "and again"})
	f.failsAt("AddMemory beside a full trash", err, souvenir.ErrTooLarge, "content", "3 memories", "empty the trash")
	f.check("Trash.Erase", f.store.Trash().Erase(f.ctx, f.trash()[0].ID))
	id := f.addTexts("and again")[0]
	for _, content := range []string{"a", "b", "c"} {
		f.rewrite(id, content)
	}
	f.delete(id)
	_, err = f.store.Trash().Empty(f.ctx)
	f.check("Trash.Empty", err)
	f.addTexts("there is room")
}

func quotasItems(f *fixture) {
	f.bounded(souvenir.Quota{Items: 2})
	f.addTexts("makes the collection default")
	f.addCollection(souvenir.NewCollection{Name: "two"})
	_, err := f.store.AddCollection(f.ctx, souvenir.NewCollection{Name: "three"})
	f.failsAt("AddCollection past the quota", err, souvenir.ErrTooLarge, "collection_name", "3 collections", "is 2")
	f.deleteCollection("two")
	_, err = f.store.AddCollection(f.ctx, souvenir.NewCollection{Name: "three"})
	f.fails("AddCollection with one in the trash", err, souvenir.ErrTooLarge, "trash")

	f.addProject(souvenir.NewProject{ID: "p"})
	f.add(souvenir.NewMemory{Content: "makes a project", ProjectName: "q"})
	_, err = f.store.AddProject(f.ctx, souvenir.NewProject{ID: "r"})
	f.failsAt("AddProject past the quota", err, souvenir.ErrTooLarge, "project_name", "3 projects", "is 2")
	_, err = f.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "makes a project", ProjectName: "r"})
	f.fails("AddMemory that makes a project", err, souvenir.ErrTooLarge, "3 projects")

	f.addFile(souvenir.NewFile{Filename: "a.txt"}, "")
	f.deleteFile(f.addFile(souvenir.NewFile{Filename: "b.txt"}, "").ID)
	_, err = f.store.AddFile(f.ctx, souvenir.NewFile{Filename: "c.txt"}, strings.NewReader(""))
	f.failsAt("AddFile past the quota", err, souvenir.ErrTooLarge, "file", "3 files", "is 2")
	_, err = f.store.Trash().Empty(f.ctx)
	f.check("Trash.Empty", err)
	f.addFile(souvenir.NewFile{Filename: "c.txt"}, "")
	f.addCollection(souvenir.NewCollection{Name: "three"})
}
