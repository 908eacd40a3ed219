package systemtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/files/objects/objectstest"
	"github.com/souvenir-ai/souvenir/internal/sealing"
	"github.com/souvenir-ai/souvenir/internal/sealing/keyring"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/internal/testing/storetest"
)

// Users' data is sealed under their own keys.

// ringOf holds the keys that each test opened last, by its name.
var ringOf sync.Map

// runWithKeys runs the suite, and opens backups with the keys of their store.
func runWithKeys(t *testing.T, open func(*testing.T, *Options) *Store) {
	withOpening(func() { runAllWithKeys(t, open) })
}

// runObjectsWithKeys does so for the part about files.
func runObjectsWithKeys(t *testing.T, open func(*testing.T, *Options) *Store) {
	withOpening(func() { runFilesWithKeys(t, open) })
}

func withOpening(run func()) {
	storetest.Opening = func(ctx context.Context, t *testing.T) context.Context {
		ring, _ := ringOf.Load(t.Name())
		return keyring.With(ctx, ring.(*keyring.Ring))
	}
	defer func() { storetest.Opening = nil }()
	run()
}

// keysVariable runs the whole suite with user keys. By default, a part of it runs.
const keysVariable = "SOUVENIR_TEST_KEYS"

func runAllWithKeys(t *testing.T, open func(*testing.T, *Options) *Store) {
	storetest.Sealed = sealedrows.SealedLength
	defer func() { storetest.Sealed = nil }()
	if os.Getenv(keysVariable) != "" {
		storetest.Run(t, open)
		return
	}
	storetest.RunSample(t, 9, open)
}

// runFilesWithKeys runs the part of the suite about files, with another place for their content.
func runFilesWithKeys(t *testing.T, open func(*testing.T, *Options) *Store) {
	storetest.Sealed = sealedrows.SealedLength
	defer func() { storetest.Sealed = nil }()
	if os.Getenv(keysVariable) != "" {
		storetest.RunFiles(t, open)
		return
	}
	storetest.RunFilesSample(t, 5, open)
}

// openWithKeys gives each test a file, and another one with user keys.
func openWithKeys(t *testing.T) func(*testing.T, *Options) *Store {
	dir := t.TempDir()
	return func(t *testing.T, options *Options) *Store {
		path := filepath.Join(dir, fileName(t.Name()))
		ring := keysIn(t, path+".keys")
		ringOf.Store(t.Name(), ring)
		store, err := Open(keyring.With(context.Background(), ring), path, options)
		if err != nil {
			t.Fatalf("Open %s: %v", path, err)
		}
		t.Cleanup(func() {
			if err := store.Close(); err != nil {
				t.Errorf("Close: got %v, want no error", err)
			}
		})
		return store
	}
}

// openObjectsWithKeys is openWithKeys with object storage.
func openObjectsWithKeys(t *testing.T) func(*testing.T, *Options) *Store {
	open := openWithKeys(t)
	var storages sync.Map
	return func(t *testing.T, options *Options) *Store {
		storage, _ := storages.LoadOrStore(t.Name(), &objectstest.Memory{})
		with := *options
		with.Objects = storage.(*objectstest.Memory)
		return open(t, &with)
	}
}

// openWithKeys gives each test a database, and a file with user keys.
func (e engine) openWithKeys(t *testing.T) func(*testing.T, *Options) *Store {
	dir := t.TempDir()
	return openIn(t, e, func(t *testing.T) context.Context {
		return keyring.With(context.Background(), keysIn(t, filepath.Join(dir, fileName(t.Name()))))
	})
}

// testMaster is the master key of all tests.
var testMaster = sealing.GenerateMasterKey()

func keysIn(t *testing.T, path string) *keyring.Ring {
	t.Helper()
	place, err := sqlite.OpenKeys(context.Background(), path, false, nil)
	if err != nil {
		t.Fatalf("OpenKeys %s: %v", path, err)
	}
	return ringIn(t, place, time.Now)
}

func ringIn(t *testing.T, place db.Keys, now func() time.Time) *keyring.Ring {
	t.Helper()
	ring, err := keyring.Open(context.Background(), place, testMaster, now)
	if err != nil {
		t.Fatalf("opening the keys: %v", err)
	}
	t.Cleanup(func() { _ = ring.Close() })
	return ring
}

// safe is a store with user keys.
type safe struct {
	*testing.T
	in    database
	ring  *keyring.Ring
	store *Store
}

