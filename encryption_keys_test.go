package souvenir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sealing/keyring"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// keyed is a store in a file whose users have keys.
type keyed struct {
	*testing.T
	path string
	keys UserKeys
	s    *Store
}

func newKeyed(t *testing.T) *keyed {
	k := &keyed{T: t, path: filepath.Join(t.TempDir(), "store.db"), keys: UserKeys{MasterKey: GenerateMasterKey()}}
	k.open()
	return k
}

// open opens the store again.
func (k *keyed) open() {
	k.Helper()
	k.s = k.openAt(k.path, k.keys)
}

func (k *keyed) openAt(path string, keys UserKeys) *Store {
	k.Helper()
	s, err := Open(k.Context(), path, &Options{UserKeys: keys, Embedder: wordEmbedder("words-1")})
	if err != nil {
		k.Fatalf("Open %s: %v", path, err)
	}
	k.Cleanup(func() { _ = s.Close() })
	return s
}

// user adds a user with one memory.
func (k *keyed) user(name, says string) (view *Store, id string) {
	k.Helper()
	u, err := k.s.Accounts().AddUser(k.Context(), NewUser{Name: name})
	noError(k.T, err)
	view = k.s.As(Access{User: u.ID})
	m, err := view.AddMemory(k.Context(), NewMemory{Content: says})
	noError(k.T, err)
	return view, m.ID
}

func (k *keyed) close() {
	k.Helper()
	noError(k.T, k.s.Close())
}

// refused opens the store, which must fail with an error of the class that contains a text.
func (k *keyed) refused(path string, keys UserKeys, class error, says string) {
	k.Helper()
	s, err := Open(k.Context(), path, &Options{UserKeys: keys, Embedder: wordEmbedder("words-1")})
	if err == nil {
		_ = s.Close()
	}
	if !errors.Is(err, class) || !strings.Contains(err.Error(), says) {
		k.Errorf("Open: got %v, want %v that says %q", err, class, says)
	}
}

func (k *keyed) report(o *UserKeysOptions) UserKeysReport {
	k.Helper()
	r, err := k.s.Upkeep().CheckUserKeys(k.Context(), o)
	noError(k.T, err)
	return r
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	noError(t, err)
	noError(t, os.WriteFile(to, content, 0o600))
}

// A backup from before a user was deleted, opened with the current ring, holds nothing of that user and everything of
// the others.
func TestDeletingAUserErasesThemInOldBackups(t *testing.T) {
	k := newKeyed(t)
	ann, annSays := k.user("ann", "the code of the gate is 4711")
	_, benSays := k.user("ben", "the garden needs water on Mondays")
	_, err := ann.AddFile(t.Context(), NewFile{Filename: "hers.txt"}, strings.NewReader("the gate again"))
	noError(t, err)
	backup := filepath.Join(t.TempDir(), "backup.db")
	noError(t, k.s.Upkeep().Backup(t.Context(), backup, nil))
	annID, benID := ann.access.User, ""
	var receipt Receipt
	noError(t, k.s.Accounts().DeleteUser(t.Context(), "ann", &DeletionOptions{WithMemories: true, Receipt: &receipt}))
	if of := receipt.Claims.Key; of == nil || len(of.ID) != 32 || time.Since(of.At) > time.Minute {
		t.Errorf("the receipt: got %+v, want the key that was erased, and when", receipt.Claims)
	}
	if r := k.report(nil); r.Keys != 1 || r.Erased != 1 || r.LastErased.IsZero() || r.Since.IsZero() {
		t.Errorf("UserKeys: got %+v, want one key, and one that was erased", r)
	}
	u, err := k.s.Accounts().GetUser(t.Context(), "ben")
	noError(t, err)
	benID = u.ID
	k.close()

	restored := filepath.Join(t.TempDir(), "restored.db")
	noError(t, Restore(t.Context(), Restoration{From: backup, To: restored}))
	keys := k.keys
	keys.Place, keys.ReadOnly = UserKeysFile(k.path), true // otherwise the store deletes Ann again
	k.s = k.openAt(restored, keys)
	if m, err := k.s.As(Access{User: benID}).GetMemory(t.Context(), benSays); err != nil ||
		!strings.Contains(m.Content, "Mondays") {
		t.Errorf("Ben's memory: got %q and %v, want it whole", m.Content, err)
	}
	if m, err := k.s.As(Access{User: annID}).GetMemory(t.Context(), annSays); err == nil && m.Content != "" {
		t.Errorf("Ann's memory: got %q, want nothing of it", m.Content)
	}
	before := k.report(&UserKeysOptions{Check: true})
	if r := before; r.ErasedValues == 0 || r.UnknownValues != 0 || r.Values <= r.ErasedValues {
		t.Errorf("UserKeys: got %+v, want some values under the key that was erased, and none under unknown ones", r)
	}
	report, err := k.s.Upkeep().Check(t.Context(), &CheckOptions{Repair: true})
	if err != nil || report.Repaired == 0 || len(k.s.restoredUserFindings()) != 1 {
		t.Errorf("Check: got %+v and %v, want repaired findings, and Ann", report, err)
	}
	if r := k.report(&UserKeysOptions{Check: true}); r.ErasedValues >= before.ErasedValues || r.Values == 0 {
		t.Errorf("UserKeys after the repair: got %+v, want fewer values under the key that was erased than %d", r,
			before.ErasedValues)
	}
	for _, path := range []string{backup, restored} {
		content, err := os.ReadFile(path)
		noError(t, err)
		if bytes.Contains(content, []byte("4711")) || bytes.Contains(content, []byte("Mondays")) {
			t.Errorf("%s has what users have stored, want it sealed", path)
		}
	}
}

