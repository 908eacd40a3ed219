package systemtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sealing/keyring"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/internal/testing/storetest"
)

// Options.UserKeys, as an operator uses them, with each engine.

// vault is a store with user keys beside it.
type vault struct {
	*testing.T
	in     database
	beside string // where its keys are
	keys   UserKeys
	store  *Store
	ahead  atomic.Int64 // how far the clock of stores opened from now on is ahead, a time.Duration
}

func newVault(t *testing.T, empty database) *vault {
	v := &vault{T: t, in: empty.copied(t), keys: UserKeys{MasterKey: GenerateMasterKey()}}
	v.beside = v.in.keysBeside(t)
	v.store = v.open(v.in, v.keys)
	return v
}

func (v *vault) try(in database, keys UserKeys) (*Store, error) {
	ahead := time.Duration(v.ahead.Load())
	o := Options{UserKeys: keys, Embedder: storetest.Words{}, Now: func() time.Time { return time.Now().Add(ahead) }}
	return in.open(o)
}

func (v *vault) open(in database, keys UserKeys) *Store {
	v.Helper()
	store, err := v.try(in, keys)
	if err != nil {
		v.Fatalf("Open: %v", err)
	}
	v.Cleanup(func() { _ = store.Close() })
	return store
}

// ofCopy returns the keys for a copy of the store, which has none beside it.
func (v *vault) ofCopy() UserKeys {
	v.Helper()
	keys := v.keys
	keys.Place = v.beside
	return keys
}

// ring opens the ring without the store.
func (v *vault) ring(now func() time.Time) *keyring.Ring {
	v.Helper()
	place, err := v.in.openKeys(v.Context(), v.beside)
	if err != nil {
		v.Fatal(err)
	}
	ring, err := keyring.Open(v.Context(), place, v.keys.MasterKey, now)
	if err != nil {
		v.Fatal(err)
	}
	v.Cleanup(func() { _ = ring.Close() })
	return ring
}

func (v *vault) user(name, says string) (access Access, id string) {
	v.Helper()
	u, err := v.store.Accounts().AddUser(v.Context(), NewUser{Name: name})
	if err != nil {
		v.Fatalf("AddUser %s: %v", name, err)
	}
	access = Access{User: u.ID}
	m, err := v.store.As(access).AddMemory(v.Context(), NewMemory{Content: says})
	if err != nil {
		v.Fatalf("AddMemory: %v", err)
	}
	return access, m.ID
}

func (v *vault) reads(store *Store, access Access, id, want string) {
	v.Helper()
	if m, err := store.As(access).GetMemory(v.Context(), id); err != nil || m.Content != want {
		v.Errorf("GetMemory: got %q and %v, want %q", m.Content, err, want)
	}
}

func (v *vault) report(store *Store, o *UserKeysOptions) UserKeysReport {
	v.Helper()
	r, err := store.Upkeep().CheckUserKeys(v.Context(), o)
	if err != nil {
		v.Fatalf("UserKeys: %v", err)
	}
	return r
}

func TestUserKeysOfAnOperator(t *testing.T) {
	onEachEngine(t, func(t *testing.T, empty database) {
		if empty.name() == "walled" {
			t.Skip("the wall hides rows, and keys are not in rows")
		}
		tests := map[string]func(*vault){
			"deleting a user leaves nothing of them in a backup":  userIsErasedFromBackups,
			"a store without its keys is refused":                 vaultNeedsItsKeys,
			"a store becomes one with keys and back by an export": vaultIsConverted,
			"another server knows of a deletion within a minute":  deletionIsKnownElsewhere,
			"two servers delete the same user":                    userIsDeletedTwice,
			"a crash before the erasure is made up for":           crashBeforeErasure,
			"a copy of the ring takes its place":                  ringIsCopied,
		}
		for _, name := range longtest.Keys(tests, 1, 4) {
			t.Run(name, func(t *testing.T) { tests[name](newVault(t, empty)) })
		}
	})
}