func newSafe(t *testing.T, empty database) *safe {
	s := &safe{T: t, in: empty.copied(t)}
	place, err := s.in.openKeys(context.Background(), s.in.keysApart(t))
	if err != nil {
		t.Fatalf("openKeys: got %v, want no error", err)
	}
	s.ring = ringIn(t, place, time.Now)
	s.store = s.open(s.in, s.ring, Options{})
	return s
}

func (s *safe) try(in database, ring *keyring.Ring, o Options) (*Store, error) {
	o.Embedder = storetest.Words{}
	ctx := context.Background()
	if ring != nil {
		ctx = keyring.With(ctx, ring)
	}
	return in.openWith(ctx, o)
}

func (s *safe) open(in database, ring *keyring.Ring, o Options) *Store {
	s.Helper()
	store, err := s.try(in, ring, o)
	if err != nil {
		s.Fatalf("Open: %v", err)
	}
	s.Cleanup(func() { _ = store.Close() })
	return store
}

func (s *safe) user(name string) *Store {
	s.Helper()
	u, err := s.store.Accounts().AddUser(s.Context(), NewUser{Name: name})
	if err != nil {
		s.Fatalf("AddUser %s: %v", name, err)
	}
	return s.store.As(Access{User: u.ID})
}

func (s *safe) deleteUser(name string) {
	s.Helper()
	if err := s.store.Accounts().DeleteUser(s.Context(), name, &DeletionOptions{WithMemories: true}); err != nil {
		s.Fatalf("DeleteUser %s: %v", name, err)
	}
}