func TestAStoreOpensWithItsRingOnly(t *testing.T) {
	k := newKeyed(t)
	_, _ = k.user("ann", "the code of the gate is 4711")
	k.close()
	ring := UserKeysFile(k.path)
	k.refused(k.path, UserKeys{}, ErrUserKeys, "was opened without them")
	k.refused(k.path, UserKeys{MasterKey: GenerateMasterKey()}, ErrMasterKey, "needs the key "+k.keys.MasterKey.ID())
	elsewhere := UserKeys{MasterKey: k.keys.MasterKey, Place: filepath.Join(t.TempDir(), "nothing.ring")}
	k.refused(k.path, elsewhere, ErrUserKeys, "there are none at "+elsewhere.Place)
	if _, err := os.Stat(elsewhere.Place); err == nil {
		t.Error("a ring was made where the one of the store was missing")
	}

	other := newKeyed(t)
	_, _ = other.user("ben", "another store")
	other.close()
	swapped := UserKeys{MasterKey: other.keys.MasterKey, Place: UserKeysFile(other.path)}
	k.refused(k.path, swapped, ErrUserKeys, "the keys are not those of the store: it needs those with the id")
	k.refused(filepath.Join(t.TempDir(), "new.db"), swapped, ErrUserKeys, "they are those of another store")

	plain := filepath.Join(t.TempDir(), "plain.db")
	s := openWords(t, plain, Options{})
	mustAdd(t, s, NewMemory{Content: "nothing of this is sealed"})
	noError(t, s.Close())
	k.refused(plain, k.keys, ErrUserKeys, "has content that is not sealed")
	k.refused(plain, UserKeys{Place: "x"}, ErrInvalid, "but no MasterKey")
	address := UserKeys{MasterKey: k.keys.MasterKey, Place: "engine://anna:hunter2@db/keys"}
	k.refused(k.path, address, ErrInvalid, "the address of a database, but the store is in a file")
	if runtime.GOOS != "windows" {
		link := filepath.Join(t.TempDir(), "link")
		noError(t, os.Symlink(ring, link))
		k.refused(k.path, UserKeys{MasterKey: k.keys.MasterKey, Place: link}, ErrUserKeys, "symbolic link")
		info, err := os.Stat(ring)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the ring: got permissions %v and %v, want 0600", info.Mode().Perm(), err)
		}
	}
	k.refused(k.path, UserKeys{MasterKey: k.keys.MasterKey, Place: k.path}, ErrUserKeys, "cannot be opened")
	k.open()
}

