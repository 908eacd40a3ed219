package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/souvenir-ai/souvenir"
)

func concurrency() concept {
	return concept{"Concurrency", []promise{
		{"many writers and readers lose nothing", concurrentWork},
		{"updates with an expected revision never lose one", concurrentUpdates},
		{"a refused write among others takes none along", concurrentFailures},
		{"a collection or project that many need at first is made once", concurrentFirst},
	}}
}

const workers = 32

// nameOf returns a worker's own word, which full text keeps whole.
func nameOf(worker int) string {
	return "kap" + string(rune('a'+worker/8)) + "l" + string(rune('a'+worker%8)) + "o"
}

// together runs a function in many goroutines at once.
func together(do func(worker int)) {
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() { do(worker) })
	}
	group.Wait()
}

// concurrentWork compares the store, after all workers are done, with each worker's record of its own memories.
func concurrentWork(f *fixture) {
	type state struct {
		content  string
		revision int
	}
	var mu sync.Mutex
	model := map[string]state{} // by id
	report := func(what string, err error) bool {
		if err != nil {
			f.Errorf("%s: %v", what, err)
		}
		return err == nil
	}
	together(func(worker int) {
		var mine []string
		for i := range 8 {
			content := fmt.Sprint(nameOf(worker), " ", i)
			stored, err := f.store.AddMemory(f.ctx,
				souvenir.NewMemory{Content: content, Tags: []string{fmt.Sprint("w", worker)}})
			if !report("AddMemory", err) {
				return
			}
			mine = append(mine, stored.ID)
			expected := state{content, 1}
			if found, err := f.reader.Search(f.ctx,
				souvenir.Query{Text: content, Tags: []string{fmt.Sprint("w", worker)}, Limit: 1}); report("Search", err) &&
				(len(found.Hits) != 1 || found.Hits[0].ID != stored.ID) {
				f.Errorf("searching for %q right after storing it finds %q, want this memory alone", content, contents(found))
			}
			if i%2 == 1 {
				content += " changed"
				if updated, err := f.store.UpdateMemory(f.ctx, stored.ID,
					souvenir.MemoryUpdate{Content: &content, ExpectedRevision: 1}); report("UpdateMemory", err) {
					expected = state{content, updated.Revision}
				}
			}
			mu.Lock()
			model[stored.ID] = expected
			mu.Unlock()
			if i%4 == 3 {
				gone := mine[0]
				mine = mine[1:]
				if report("DeleteMemory", f.store.DeleteMemory(f.ctx, gone, nil)) {
					mu.Lock()
					delete(model, gone)
					mu.Unlock()
				}
				if _, err := f.reader.GetMemory(f.ctx, gone); !errors.Is(err, souvenir.ErrNotFound) {
					f.Errorf("GetMemory right after the deletion: %v, want souvenir.ErrNotFound", err)
				}
			}
		}
	})
	got := map[string]state{}
	for _, m := range f.list(souvenir.MemoryList{}) {
		got[m.ID] = state{m.Content, m.Revision}
	}
	f.equal("memories", got, model)
	f.equal("count", f.collection(souvenir.DefaultCollection).MemoryCount, len(model))
	f.equal("passages", f.state().Passages, len(model))
	for worker := range workers {
		var want []string
		for _, m := range model {
			if strings.HasPrefix(m.content, nameOf(worker)) {
				want = append(want, m.content)
			}
		}
		found := f.byWord(nameOf(worker))
		slices.Sort(want)
		slices.Sort(found)
		f.equal("found of "+nameOf(worker), found, want)
	}
}

func concurrentUpdates(f *fixture) {
	id := f.add(souvenir.NewMemory{Content: "counter", ShownMetadata: map[string]any{"n": 0}}).ID
	var conflicts atomic.Int64
	together(func(int) {
		for {
			m, err := f.reader.GetMemory(f.ctx, id)
			if err != nil {
				f.Errorf("GetMemory: %v", err)
				return
			}
			_, err = f.store.UpdateMemory(f.ctx, id,
				souvenir.MemoryUpdate{ShownMetadata: map[string]any{"n": m.Metadata["n"].(float64) + 1},
					ExpectedRevision: m.Revision})
			if err == nil {
				return
			}
			if !errors.Is(err, souvenir.ErrConflict) {
				f.Errorf("UpdateMemory: %v, want souvenir.ErrConflict", err)
				return
			}
			conflicts.Add(1)
		}
	})
	m := f.get(id)
	f.equal(fmt.Sprint("counter and revision after ", conflicts.Load(), " conflicts"), []any{m.Metadata["n"], m.Revision},
		[]any{float64(workers), workers + 1})
	for i, r := range f.revisions(id) {
		f.equal("revision", []any{r.Number, r.Metadata["n"]}, []any{workers + 1 - i, float64(workers - i)})
	}
}

func concurrentFailures(f *fixture) {
	id := f.addTexts("there before")[0]
	together(func(worker int) {
		for i := range 6 {
			content := fmt.Sprintf("worker %d step %d", worker, i)
			if (worker+i)%2 == 0 {
				if _, err := f.store.AddMemory(f.ctx, souvenir.NewMemory{Content: content}); err != nil {
					f.Errorf("AddMemory beside refused ones: %v", err)
				}
				continue
			}
			for _, c := range []struct {
				err  error
				kind *souvenir.Error
			}{
				{func() error {
					_, err := f.store.AddMemories(f.ctx,
						[]souvenir.NewMemory{{Content: content}, {Content: "x", Related: []string{"nowhere"}}}, nil)
					return err
				}(), souvenir.ErrNotFound},
				{func() error {
					_, err := f.store.UpdateMemory(f.ctx, id, souvenir.MemoryUpdate{Content: &content, ExpectedRevision: 99})
					return err
				}(), souvenir.ErrConflict},
			} {
				f.fails("a write that must be refused", c.err, c.kind)
			}
		}
	})
	f.equal("memories", f.search(souvenir.Query{}).Total, 1+workers*3)
	f.equal("the one there before", f.get(id).Revision, 1)
}

func concurrentFirst(f *fixture) {
	together(func(worker int) {
		view := f.store.As(souvenir.Access{User: fmt.Sprint("user", worker%4)})
		if _, err := view.AddMemory(f.ctx, souvenir.NewMemory{Content: "first", ProjectName: "Apollo"}); err != nil {
			f.Errorf("AddMemory: %v", err)
		}
	})
	for user := range 4 {
		view := f.as(souvenir.Access{User: fmt.Sprint("user", user)})
		f.equal("memories", view.collection(souvenir.DefaultCollection).MemoryCount, workers/4)
		f.equal("in the project", view.search(souvenir.Query{ProjectName: "Apollo"}).Total, workers/4)
	}
}
