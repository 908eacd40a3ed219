package keyring_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/postgres"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
	"github.com/souvenir-ai/souvenir/internal/sealing"
	"github.com/souvenir-ai/souvenir/internal/sealing/keyring"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
)

var (
	ann  = keyring.Owner{User: "ann"}
	ben  = keyring.Owner{User: "ben"}
	text = []byte("the code of the gate is 4711")
)

// opener opens one place repeatedly, as several processes do.
type opener func(readOnly bool) (db.Keys, error)

// onBoth runs a test on a file and, if there is a server, on PostgreSQL.
func onBoth(t *testing.T, test func(t *testing.T, place opener)) {
	t.Run("file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "store.keys")
		test(t, func(readOnly bool) (db.Keys, error) {
			return sqlite.OpenKeys(t.Context(), path, readOnly, nil)
		})
	})
	t.Run("postgres", func(t *testing.T) {
		pgtest.Server(t)
		pgtest.NotOnCitus(t, "user keys are in a schema of their own on the coordinator")
		address := pgtest.Address(t)
		test(t, func(readOnly bool) (db.Keys, error) {
			return postgres.OpenKeys(t.Context(), address, db.Opening{Readers: 2, ReadOnly: readOnly})
		})
	})
}

func open(t *testing.T, place opener, master sealing.MasterKey, now func() time.Time) *keyring.Ring {
	t.Helper()
	ring, err := try(t, place, master, now)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = ring.Close() })
	return ring
}

func try(t *testing.T, place opener, master sealing.MasterKey, now func() time.Time) (*keyring.Ring, error) {
	t.Helper()
	p, err := place(false)
	if err != nil {
		t.Fatalf("opening the place: %v", err)
	}
	ring, err := keyring.Open(t.Context(), p, master, now)
	if err != nil {
		_ = p.Close()
	}
	return ring, err
}

func seal(t *testing.T, r *keyring.Ring, o keyring.Owner) []byte {
	t.Helper()
	sealed, err := r.Seal(t.Context(), o, "note", text)
	if err != nil {
		t.Fatalf("Seal: %v", err)
	}
	return sealed
}

func opens(t *testing.T, r *keyring.Ring, sealed []byte) {
	t.Helper()
	if plain, err := r.Open(t.Context(), "note", sealed); err != nil || !bytes.Equal(plain, text) {
		t.Fatalf("Open = %q, %v; want %q", plain, err, text)
	}
}

func TestValuesOpenInEveryProcessAndNowhereElse(t *testing.T) {
	onBoth(t, func(t *testing.T, place opener) {
		master := sealing.GenerateMasterKey()
		one, two := open(t, place, master, time.Now), open(t, place, master, time.Now)
		sealed := seal(t, one, ann)
		opens(t, two, sealed)
		if one.ID() != two.ID() || one.ID() == 0 {
			t.Errorf("the ids of one ring are %d and %d; want the same, and not 0", one.ID(), two.ID())
		}
		if bytes.Contains(sealed, text[:8]) {
			t.Errorf("the sealed value %q contains its text, want it unreadable", sealed)
		}
		if again := seal(t, two, ann); bytes.Equal(again[17:], sealed[17:]) || !bytes.Equal(again[:17], sealed[:17]) {
			t.Errorf("sealed twice: %x and %x; want the same key, and another text", sealed, again)
		}
		if other := seal(t, two, ben); bytes.Equal(other[:17], sealed[:17]) {
			t.Errorf("two users have the key %x, want one each", sealed[:17])
		}
		if _, err := two.Open(t.Context(), "title", sealed); !errors.Is(err, keyring.ErrSealed) {
			t.Errorf("opened for another purpose: %v; want ErrSealed", err)
		}
		for i := range sealed {
			changed := bytes.Clone(sealed)
			changed[i] ^= 1
			if _, err := two.Open(t.Context(), "note", changed); err == nil {
				t.Errorf("a value with byte %d changed was opened", i)
			}
		}
		var none *keyring.Ring
		if _, err := none.Open(t.Context(), "note", sealed); !errors.Is(err, keyring.ErrNone) {
			t.Errorf("opened without a ring: %v; want ErrNone", err)
		}
	})
}

func TestOwnersOfTheSameNameInTwoNamespacesHaveTwoKeys(t *testing.T) {
	onBoth(t, func(t *testing.T, place opener) {
		ring := open(t, place, sealing.GenerateMasterKey(), time.Now)
		a := seal(t, ring, keyring.Owner{Namespace: "a", User: "bc"})
		b := seal(t, ring, keyring.Owner{Namespace: "ab", User: "c"})
		if bytes.Equal(a[:17], b[:17]) {
			t.Error("users of two namespaces share a key, want one each")
		}
	})
}

func TestAnErasedKeyOpensNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, place opener) {
		master, now := sealing.GenerateMasterKey(), time.Now()
		clock := func() time.Time { return now }
		one, two := open(t, place, master, clock), open(t, place, master, clock)
		sealed, others := seal(t, one, ann), seal(t, one, ben)
		opens(t, one, sealed)
		opens(t, two, sealed) // which now has the key in memory
		if erased, err := one.Erase(t.Context(), ann, 0); err != nil || erased.ID != hex.EncodeToString(sealed[1:17]) ||
			!erased.At.Equal(now.Truncate(time.Microsecond)) {
			t.Fatalf("Erase = %+v, %v; want the id of the key, and the time", erased, err)
		}
		if erased, err := one.Erase(t.Context(), ann, 0); err != nil || !erased.IsZero() {
			t.Errorf("Erase again = %+v, %v; want none", erased, err)
		}
		if _, err := one.Open(t.Context(), "note", sealed); !errors.Is(err, keyring.ErrErased) {
			t.Errorf("opened after the key was erased: %v; want ErrErased", err)
		}
		now = now.Add(time.Minute)
		if _, err := two.Open(t.Context(), "note", sealed); !errors.Is(err, keyring.ErrErased) {
			t.Errorf("opened by another process after a minute: %v; want ErrErased", err)
		}
		opens(t, two, others)
		again := seal(t, two, ann) // an account with the same name
		opens(t, one, again)
		if bytes.Equal(again[:17], sealed[:17]) {
			t.Error("the new user of an erased one's name has the same key, want a new one")
		}
		if s, err := one.Status(t.Context()); err != nil || s.Keys != 2 || s.Erased != 1 || s.Since.IsZero() ||
			s.Last.IsZero() {
			t.Errorf("Status = %+v, %v; want 2 keys and 1 erased", s, err)
		}
	})
}

func TestAnUnknownKeyIsNotAnErasedOne(t *testing.T) {
	onBoth(t, func(t *testing.T, place opener) {
		ring := open(t, place, sealing.GenerateMasterKey(), time.Now)
		sealed := seal(t, ring, ann)
		sealed[1] ^= 1
		if _, err := ring.Open(t.Context(), "note", sealed); !errors.Is(err, keyring.ErrUnknown) {
			t.Errorf("opened with an unknown key: %v; want ErrUnknown", err)
		}
	})
}

func TestAnotherMasterKeyTakesOverWhileProcessesRun(t *testing.T) {
	onBoth(t, func(t *testing.T, place opener) {
		old, master := sealing.GenerateMasterKey(), sealing.GenerateMasterKey()
		one, two := open(t, place, old, time.Now), open(t, place, old, time.Now)
		sealed := seal(t, one, ann)
		if err := one.Rotate(t.Context(), master); err != nil {
			t.Fatalf("Rotate: %v", err)
		}
		opens(t, two, sealed)
		opens(t, two, seal(t, two, ben)) // which wraps a key
		if _, err := try(t, place, old, time.Now); !errors.Is(err, sealing.ErrKeyWrong) ||
			!strings.Contains(err.Error(), master.ID()) {
			t.Errorf("opened with the old master key: %v; want ErrKeyWrong with the id %s", err, master.ID())
		}
		if _, err := try(t, place, sealing.MasterKey{}, time.Now); !errors.Is(err, sealing.ErrKeyMissing) {
			t.Errorf("opened without a master key: %v; want ErrKeyMissing", err)
		}
		three := open(t, place, master, time.Now)
		opens(t, three, sealed)
		if err := three.Rotate(t.Context(), old); err != nil {
			t.Fatalf("Rotate back: %v", err)
		}
		opens(t, open(t, place, old, time.Now), sealed)
		if err := one.Rotate(t.Context(), sealing.MasterKey{}); !errors.Is(err, sealing.ErrKeyMissing) {
			t.Errorf("Rotate to no key: %v; want ErrKeyMissing", err)
		}
	})
}

func TestProcessesAgreeOnOneKeyForAUser(t *testing.T) {
	onBoth(t, func(t *testing.T, place opener) {
		const processes = 6
		master := sealing.GenerateMasterKey()
		sealed := make([][]byte, processes)
		failed := make([]error, processes)
		var all sync.WaitGroup
		for i := range processes { // also on an empty place
			all.Go(func() {
				p, err := place(false)
				if err != nil {
					failed[i] = err
					return
				}
				ring, err := keyring.Open(context.WithoutCancel(t.Context()), p, master, time.Now)
				if err == nil {
					sealed[i], err = ring.Seal(t.Context(), ann, "note", text)
				}
				failed[i] = errors.Join(err, p.Close())
			})
		}
		all.Wait()
		if err := errors.Join(failed...); err != nil {
			t.Fatal(err)
		}
		ring := open(t, place, master, time.Now)
		for _, s := range sealed {
			opens(t, ring, s)
			if !bytes.Equal(s[:17], sealed[0][:17]) {
				t.Errorf("a user has the keys %x and %x; want one", s[:17], sealed[0][:17])
			}
		}
	})
}

