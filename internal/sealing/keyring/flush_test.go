package keyring_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/postgres"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
	"github.com/souvenir-ai/souvenir/internal/sealing"
	"github.com/souvenir-ai/souvenir/internal/sealing/keyring"
)

// The pages of PostgreSQL, as its functions read them, no longer contain an erased key.
func TestAnErasedKeyLeavesThePagesOfPostgreSQL(t *testing.T) {
	pgtest.Server(t)
	pgtest.NotOnCitus(t, "user keys are in a schema of their own on the coordinator")
	place, err := postgres.OpenKeys(t.Context(), pgtest.Address(t), db.Opening{Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	ring, err := keyring.Open(t.Context(), place, sealing.GenerateMasterKey(), time.Now)
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
		t.Fatal("the pages lack the last key before its erasure")
	}
	for i := range 20 {
		i = (i*7 + 19) % 20
		if _, err := ring.Erase(t.Context(), keyring.Owner{User: fmt.Sprint(i)}, 0); err != nil {
			t.Fatal(err)
		}
		checkpoint()
		if bytes.Contains(pages(), keys[i]) {
			t.Errorf("the pages have the key of user %d after its erasure", i)
		}
	}
}
