package systemtest

import (
	"context"
	"errors"
	"strings"
	"testing"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/files/objects/objectstest"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// fullBucket is a bucket that can become full. Then objects can only be deleted.
type fullBucket struct {
	*objectstest.Memory
	full bool
}

func (b *fullBucket) Put(ctx context.Context, key string, data []byte) error {
	if b.full {
		return errors.New("the bucket is full")
	}
	return b.Memory.Put(ctx, key, data)
}

// However often a database fails to change its mark, the existing mark still identifies it as the bucket's database.
func TestAFullBucketKeepsItsDatabase(t *testing.T) {
	onEachEngine(t, func(t *testing.T, empty database) {
		s := newShelf(t, empty)
		if err := s.store.Close(); err != nil {
			t.Fatal(err)
		}
		bucket := &fullBucket{Memory: s.storage}
		for range longtest.Size(12, 4) { // a process's first mark is due at once
			store := s.open(Options{Objects: bucket})
			s.purge(store)
			bucket.full = true
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
		}
		bucket.full = false
		s.purge(s.open(Options{Objects: bucket}))
	})
}

// A copy of a database deletes no object that the original may need, nor does the original once the copy has adopted
// the objects.
func TestACopyOfADatabaseDeletesNoObjects(t *testing.T) {
	onEachEngine(t, func(t *testing.T, empty database) {
		s := newShelf(t, empty)
		file := func(name, content string) string {
			f, err := s.store.AddFile(t.Context(), NewFile{Filename: name}, strings.NewReader(content))
			if err != nil {
				t.Fatal(err)
			}
			return f.ID
		}
		content, kept := objectsOf("both have it", 2), objectsOf("the copy keeps it", 2)
		erased, remaining := file("a.txt", content), file("b.txt", kept)
		s.purge(s.store) // sets the first mark
		reopen := func(in database, store *Store) *Store {
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			s.in = in
			return s.open(Options{Objects: s.storage})
		}
		original := s.in
		if err := s.store.Close(); err != nil {
			t.Fatal(err)
		}
		another := original.copied(t)
		s.store = s.open(Options{Objects: s.storage})
		s.purge(s.store) // the copy does not know this file
		refused := func(where string, store *Store, id string) {
			t.Helper()
			if err := store.DeleteFile(t.Context(), id, &DeletionOptions{Erase: true}); err != nil {
				t.Errorf("%s: DeleteFile: got %v, want no error", where, err)
			}
			_, err := store.Upkeep().Purge(t.Context(), nil)
			if !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "souvenir files adopt") {
				t.Errorf("%s: Purge: got %v, want ErrConflict and how to go on", where, err)
			}
		}

		s.in = another
		copied := s.open(Options{Objects: s.storage})
		refused("the copy", copied, erased)
		s.wantContent(s.store, erased, content)
		s.wantSound(s.store)

		if err := copied.Upkeep().AdoptObjects(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.store = reopen(original, s.store)
		refused("the original after the copy was adopted", s.store, remaining)
		s.wantContent(copied, remaining, kept)
		if err := copied.DeleteFile(t.Context(), remaining, &DeletionOptions{Erase: true}); err != nil {
			t.Fatal(err)
		}
		s.purge(copied)
		s.wantObjects(0)
	})
}
