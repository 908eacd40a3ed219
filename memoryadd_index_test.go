package souvenir

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// interrupted is an engine that calls a function once, right after a write.
type interrupted struct {
	db.DB
	happens *func()
}

func (i interrupted) Write(ctx context.Context, fn func(db.Tx) error) error {
	happens := *i.happens
	*i.happens = nil
	err := i.DB.Write(ctx, fn)
	if happens != nil {
		happens()
	}
	return err
}

// manyNotes makes enough memories that the call that stores them also puts them into the index.
func manyNotes(g *rand.Rand) []NewMemory {
	word := func() string { return []string{"garden", "ferry", "weir", "heron", "letter", "渡し船"}[g.IntN(6)] }
	memories := make([]NewMemory, fewMemories+1+g.IntN(40))
	for i := range memories {
		m := NewMemory{Content: fmt.Sprintf("A note on the %s and the %s, number %d.", word(), word(), g.IntN(1000))}
		switch g.IntN(8) {
		case 0:
			m.Content = strings.Repeat(m.Content+"\n\n", 20) // several passages
		case 1:
			m.Tags = []string{word(), "a " + word()}
		case 2:
			m.ProjectName = fmt.Sprint("project ", g.IntN(2))
		case 3:
			m.Metadata = map[string]any{"conversation_id": "talk", "speaker": word()}
		case 4:
			m.Collection = "own"
			m.Embedding = wordVector(m.Content)
		case 5:
			m.Collection = "own" // without a vector
		case 6:
			m.Content = "..."
		}
		memories[i] = m
	}
	return memories
}

// TestWhatACallStoresIsInTheIndexAtOnce adds memories and checks that the index has them right after the call.
func TestWhatACallStoresIsInTheIndexAtOnce(t *testing.T) {
	for _, segmentAt := range []int{10, 1000} { // as segments, or one by one
		o := Options{Embedder: wordEmbedder("words-1")}
		if segmentAt == 10 {
			o.UserKeys.MasterKey = GenerateMasterKey()
		}
		s, err := Open(t.Context(), filepath.Join(t.TempDir(), "store.db"), &o)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		mustAddCollection(t, s, NewCollection{Name: "own", OwnVectors: true, VectorSize: len(wordVector("x"))})
		s.worker.Stop()
		s.index.SegmentAt = segmentAt
		g := rand.New(rand.NewPCG(7, 38))
		for range 3 {
			if _, err := s.AddMemories(t.Context(), manyNotes(g), nil); err != nil {
				t.Fatal(err)
			}
			if !inMemory(t, s) { // from then on the index holds everything
				t.Fatal("the index does not hold the memories")
			}
		}
		s.index.AtOnce = 1 // a search itself reads nothing
		for range 3 {
			more := slices.Concat(manyNotes(g), manyNotes(g), manyNotes(g))
			if _, err := s.AddMemories(t.Context(), more, nil); err != nil {
				t.Fatal(err)
			}
			if !inMemory(t, s) {
				t.Fatalf("right after a call stored %d memories searches use the database, want the index", len(more))
			}
		}
		sameFound(t, s, reopen(t, s, o))
	}
}

// TestWhatCallsStoreIsIndexedAsItIsRead compares a store whose index gets memories from the calls that add them with
// one whose index reads the texts: after calls, beside other processes, with a write that fails and one that runs
// twice.
func TestWhatCallsStoreIsIndexedAsItIsRead(t *testing.T) {
	longtest.Only(t)
	for seed := range longtest.Size(4, 2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			g := rand.New(rand.NewPCG(uint64(seed), 39))
			path := filepath.Join(t.TempDir(), "store.db")
			var happens func()
			s := openThrough(t, path, func(engine db.DB) db.DB {
				if seed%2 == 1 {
					engine = rerunning{engine}
				}
				return interrupted{engine, &happens}
			})
			s.worker.Stop() // first, so that no write of the worker calls happens
			s.index.SegmentAt = 30
			mustAddCollection(t, s, NewCollection{Name: "own", OwnVectors: true, VectorSize: len(wordVector("x"))})
			texts := reopen(t, s, Options{})
			texts.worker.Stop()
			for range longtest.Size(20, 10) {
				memories := manyNotes(g)
				if err := storeSomehow(t, g, s, texts, memories, &happens); err != nil {
					t.Fatal(err)
				}
				happens = nil
				sameFound(t, s, texts)
			}
			checkConsistency(t, s)
		})
	}
}

// sameFound checks that two stores of one file find the same.
func sameFound(t *testing.T, a, b *Store) {
	t.Helper()
	for _, text := range []string{"a note on the heron", "ferry", "渡し船 letter"} {
		q := Query{Text: text, Limit: MaxLimit}
		first, err := a.Search(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		second, err := b.Search(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		sameHits(t, first, second)
	}
}

// storeSomehow stores memories in one of several ways. other is another store of the same file.
func storeSomehow(t *testing.T, g *rand.Rand, s, other *Store, memories []NewMemory, happens *func()) error {
	t.Helper()
	ctx := t.Context()
	switch g.IntN(6) {
	case 0: // the write fails
		memories = append(memories, NewMemory{Content: "first", Key: "two"}, NewMemory{Content: "second", Key: "two"})
		if _, err := s.AddMemories(ctx, memories, nil); !errors.Is(err, ErrConflict) {
			t.Errorf("two memories with one key: got %v, want ErrConflict", err)
		}
		return nil
	case 1: // the call itself changes what it has stored
		for i := range memories {
			memories[i].Key, memories[i].Collection, memories[i].Embedding = fmt.Sprint("key ", i%7), "", nil
		}
		_, err := s.PutMemories(ctx, memories, nil)
		return err
	case 2: // undone by an enclosing transaction
		failed := errors.New("failed")
		err := s.Transaction(ctx, func(ctx context.Context) error {
			_, err := s.AddMemories(ctx, memories, nil)
			return errors.Join(err, failed)
		})
		if !errors.Is(err, failed) {
			t.Errorf("a failed transaction: got %v, want its error", err)
		}
		return nil
	case 3: // another process changes it before the call returns
		*happens = func() {
			for range 2 {
				if err := randomChange(t, g, other); err != nil {
					t.Error(err)
				}
			}
			text := "A letter on the ferry, changed."
			if _, err := other.UpdateMemory(ctx, lastOf(t, other), MemoryUpdate{Content: &text}); err != nil {
				t.Error(err)
			}
		}
	case 4:
		if err := randomChange(t, g, other); err != nil {
			return err
		}
	}
	_, err := s.AddMemories(ctx, memories, nil)
	return err
}

// lastOf returns the memory with the highest row id.
func lastOf(t *testing.T, s *Store) (id string) {
	t.Helper()
	err := s.db.Read(t.Context(), func(tx db.Tx) error {
		return tx.QueryRow(`SELECT uid FROM memory ORDER BY id DESC LIMIT 1`).Scan(&id)
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}