// A ring from a backup lacks newer users, and still has deleted ones.
func TestAnOlderRingIsRefusedAndCanBeRepaired(t *testing.T) {
	longtest.Only(t)
	k := newKeyed(t)
	ring, old := UserKeysFile(k.path), filepath.Join(t.TempDir(), "old.ring")
	_, _ = k.user("ann", "the code of the gate is 4711")
	ben, benSays := k.user("ben", "the garden needs water on Mondays")
	noError(t, k.s.Upkeep().BackupUserKeys(t.Context(), old))
	if err := k.s.Upkeep().BackupUserKeys(t.Context(), old); !errors.Is(err, ErrConflict) {
		t.Errorf("BackupUserKeys over a file: got %v, want ErrConflict", err)
	}
	backup := filepath.Join(t.TempDir(), "backup.db")
	noError(t, k.s.Upkeep().Backup(t.Context(), backup, nil))
	noError(t, k.s.Accounts().DeleteUser(t.Context(), "ann", &DeletionOptions{WithMemories: true}))
	carl, carlSays := k.user("carl", "this was stored after the copy of the ring")
	k.close()
	noError(t, os.Remove(ring))
	copyFile(t, old, ring)
	k.refused(k.path, k.keys, ErrUserKeys, "an older copy")

	keys := k.keys
	keys.AcceptOlder = true
	k.s = k.openAt(k.path, keys)
	if _, err := k.s.As(carl.access).GetMemory(t.Context(), carlSays); !errors.Is(err, ErrUserKeys) {
		t.Errorf("what a newer user has stored: got %v, want ErrUserKeys", err)
	}
	if r := k.report(&UserKeysOptions{Check: true}); r.UnknownValues == 0 || len(r.UnknownKeys) != 1 {
		t.Errorf("UserKeys: got %+v, want values under one unknown key", r)
	}
	if r := k.report(&UserKeysOptions{Check: true, Repair: true}); r.UnknownValues != 0 || r.Erased != 2 || r.Keys != 1 {
		t.Errorf("UserKeys after the repair: got %+v, want Ann's key and Carl's erased", r)
	}
	report, err := k.s.Upkeep().Check(t.Context(), &CheckOptions{Repair: true})
	if err != nil || !report.OK {
		t.Errorf("Check: got %+v and %v, want a sound store", report, err)
	}
	k.close()
	k.open() // which is no longer refused
	if m, err := k.s.As(ben.access).GetMemory(t.Context(), benSays); err != nil || !strings.Contains(m.Content,
		"Mondays") {
		t.Errorf("Ben's memory: got %q and %v, want it whole", m.Content, err)
	}
	if m, err := k.s.As(carl.access).AddMemory(t.Context(), NewMemory{Content: "again"}); err != nil {
		t.Errorf("what Carl stores now: got %v and %v, want it stored", m, err)
	}
}

func TestAnotherMasterKeyOfTheRingTakesOverWhileServersRun(t *testing.T) {
	k := newKeyed(t)
	ann, id := k.user("ann", "the code of the gate is 4711")
	other := k.openAt(k.path, k.keys)
	next := GenerateMasterKey()
	noError(t, k.s.Upkeep().ChangeUserKeysMaster(t.Context(), next))
	if r := k.report(nil); r.MasterKey != next.ID() {
		t.Errorf("UserKeys: got the master key %s, want %s", r.MasterKey, next.ID())
	}
	for _, s := range []*Store{k.s, other} {
		if _, err := s.As(ann.access).GetMemory(t.Context(), id); err != nil {
			t.Errorf("a server that runs: got %v, want the memory", err)
		}
		_, err := s.As(ann.access).AddMemory(t.Context(), NewMemory{Content: "more"})
		noError(t, err)
	}
	k.refused(k.path, k.keys, ErrMasterKey, "does not open with this master key")
	k.keys.MasterKey = next
	k.open()
}

