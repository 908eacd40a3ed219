package systemtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/files/objects/objectstest"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/internal/testing/storetest"
)

// Files whose content is in object storage.

// shelf is a store with object storage.
type shelf struct {
	*testing.T
	in      database
	storage *objectstest.Memory
	clock   *storetest.Clock
	store   *Store
}

func newShelf(t *testing.T, empty database) *shelf {
	s := &shelf{T: t, in: empty.copied(t), storage: &objectstest.Memory{}, clock: &storetest.Clock{}}
	s.store = s.open(Options{Objects: s.storage})
	return s
}

// open opens the store again.
func (s *shelf) open(o Options) *Store {
	s.Helper()
	o.Embedder, o.Now = storetest.Words{}, s.clock.Now
	store, err := s.in.open(o)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = store.Close() })
	know(s, store, s.in)
	return store
}

// objectsOf returns content of n objects, all different, the last one short.
func objectsOf(seed string, n int) string {
	size := n * (256 << 10)
	return strings.Repeat(seed+"\x00", size/len(seed))[:size] + "end"
}

func (s *shelf) read(store *Store, id string) (string, error) {
	r, err := store.OpenFile(s.Context(), id)
	if err != nil {
		return "", err
	}
	content, err := io.ReadAll(r)
	return string(content), err
}

// wantContent fails the test unless a file has this content.
func (s *shelf) wantContent(store *Store, id, want string) {
	s.Helper()
	if got, err := s.read(store, id); err != nil || got != want {
		s.Errorf("content of the file: got %d bytes and %v, want the %d that were stored", len(got), err, len(want))
	}
}

// wantObjects fails the test unless the storage has this many objects.
func (s *shelf) wantObjects(want int) {
	s.Helper()
	if got := len(s.storage.Keys()); got != want {
		s.Errorf("objects in the storage: got %d, want %d", got, want)
	}
}

// wantObjectsSoon waits until background work leaves this many objects in the storage.
func (s *shelf) wantObjectsSoon(want int) {
	s.Helper()
	for began := time.Now(); len(s.storage.Keys()) != want; time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > 20*time.Second {
			s.Fatalf("objects in the storage after 20 s: got %d, want %d", len(s.storage.Keys()), want)
		}
	}
}

// wantSound fails the test unless a check finds nothing.
func (s *shelf) wantSound(store *Store) {
	s.Helper()
	report, err := store.Upkeep().Check(s.Context(), nil)
	if err != nil || !report.OK {
		s.Errorf("check: got %+v, %v, want no finding", report.Findings, err)
	}
}

func (s *shelf) purge(store *Store) PurgeReport {
	s.Helper()
	report, err := store.Upkeep().Purge(s.Context(), nil)
	if err != nil {
		s.Errorf("Purge: got %v, want no error", err)
	}
	return report
}

func TestObjects(t *testing.T) {
	onEachEngine(t, func(t *testing.T, empty database) {
		tests := map[string]func(*shelf){
			"contents are objects, and no key says whose":           contentsAreObjects,
			"contents move there and back":                          contentsMove,
			"a move that is interrupted goes on":                    interruptedMove,
			"a write that fails midway leaves nothing":              failingPut,
			"what was written after its failure goes an hour later": latePut,
			"a crash before the commit leaves nothing":              crashBeforeCommit,
			"a cancelled upload leaves nothing":                     cancelledUpload,
			"damage is noticed":                                     damagedObjects,
			"deletions are repeated until they work":                failingDelete,
			"one object that cannot be deleted holds up no other":   stuckObject,
			"one object that cannot be read holds up no other":      unreadableObject,
			"without the storage all but the contents is there":     withoutStorage,
			"exports and imports have the contents":                 transferredObjects,
			"an export notices that a file went":                    exportBesideErasure,
			"the trash keeps and removes them":                      trashedObjects,
			"erased users and projects leave no object":             erasedObjects,
			"what exceeds a quota never gets there":                 quotaOfObjects,
			"two stores share them":                                 twoStoresOfObjects,
			"a storage that hangs or panics holds up nothing else":  hangingStorage,
			"backups and recovered files name them":                 copiesOfTheFile,
			"content that goes back stays where the store says":     filesStayInTables,
		}
		for _, name := range longtest.Keys(tests, 1, 11) {
			t.Run(name, func(t *testing.T) { tests[name](newShelf(t, empty)) })
		}
	})
}