func (s *safe) wantContent(store *Store, id, want string) {
	s.Helper()
	r, err := store.OpenFile(s.Context(), id)
	if err != nil {
		s.Errorf("OpenFile: got %v, want %d bytes", err, len(want))
		return
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != want {
		s.Errorf("content of the file: got %d bytes and %v, want the %d that were stored", len(got), err, len(want))
	}
	sum := sha256.Sum256([]byte(want))
	if f := r.File(); f.SHA256 != hex.EncodeToString(sum[:]) || f.Size != int64(len(want)) {
		s.Errorf("the file: got the SHA-256 %s and %d bytes, want %x and %d", f.SHA256, f.Size, sum, len(want))
	}
}

func (s *safe) check(store *Store, options *CheckOptions) CheckReport {
	s.Helper()
	report, err := store.Upkeep().Check(s.Context(), options)
	if err != nil {
		s.Fatalf("Check: %v", err)
	}
	return report
}

func (s *safe) wantSound(store *Store) {
	s.Helper()
	if report := s.check(store, nil); !report.OK {
		s.Errorf("check: got %+v, want no finding", report.Findings)
	}
}

func TestUserKeys(t *testing.T) {
	onEachEngine(t, func(t *testing.T, empty database) {
		if empty.name() == "walled" {
			t.Skip("the wall hides rows, and keys are not in rows")
		}
		tests := map[string]func(*safe){
			"the content of files is sealed":                        filesAreSealed,
			"deleting a user erases their files in older backups":   deletedUserInABackup,
			"what was given to others stays when the giver goes":    givenFilesStay,
			"exports have the content, and imports seal it again":   sealedFilesTravel,
			"a store opens with its own keys only":                  storesKnowTheirKeys,
			"a user who may not be deleted keeps the key":           refusedDeletionKeepsTheKey,
			"damage to a sealed piece is found, and never opened":   damagedSealedPiece,
			"another master key takes over while the store is open": masterKeyOfFiles,
			"searches find what sealed files say":                   textsOfSealedFiles,
			"a purge ends deletions that a crash cut off":           purgeEndsDeletions,
			"the texts of memories are sealed":                      memoriesAreSealed,
			"deleting a user erases their texts in older backups":   deletedTextsInABackup,
			"memories that were given to others stay":               givenMemoriesStay,
			"a text that is a copy of a sealed one is a text":       copiedSealedText,
			"texts that users choose are sealed in each column":     textsInEachField,
			"names, keys and tags are found as without keys":        namesAreFound,
			"names from before the keys are found":                  namesFromBefore,
			"names that were given to others stay":                  movedNamesStay,
		}
		for _, name := range longtest.Keys(tests, 1, 9) {
			t.Run(name, func(t *testing.T) { tests[name](newSafe(t, empty)) })
		}
	})
}

func filesAreSealed(s *safe) {
	storage := &objectstest.Memory{}
	within := s.open(s.in, s.ring, Options{Objects: storage})
	content := objectsOf("the code of the gate is 4711", 3)
	inTables := mustAddFile(s, s.store, NewFile{}, content)
	inObjects := mustAddFile(s, within, NewFile{}, content)
	empty := mustAddFile(s, s.store, NewFile{}, "")
	s.wantContent(s.store, inTables.ID, content)
	s.wantContent(within, inObjects.ID, content)
	s.wantContent(within, empty.ID, "")
	sum := sha256.Sum256([]byte(content))
	piece := sha256.Sum256([]byte(content[:256<<10]))
	for _, key := range storage.Keys() {
		data, err := storage.Get(s.Context(), key)
		if err != nil || bytes.Contains(data, []byte("gate")) {
			s.Errorf("object %s: got the text that was stored or %v, want it sealed", key, err)
		}
	}
	for what, secret := range map[string][]byte{"the content": []byte("code of the gate"), "its SHA-256": sum[:],
		"the SHA-256 of a piece": piece[:]} {
		if rows := s.rowsWith(secret); rows != 0 {
			s.Errorf("%s: got it in %d rows, want it in none", what, rows)
		}
		if s.in.name() == "file" && inFiles(s, s.in.where(), secret) {
			s.Errorf("%s: got it in the file or its log, want it in neither", what)
		}
	}
	s.wantSound(within)
	if moved, err := within.Upkeep().MoveFiles(s.Context(), InObjects, nil); err != nil || moved.Chunks != 4 ||
		moved.Damaged != 0 {
		s.Errorf("MoveFiles: got %+v and %v, want 4 chunks", moved, err)
	}
	s.wantContent(within, inTables.ID, content)
	if moved, err := within.Upkeep().MoveFiles(s.Context(), InDatabase, nil); err != nil || moved.Chunks != 8 {
		s.Errorf("MoveFiles back: got %+v and %v, want 8 chunks", moved, err)
	}
	s.wantContent(s.store, inObjects.ID, content)
	s.wantSound(within)
}

// rowsWith counts the values about files that contain some bytes.
func (s *safe) rowsWith(part []byte) (rows int) {
	s.Helper()
	engine, err := s.in.engine(true)
	if err != nil {
		s.Fatal(err)
	}
	defer engine.Close()
	err = engine.Read(s.Context(), func(tx db.Tx) error {
		values, err := db.Column[[]byte](tx, `SELECT data FROM file_chunk UNION ALL SELECT sha256 FROM file_chunk
			UNION ALL SELECT sha256 FROM file`)
		for _, v := range values {
			if bytes.Contains(v, part) {
				rows++
			}
		}
		if err == nil && len(values) == 0 {
			err = errors.New("there are no values: the test looks in the wrong place")
		}
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
	return rows
}

// inFiles reports whether a file or its log contains some bytes.
func inFiles(s *safe, path string, part []byte) bool {
	s.Helper()
	for _, name := range []string{path, path + "-wal"} {
		content, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			s.Fatal(err)
		}
		if bytes.Contains(content, part) {
			return true
		}
	}
	return false
}

func deletedUserInABackup(s *safe) {
	ann, ben := s.user("ann"), s.user("ben")
	hers, his := objectsOf("hers", 2), objectsOf("his", 1)
	of := mustAddFile(s, ann, NewFile{Filename: "hers.txt"}, hers)
	trashed := mustAddFile(s, ann, NewFile{Filename: "trashed.txt"}, hers)
	if err := ann.DeleteFile(s.Context(), trashed.ID, nil); err != nil {
		s.Fatal(err)
	}
	stays := mustAddFile(s, ben, NewFile{Filename: "his.txt"}, his)
	if err := s.store.Close(); err != nil {
		s.Fatal(err)
	}
	backup := s.in.copied(s)
	s.store = s.open(s.in, s.ring, Options{})
	s.deleteUser("ann")
	s.wantSound(s.store)

	read := s.open(backup, s.ring, Options{ReadOnly: true})
	annAgain, benAgain := read.As(Access{User: of.Owner}), read.As(Access{User: stays.Owner})
	s.wantContent(benAgain, stays.ID, his)
	if _, err := annAgain.OpenFile(s.Context(), of.ID); !errors.Is(err, ErrNotFound) ||
		!strings.Contains(err.Error(), "erased with its owner's key") {
		s.Errorf("OpenFile of an erased file: got %v, want ErrNotFound that says so", err)
	}
	if page, err := annAgain.FilePage(s.Context(), FileQuery{}); err != nil || len(page.Files) != 1 ||
		page.Files[0].SHA256 != "" {
		s.Errorf("FilePage: got %+v and %v, want the file without a SHA-256", page.Files, err)
	}
	if _, err := read.Upkeep().Export(s.Context(), io.Discard, nil); !errors.Is(err, ErrConflict) {
		s.Errorf("Export with an erased file: got %v, want ErrConflict", err)
	}
	s.wantErased(read, 2)
	if err := read.Close(); err != nil {
		s.Fatal(err)
	}

	restored := s.open(backup, s.ring, Options{})
	s.wantSound(restored)
	if page, err := restored.As(Access{User: of.Owner}).FilePage(s.Context(), FileQuery{}); len(page.Files) != 0 {
		s.Errorf("FilePage after the deletion: got %+v and %v, want none", page.Files, err)
	}
	s.wantContent(restored.As(Access{User: stays.Owner}), stays.ID, his)
}

// wantErased checks that a check finds a deleted user, and as many values that were erased.
func (s *safe) wantErased(store *Store, want int) {
	s.Helper()
	users, erased := 0, 0
	report := s.check(store, nil)
	for _, f := range report.Findings {
		switch {
		case f.Table == "users" && f.Repairable:
			users++
		case f.Repairable && strings.Contains(f.Problem, "erased with its owner's key"):
			erased++
		}
	}
	if report.OK || users != 1 || erased != want {
		s.Errorf("check: got %+v, want one deleted user and %d erased values", report.Findings, want)
	}
}

func givenFilesStay(s *safe) {
	ann, ben := s.user("ann"), s.user("ben")
	project, err := ben.AddProject(s.Context(), NewProject{ID: "garden"})
	if err != nil {
		s.Fatal(err)
	}
	annID := mustAddFile(s, ann, NewFile{}, "x").Owner
	benID := mustAddFile(s, ben, NewFile{}, "x").Owner
	if _, err := s.store.AddMember(s.Context(), NewMember{Project: ProjectRef{ID: benID + "/" + project.ID}, User: annID,
		Role: MemberWriter}); err != nil {
		s.Fatal(err)
	}
	content := objectsOf("given", 2)
	uploaded := mustAddFile(s, ann, NewFile{ProjectID: benID + "/garden"}, content)
	moved := mustAddFile(s, ann, NewFile{}, content)
	if _, err := ann.UpdateFile(s.Context(), moved.ID,
		FileUpdate{Project: &ProjectRef{ID: benID + "/garden"}}); err != nil {
		s.Fatal(err)
	}
	linked := mustAdd(s, ann, NewMemory{Content: "of the garden"})
	with := mustAddFile(s, ann, NewFile{MemoryID: linked.ID}, content)
	if _, err := ann.UpdateMemory(s.Context(), linked.ID, MemoryUpdate{ProjectID: new(benID + "/garden")}); err != nil {
		s.Fatal(err)
	}
	s.deleteUser("ann")
	for _, id := range []string{uploaded.ID, moved.ID, with.ID} {
		s.wantContent(ben, id, content)
	}
	s.wantSound(s.store)
}

func sealedFilesTravel(s *safe) {
	content := objectsOf("travels", 2)
	f := mustAddFile(s, s.store, NewFile{Filename: "a.txt"}, content)
	var export bytes.Buffer
	if _, err := s.store.Upkeep().Export(s.Context(), &export, nil); err != nil {
		s.Fatal(err)
	}
	if report, err := s.store.Upkeep().Import(s.Context(), bytes.NewReader(export.Bytes()), nil); err != nil ||
		report.Counts["file"].Unchanged != 1 {
		s.Errorf("Import into the same store: got %+v and %v, want one unchanged file", report.Counts, err)
	}
	into := newSafe(s.T, emptyInFile(s))
	if report, err := into.store.Upkeep().Import(s.Context(), bytes.NewReader(export.Bytes()), nil); err != nil ||
		report.Counts["file"].Added != 1 {
		s.Fatalf("Import: got %+v and %v, want one file", report.Counts, err)
	}
	into.wantContent(into.store, f.ID, content)
	into.wantSound(into.store)
	if inFiles(into, into.in.where(), []byte(content[:100])) {
		s.Error("the imported content: got it in the file, want it sealed")
	}
}

func storesKnowTheirKeys(s *safe) {
	f := mustAddFile(s, s.store, NewFile{}, "mine")
	other := keysIn(s.T, filepath.Join(s.TempDir(), "other.keys"))
	for name, ring := range map[string]*keyring.Ring{"no keys": nil, "other keys": other} {
		if store, err := s.try(s.in, ring, Options{}); !errors.Is(err, ErrUserKeys) {
			if err == nil {
				_ = store.Close()
			}
			s.Errorf("opened with %s: got %v, want ErrUserKeys", name, err)
		}
	}
	s.wantContent(s.open(s.in, s.ring, Options{}), f.ID, "mine")
	plain := emptyInFile(s).copied(s)
	old := mustAddFile(s, s.open(plain, nil, Options{}), NewFile{}, "from before")
	within := s.open(plain, other, Options{})
	s.wantContent(within, old.ID, "from before")
	s.wantContent(within, mustAddFile(s, within, NewFile{}, "sealed").ID, "sealed")
	s.wantSound(within)
}

func refusedDeletionKeepsTheKey(s *safe) {
	ann := s.user("ann")
	f := mustAddFile(s, ann, NewFile{}, "hers")
	if err := s.store.Accounts().DeleteUser(s.Context(), "ann", nil); !errors.Is(err, ErrConflict) {
		s.Fatalf("DeleteUser of one who owns a file: got %v, want ErrConflict", err)
	}
	s.wantContent(ann, f.ID, "hers")
}

func damagedSealedPiece(s *safe) {
	f := mustAddFile(s, s.store, NewFile{}, objectsOf("damaged", 1))
	engine, err := s.in.engine(false)
	if err != nil {
		s.Fatal(err)
	}
	defer engine.Close()
	// An attacker who can write to the database, including the hashes of pieces, swaps two pieces.
	if err := engine.Write(s.Context(), func(tx db.Tx) error {
		_, err := tx.Exec(`UPDATE file_chunk SET data = (SELECT data FROM file_chunk o WHERE o.id = file_chunk.id - 1),
			sha256 = (SELECT sha256 FROM file_chunk o WHERE o.id = file_chunk.id - 1)
			WHERE id IN (SELECT max(id) FROM file_chunk)`)
		return err
	}); err != nil {
		s.Fatal(err)
	}
	if r, err := s.store.OpenFile(s.Context(), f.ID); err == nil {
		if _, err = io.Copy(io.Discard, r); !errors.Is(err, ErrCorrupt) {
			s.Errorf("reading a file with a piece in another's place: got %v, want ErrCorrupt", err)
		}
	} else if !errors.Is(err, ErrCorrupt) {
		s.Errorf("OpenFile: got %v, want ErrCorrupt", err)
	}
	report := s.check(s.store, nil)
	if !slices.ContainsFunc(report.Findings, func(f Finding) bool {
		return strings.Contains(f.Problem, "piece 1 differs from what was sealed")
	}) {
		s.Errorf("check: got %+v, want piece 1", report.Findings)
	}
}

func textsOfSealedFiles(s *safe) {
	store := s.open(s.in, s.ring, Options{Documents: wordsReader{}})
	f := mustAddFile(s, store, NewFile{Filename: "notes.words"}, "a zebra at the gate")
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	if _, err := store.WaitIndexed(ctx, f.ID); err != nil {
		s.Fatal(err)
	}
	found, err := store.Search(s.Context(), Query{Text: "zebra", Documents: MaxDocuments})
	if err != nil || len(found.Documents) != 1 || found.Documents[0].FileID != f.ID {
		s.Errorf("Search: got %+v and %v, want the file", found.Documents, err)
	}
}

func purgeEndsDeletions(s *safe) {
	ann := s.user("ann")
	f := mustAddFile(s, ann, NewFile{}, "hers")
	gone := keyring.Owner{User: "was deleted before the crash"}
	sealed, err := s.ring.Seal(s.Context(), gone, "test", []byte("x"))
	if err != nil {
		s.Fatal(err)
	}
	at := time.Now().Add(-2 * time.Hour).UnixMicro()
	err = errors.Join(s.ring.Mark(s.Context(), gone, at), s.ring.Mark(s.Context(), keyring.Owner{User: f.Owner}, at))
	if err != nil {
		s.Fatal(err)
	}
	if _, err := s.store.Upkeep().Purge(s.Context(), nil); err != nil {
		s.Fatal(err)
	}
	if _, err := s.ring.Open(s.Context(), "test", sealed); !errors.Is(err, keyring.ErrErased) {
		s.Errorf("what the deleted user had: got %v, want ErrErased", err)
	}
	s.wantContent(ann, f.ID, "hers")
}

func masterKeyOfFiles(s *safe) {
	f := mustAddFile(s, s.store, NewFile{}, "kept")
	if err := s.ring.Rotate(s.Context(), sealing.GenerateMasterKey()); err != nil {
		s.Fatal(err)
	}
	s.wantContent(s.store, f.ID, "kept")
	ann := s.user("ann") // whose key is wrapped now
	s.wantContent(ann, mustAddFile(s, ann, NewFile{}, "hers").ID, "hers")
}