func owners(all ...keyring.Owner) iter.Seq2[keyring.Owner, error] {
	return func(yield func(keyring.Owner, error) bool) {
		for _, o := range all {
			if !yield(o, nil) {
				return
			}
		}
	}
}

func TestDeletionsThatACrashCutOffAreEnded(t *testing.T) {
	onBoth(t, func(t *testing.T, place opener) {
		now := time.Now()
		ring := open(t, place, sealing.GenerateMasterKey(), func() time.Time { return now })
		gone, stays := seal(t, ring, ann), seal(t, ring, ben)
		for _, o := range []keyring.Owner{ann, ben, {User: "has no key"}} {
			if err := ring.Mark(t.Context(), o, now.UnixMicro()); err != nil {
				t.Fatalf("Mark: %v", err)
			}
		}
		if n, err := ring.FinishDeletions(t.Context(), owners()); err != nil || n != 0 {
			t.Fatalf("FinishDeletions at once = %d, %v; want 0: the deletion may be going on", n, err)
		}
		now = now.Add(2 * time.Hour)
		broken := errors.New("broken")
		if _, err := ring.FinishDeletions(t.Context(), func(yield func(keyring.Owner, error) bool) {
			yield(keyring.Owner{}, broken)
		}); !errors.Is(err, broken) {
			t.Fatalf("FinishDeletions with a broken list = %v; want its error", err)
		}
		opens(t, ring, gone)
		if n, err := ring.FinishDeletions(t.Context(), owners(ben)); err != nil || n != 1 {
			t.Fatalf("FinishDeletions = %d, %v; want 1", n, err)
		}
		if _, err := ring.Open(t.Context(), "note", gone); !errors.Is(err, keyring.ErrErased) {
			t.Errorf("the deleted user's value: %v; want ErrErased", err)
		}
		opens(t, ring, stays)
		now = now.Add(2 * time.Hour)
		if n, err := ring.FinishDeletions(t.Context(), owners()); err != nil || n != 0 {
			t.Errorf("FinishDeletions again = %d, %v; want 0: the mark of the user who stays is gone", n, err)
		}
	})
}

func TestFilesGetOtherOwnersWithoutNewContent(t *testing.T) {
	onBoth(t, func(t *testing.T, place opener) {
		ring := open(t, place, sealing.GenerateMasterKey(), time.Now)
		f, err := ring.NewFile()
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(text)
		of := func(o keyring.Owner) []byte {
			record, err := ring.Record(t.Context(), o, f, sum[:])
			if err != nil || !keyring.IsRecord(record) || keyring.IsRecord(sum[:]) {
				t.Fatalf("Record = %x, %v; want a record, and none of a hash", record, err)
			}
			return record
		}
		first, second := of(ann), of(ben)
		chunk := f.Seal(3, text)
		if int64(len(chunk)) != int64(len(text))+f.Overhead() || bytes.Contains(chunk, text[:8]) {
			t.Errorf("a sealed chunk is %q; want %d bytes more than the text, without it", chunk, f.Overhead())
		}
		if _, err := ring.Erase(t.Context(), ann, 0); err != nil {
			t.Fatal(err)
		}
		if _, _, err := ring.OpenFile(t.Context(), first); !errors.Is(err, keyring.ErrErased) {
			t.Errorf("the first owner's record: %v; want ErrErased", err)
		}
		again, got, err := ring.OpenFile(t.Context(), second)
		if err != nil || !bytes.Equal(got, sum[:]) {
			t.Fatalf("OpenFile = %x, %v; want %x", got, err, sum)
		}
		if data, err := again.Open(3, chunk); err != nil || !bytes.Equal(data, text) {
			t.Errorf("the chunk is %q, %v; want %q", data, err, text)
		}
		for _, wrong := range [][]byte{chunk[1:], chunk[:len(chunk)-1], {}, nil} {
			if _, err := again.Open(3, wrong); !errors.Is(err, keyring.ErrSealed) {
				t.Errorf("a chunk of %d bytes: %v; want ErrSealed", len(wrong), err)
			}
		}
		if _, err := again.Open(2, chunk); !errors.Is(err, keyring.ErrSealed) {
			t.Errorf("a chunk in another place: %v; want ErrSealed", err)
		}
	})
}