func contentsAreObjects(s *shelf) {
	content := objectsOf("contents", 20)
	f := mustAddFile(s, s.store, NewFile{Filename: "secret plans.txt"}, content)
	small := mustAddFile(s, s.store, NewFile{Filename: "small.txt"}, "the same")
	same := mustAddFile(s, s.store, NewFile{Filename: "same.txt"}, "the same")
	empty := mustAddFile(s, s.store, NewFile{Filename: "empty.txt"}, "")
	s.wantObjects(21 + 2)
	if n := count(s, s.store, `SELECT coalesce(sum(length(data)), 0) FROM file_chunk`); n != 0 {
		s.Errorf("bytes of content in the database: got %d, want none", n)
	}
	for _, key := range s.storage.Keys() {
		if len(key) != 26 || strings.Trim(key, "abcdefghijklmnopqrstuvwxyz234567") != "" ||
			strings.Contains(key, f.ID) || strings.Contains(key, "local") {
			s.Errorf("a key: got %q, want 26 random letters and digits", key)
		}
	}
	for id, want := range map[string]string{f.ID: content, small.ID: "the same", same.ID: "the same", empty.ID: ""} {
		s.wantContent(s.store, id, want)
	}
	stats, err := s.store.Upkeep().Stats(s.Context())
	if want := int64(len(content) + 2*len("the same")); err != nil || stats.Objects != 23 || stats.ObjectBytes != want {
		s.Errorf("Stats: got %d objects with %d bytes and %v, want 23 with %d", stats.Objects, stats.ObjectBytes, err, want)
	}
	s.wantSound(s.store)
}

func contentsMove(s *shelf) {
	content := objectsOf("moving", 40)
	f := mustAddFile(s, s.store, NewFile{}, content)
	trashed := mustAddFile(s, s.store, NewFile{}, "in the trash")
	if err := s.store.DeleteFile(s.Context(), trashed.ID, nil); err != nil {
		s.Fatal(err)
	}
	moved, err := s.store.Upkeep().MoveFiles(s.Context(), InDatabase, nil)
	if err != nil || moved.Chunks != 42 || moved.Damaged != 0 {
		s.Fatalf("MoveFiles into the database: got %+v, %v, want 42 chunks", moved, err)
	}
	without := s.open(Options{})
	s.wantContent(without, f.ID, content)
	s.wantSound(without)
	s.purge(s.store)
	s.wantObjects(0)
	if moved, err = s.store.Upkeep().MoveFiles(s.Context(), InObjects, nil); err != nil || moved.Chunks != 42 {
		s.Fatalf("MoveFiles into objects: got %+v, %v, want 42 chunks", moved, err)
	}
	s.wantObjects(42)
	s.wantContent(s.store, f.ID, content)
	s.wantSound(s.store)
	if moved, err = s.store.Upkeep().MoveFiles(s.Context(), InObjects, nil); err != nil || moved.Chunks != 0 {
		s.Errorf("MoveFiles once more: got %+v, %v, want nothing to move", moved, err)
	}
	if _, err := without.Upkeep().MoveFiles(s.Context(), InObjects, nil); !errors.Is(err, ErrInvalid) {
		s.Errorf("MoveFiles without object storage: got %v, want %v", err, ErrInvalid)
	}
}

