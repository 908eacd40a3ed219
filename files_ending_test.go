package souvenir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// How calls about files end early.

// fileCalls returns a call with valid arguments of every method that works on files.
func fileCalls(s *Store, id string) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"AddFile": func(ctx context.Context) error {
			_, err := s.AddFile(ctx, NewFile{}, strings.NewReader("content"))
			return err
		},
		"DeleteFile": func(ctx context.Context) error { return s.DeleteFile(ctx, id, nil) },
		"erase":      func(ctx context.Context) error { return s.DeleteFile(ctx, id, &DeletionOptions{Erase: true}) },
		"Files": func(ctx context.Context) error {
			for _, err := range s.Files(ctx, FileList{}) {
				return err
			}
			return nil
		},
		"GetFile":  func(ctx context.Context) error { _, err := s.GetFile(ctx, id); return err },
		"OpenFile": func(ctx context.Context) error { _, err := s.OpenFile(ctx, id); return err },
		"UpdateFile": func(ctx context.Context) error {
			_, err := s.UpdateFile(ctx, id, FileUpdate{Description: content("changed")})
			return err
		},
	}
}

func TestFileCallsEndWithTheirContext(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "files.db"), Options{})
	f := mustAddFile(t, s, NewFile{}, "content")
	before := rowsOf(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range fileCalls(s, f.ID) {
		if err := call(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s gives %v, want context.Canceled", name, err)
		}
	}
	if rowsOf(t, s) != before {
		t.Error("a cancelled call left something behind, want no change")
	}
}

func TestFileCallsOfAClosedStore(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "files.db"), Options{})
	f := mustAddFile(t, s, NewFile{}, "content")
	r, err := s.OpenFile(t.Context(), f.ID)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.AddFile(t.Context(), NewFile{}, io.MultiReader(zeros(5<<20), hook(func() { _ = s.Close() }), zeros(5<<20)))
	if !errors.Is(err, ErrClosed) {
		t.Errorf("a file that arrives while the store is closed: %v, want ErrClosed", err)
	}
	for name, call := range fileCalls(s, f.ID) {
		if err := call(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("%s gives %v, want ErrClosed", name, err)
		}
	}
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, ErrClosed) {
		t.Errorf("reading gives %v, want ErrClosed", err)
	}
	if _, err := s.purgeFiles(t.Context(), s.clock()); !errors.Is(err, ErrClosed) {
		t.Errorf("purging gives %v, want ErrClosed", err)
	}
}

func TestFileCallsOfAReadOnlyStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "files.db")
	f := mustAddFile(t, openWords(t, path, Options{}), NewFile{}, "content")
	s := openWords(t, path, Options{ReadOnly: true})
	writes := map[string]bool{"AddFile": true, "DeleteFile": true, "erase": true, "UpdateFile": true}
	for name, call := range fileCalls(s, f.ID) {
		if err := call(t.Context()); writes[name] && !errors.Is(err, ErrReadOnly) || !writes[name] && err != nil {
			t.Errorf("%s gives %v, want ErrReadOnly from calls that write and no error from others", name, err)
		}
	}
}

func TestFilesOnAFullDisk(t *testing.T) {
	longtest.Only(t)
	s, room := openWithFewPages(t)
	_, err := s.AddFile(t.Context(), NewFile{}, zeros(9<<20))
	if !errors.Is(err, ErrFull) || filesHeld(t, s) != [3]int{} {
		t.Errorf("on a full disk: %v; there is %v; want ErrFull and no rows", err, filesHeld(t, s))
	}
	room()
	mustAddFile(t, s, NewFile{}, strings.Repeat("x", 9<<20))
}

// A memory may be deleted while a file for it arrives.
func TestMemoryThatIsDeletedWhileItsFileArrives(t *testing.T) {
	longtest.Only(t)
	s := openWords(t, filepath.Join(t.TempDir(), "files.db"), Options{})
	for _, size := range []int64{10, 9 << 20} {
		m := mustAdd(t, s, NewMemory{Content: "soon gone"})
		remove := hook(func() {
			if err := s.DeleteMemory(t.Context(), m.ID, nil); err != nil {
				t.Error(err)
			}
		})
		_, err := s.AddFile(t.Context(), NewFile{MemoryID: m.ID}, io.MultiReader(zeros(size), remove))
		if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), m.ID) || filesHeld(t, s) != [3]int{} {
			t.Errorf("with %d bytes: %v; there is %v; want ErrNotFound with the id, and no rows", size, err, filesHeld(t, s))
		}
	}
}