func TestWithoutARingFilesAreStoredUnsealed(t *testing.T) {
	var none *keyring.Ring
	f, err := none.NewFile()
	if f != nil || err != nil {
		t.Fatalf("NewFile = %v, %v; want none", f, err)
	}
	sum := sha256.Sum256(text)
	if record, err := none.Record(t.Context(), ann, f, sum[:]); err != nil || !bytes.Equal(record, sum[:]) {
		t.Errorf("Record = %x, %v; want the hash", record, err)
	}
	if _, got, err := none.OpenFile(t.Context(), sum[:]); err != nil || !bytes.Equal(got, sum[:]) {
		t.Errorf("OpenFile = %x, %v; want the hash", got, err)
	}
	if data, err := f.Open(0, f.Seal(0, text)); err != nil || !bytes.Equal(data, text) || f.Overhead() != 0 {
		t.Errorf("a chunk is %q, %v; want %q", data, err, text)
	}
	if _, err := none.Erase(t.Context(), ann, 0); err != nil {
		t.Errorf("Erase: %v", err)
	}
}

// The store's folder must not reveal erased keys: neither the file nor its log contains one.
func TestAnErasedKeyLeavesNoBytes(t *testing.T) {
	dir := t.TempDir()
	place := func(readOnly bool) (db.Keys, error) {
		return sqlite.OpenKeys(t.Context(), filepath.Join(dir, "keys"), readOnly, nil)
	}
	ring := open(t, place, sealing.GenerateMasterKey(), time.Now)
	sealed := seal(t, ring, ann)
	wrapped := wrappedKey(t, place, sealed[1:17])
	if !held(t, dir, wrapped) {
		t.Fatal("the wrapped key is in no file before: the test looks at the wrong bytes")
	}
	if _, err := ring.Erase(t.Context(), ann, 0); err != nil {
		t.Fatal(err)
	}
	if held(t, dir, wrapped) {
		t.Error("the wrapped key is still in a file after it was erased")
	}
	if info, err := os.Stat(filepath.Join(dir, "keys")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has the permissions %v, %v; want 0600", info.Mode(), err)
	}
}

func wrappedKey(t *testing.T, place opener, id []byte) (wrapped []byte) {
	t.Helper()
	p, err := place(false)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Read(t.Context(), func(tx db.Tx) error {
		return tx.QueryRow(`SELECT wrapped FROM user_key WHERE id = ?`, id).Scan(&wrapped)
	}); err != nil {
		t.Fatal(err)
	}
	return wrapped
}

func held(t *testing.T, dir string, part []byte) (found bool) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, path))
		found = found || bytes.Contains(content, part)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestAPlaceToReadMakesNoKeys(t *testing.T) {
	onBoth(t, func(t *testing.T, place opener) {
		master := sealing.GenerateMasterKey()
		sealed := seal(t, open(t, place, master, time.Now), ann)
		p, err := place(true)
		if err != nil {
			t.Fatal(err)
		}
		ring, err := keyring.Open(t.Context(), p, master, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		defer ring.Close()
		opens(t, ring, sealed)
		if _, err := ring.Seal(t.Context(), ben, "note", text); !errors.Is(err, db.ErrReadOnly) {
			t.Errorf("a key was made in a place to read: %v; want ErrReadOnly", err)
		}
	})
}

func TestTheTablesOfAStoreAreNoPlaceForKeys(t *testing.T) {
	pgtest.Server(t)
	address := pgtest.Empty(t)
	if _, err := postgres.OpenKeys(t.Context(), address, db.Opening{Readers: 2}); !errors.Is(err, db.ErrForeign) {
		t.Errorf("OpenKeys in the schema of a store: %v; want ErrForeign", err)
	}
}

func TestMain(m *testing.M) { os.Exit(pgtest.Drop(m.Run())) }

func TestADeletedOwnerGetsNoNewKey(t *testing.T) {
	onBoth(t, func(t *testing.T, place opener) {
		ring := open(t, place, sealing.GenerateMasterKey(), time.Now)
		seal(t, ring, ann)
		for _, o := range []keyring.Owner{ann, {User: "has no key"}, ann} { // a repeated deletion is noted once
			if _, err := ring.Erase(t.Context(), o, 100); err != nil {
				t.Fatalf("Erase: %v", err)
			}
		}
		for changed, want := range map[int64]error{99: keyring.ErrDeleted, 0: keyring.ErrDeleted} {
			for _, user := range []string{"ann", "has no key"} {
				o := keyring.Owner{User: user, Changed: changed}
				if _, err := ring.Seal(t.Context(), o, "note", nil); !errors.Is(err, want) {
					t.Errorf("Seal for %+v: got %v, want %v", o, err, want)
				}
			}
		}
		s, err := ring.Status(t.Context())
		if err != nil || s.Keys != 0 || s.Erased != 1 || s.Deleted != 2 || s.Leaving != 0 {
			t.Errorf("Status: got %+v and %v, want one erased key and two deleted users", s, err)
		}
		seal(t, ring, keyring.Owner{User: "ann", Changed: 100})
		seal(t, ring, ben)
	})
}
