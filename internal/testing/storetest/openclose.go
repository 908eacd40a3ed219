package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/souvenir-ai/souvenir"
)

func openClose() concept {
	return concept{"OpenClose", []promise{
		{"a closed store says so in every method", openCloseClosed},
		{"closing twice is closing once", openCloseCloseTwice},
		{"closing waits for calls that run, and loses none that succeeded", openCloseCloseWaits},
		{"closing does not wait for an embedder that hangs in the background", openCloseCloseHanging},
		{"what was stored is there when the store is opened again", openCloseReopen},
		{"an ended context ends every call and leaves nothing behind", openCloseCancelled},
		{"a store of nothing answers every read", openCloseEmpty},
	}}
}

func openCloseClosed(f *fixture) {
	m := secret(f)
	view := f.store.As(souvenir.Access{User: "ann"})
	listing := f.store.Memories(f.ctx, souvenir.MemoryList{})
	f.close()
	calls := append(slices.Concat(f.calls(m.ID, "vault"), f.projectCalls(apollo), f.projectLists(), f.ruleCalls(apollo),
		f.contextCalls(apollo)),
		call{"Collections", false, func(s *souvenir.Store) error { _, err := s.Collections(f.ctx); return err }},
		call{"AddCollection", true, func(s *souvenir.Store) error {
			_, err := s.AddCollection(f.ctx, souvenir.NewCollection{Name: "more"})
			return err
		}},
		call{"EmbeddingStatus", false,
			func(s *souvenir.Store) error { _, err := s.Upkeep().EmbeddingStatus(f.ctx); return err }},
		call{"WaitEmbedded", false, func(s *souvenir.Store) error { return s.Upkeep().WaitEmbedded(f.ctx) }},
		call{"Search by time", false,
			func(s *souvenir.Store) error { _, err := s.Search(f.ctx, souvenir.Query{}); return err }},
		call{"a listing made before", false, func(*souvenir.Store) error {
			for _, err := range listing {
				return err
			}
			return nil
		}},
	)
	for _, c := range calls {
		f.fails(c.name+" of a closed store", c.do(f.store), souvenir.ErrClosed)
		f.fails(c.name+" of a view of a closed store", c.do(view), souvenir.ErrClosed)
	}
}

func openCloseCloseTwice(f *fixture) {
	f.addTexts("x")
	view := f.store.As(souvenir.Access{User: "ann"})
	for range 3 {
		f.check("Close", f.store.Close())
		f.check("Close of a view", view.Close())
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if err := f.reader.Close(); err != nil {
				f.Errorf("Close: %v", err)
			}
		})
	}
	group.Wait()
}

func openCloseCloseWaits(f *fixture) {
	var mu sync.Mutex
	stored := map[string]bool{}
	begun := make(chan struct{})
	var once sync.Once
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := 0; ; i++ {
				m, err := f.store.AddMemory(f.ctx, souvenir.NewMemory{Content: fmt.Sprint(worker, " ", i)})
				if errors.Is(err, souvenir.ErrClosed) {
					return
				}
				if err != nil {
					f.Errorf("AddMemory while the store closes: %v; want success or ErrClosed", err)
					return
				}
				mu.Lock()
				stored[m.ID] = true
				if len(stored) > 20 {
					once.Do(func() { close(begun) })
				}
				mu.Unlock()
			}
		})
	}
	<-begun
	f.check("Close", f.store.Close())
	group.Wait()
	f.reopen(f.embedder)
	got := map[string]bool{}
	for _, m := range f.list(souvenir.MemoryList{}) {
		got[m.ID] = true
	}
	f.equal("memories", got, stored)
}

func openCloseCloseHanging(f *fixture) {
	f.embedder.Break(errOffline)
	f.addTexts("a car")
	reached, release := f.embedder.Hold()
	defer release()
	f.wake()
	<-reached
	f.close() // must not wait for the embedder, which returns only when its context ends
}

func openCloseReopen(f *fixture) {
	m := secret(f)
	f.as(souvenir.Access{User: "ann"}).addTexts("hers")
	history, collection := f.revisions(m.ID), f.collection("vault")
	f.reopen(f.embedder)
	f.equal("the memory", f.get(m.ID), m)
	f.equal("its history", f.revisions(m.ID), history)
	f.equal("its collection", f.collection("vault"), collection)
	f.equal("found", len(f.find("secret")), 2)
	f.same("hers", f.as(souvenir.Access{User: "ann"}).find("hers"), "hers")
	f.rewrite(m.ID, "a car")
	f.same("changed", f.find("automobile"), "a car")
}

func openCloseCancelled(f *fixture) {
	m := secret(f)
	history := f.revisions(m.ID)
	ended, cancel := context.WithCancel(f.ctx)
	cancel()
	view := *f
	view.ctx = ended
	for _, c := range append(slices.Concat(view.calls(m.ID, "vault"), view.projectCalls(apollo), view.projectLists(),
		view.ruleCalls(apollo), view.contextCalls(apollo)),
		call{"Collections", false, func(s *souvenir.Store) error { _, err := s.Collections(ended); return err }},
		call{"AddCollection", true, func(s *souvenir.Store) error {
			_, err := s.AddCollection(ended, souvenir.NewCollection{Name: "more"})
			return err
		}},
		call{"AddMemories", true, func(s *souvenir.Store) error {
			_, err := s.AddMemories(ended, []souvenir.NewMemory{{Content: "x"}, {Content: "y"}}, nil)
			return err
		}},
		call{"EmbeddingStatus", false,
			func(s *souvenir.Store) error { _, err := s.Upkeep().EmbeddingStatus(ended); return err }},
		call{"WaitEmbedded", false, func(s *souvenir.Store) error { return s.Upkeep().WaitEmbedded(ended) }},
	) {
		if err := c.do(f.store); !errors.Is(err, context.Canceled) {
			f.Errorf("%s with an ended context: %v; want context.Canceled", c.name, err)
		}
	}
	f.equal("the memory", f.get(m.ID), m)
	f.equal("its history", f.revisions(m.ID), history)
	f.equal("memories", f.search(souvenir.Query{}).Total, 2)
	all, err := f.reader.Collections(f.ctx)
	f.check("Collections", err)
	f.equal("collections", len(all), 1)

	listed := 0
	ctx, cancel := context.WithCancel(f.ctx)
	timeline(f, 300)
	var last error
	for _, err := range f.reader.Memories(ctx, souvenir.MemoryList{}) {
		if last = err; err == nil {
			listed++
			cancel()
		}
	}
	if !errors.Is(last, context.Canceled) || listed >= 302 {
		f.Errorf("a listing with a canceled context lists %d memories and returns %v; want context.Canceled", listed, last)
	}
	cancel()
}

func openCloseEmpty(f *fixture) {
	seesNothing(f, "the first user")
	f.check("WaitEmbedded", f.store.Upkeep().WaitEmbedded(f.ctx))
	f.equal("groups", len(f.search(souvenir.Query{Text: "x"}).Groups()), 0)
	f.equal("a vector of the right size", f.search(souvenir.Query{Vector: make([]float32, 512)}).Total, 0)
}