func interruptedMove(s *shelf) {
	content := objectsOf("interrupted", 40)
	f := mustAddFile(s, s.open(Options{}), NewFile{}, content)
	var puts atomic.Int64
	s.storage.OnPut(func(context.Context, string) error {
		if puts.Add(1) > 20 {
			return errors.New("the network is gone")
		}
		return nil
	})
	moved, err := s.store.Upkeep().MoveFiles(s.Context(), InObjects, nil)
	if !errors.Is(err, ErrBusy) || moved.Chunks != 16 {
		s.Errorf("MoveFiles that fails: got %+v, %v, want 16 chunks and %v", moved, err, ErrBusy)
	}
	s.wantContent(s.store, f.ID, content)
	s.wantObjects(16)
	s.storage.OnPut(nil)
	if moved, err = s.store.Upkeep().MoveFiles(s.Context(), InObjects, nil); err != nil || moved.Chunks != 25 {
		s.Errorf("MoveFiles again: got %+v, %v, want the other 25 chunks", moved, err)
	}
	s.storage.Set(s.storage.Keys()[3], []byte("something else"))
	if moved, err = s.store.Upkeep().MoveFiles(s.Context(), InDatabase, nil); err != nil || moved.Chunks != 40 ||
		moved.Damaged != 1 {
		s.Errorf("MoveFiles with a damaged object: got %+v, %v, want 40 chunks and 1 damaged", moved, err)
	}
}

func failingPut(s *shelf) {
	var puts atomic.Int64
	s.storage.OnPut(func(context.Context, string) error {
		if puts.Add(1) > 25 {
			return errors.New("the bucket minds keyid-and-secret")
		}
		return nil
	})
	_, err := s.store.AddFile(s.Context(), NewFile{}, strings.NewReader(objectsOf("failing", 60)))
	if !errors.Is(err, ErrBusy) || strings.Contains(err.Error(), "secret") {
		s.Errorf("AddFile: got %v, want %v without what the storage said", err, ErrBusy)
	}
	s.purge(s.store)
	s.wantObjects(0)
	if n := count(s, s.store, `SELECT (SELECT count(*) FROM file) + (SELECT count(*) FROM file_chunk)`); n != 0 {
		s.Errorf("rows of the file: got %d, want none", n)
	}
	s.wantSound(s.store)
}

func latePut(s *shelf) {
	var late []string
	s.storage.OnPut(func(_ context.Context, key string) error {
		late = append(late, key)
		return errors.New("no answer in time")
	})
	if _, err := s.store.AddFile(s.Context(), NewFile{}, strings.NewReader("late")); !errors.Is(err, ErrBusy) {
		s.Fatalf("AddFile: got %v, want %v", err, ErrBusy)
	}
	s.storage.Set(late[0], []byte("late")) // the storage wrote it despite the error
	s.purge(s.store)
	s.wantObjects(1)
	s.clock.Pass(2 * time.Hour)
	s.purge(s.store)
	s.wantObjects(0)
	if n := count(s, s.store, `SELECT count(*) FROM file_object`); n != 0 {
		s.Errorf("rows of objects: got %d, want none", n)
	}
}

// To others, a process that hangs between writing the objects and the commit looks like one that was killed.
func crashBeforeCommit(s *shelf) {
	var puts atomic.Int64
	reached, goOn := make(chan struct{}), make(chan struct{})
	s.storage.OnPut(func(context.Context, string) error {
		if puts.Add(1) == 20 {
			close(reached)
			<-goOn
		}
		return nil
	})
	result := make(chan error)
	go func() {
		_, err := s.store.AddFile(context.Background(), NewFile{}, strings.NewReader(objectsOf("killed", 30)))
		result <- err
	}()
	<-reached
	other := s.open(Options{Objects: s.storage})
	s.purge(other)
	if n := len(s.storage.Keys()); n < 16 {
		s.Errorf("objects of an upload that goes on: got %d, want them to stay", n)
	}
	s.clock.Pass(25 * time.Hour)
	s.purge(other)
	s.wantObjects(0)
	close(goOn)
	if err := <-result; !errors.Is(err, ErrConflict) {
		s.Errorf("the upload that was given up: got %v, want %v", err, ErrConflict)
	}
	s.purge(other)
	s.clock.Pass(2 * time.Hour)
	s.purge(other)
	s.wantObjects(0)
	s.wantSound(other)
}

