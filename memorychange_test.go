package souvenir

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// Import, UpdateMemories and DeleteMemories end their transactions early if others want to write, and still finish.
func TestLongWorkBesideOtherWritersIsDoneInFull(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	from, store := openCopy(t), openCopy(t)
	const n = 600
	memories := make([]NewMemory, n)
	for i := range memories {
		memories[i] = NewMemory{Content: fmt.Sprint("memory ", i), Tags: []string{"imported"}}
	}
	if _, err := from.AddMemories(t.Context(), memories, nil); err != nil {
		t.Fatal(err)
	}
	var export bytes.Buffer
	if _, err := from.Upkeep().Export(t.Context(), &export, nil); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	var written atomic.Int64
	for w := range 4 {
		others.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if _, err := store.AddMemory(t.Context(), NewMemory{Content: fmt.Sprint(w, " other ", i)}); err != nil {
					t.Error(err)
					return
				}
				written.Add(1)
			}
		})
	}
	report, err := store.Upkeep().Import(t.Context(), &export, nil)
	if err != nil || report.Counts["memory"].Added != n {
		t.Errorf("import: got %v %v, want %d memories added", report, err, n)
	}
	imported := MemoryList{Tags: []string{"imported"}}
	state := "done"
	updated, err := store.UpdateMemories(t.Context(),
		MemoriesUpdate{MemoryList: imported, Change: MemoryUpdate{State: &state}})
	if err != nil || updated.Changed != n {
		t.Errorf("update: got %+v %v, want %d changed", updated, err, n)
	}
	deleted, err := store.DeleteMemories(t.Context(), MemoriesDeletion{MemoryList: imported})
	if err != nil || deleted.Changed != n {
		t.Errorf("deletion: got %+v %v, want %d deleted", deleted, err, n)
	}
	stop()
	others.Wait()
	if left := len(contentsOf(t, store)); int64(left) != written.Load() {
		t.Errorf("left: got %d, want the %d memories of the others", left, written.Load())
	}
}

// Transactions that end early neither skip a memory nor process one twice, whatever the order of the list.
func TestLongWorkInPartsReachesEachMemoryOnce(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	store := openCopy(t)
	const n = 1500 // more than are looked up at once
	memories, last := make([]NewMemory, n), time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range memories {
		memories[i] = NewMemory{Content: fmt.Sprint("memory ", i), CreatedAt: last.Add(-time.Duration(i) * time.Minute)}
	}
	if _, err := store.AddMemories(t.Context(), memories, nil); err != nil {
		t.Fatal(err)
	}
	b := bulk{store: store, list: MemoryList{}}
	if err := b.begin(t.Context(), true, false); err != nil {
		t.Fatal(err)
	}
	seen := map[int64]int{}
	for calls, done := 0, false; !done; calls++ {
		if calls > 20 {
			t.Fatalf("got %d parts, want at most 20", calls)
		}
		var err error
		done, err = b.next(t.Context(), 1000, func(_ db.Tx, _ viewer, found []kernel.Memory) (int, int, error) {
			part := min(270, len(found))
			for _, m := range found[:part] {
				seen[m.Row]++
			}
			return part, part, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != n || b.done.Changed != n {
		t.Errorf("got %d memories, %d times; want each of %d once", len(seen), b.done.Changed, n)
	}
}

// A collection of a shared project is invisible to its other members once it is empty, as one is after the first of
// several batches.
func TestManyMemoriesAreDeletedByCollectionsThatEmptyMeanwhile(t *testing.T) {
	for name, which := range map[string]MemoryList{
		"a filter":    {Filter: Filter{"collection_name": []string{"notes", "todo"}}},
		"collections": {Collections: []string{"notes", "todo"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := openWords(t, "", Options{})
			addAccount(t, s, "u-ann", "ann")
			addAccount(t, s, "u-ben", "ben")
			ann := s.As(Access{User: "u-ann"})
			for _, collection := range []string{"notes", "todo"} {
				mustAddCollection(t, ann, NewCollection{Name: collection})
				many := make([]NewMemory, 600)
				for i := range many {
					many[i] = NewMemory{Content: fmt.Sprint(collection, " ", i), ProjectID: "p", Collection: collection}
				}
				_, err := ann.AddMemories(t.Context(), many, nil)
				noError(t, err)
			}
			share(t, ann, "p", "ben", MemberWriter)
			got, err := s.As(Access{User: "u-ben"}).DeleteMemories(t.Context(), MemoriesDeletion{MemoryList: which})
			if err != nil || got.Changed != 1200 {
				t.Errorf("got %+v and %v, want 1200 deleted", got, err)
			}
		})
	}
}