func userIsErasedFromBackups(v *vault) {
	ann, hers := v.user("ann", "the gate opens with 471147114711")
	ben, his := v.user("ben", "the garden needs water")
	if err := v.store.Close(); err != nil {
		v.Fatal(err)
	}
	backup := v.in.copied(v.T)
	v.store = v.open(v.in, v.keys)
	var receipt Receipt
	if err := v.store.Accounts().DeleteUser(v.Context(), "ann", &DeletionOptions{WithMemories: true,
		Receipt: &receipt}); err != nil {
		v.Fatal(err)
	}
	if receipt.Claims.Key == nil || receipt.Claims.Key.ID == "" || receipt.Claims.Counts["memory"] != 1 {
		v.Errorf("the receipt: got %+v, want a memory, and the key that was erased", receipt.Claims)
	}
	restored := v.open(backup, v.ofCopy())
	v.reads(restored, ben, his, "the garden needs water")
	if _, err := restored.As(ann).GetMemory(v.Context(), hers); !errors.Is(err, ErrNotFound) {
		v.Errorf("GetMemory: got %v, want ErrNotFound", err)
	}
	if r := v.report(restored, &UserKeysOptions{Check: true}); r.ErasedValues != 0 || r.UnknownValues != 0 {
		v.Errorf("UserKeys: got %+v, want no value under a key that was erased or is unknown", r)
	}
	if report, err := restored.Upkeep().Check(v.Context(), nil); err != nil || !report.OK {
		v.Errorf("Check: got %+v and %v, want a sound store", report, err)
	}
}

func vaultNeedsItsKeys(v *vault) {
	v.user("ann", "the gate opens with 471147114711")
	for name, c := range map[string]struct {
		keys UserKeys
		want error
	}{
		"no keys":            {UserKeys{}, ErrUserKeys},
		"another master key": {UserKeys{MasterKey: GenerateMasterKey()}, ErrMasterKey},
		"no ring":            {UserKeys{MasterKey: v.keys.MasterKey, Place: filepath.Join(v.TempDir(), "x")}, ErrUserKeys},
	} {
		store, err := v.try(v.in, c.keys)
		if err == nil {
			_ = store.Close()
		}
		if !errors.Is(err, c.want) {
			v.Errorf("opened with %s: got %v, want %v", name, err, c.want)
		}
	}
	if store, err := v.try(emptyInFile(v.T).copied(v.T), v.keys); err != nil {
		v.Errorf("a new store of its own: got %v, want no error", err)
	} else {
		_ = store.Close()
	}
}

func vaultIsConverted(v *vault) {
	plain, err := emptyInFile(v.T).copied(v.T).open(Options{Embedder: storetest.Words{}})
	if err != nil {
		v.Fatal(err)
	}
	defer plain.Close()
	m, err := plain.AddMemory(v.Context(), NewMemory{Content: "the gate opens with 471147114711", Tags: []string{"gate"}})
	if err != nil {
		v.Fatal(err)
	}
	f := mustAddFile(v, plain, NewFile{Filename: "gate.txt"}, "471147114711 again")
	move := func(from, to *Store) {
		v.Helper()
		var export bytes.Buffer
		if _, err := from.Upkeep().Export(v.Context(), &export, &ExportOptions{Credentials: true}); err != nil {
			v.Fatal(err)
		}
		if r, err := to.Upkeep().Import(v.Context(), &export, nil); err != nil || r.Counts["memory"].Added != 1 {
			v.Fatalf("Import: got %+v and %v, want a memory", r.Counts, err)
		}
		v.reads(to, Access{}, m.ID, "the gate opens with 471147114711")
		if r, err := to.OpenFile(v.Context(), f.ID); err != nil {
			v.Errorf("OpenFile: %v", err)
		} else if content, err := io.ReadAll(r); err != nil || string(content) != "471147114711 again" {
			v.Errorf("the file: got %q and %v, want it whole", content, err)
		}
	}
	move(plain, v.store)
	if rows := v.rowsWith("471147114711"); rows != 0 {
		v.Errorf("the text: got it in %d rows, want it in none", rows)
	}
	back := v.in.another(v.T)
	target, err := back.open(Options{Embedder: storetest.Words{}})
	if err != nil {
		v.Fatal(err)
	}
	defer target.Close()
	move(v.store, target)
	if store, err := v.try(back, v.keys); !errors.Is(err, ErrUserKeys) || !strings.Contains(err.Error(), "souvenir copy") {
		if err == nil {
			_ = store.Close()
		}
		v.Errorf("a store with content opened with keys: got %v, want ErrUserKeys that says what to do", err)
	}
}

// rowsWith counts the rows that hold a text in plain form.
func (v *vault) rowsWith(part string) (rows int) {
	v.Helper()
	engine, err := v.in.engine(true)
	if err != nil {
		v.Fatal(err)
	}
	defer engine.Close()
	if err := engine.Read(v.Context(), func(tx db.Tx) error {
		queries, err := db.Column[string](tx, v.in.tables())
		for _, query := range queries {
			values, err := db.Column[string](tx, query)
			if err != nil {
				return err
			}
			for _, value := range values {
				if strings.Contains(value, part) {
					rows++
				}
			}
		}
		if len(queries) < 10 {
			v.Errorf("got %d tables, want all", len(queries))
		}
		return err
	}); err != nil {
		v.Fatal(err)
	}
	return rows
}

