package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func listing() concept {
	return concept{"Listing", []promise{
		{"orders by time, then by id", listingOrders},
		{"goes on over many pages and skips nothing", listingPages},
		{"stays within what fits", listingFits},
		{"ends when the caller breaks off", listingBreak},
		{"lets the caller call other methods inside the loop", listingCalls},
		{"ends even if the loop changes what it lists", listingEnds},
		{"yields an error once, and ends", listingErrors},
	}}
}

// timeline stores memories at a few different times, several at each, and updates some of them.
func timeline(f *fixture, n int) {
	f.Helper()
	var batch []souvenir.NewMemory
	for i := range n {
		batch = append(batch, souvenir.NewMemory{Content: fmt.Sprint("memory ", i, " about a car"),
			Tags: []string{fmt.Sprint("t", i%3)}})
		if len(batch) == 7 || i == n-1 {
			_, err := f.store.AddMemories(f.ctx, batch, nil)
			f.check("AddMemories", err)
			f.clock.Pass(time.Second)
			batch = nil
		}
	}
	for i, m := range f.list(souvenir.MemoryList{}) {
		if i%11 == 0 {
			f.patch(m.ID, map[string]any{"touched": true})
		}
	}
}

// orders returns the four orders by time, each with the comparison that it promises.
func orders() map[souvenir.SortOrder]func(a, b souvenir.Memory) int {
	by := func(time func(souvenir.Memory) time.Time, sign int) func(a, b souvenir.Memory) int {
		return func(a, b souvenir.Memory) int {
			if c := sign * time(a).Compare(time(b)); c != 0 {
				return c
			}
			return compareIDs(a, b)
		}
	}
	created := func(m souvenir.Memory) time.Time { return m.CreatedAt }
	updated := func(m souvenir.Memory) time.Time { return m.UpdatedAt }
	return map[souvenir.SortOrder]func(a, b souvenir.Memory) int{
		souvenir.SortCreatedAsc: by(created, 1), souvenir.SortCreatedDesc: by(created, -1),
		souvenir.SortUpdatedAsc: by(updated, 1), souvenir.SortUpdatedDesc: by(updated, -1),
	}
}

func compareIDs(a, b souvenir.Memory) int {
	switch {
	case a.ID < b.ID:
		return -1
	case a.ID > b.ID:
		return 1
	}
	return 0
}

func listingOrders(f *fixture) {
	timeline(f, 60)
	for order, compare := range orders() {
		all := f.list(souvenir.MemoryList{Sort: order})
		f.equal("memories in order "+string(order), len(all), 60)
		if !slices.IsSortedFunc(all, compare) {
			f.Errorf("listed by %s: got %v, want them in this order", order, ids(all))
		}
	}
	f.equal("the order when none is named", ids(f.list(souvenir.MemoryList{})),
		ids(f.list(souvenir.MemoryList{Sort: souvenir.SortCreatedAsc})))
}

func listingPages(f *fixture) {
	timeline(f, 600)
	for order := range orders() {
		all := ids(f.list(souvenir.MemoryList{Sort: order}))
		slices.Sort(all)
		f.equal("distinct memories in order "+string(order), len(slices.Compact(all)), 600)
	}
	f.equal("of one tag", len(f.list(souvenir.MemoryList{Tags: []string{"t1"}})), 200)
}

func listingFits(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "notes"})
	f.add(souvenir.NewMemory{Content: "a", Tags: []string{"x"}})
	f.add(souvenir.NewMemory{Content: "b", Tags: []string{"x", "y"}, Collection: "notes",
		Importance: souvenir.ImportanceHigh})
	f.add(souvenir.NewMemory{Content: "c", Tags: []string{"z"}, Collection: "notes", ProjectID: "p"})
	for _, c := range []struct {
		list souvenir.MemoryList
		want []string
	}{
		{souvenir.MemoryList{}, []string{"a", "b", "c"}},
		{souvenir.MemoryList{Collections: []string{"notes"}}, []string{"b", "c"}},
		{souvenir.MemoryList{Collections: []string{"notes", "default"}}, []string{"a", "b", "c"}},
		{souvenir.MemoryList{ProjectID: "p"}, []string{"c"}},
		{souvenir.MemoryList{ProjectName: "p"}, []string{"c"}},
		{souvenir.MemoryList{Tags: []string{"y", "z"}}, []string{"b", "c"}},
		{souvenir.MemoryList{Tags: []string{"x"}, Collections: []string{"notes"}}, []string{"b"}},
		{souvenir.MemoryList{Filter: souvenir.Filter{"importance": "high"}}, []string{"b"}},
		{souvenir.MemoryList{Filter: souvenir.Filter{"importance": "high"}, Tags: []string{"z"}}, nil},
	} {
		got := texts(f.list(c.list))
		slices.Sort(got)
		same(f, fmt.Sprintf("%+v", c.list), got, c.want)
	}
}

func listingBreak(f *fixture) {
	timeline(f, 300)
	n := 0
	for _, err := range f.reader.Memories(f.ctx, souvenir.MemoryList{}) {
		f.check("Memories", err)
		if n++; n == 3 {
			break
		}
	}
	f.equal("memories before the break", n, 3)
	f.addTexts("the store is free")
}

func listingCalls(f *fixture) {
	timeline(f, 300)
	n := 0
	for m, err := range f.reader.Memories(f.ctx, souvenir.MemoryList{Sort: souvenir.SortCreatedAsc}) {
		f.check("Memories", err)
		if n++; n%50 != 0 {
			continue
		}
		f.get(m.ID)
		f.search(souvenir.Query{Text: "car", Limit: 1})
		f.patch(m.ID, map[string]any{"seen": n})
		f.delete(m.ID)
	}
	f.equal("memories listed", n, 300)
	f.equal("memories left", f.search(souvenir.Query{}).Total, 294)
}

func listingEnds(f *fixture) {
	timeline(f, 300)
	n := 0
	for m, err := range f.reader.Memories(f.ctx, souvenir.MemoryList{Sort: souvenir.SortUpdatedAsc}) {
		f.check("Memories", err)
		f.clock.Pass(time.Second)
		f.patch(m.ID, map[string]any{"seen": n})
		if n++; n > 700 {
			f.Fatalf("300 memories are listed without end when the loop updates each: got %v, want at most 700", n)
		}
	}
}

func listingErrors(f *fixture) {
	timeline(f, 8)
	for _, c := range []struct {
		name     string
		list     souvenir.MemoryList
		kind     *souvenir.Error
		argument string
	}{
		{"relevance", souvenir.MemoryList{Sort: souvenir.SortRelevance}, souvenir.ErrInvalid, "sort_order"},
		{"an unknown order", souvenir.MemoryList{Sort: "by_color"}, souvenir.ErrInvalid, "sort_order"},
		{"an unknown collection", souvenir.MemoryList{Collections: []string{"nowhere"}}, souvenir.ErrNotFound,
			"collection_name"},
		{"a bad filter", souvenir.MemoryList{Filter: souvenir.Filter{"state": 7}}, souvenir.ErrInvalid, "filter"},
	} {
		n := 0
		for m, err := range f.reader.Memories(f.ctx, c.list) {
			n++
			f.failsAt("Memories with "+c.name, err, c.kind, c.argument)
			f.equal("the memory beside the error", m, souvenir.Memory{})
			if err == nil {
				break
			}
		}
		f.equal("steps of a listing with "+c.name, n, 1)
	}
}