func cancelledUpload(s *shelf) {
	ctx, cancel := context.WithCancel(s.Context())
	var puts atomic.Int64
	s.storage.OnPut(func(ctx context.Context, _ string) error {
		if puts.Add(1) == 22 {
			cancel()
			<-ctx.Done()
		}
		return ctx.Err()
	})
	_, err := s.store.AddFile(ctx, NewFile{}, strings.NewReader(objectsOf("cancelled", 60)))
	if !errors.Is(err, context.Canceled) {
		s.Errorf("AddFile: got %v, want %v", err, context.Canceled)
	}
	s.purge(s.store)
	s.wantObjects(0)
}

func damagedObjects(s *shelf) {
	f := mustAddFile(s, s.store, NewFile{}, objectsOf("damaged", 3))
	whole := mustAddFile(s, s.store, NewFile{}, "intact")
	var keys []string // of the file's chunks, in order
	read(s, s.store, func(tx db.Tx) (err error) {
		keys, err = db.Column[string](tx, `SELECT object FROM file_chunk WHERE id >> 24 = (SELECT id FROM file WHERE uid = ?)
			ORDER BY id`, f.ID)
		return err
	})
	original, _ := s.storage.Get(s.Context(), keys[1])
	for name, change := range map[string]func(){
		"missing":   func() { _ = s.storage.Delete(s.Context(), []string{keys[1]}) },
		"shorter":   func() { s.storage.Set(keys[1], original[1:]) },
		"longer":    func() { s.storage.Set(keys[1], append(bytes.Clone(original), 0)) },
		"another":   func() { other, _ := s.storage.Get(s.Context(), keys[3]); s.storage.Set(keys[1], other) },
		"a bit off": func() { b := bytes.Clone(original); b[77] ^= 1; s.storage.Set(keys[1], b) },
		"empty":     func() { s.storage.Set(keys[1], nil) },
	} {
		change()
		if got, err := s.read(s.store, f.ID); !errors.Is(err, ErrCorrupt) || len(got) != 256<<10 {
			s.Errorf("an object that is %s: got %d bytes and %v, want the first chunk and %v", name, len(got), err, ErrCorrupt)
		}
		report, err := s.store.Upkeep().Check(s.Context(), nil)
		if err != nil || report.OK || len(report.Findings) != 1 || report.Findings[0].ID != f.ID {
			s.Errorf("an object that is %s: the check got %+v, %v, want one finding about the file", name, report.Findings, err)
		}
		if _, err := s.store.Upkeep().Export(s.Context(), io.Discard, nil); !errors.Is(err, ErrCorrupt) {
			s.Errorf("an object that is %s: the export got %v, want %v", name, err, ErrCorrupt)
		}
		s.wantContent(s.store, whole.ID, "intact")
		s.storage.Set(keys[1], original)
	}
	s.wantSound(s.store)
	mustExec(s, s.store, `UPDATE file_object SET state = 'leaving', due_at = 9000000000000000 WHERE key = ?`, keys[1])
	mustExec(s, s.store, `INSERT INTO file_object (key, state, size, due_at) VALUES ('nobodys', 'stored', 1, 0)`)
	report, err := s.store.Upkeep().Check(s.Context(), &CheckOptions{Repair: true})
	if err != nil || !report.OK || report.Total != 2 {
		s.Errorf("a repair of the list of objects: got %+v, %v, want 2 findings, repaired", report, err)
	}
	s.purge(s.store)
	s.wantObjects(5)
}

