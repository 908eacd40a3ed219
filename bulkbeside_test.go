package souvenir

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// Import, UpdateMemories and DeleteMemories end their transactions early while others write, and still do all of it.
func TestLongWorkBesideOtherWritersIsDoneInFull(t *testing.T) {
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
	imported := List{Tags: []string{"imported"}}
	state := "done"
	updated, err := store.UpdateMemories(t.Context(),
		MemoriesUpdate{List: imported, Change: MemoryUpdate{State: &state}})
	if err != nil || updated.Changed != n {
		t.Errorf("update: got %+v %v, want %d changed", updated, err, n)
	}
	deleted, err := store.DeleteMemories(t.Context(), MemoriesDeletion{List: imported})
	if err != nil || deleted.Changed != n {
		t.Errorf("deletion: got %+v %v, want %d deleted", deleted, err, n)
	}
	stop()
	others.Wait()
	if left := len(contentsOf(t, store)); int64(left) != written.Load() {
		t.Errorf("left: got %d, want the %d memories of the others", left, written.Load())
	}
}