// If the file has been deleted, a new key in it would be lost when the program ends.
func TestARingThatIsGoneGivesNoNewKeys(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not remove a file that is open")
	}
	k := newKeyed(t)
	ann, id := k.user("ann", "the code of the gate is 4711")
	ring := UserKeysFile(k.path)
	noError(t, os.Rename(ring, ring+".away"))
	u, err := k.s.Accounts().AddUser(t.Context(), NewUser{Name: "ben"})
	noError(t, err)
	if _, err := k.s.As(Access{User: u.ID}).AddMemory(t.Context(), NewMemory{Content: "x"}); err == nil ||
		!strings.Contains(err.Error(), "was removed") {
		t.Errorf("a new user's write: got %v, want an error about the file of the ring", err)
	}
	if err := k.s.Accounts().DeleteUser(t.Context(), "ann", &DeletionOptions{WithMemories: true}); err == nil {
		t.Error("DeleteUser while the ring is away: got no error, want one")
	}
	if m, err := ann.GetMemory(t.Context(), id); err != nil || !strings.Contains(m.Content, "4711") {
		t.Errorf("the existing memory: got %v and %v, want it complete", m, err)
	}
	noError(t, os.Rename(ring+".away", ring))
	_, err = k.s.As(Access{User: u.ID}).AddMemory(t.Context(), NewMemory{Content: "x"})
	noError(t, err)
}

func TestARingForReadingGivesNoNewKeys(t *testing.T) {
	k := newKeyed(t)
	ann, id := k.user("ann", "the code of the gate is 4711")
	k.close()
	keys := k.keys
	keys.ReadOnly = true
	k.s = k.openAt(k.path, keys)
	if m, err := k.s.As(ann.access).UpdateMemory(t.Context(), id, MemoryUpdate{Content: ptr("her new " +
		"text")}); err != nil {
		t.Errorf("a user with a key: got %v and %v, want it stored", m, err)
	}
	if _, err := k.s.AddMemory(t.Context(), NewMemory{Content: "x"}); !errors.Is(err, ErrReadOnly) ||
		!strings.Contains(err.Error(), "ring") {
		t.Errorf("a user without a key: got %v, want ErrReadOnly about the ring", err)
	}
	if err := k.s.Accounts().DeleteUser(t.Context(), "ann", &DeletionOptions{WithMemories: true}); !errors.Is(err,
		ErrReadOnly) {
		t.Errorf("DeleteUser: got %v, want ErrReadOnly", err)
	}
	if err := k.s.Upkeep().ChangeUserKeysMaster(t.Context(), GenerateMasterKey()); !errors.Is(err, ErrReadOnly) {
		t.Errorf("ChangeUserKeysMaster: got %v, want ErrReadOnly", err)
	}
	if r := k.report(nil); !r.ReadOnly || r.Keys != 1 {
		t.Errorf("UserKeys: got %+v, want one key, for reading only", r)
	}
}

// Each conversion keeps every row.
func TestAnExportConvertsAStoreToUserKeysAndBack(t *testing.T) {
	k := newKeyed(t)
	plain := openWords(t, filepath.Join(t.TempDir(), "plain.db"), Options{})
	mustAdd(t, plain, NewMemory{Content: "the code of the gate is 4711"})
	_, err := plain.AddFile(t.Context(), NewFile{Filename: "gate.txt"}, strings.NewReader("4711 again"))
	noError(t, err)
	var first, sealed, back bytes.Buffer
	move := func(from, to *Store, through *bytes.Buffer) {
		t.Helper()
		_, err := from.Upkeep().Export(t.Context(), through, &ExportOptions{Credentials: true})
		noError(t, err)
		report, err := to.Upkeep().Import(t.Context(), bytes.NewReader(through.Bytes()), nil)
		if err != nil || report.Counts["memory"].Added != 1 || report.Counts["file"].Added != 1 {
			t.Fatalf("Import: got %+v and %v, want a memory and a file", report.Counts, err)
		}
	}
	move(plain, k.s, &first)
	again := openWords(t, filepath.Join(t.TempDir(), "again.db"), Options{})
	move(k.s, again, &sealed)
	_, err = again.Upkeep().Export(t.Context(), &back, &ExportOptions{Credentials: true})
	noError(t, err)
	rows := func(b *bytes.Buffer) string { // without the first and the last line, which hold times and checksums
		_, rest, _ := strings.Cut(b.String(), "\n")
		return rest[:strings.LastIndex(strings.TrimSpace(rest), "\n")]
	}
	if rows(&first) != rows(&back) || len(rows(&first)) < 100 {
		t.Error("the export of the converted store differs from the original's, want the same rows")
	}
	k.close()
	content, err := os.ReadFile(k.path)
	noError(t, err)
	if bytes.Contains(content, []byte("4711")) {
		t.Error("the store with keys has the text of a memory or a file, want it sealed")
	}
}