func failingDelete(s *shelf) {
	f := mustAddFile(s, s.store, NewFile{}, objectsOf("undeleted", 70))
	s.storage.OnDelete(func(context.Context, []string) error { return errors.New("not today") })
	if err := s.store.DeleteFile(s.Context(), f.ID, &DeletionOptions{Erase: true}); err != nil {
		s.Fatalf("DeleteFile: got %v, want no error: its objects go later", err)
	}
	s.wantObjects(71)
	if _, err := s.read(s.store, f.ID); !errors.Is(err, ErrNotFound) {
		s.Errorf("the erased file: got %v, want %v", err, ErrNotFound)
	}
	s.clock.Pass(time.Hour)
	if _, err := s.store.Upkeep().Purge(s.Context(), nil); !errors.Is(err, ErrBusy) {
		s.Errorf("Purge: got %v, want %v", err, ErrBusy)
	}
	stats, err := s.store.Upkeep().Stats(s.Context())
	if err != nil || stats.GoneObjects != 71 || stats.Objects != 0 {
		s.Errorf("Stats: got %+v, %v, want 71 objects that are to go", stats, err)
	}
	s.storage.OnDelete(nil)
	s.clock.Pass(time.Hour)
	report := s.purge(s.store)
	s.wantObjects(0)
	if report.Objects != 71 {
		s.Errorf("Purge: got %+v, want 71 objects", report)
	}
}

func stuckObject(s *shelf) {
	f := mustAddFile(s, s.store, NewFile{}, objectsOf("stuck", 70))
	stuck := s.storage.Keys()[7]
	s.storage.OnDelete(func(_ context.Context, keys []string) error {
		for _, key := range keys {
			if key == stuck {
				return errors.New("locked")
			}
		}
		return nil
	})
	if err := s.store.DeleteFile(s.Context(), f.ID, &DeletionOptions{Erase: true}); err != nil {
		s.Fatal(err)
	}
	for range 20 {
		s.clock.Pass(time.Hour)
		_, _ = s.store.Upkeep().Purge(s.Context(), nil)
	}
	s.wantObjects(1)
	s.storage.OnDelete(nil)
	s.clock.Pass(time.Hour)
	s.purge(s.store)
	s.wantObjects(0)
}

func withoutStorage(s *shelf) {
	f := mustAddFile(s, s.store, NewFile{Filename: "away.txt"}, "content that is elsewhere")
	without := s.open(Options{})
	here := mustAddFile(s, without, NewFile{Filename: "here.txt"}, "here")
	s.wantContent(without, here.ID, "here")
	s.wantContent(s.store, here.ID, "here")
	if _, err := s.read(without, f.ID); !errors.Is(err, ErrInternal) || !strings.Contains(err.Error(), "object storage") {
		s.Errorf("reading without the storage: got %v, want %v about object storage", err, ErrInternal)
	}
	if got := fileNames(s, without, FileList{}); len(got) != 2 {
		s.Errorf("files: got %v, want both", got)
	}
	report, err := without.Upkeep().Check(s.Context(), nil)
	if err != nil || report.OK || len(report.Findings) != 1 || report.Findings[0].Table != "file_object" {
		s.Errorf("check: got %+v, %v, want that the objects were not checked", report.Findings, err)
	}
	if _, err := without.Upkeep().Export(s.Context(), io.Discard, nil); !errors.Is(err, ErrInternal) {
		s.Errorf("export: got %v, want %v", err, ErrInternal)
	}
	if _, err := without.Upkeep().Export(s.Context(), io.Discard, &ExportOptions{WithoutFiles: true}); err != nil {
		s.Errorf("export without files: got %v, want no error", err)
	}
	if err := without.DeleteFile(s.Context(), f.ID, &DeletionOptions{Erase: true}); err != nil {
		s.Errorf("DeleteFile: got %v, want no error", err)
	}
	s.purge(without)
	s.wantObjects(1)
	s.purge(s.store)
	s.wantObjects(0)
}