func deletionIsKnownElsewhere(v *vault) {
	ann, hers := v.user("ann", "the gate opens with 471147114711")
	var ahead atomic.Int64
	o := Options{UserKeys: v.keys, Embedder: storetest.Words{},
		Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }}
	// A copy of the rows in another place shows what the store can still open. The server deletes its own rows at once.
	if err := v.store.Close(); err != nil {
		v.Fatal(err)
	}
	backup := v.in.copied(v.T)
	v.store = v.open(v.in, v.keys)
	o.UserKeys = v.ofCopy()
	other, err := backup.open(o)
	if err != nil {
		v.Fatal(err)
	}
	defer other.Close()
	v.reads(other, ann, hers, "the gate opens with 471147114711")
	if err := v.store.Accounts().DeleteUser(v.Context(), "ann", &DeletionOptions{WithMemories: true}); err != nil {
		v.Fatal(err)
	}
	ahead.Store(int64(time.Minute))
	v.reads(other, ann, hers, "")
}

func userIsDeletedTwice(v *vault) {
	v.user("ann", "the gate opens with 471147114711")
	ben, his := v.user("ben", "the garden needs water")
	other := v.open(v.in, v.keys)
	var both sync.WaitGroup
	errs := make([]error, 2)
	for i, s := range []*Store{v.store, other} {
		both.Go(func() {
			errs[i] = s.Accounts().DeleteUser(context.Background(), "ann", &DeletionOptions{WithMemories: true})
		})
	}
	both.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, ErrNotFound) {
			v.Errorf("DeleteUser: got %v, want no error or ErrNotFound", err)
		}
	}
	if errs[0] != nil && errs[1] != nil {
		v.Errorf("DeleteUser: got %v and %v, want one to succeed", errs[0], errs[1])
	}
	if r := v.report(other, nil); r.Erased != 1 || r.Keys != 1 || r.Leaving != 0 {
		v.Errorf("UserKeys: got %+v, want one key, and one that was erased", r)
	}
	v.reads(v.store, ben, his, "the garden needs water")
}

// crashBeforeErasure leaves the state after a crash between the deletion of a user and the erasure of the key.
func crashBeforeErasure(v *vault) {
	ann, _ := v.user("ann", "the gate opens with 471147114711")
	if err := v.store.Accounts().DeleteUser(v.Context(), ann.User, &DeletionOptions{WithMemories: true}); err != nil {
		v.Fatal(err)
	}
	ring := v.ring(func() time.Time { return time.Now().Add(-2 * time.Hour) })
	owner := keyring.Owner{User: ann.User, Changed: time.Now().UnixMicro()}
	sealed, err := ring.Seal(v.Context(), owner, "test", []byte("x"))
	if err == nil {
		err = ring.Mark(v.Context(), owner, time.Now().Add(-2*time.Hour).UnixMicro())
	}
	if err != nil {
		v.Fatal(err)
	}
	if r := v.report(v.store, nil); r.Leaving != 1 {
		v.Errorf("UserKeys: got %+v, want one user who is leaving", r)
	}
	if _, err := v.store.Upkeep().Purge(v.Context(), nil); err != nil {
		v.Fatal(err)
	}
	if r := v.report(v.store, nil); r.Leaving != 0 || r.Erased != 2 {
		v.Errorf("UserKeys after the purge: got %+v, want both keys erased", r)
	}
	fresh := v.ring(time.Now)
	if _, err := fresh.Open(v.Context(), "test", sealed); !errors.Is(err, keyring.ErrErased) {
		v.Errorf("what Ann had: got %v, want ErrErased", err)
	}
}

func ringIsCopied(v *vault) {
	ann, hers := v.user("ann", "the gate opens with 471147114711")
	path := filepath.Join(v.TempDir(), "copy.ring")
	if err := v.store.Upkeep().BackupUserKeys(v.Context(), path); err != nil {
		v.Fatal(err)
	}
	before := v.report(v.store, nil)
	if err := v.store.Close(); err != nil {
		v.Fatal(err)
	}
	v.store = v.open(v.in, UserKeys{MasterKey: v.keys.MasterKey, Place: path})
	v.reads(v.store, ann, hers, "the gate opens with 471147114711")
	if after := v.report(v.store, nil); after.Ring != before.Ring || after.Keys != before.Keys ||
		!after.Since.Equal(before.Since) {
		v.Errorf("UserKeys of the copy: got %+v, want %+v", after, before)
	}
}