// A file whose rows cannot be removed now gives an error, and purgeFiles removes it later.
func TestDamagedFileRows(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "files.db"), Options{})
	m := mustAdd(t, s, NewMemory{Content: "x"})
	f := mustAddFile(t, s, NewFile{MemoryID: m.ID}, "content")
	mustExec(t, s, `ALTER TABLE file_chunk RENAME TO elsewhere`)
	for _, name := range []string{"AddFile", "erase", "OpenFile"} {
		if err := fileCalls(s, f.ID)[name](t.Context()); !errors.Is(err, ErrInternal) {
			t.Errorf("without chunks, %s gives %v, want ErrInternal", name, err)
		}
	}
	mustExec(t, s, `ALTER TABLE elsewhere RENAME TO file_chunk`)
	mustExec(t, s, `ALTER TABLE file_tag RENAME TO elsewhere`)
	for _, name := range []string{"AddFile", "UpdateFile", "GetFile"} {
		if err := fileCalls(s, f.ID)[name](t.Context()); !errors.Is(err, ErrInternal) {
			t.Errorf("without tags, %s gives %v, want ErrInternal", name, err)
		}
	}
	mustExec(t, s, `ALTER TABLE elsewhere RENAME TO file_tag`)
	if f, err := s.GetFile(t.Context(), f.ID); err != nil || f.MemoryID != m.ID || filesHeld(t, s) != [3]int{1, 1, 0} {
		t.Errorf("afterwards: %+v, %v, with %v rows; want the file of the memory, in one row each", f, err,
			filesHeld(t, s))
	}
}

// If the bytes cannot be removed, the file is still gone. The bytes are removed later.
func TestPurgeRemovesLeftoverFileBytes(t *testing.T) {
	longtest.Only(t)
	s := openWords(t, filepath.Join(t.TempDir(), "files.db"), Options{})
	f := mustAddFile(t, s, NewFile{}, strings.Repeat("x", (kernel.DeleteBatch+3)*kernel.ChunkSize))
	err := s.db.Write(t.Context(), func(tx db.Tx) error {
		return tx.(*sqlite.Tx).ExecScript(fmt.Sprintf(
			`CREATE TRIGGER stuck BEFORE DELETE ON file_chunk WHEN OLD.id & 0xffffff >= %d OR OLD.id >> %d > 1
			BEGIN SELECT raise(ABORT, 'stuck'); END;`, kernel.DeleteBatch, kernel.ChunkBits))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteFile(t.Context(), f.ID, &DeletionOptions{Erase: true}); err != nil {
		t.Error(err)
	}
	if names := fileNames(t, s, FileList{}); len(names) != 0 {
		t.Errorf("still there: %v, want none", names)
	}
	if _, err := s.AddFile(t.Context(), NewFile{Size: 6 << 20}, zeros(5<<20)); !errors.Is(err, ErrInvalid) {
		t.Errorf("too short a file: %v, want ErrInvalid", err)
	}
	if n, err := s.purgeFiles(t.Context(), s.clock()); n != 0 || err == nil {
		t.Errorf("%d purged, %v; want 0", n, err)
	}
	if held := filesHeld(t, s); held != [3]int{2, 3 + 16, 0} {
		t.Errorf("the store holds %v, want %v", held, [3]int{2, 3 + 16, 0})
	}
	mustExec(t, s, `DROP TRIGGER stuck`)
	if n, err := s.purgeFiles(t.Context(), s.clock()); n != 2 || err != nil {
		t.Errorf("%d purged, %v; want 2", n, err)
	}
	if held := filesHeld(t, s); held != [3]int{} {
		t.Errorf("the store holds %v, want %v", held, [3]int{})
	}
}

// unansweredFile is an engine whose first Write that stores a part of a file gets no answer to its commit.
type unansweredFile struct {
	db.DB
	once *atomic.Bool
}

func (d unansweredFile) Write(ctx context.Context, fn func(db.Tx) error) error {
	err := d.DB.Write(ctx, fn)
	if err != nil || d.once.Load() {
		return err
	}
	arriving := 0
	err = d.DB.Read(ctx, func(tx db.Tx) error {
		return tx.QueryRow(`SELECT count(*) FROM file WHERE state = 'arriving'`).Scan(&arriving)
	})
	if arriving > 0 && d.once.CompareAndSwap(false, true) {
		return db.ErrOutcomeUnknown
	}
	return err
}

func TestAFileWhoseFirstPartGotNoAnswerLeavesNothing(t *testing.T) {
	once := new(atomic.Bool)
	s := openThrough(t, filepath.Join(t.TempDir(), "files.db"), func(engine db.DB) db.DB {
		return unansweredFile{engine, once}
	})
	_, err := s.AddFile(t.Context(), NewFile{Filename: "large"}, zeros(10<<20))
	if !errors.Is(err, ErrOutcomeUnknown) || !once.Load() {
		t.Fatalf("got %v, want %v", err, ErrOutcomeUnknown)
	}
	if held := filesHeld(t, s); held != [3]int{} {
		t.Errorf("the store holds %v, want no file, chunk or tag", held)
	}
}