func trashedObjects(s *shelf) {
	f := mustAddFile(s, s.store, NewFile{}, "kept in the trash")
	if err := s.store.DeleteFile(s.Context(), f.ID, nil); err != nil {
		s.Fatal(err)
	}
	s.purge(s.store)
	s.wantObjects(1)
	page, err := s.store.Trash().Page(s.Context(), TrashQuery{})
	if err != nil || len(page.Entries) != 1 {
		s.Fatalf("trash: got %+v, %v, want one entry", page, err)
	}
	if _, err := s.store.Trash().Restore(s.Context(), page.Entries[0].ID); err != nil {
		s.Fatal(err)
	}
	s.wantContent(s.store, f.ID, "kept in the trash")
	if err := s.store.DeleteFile(s.Context(), f.ID, nil); err != nil {
		s.Fatal(err)
	}
	if _, err := s.store.Trash().Empty(s.Context()); err != nil {
		s.Fatal(err)
	}
	s.wantObjects(0)
}

func erasedObjects(s *shelf) {
	anna := mustAddUser(s.T, s.store, NewUser{Name: "anna", Password: "a long password"})
	view := s.store.As(Access{User: anna.ID})
	project := mustAddProject(s.T, view, NewProject{Name: "moon"})
	mustAddFile(s, view, NewFile{}, "her own")
	mustAddFile(s, view, NewFile{ProjectID: project.ID}, "in her project")
	mine := mustAddFile(s, s.store, NewFile{}, "mine")
	trashed := mustAddFile(s, view, NewFile{}, "in her trash")
	if err := view.DeleteFile(s.Context(), trashed.ID, nil); err != nil {
		s.Fatal(err)
	}
	s.wantObjects(4)
	gone := mustAddProject(s.T, s.store, NewProject{Name: "gone"})
	stays := mustAddFile(s, s.store, NewFile{ProjectID: gone.ID}, "in a project")
	if err := s.store.DeleteProject(s.Context(), ProjectRef{ID: gone.ID},
		&DeletionOptions{WithMemories: true, Erase: true}); err != nil {
		s.Fatal(err)
	}
	s.wantContent(s.store, stays.ID, "in a project") // files of a project outlive it
	if err := s.store.Accounts().DeleteUser(s.Context(), anna.ID, &DeletionOptions{WithMemories: true}); err != nil {
		s.Fatal(err)
	}
	s.wantObjectsSoon(2)
	s.wantContent(s.store, mine.ID, "mine")
	s.wantSound(s.store)
}

func quotaOfObjects(s *shelf) {
	small := s.open(Options{Objects: s.storage, FileQuota: 1 << 20, MaxFile: 3 << 20})
	var puts atomic.Int64
	s.storage.OnPut(func(context.Context, string) error { puts.Add(1); return nil })
	for name, content := range map[string]string{"over the quota": objectsOf("quota", 6),
		"over the limit": objectsOf("limit", 13)} {
		if _, err := small.AddFile(s.Context(), NewFile{}, strings.NewReader(content)); !errors.Is(err, ErrTooLarge) {
			s.Errorf("a file %s: got %v, want %v", name, err, ErrTooLarge)
		}
	}
	if puts := puts.Load(); puts != 0 {
		s.Errorf("objects written: got %d, want none", puts)
	}
	mustAddFile(s, small, NewFile{}, objectsOf("fits", 3))
	s.wantObjects(4)
}