func TestARecoveredStoreNeedsItsRing(t *testing.T) {
	longtest.Only(t)
	k := newKeyed(t)
	ann, id := k.user("ann", "the code of the gate is 4711")
	k.close()
	out := filepath.Join(t.TempDir(), "recovered.db")
	if _, err := Recover(t.Context(), k.path, out, nil); !errors.Is(err, ErrUserKeys) {
		t.Errorf("Recover without keys: got %v, want ErrUserKeys", err)
	}
	report, err := Recover(t.Context(), k.path, out, &RecoveryOptions{UserKeys: k.keys,
		Embedder: wordEmbedder("words-1")})
	if err != nil || !report.OK {
		t.Fatalf("Recover: got %+v and %v, want all recovered", report, err)
	}
	keys := k.keys
	keys.Place = UserKeysFile(k.path)
	k.s = k.openAt(out, keys)
	if m, err := k.s.As(ann.access).GetMemory(t.Context(), id); err != nil || !strings.Contains(m.Content, "4711") {
		t.Errorf("the recovered memory: got %v and %v, want it whole", m, err)
	}
	k.refused(out, UserKeys{}, ErrUserKeys, "opened without them")
}

func TestAReadOnlyStoreWithKeysOpensAndIsExported(t *testing.T) {
	k := newKeyed(t)
	_, _ = k.user("ann", "the code of the gate is 4711")
	k.close()
	s, err := Open(t.Context(), k.path, &Options{UserKeys: k.keys, ReadOnly: true, KeepModel: true})
	noError(t, err)
	defer s.Close()
	if _, err := s.Upkeep().Export(t.Context(), io.Discard, nil); err != nil {
		t.Errorf("Export: got %v, want no error", err)
	}
	if _, err := s.Upkeep().CheckUserKeys(t.Context(), &UserKeysOptions{Repair: true}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Repair: got %v, want ErrReadOnly", err)
	}
}

// failingKeys is a key store whose writes fail on demand.
type failingKeys struct {
	db.Keys
	fail func() error
}

func (f failingKeys) Write(ctx context.Context, fn func(db.Tx) error) error {
	if err := f.fail(); err != nil {
		return err
	}
	return f.Keys.Write(ctx, fn)
}

// openFailing opens a store whose ring calls fail before each write.
func openFailing(t *testing.T, path string, keys UserKeys, fail func() error) (*Store, error) {
	t.Helper()
	ctx := db.WithKeysOpener(t.Context(), func(ctx context.Context, _ string, _ bool, _ db.Opening) (db.Keys, error) {
		place, err := sqlite.OpenKeys(ctx, UserKeysFile(path), false, nil)
		return failingKeys{place, fail}, err
	})
	s, err := Open(ctx, path, &Options{UserKeys: keys, Embedder: wordEmbedder("words-1")})
	if err == nil {
		t.Cleanup(func() { _ = s.Close() })
	}
	return s, err
}

