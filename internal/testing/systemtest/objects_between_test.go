package systemtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/files/objects/objectstest"
	"github.com/souvenir-ai/souvenir/internal/testing/storetest"
)

// Objects and several stores: exports, copies, and two stores on one database.

func transferredObjects(s *shelf) {
	content := objectsOf("exported", 40)
	f := mustAddFile(s, s.store, NewFile{Filename: "large.bin"}, content)
	small := mustAddFile(s, s.store, NewFile{}, "small")
	empty := mustAddFile(s, s.store, NewFile{}, "")
	var export bytes.Buffer
	if _, err := s.store.Upkeep().Export(s.Context(), &export, nil); err != nil {
		s.Fatal(err)
	}
	for name, o := range map[string]Options{"into the database": {}, "into objects": {Objects: &objectstest.Memory{}}} {
		target := &shelf{T: s.T, in: emptyInFile(s), clock: &storetest.Clock{}}
		store := target.open(o)
		report, err := store.Upkeep().Import(s.Context(), bytes.NewReader(export.Bytes()), nil)
		if err != nil || report.Counts["file"].Added != 3 {
			s.Errorf("%s: got %+v, %v, want 3 files", name, report, err)
		}
		for id, want := range map[string]string{f.ID: content, small.ID: "small", empty.ID: ""} {
			s.wantContent(store, id, want)
		}
		target.wantSound(store)
		if m, in := o.Objects.(*objectstest.Memory); in && len(m.Keys()) != 42 {
			s.Errorf("%s: got %d objects, want 42", name, len(m.Keys()))
		}
		var again bytes.Buffer
		if _, err := store.Upkeep().Export(s.Context(), &again, nil); err != nil || again.Len() != export.Len() {
			s.Errorf("%s: its export has %d bytes and %v, want %d as before", name, again.Len(), err, export.Len())
		}
	}
	failing := &objectstest.Memory{}
	var puts atomic.Int64
	failing.OnPut(func(context.Context, string) error {
		if puts.Add(1) > 20 {
			return errors.New("full")
		}
		return nil
	})
	target := &shelf{T: s.T, in: emptyInFile(s), storage: failing, clock: &storetest.Clock{}}
	store := target.open(Options{Objects: failing})
	if _, err := store.Upkeep().Import(s.Context(), &export, nil); !errors.Is(err, ErrBusy) {
		s.Errorf("an import whose storage fails: got %v, want %v", err, ErrBusy)
	}
	target.purge(store)
	target.wantObjects(0)
	target.wantSound(store)
}

func exportBesideErasure(s *shelf) {
	f := mustAddFile(s, s.store, NewFile{}, objectsOf("erased", 3))
	var once sync.Once
	s.storage.OnGet(func(context.Context, string) error {
		once.Do(func() {
			if err := s.store.DeleteFile(s.Context(), f.ID, &DeletionOptions{Erase: true}); err != nil {
				s.Error(err)
			}
		})
		return nil
	})
	if _, err := s.store.Upkeep().Export(s.Context(), io.Discard, nil); !errors.Is(err, ErrConflict) {
		s.Errorf("an export of a file that is erased meanwhile: got %v, want %v", err, ErrConflict)
	}
	s.wantObjects(0)
	f = mustAddFile(s, s.store, NewFile{}, objectsOf("erased", 3))
	once = sync.Once{}
	if got, err := s.read(s.store, f.ID); !errors.Is(err, ErrNotFound) {
		s.Errorf("reading a file that is erased meanwhile: got %d bytes and %v, want %v", len(got), err, ErrNotFound)
	}
	f = mustAddFile(s, s.store, NewFile{}, objectsOf("erased", 3))
	once = sync.Once{}
	s.wantSound(s.store)
	s.wantObjects(0)
}

func twoStoresOfObjects(s *shelf) {
	stores := []*Store{s.store, s.open(Options{Objects: s.storage})}
	var all sync.WaitGroup
	for i, store := range stores {
		all.Go(func() {
			for n := range 12 {
				f, err := store.AddFile(s.Context(), NewFile{}, strings.NewReader(objectsOf(fmt.Sprint(i, n), 2)))
				if err == nil && n%2 == 0 {
					err = stores[1-i].DeleteFile(s.Context(), f.ID, &DeletionOptions{Erase: true})
				}
				if err == nil && n%4 == 0 {
					_, err = store.Upkeep().Purge(s.Context(), nil)
				}
				if err != nil {
					s.Errorf("store %d, file %d: %v", i, n, err)
				}
			}
		})
	}
	all.Wait()
	s.purge(s.store)
	s.wantObjects(12 * 3)
	s.wantSound(stores[1])
}

func copiesOfTheFile(s *shelf) {
	in, isFile := s.in.(file)
	if !isFile {
		s.Skip("only files have backups of their own, and are recovered")
	}
	content := objectsOf("kept", 3)
	f := mustAddFile(s, s.store, NewFile{}, content)
	backup, recovered := in.path+".backup", in.path+".recovered"
	if err := s.store.Upkeep().Backup(s.Context(), backup, nil); err != nil {
		s.Fatal(err)
	}
	if err := s.store.Close(); err != nil {
		s.Fatal(err)
	}
	if _, err := Recover(s.Context(), in.path, recovered, nil); err != nil {
		s.Fatal(err)
	}
	for _, path := range []string{backup, recovered} {
		s.in = file{path}
		store := s.open(Options{Objects: s.storage})
		s.wantContent(store, f.ID, content)
		s.wantSound(store)
		if err := store.Upkeep().AdoptObjects(s.Context()); err != nil {
			s.Fatal(err)
		}
		s.purge(store)
		if stats, err := store.Upkeep().Stats(s.Context()); err != nil || stats.Objects != 4 ||
			stats.ObjectBytes != int64(len(content)) {
			s.Errorf("%s: got %+v, %v, want 4 objects with %d bytes", path, stats, err, len(content))
		}
	}
	s.wantObjects(4)
}
