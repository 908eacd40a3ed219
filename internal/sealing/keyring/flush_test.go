package keyring_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/postgres"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
	"github.com/souvenir-ai/souvenir/internal/sealing"
	"github.com/souvenir-ai/souvenir/internal/sealing/keyring"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
)

// The pages of PostgreSQL, as its functions read them, no longer contain an erased key.
func TestAnErasedKeyLeavesThePagesOfPostgreSQL(t *testing.T) {
	pgtest.Server(t)
	pgtest.NotOnCitus(t, "user keys are in a schema of their own on the coordinator")
	now := time.Now()
	place, err := postgres.OpenKeys(t.Context(), pgtest.Address(t), db.Opening{Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	ring, err := keyring.Open(t.Context(), place, sealing.GenerateMasterKey(), func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	defer ring.Close()
	pages := func() (pages []byte) {
		err := place.Read(t.Context(), func(tx db.Tx) error {
			return tx.QueryRow(`SELECT pg_read_binary_file(pg_relation_filepath('user_key'))`).Scan(&pages)
		})
		if err != nil {
			t.Skipf("the role may not read files of the server: %v", err)
		}
		return pages
	}
	checkpoint := func() {
		if err := place.Write(t.Context(), func(tx db.Tx) error { _, err := tx.Exec(`CHECKPOINT`); return err }); err != nil {
			t.Fatal(err)
		}
	}
	keys := map[int][]byte{}
	for i := range 20 {
		now = now.Add(time.Second)
		seal(t, ring, keyring.Owner{User: fmt.Sprint(i)})
		if err := place.Read(t.Context(), func(tx db.Tx) error {
			var key []byte
			err := tx.QueryRow(`SELECT wrapped FROM user_key ORDER BY made_at DESC LIMIT 1`).Scan(&key)
			keys[i] = key
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	checkpoint()
	if !bytes.Contains(pages(), keys[19]) {
		t.Fatal("the pages lack the last key before its erasure, want it there")
	}
	for i := range 20 {
		i = (i*7 + 19) % 20
		end := func() {}
		if i == 0 { // a transaction that may still see the key
			end = reading(t, place)
		}
		if _, err := ring.Erase(t.Context(), keyring.Owner{User: fmt.Sprint(i)}, 0); err != nil {
			t.Fatal(err)
		}
		checkpoint()
		if i == 0 && !bytes.Contains(pages(), keys[i]) {
			t.Error("the pages lack a key that a transaction may still see, so the test shows nothing; want it there")
		}
		end()
		for try := 0; bytes.Contains(pages(), keys[i]); try++ { // also while other tests have transactions
			if try == 100 {
				t.Fatalf("got pages with the key of user %d after its erasure, want none", i)
			}
			settleLater(t, ring, &now)
			checkpoint()
		}
	}
}

// While others read the file, its log keeps what they may see. Once they end, the key is removed from it, too; also if
// traces were removed before while the clock was ahead.
func TestTracesOfAnErasedKeyAreRemovedOnceReadersEnd(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	place := func(readOnly bool) (db.Keys, error) {
		return sqlite.OpenKeys(t.Context(), filepath.Join(dir, "keys"), readOnly, nil)
	}
	ring := open(t, place, sealing.GenerateMasterKey(), func() time.Time { return now })
	wrapped := wrappedKey(t, place, seal(t, ring, ann)[1:17])
	const ahead = 365 * 24 * time.Hour
	ben := keyring.Owner{User: "ben"}
	seal(t, ring, ben)
	now = now.Add(ahead)
	if _, err := ring.Erase(t.Context(), ben, 0); err != nil {
		t.Fatal(err)
	}
	settleLater(t, ring, &now)
	now = now.Add(-ahead)
	other, err := place(true)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	end := reading(t, other)
	if _, err := ring.Erase(t.Context(), ann, 0); err != nil {
		t.Errorf("Erase while others read: got %v, want no error: the key is erased", err)
	}
	settleLater(t, ring, &now)
	if !held(t, dir, wrapped) {
		t.Error("the wrapped key is in no file while others read, so the test shows nothing")
	}
	end()
	settleLater(t, ring, &now)
	if held(t, dir, wrapped) {
		t.Error("got a file with the wrapped key after readers ended, want none")
	}
}

// reading begins to read a place, and returns a function that ends it.
func reading(t *testing.T, place db.Keys) (end func()) {
	t.Helper()
	began, ended, result := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		result <- place.Read(t.Context(), func(tx db.Tx) error {
			var n int
			err := tx.QueryRow(`SELECT count(*) FROM user_key`).Scan(&n)
			close(began)
			<-ended
			return err
		})
	}()
	<-began
	return func() {
		close(ended)
		if err := <-result; err != nil {
			t.Fatal(err)
		}
	}
}

// settleLater settles deletions two hours later.
func settleLater(t *testing.T, ring *keyring.Ring, now *time.Time) {
	t.Helper()
	*now = now.Add(2 * time.Hour)
	if _, err := ring.FinishDeletions(t.Context(), owners()); err != nil {
		t.Fatalf("FinishDeletions: got %v, want no error", err)
	}
}