func TestAFullDiskOfTheRingLosesNothing(t *testing.T) {
	k := newKeyed(t)
	ann, id := k.user("ann", "the code of the gate is 4711")
	k.close()
	full := true
	s, err := openFailing(t, k.path, k.keys, func() error {
		if full {
			return fmt.Errorf("the test: %w", db.ErrFull)
		}
		return nil
	})
	noError(t, err)
	if _, err := s.AddMemory(t.Context(), NewMemory{Content: "of a new user"}); !errors.Is(err, ErrFull) ||
		!strings.Contains(err.Error(), "key ring") {
		t.Errorf("a user without a key: got %v, want ErrFull about the keys", err)
	}
	if _, err := s.As(ann.access).AddMemory(t.Context(), NewMemory{Content: "of one with a key"}); err != nil {
		t.Errorf("a user with a key: got %v, want it stored", err)
	}
	if err := s.Accounts().DeleteUser(t.Context(), "ann", &DeletionOptions{WithMemories: true}); !errors.Is(err, ErrFull) {
		t.Errorf("DeleteUser: got %v, want ErrFull", err)
	}
	if m, err := s.As(ann.access).GetMemory(t.Context(), id); err != nil || !strings.Contains(m.Content, "4711") {
		t.Errorf("after the refused deletion: got %v and %v, want the memory", m, err)
	}
	full = false
	mustAdd(t, s, NewMemory{Content: "of a new user"})
	noError(t, s.Accounts().DeleteUser(t.Context(), "ann", &DeletionOptions{WithMemories: true}))
	if stats, err := s.Upkeep().Stats(t.Context()); err != nil || stats.Memories != 1 {
		t.Errorf("got %+v and %v, want the one memory of the new user", stats, err)
	}
}

// A store and its ring are bound to each other in three steps. After a crash between them, the next try completes them,
// and no other store gets the ring.
func TestACrashWhileAStoreGetsItsRingIsRepaired(t *testing.T) {
	longtest.Only(t)
	for writes := range 3 {
		path, keys := filepath.Join(t.TempDir(), "store.db"), UserKeys{MasterKey: GenerateMasterKey()}
		left := writes
		_, err := openFailing(t, path, keys, func() error {
			if left--; left < 0 {
				return errors.New("crash")
			}
			return nil
		})
		if (err == nil) != (writes >= 2) {
			t.Fatalf("a ring that fails after %d writes: got %v, want an error for less than two", writes, err)
		}
		s, err := Open(t.Context(), path, &Options{UserKeys: keys, Embedder: wordEmbedder("words-1")})
		noError(t, err)
		mustAdd(t, s, NewMemory{Content: "it works"})
		noError(t, s.Close())
		keys.Place = UserKeysFile(path)
		if _, err := Open(t.Context(), filepath.Join(t.TempDir(), "x.db"), &Options{UserKeys: keys}); !errors.Is(err,
			ErrUserKeys) {
			t.Errorf("another store with the ring: got %v, want ErrUserKeys", err)
		}
	}
}

// The worst time for a crash in a deletion: the user is gone, but the key is not.
func TestADeletionThatFailsBeforeTheErasureIsCompleted(t *testing.T) {
	k := newKeyed(t)
	ann, _ := k.user("ann", "the code of the gate is 4711")
	k.close()
	marked := false
	s, err := openFailing(t, k.path, k.keys, func() error {
		if marked {
			return errors.New("crash")
		}
		marked = true
		return nil
	})
	noError(t, err)
	if err := s.Accounts().DeleteUser(t.Context(), "ann", &DeletionOptions{WithMemories: true}); err == nil {
		t.Fatal("DeleteUser whose erasure fails: got no error, want one")
	}
	if _, err := s.Accounts().GetUser(t.Context(), "ann"); !errors.Is(err, ErrNotFound) {
		t.Errorf("the user: got %v, want ErrNotFound", err)
	}
	noError(t, s.Close())
	now := func() time.Time { return time.Now().Add(2 * time.Hour) }
	k.s, err = Open(t.Context(), k.path, &Options{UserKeys: k.keys, Embedder: wordEmbedder("words-1"), Now: now})
	noError(t, err)
	defer k.s.Close()
	_, err = k.s.Upkeep().Purge(t.Context(), nil)
	noError(t, err)
	if r := k.report(nil); r.Keys != 0 || r.Erased != 1 || r.Leaving != 0 {
		t.Errorf("UserKeys after a purge: got %+v, want the key of %s erased", r, ann.access.User)
	}
}