func hangingStorage(s *shelf) {
	f := mustAddFile(s, s.store, NewFile{}, "slow")
	s.storage.OnGet(func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() })
	ctx, cancel := context.WithTimeout(s.Context(), 50*time.Millisecond)
	defer cancel()
	r, err := s.store.OpenFile(ctx, f.ID)
	if err != nil {
		s.Fatal(err)
	}
	reading := make(chan error)
	go func() { _, err := io.ReadAll(r); reading <- err }()
	if _, err := s.store.AddMemory(s.Context(), NewMemory{Content: "stored meanwhile"}); err != nil {
		s.Errorf("AddMemory while the storage hangs: got %v, want no error", err)
	}
	if err := <-reading; !errors.Is(err, context.DeadlineExceeded) {
		s.Errorf("reading: got %v, want %v", err, context.DeadlineExceeded)
	}
	for name, broken := range map[string]func(){
		"panics": func() { panic("out of order") }, "fails": nil,
	} {
		fail := func() error {
			if broken != nil {
				broken()
			}
			return errors.New("out of order")
		}
		s.storage.OnGet(func(context.Context, string) error { return fail() })
		s.storage.OnPut(func(context.Context, string) error { return fail() })
		s.storage.OnDelete(func(context.Context, []string) error { return fail() })
		if _, err := s.read(s.store, f.ID); !errors.Is(err, ErrBusy) {
			s.Errorf("reading while the storage %s: got %v, want %v", name, err, ErrBusy)
		}
		if _, err := s.store.AddFile(s.Context(), NewFile{}, strings.NewReader("x")); !errors.Is(err, ErrBusy) {
			s.Errorf("AddFile while the storage %s: got %v, want %v", name, err, ErrBusy)
		}
		if report, err := s.store.Upkeep().Check(s.Context(), nil); !errors.Is(err, ErrBusy) {
			s.Errorf("Check while the storage %s: got %+v, %v, want %v", name, report, err, ErrBusy)
		}
	}
	if err := s.store.DeleteFile(s.Context(), f.ID, &DeletionOptions{Erase: true}); err != nil {
		s.Errorf("DeleteFile while the storage fails: got %v, want no error", err)
	}
	s.storage.OnDelete(nil)
	s.clock.Pass(2 * time.Hour)
	s.purge(s.store)
	s.wantObjects(0)
}

// unreadableObject lets the storage refuse one object, as it may for lack of a right: the text of each other file is
// indexed nevertheless.
func unreadableObject(s *shelf) {
	bad := mustAddFile(s, s.store, NewFile{Filename: "refused.txt"}, "refused")
	refused := s.storage.Keys()[0]
	good := mustAddFile(s, s.store, NewFile{Filename: "zebra.txt"}, "zebra")
	s.storage.OnGet(func(_ context.Context, key string) error {
		if key == refused {
			return errors.New("access denied")
		}
		return nil
	})
	reader := s.open(Options{Objects: s.storage, Documents: wordsReader{}})
	ctx, cancel := context.WithTimeout(s.Context(), 20*time.Second)
	defer cancel()
	if f, err := reader.WaitIndexed(ctx, good.ID); err != nil || f.Text.State != TextIndexed {
		s.Errorf("the file behind it: got %+v, %v, want it indexed", f.Text, err)
	}
	if f, err := reader.GetFile(ctx, bad.ID); err != nil || f.Text.State != TextWaiting {
		s.Errorf("the file that cannot be read: got %+v, %v, want it to wait", f.Text, err)
	}
	s.storage.OnGet(nil)
	if f, err := reader.WaitIndexed(ctx, bad.ID); err != nil || f.Text.State != TextIndexed {
		s.Errorf("the file that can be read again: got %+v, %v, want it indexed", f.Text, err)
	}
}

func filesStayInTables(s *shelf) {
	tables := s.open(Options{Objects: s.storage, NewFiles: InDatabase})
	away := mustAddFile(s, s.store, NewFile{}, "away")
	here := mustAddFile(s, tables, NewFile{}, "here")
	s.wantObjects(1)
	s.wantContent(tables, away.ID, "away")
	s.wantContent(s.store, here.ID, "here")
	for place, want := range map[FilePlace]error{InObjects: ErrInvalid, "attic": ErrInvalid} {
		if _, err := s.in.open(Options{NewFiles: place}); !errors.Is(err, want) {
			s.Errorf("NewFiles %q without Objects: got %v, want %v", place, err, want)
		}
	}
}
