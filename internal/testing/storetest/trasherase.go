package storetest

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func trashErased(f *fixture) {
	ids := f.addTexts("one", "two", "three")
	file := f.addFile(souvenir.NewFile{Filename: "x.txt"}, strings.Repeat("x", 20<<20))
	f.delete(ids[0])
	f.delete(ids[1])
	f.deleteFile(file.ID)
	f.check("Trash.Erase", f.store.Trash().Erase(f.ctx, ids[0]))
	f.same("left", f.inTrash(), "file x.txt", "memory two")
	_, err := f.store.Trash().Restore(f.ctx, ids[0])
	f.failsAt("Trash.Restore", err, souvenir.ErrNotFound, "id")
	n, err := f.store.Trash().Empty(f.ctx)
	f.check("Trash.Empty", err)
	f.equal("emptied", n, 2)
	f.check("DeleteMemory", f.store.DeleteMemory(f.ctx, ids[2], &souvenir.DeletionOptions{Erase: true}))
	f.same("left", f.inTrash())
	stats, err := f.operator.Upkeep().Stats(f.ctx)
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
	_, err := f.store.Trash().Restore(f.ctx, ids[0])
	f.failsAt("Trash.Restore", err, souvenir.ErrNotFound, "id")
	_, err = f.operator.Upkeep().Purge(f.ctx,
		&souvenir.PurgeOptions{TrustClock: true}) // unless background work was faster
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
	f.check("DeleteProject", f.store.DeleteProject(f.ctx,
		souvenir.ProjectRef{ID: "apollo"}, &souvenir.DeletionOptions{WithMemories: true}))
	f.same("in the trash", f.inTrash())
	_, err := f.store.Trash().Restore(f.ctx, m.ID)
	f.failsAt("Trash.Restore", err, souvenir.ErrNotFound, "id")
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
				expected("DeleteMemory", f.store.DeleteMemory(f.ctx, id, nil))
				if i%10 == 5 {
					expected("DeleteCollection",
						f.store.DeleteCollection(f.ctx, "box", &souvenir.DeletionOptions{WithMemories: true}))
				}
				_, err := f.store.Trash().Restore(f.ctx, id)
				expected("Trash.Restore", err)
				if i%10 == 7 {
					_, err := f.operator.Upkeep().Purge(f.ctx, nil)
					expected("Purge", err)
				}
			}
		})
	}
	done.Wait()
	for range 3 { // other items contain the first ones
		for _, e := range f.trash() {
			_, err := f.store.Trash().Restore(f.ctx, e.ID)
			expected("Trash.Restore", err)
		}
	}
	f.same("left in the trash", f.inTrash())
	f.equal("memories", len(f.list(souvenir.MemoryList{})), len(ids))
}