// A deleted user without an account may come back with the same id. The new key stays.
func TestTheKeyOfAUserWhoCameBackIsKept(t *testing.T) {
	longtest.Only(t)
	for what, erase := range map[string]func(k *keyed){
		"a repair": func(k *keyed) { k.report(&UserKeysOptions{Repair: true}) },
		"a deletion that was cut off, and a purge": func(k *keyed) {
			noError(t, k.s.ring.Mark(t.Context(), keyring.Owner{User: "customer-17"}, k.s.now()))
			k.close()
			s, err := Open(t.Context(), k.path, &Options{UserKeys: k.keys, Embedder: wordEmbedder("words-1"),
				Now: func() time.Time { return time.Now().Add(2 * time.Hour) }})
			noError(t, err)
			t.Cleanup(func() { _ = s.Close() })
			k.s = s
			_, err = s.Upkeep().Purge(t.Context(), nil)
			noError(t, err)
		},
	} {
		for kind, put := range map[string]func(s *Store) error{
			"a memory": func(s *Store) error {
				_, err := s.AddMemory(t.Context(), NewMemory{Content: "new"})
				return err
			},
			"preferences": func(s *Store) error {
				_, err := s.SetPreferences(t.Context(), map[string]any{"colour": "green"})
				return err
			},
			"a file": func(s *Store) error {
				_, err := s.AddFile(t.Context(), NewFile{Filename: "new.bin"}, strings.NewReader("new"))
				return err
			},
		} {
			k := newKeyed(t)
			view := k.s.As(Access{User: "customer-17"})
			m, err := view.AddMemory(t.Context(), NewMemory{Content: "old"})
			noError(t, err)
			noError(t, view.DeleteMemory(t.Context(), m.ID, nil)) // into the trash
			mustAdd(t, view, NewMemory{Content: "old, too"})
			noError(t, k.s.Accounts().DeleteUser(t.Context(), "customer-17", &DeletionOptions{WithMemories: true}))
			for o, err := range keyring.Owners(t.Context(), k.s.db) {
				if err != nil || o.User == "customer-17" {
					t.Errorf("after the deletion there is %v, and %v; want no customer-17", o, err)
				}
			}
			noError(t, put(view))
			erase(k)
			if r := k.report(&UserKeysOptions{Check: true}); r.Keys != 1 || r.Erased != 1 || r.ErasedValues != 0 {
				t.Errorf("%s after a user came back with %s: got %+v, want the new key kept", what, kind, r)
			}
		}
	}
}

// Deleting a user removes them from the projects in others' trash. One that cannot be read does not prevent it.
func TestADamagedProjectInTheTrashDoesNotHoldUpTheDeletionOfAUser(t *testing.T) {
	k := newKeyed(t)
	ann, _ := k.user("ann", "the code of the gate is 4711")
	k.user("ben", "on Mondays")
	mustAdd(t, ann, NewMemory{Content: "a plan", ProjectID: "p"})
	noError(t, ann.DeleteProject(t.Context(), ProjectRef{ID: "p"}, &DeletionOptions{WithMemories: true}))
	mustExec(t, k.s, `UPDATE trash SET data = substr(data, 1, length(data) - 6) || 'AAAAAA' WHERE kind = 'project'`)
	noError(t, k.s.Accounts().DeleteUser(t.Context(), "ben", &DeletionOptions{WithMemories: true}))
	if u, err := k.s.Accounts().GetUser(t.Context(), "ben"); !errors.Is(err, ErrNotFound) {
		t.Errorf("ben: got %+v and %v, want ErrNotFound", u, err)
	}
}
