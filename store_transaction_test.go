package souvenir

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// notInTransactions are the methods that cannot run in a transaction, besides most of Accounts and Upkeep.
var notInTransactions = []string{"AddFile", "DeleteProject", "DeleteCollection", "Empty", "WaitEmbedded",
	"WaitIndexed"}

// Every method either works within a transaction or says that it cannot. None deadlocks, and an undone transaction
// leaves nothing of any of them.
func TestMethodsWorkInTransactionsOrRefuse(t *testing.T) {
	st := settle(t, openWords(t, filepath.Join(t.TempDir(), "settled.db"), Options{Changeable: settingNames}))
	undone := errors.New("undone")
	calls := st.calls()
	delete(calls, "RecordActivity") // written in the background, whatever the transaction's outcome
	before := rowsOf(t, st.store)
	methods := methodsOf(st.store)
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		var failed error
		err := st.store.Transaction(t.Context(), func(ctx context.Context) error {
			failed = calls[name](ctx)
			return undone
		})
		if !errors.Is(err, undone) {
			t.Errorf("the transaction with %s gives %v; want %v", name, err, undone)
		}
		refused := errors.Is(failed, ErrInvalid) && strings.Contains(failed.Error(), "outside of Transaction")
		_, ofStore := storeMethods(st.store)[name]
		want := slices.Contains(notInTransactions, name)
		if ofStore && refused != want {
			t.Errorf("%s in a transaction gives %v; refused: got %v, want %v", name, failed, refused, want)
		}
		if failed != nil && !refused {
			t.Errorf("%s in a transaction gives %v; want success, or that it cannot be part of one", name, failed)
		}
		if !methods[name].IsValid() && name != "Search by time" {
			t.Errorf("%s is no method, want one", name)
		}
	}
	if after := rowsOf(t, st.store); after != before {
		t.Errorf("something remains of transactions that were undone: got %v, want no change", after)
	}
}

// storeMethods returns the methods of a store and of its conversations, trash and insights.
func storeMethods(s *Store) map[string]bool {
	names := map[string]bool{}
	all := methodsOf(s)
	for name := range all {
		names[name] = true
	}
	for _, handle := range []any{s.Accounts(), s.Upkeep()} {
		for _, name := range methodNames(handle) {
			if name != "WaitEmbedded" {
				delete(names, name)
			}
		}
	}
	return names
}

// slowEmbedder counts its calls, as if each were a request over the network.
type slowEmbedder struct {
	Embedder
	calls *atomic.Int32
}

func (e slowEmbedder) Embed(ctx context.Context, p Purpose, texts []string) ([][]float32, error) {
	e.calls.Add(1)
	return e.Embedder.Embed(ctx, p, texts)
}

func TestNoOtherEmbedderRunsWithinATransaction(t *testing.T) {
	var calls atomic.Int32
	s := openWords(t, filepath.Join(t.TempDir(), "slow.db"),
		Options{Embedder: slowEmbedder{wordEmbedder("slow-1"), &calls}})
	var stored StoredMemory
	err := s.Transaction(t.Context(), func(ctx context.Context) (err error) {
		if stored, err = s.AddMemory(ctx, NewMemory{Content: "a copper kettle"}); err != nil {
			return err
		}
		found, err := s.Search(ctx, Query{Text: "kettle"})
		if calls.Load() != 0 {
			t.Errorf("the embedder is called %d times within the transaction; want none", calls.Load())
		}
		if err == nil && (len(found.Hits) != 1 || len(found.Warnings) == 0) {
			t.Errorf("the search finds %+v with the warnings %q; want the memory, and a warning", found.Hits, found.Warnings)
		}
		return err
	})
	if err != nil || stored.Indexed || len(stored.Warnings) == 0 {
		t.Fatalf("stored %+v, %v; want it not yet indexed, and a warning", stored, err)
	}
	if err := s.Upkeep().WaitEmbedded(t.Context()); err != nil || calls.Load() == 0 {
		t.Errorf("after the end: %v and %d calls of the embedder; want some", err, calls.Load())
	}
}

func TestTheBuiltInEmbedderRunsWithinATransaction(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "builtin.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var stored StoredMemory
	err = s.Transaction(t.Context(), func(ctx context.Context) (err error) {
		stored, err = s.AddMemory(ctx, NewMemory{Content: "a copper kettle"})
		return err
	})
	if err != nil || !stored.Indexed || len(stored.Warnings) != 0 {
		t.Errorf("stored %+v, %v; want it indexed, without a warning", stored, err)
	}
}

func TestHooksLearnHowATransactionEnded(t *testing.T) {
	var ended []error
	inside := false
	s := openHooks(t, observing(func(o Operation, r OperationResult) {
		if inside && o.Kind != OperationSearch {
			t.Errorf("After of %s is called within the transaction, want %v", o.Method, OperationSearch)
		}
		ended = append(ended, r.Err)
	}))
	undone := errors.New("undone")
	for _, end := range []error{nil, undone} {
		ended = nil
		err := s.Transaction(t.Context(), func(ctx context.Context) error {
			inside = true
			defer func() { inside = false }()
			if _, err := s.AddMemory(ctx, NewMemory{Content: "one"}); err != nil {
				return err
			}
			if _, err := s.AddMemory(ctx, NewMemory{Content: "two"}); err != nil {
				return err
			}
			return end
		})
		if !errors.Is(err, end) || len(ended) != 2 || !errors.Is(ended[0], end) || !errors.Is(ended[1], end) {
			t.Errorf("a transaction that gives %v calls After with %v; want twice %v", err, ended, end)
		}
	}
}

func TestATransactionThatRunsAgainIsOne(t *testing.T) {
	s := openRerunning(t, filepath.Join(t.TempDir(), "again.db"))
	runs := 0
	err := s.Transaction(t.Context(), func(ctx context.Context) error {
		runs++
		if _, err := s.AddMemory(ctx, NewMemory{Content: "one"}); err != nil {
			return err
		}
		_, err := s.PutMemory(ctx, NewMemory{Key: "k", Content: "two"})
		return err
	})
	n := 0
	for _, failed := range s.Memories(t.Context(), MemoryList{}) {
		if n++; failed != nil {
			t.Fatalf("got %v, want nil", failed)
		}
	}
	if err != nil || runs != 2 || n != 2 {
		t.Errorf("got %v, %d runs and %d memories; want 2 and 2", err, runs, n)
	}
}

func TestManyMemoriesAreDeletedInSmallPartsOfATransaction(t *testing.T) {
	s := openWords(t, "", Options{})
	memories := make([]NewMemory, 100)
	for i := range memories {
		memories[i].Content = fmt.Sprint("memory ", i)
	}
	if _, err := s.AddMemories(t.Context(), memories, nil); err != nil {
		t.Fatal(err)
	}
	var parts []int
	err := s.Transaction(t.Context(), func(ctx context.Context) error {
		parts = nil
		done, err := s.DeleteMemories(ctx, MemoriesDeletion{All: true,
			Progress: func(_ string, done, _ int) { parts = append(parts, done) }})
		if err == nil && done.Changed != len(memories) {
			t.Errorf("got %+v, want all %d deleted", done, len(memories))
		}
		return err
	})
	before := 0
	for _, done := range parts { // a part is smaller if other writers wait
		if done <= before || done > before+32 {
			t.Errorf("got %v after the parts, want at most 32 in each: SQLite's time grows with the square of a part", parts)
		}
		before = done
	}
	if err != nil || before != len(memories) {
		t.Errorf("got %d deleted and %v, want %d and nil", before, err, len(memories))
	}
}
