package accesstoken

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"strings"
	"sync"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
)

// Key is a key that signs tokens.
type Key struct {
	ID      string
	private ed25519.PrivateKey
}

// Public returns the half of the key that verifies.
func (k Key) Public() ed25519.PublicKey {
	return ed25519.PublicKey(k.private[ed25519.PrivateKeySize-ed25519.PublicKeySize:])
}

// Signature signs bytes.
func (k Key) Signature(signed []byte) []byte { return ed25519.Sign(k.private, signed) }

// StoredKey is a key with its times, in microseconds.
type StoredKey struct {
	Key
	Created int64
	Retired int64 // when it stopped signing; 0: it is the signing key
}

// Keys are the keys of a store. They are stored in the file, so that all processes on it accept each other's tokens,
// and tokens stay valid across a restart. The zero value has read none yet.
type Keys struct {
	known    sync.Map // key id -> Key; the key of an id never changes
	verified verifiedTokens
}

// List returns the keys whose tokens are still accepted, the signing key first.
func List(tx db.Tx, now int64) ([]StoredKey, error) {
	var all []StoredKey
	err := tx.Each(func(row db.Rows) error {
		var k StoredKey
		var seed []byte
		if err := row.Scan(&k.ID, &seed, &k.Created, &k.Retired); err != nil {
			return err
		}
		var err error
		if k.Key, err = newKey(k.ID, seed); err == nil {
			all = append(all, k)
		}
		return err
	}, `SELECT kid, private_key, created_at, coalesce(retired_at, 0) FROM signing_key
		WHERE algorithm = ? AND (retired_at IS NULL OR retired_at >= ?)
		ORDER BY retired_at IS NOT NULL, retired_at DESC, id DESC`, Algorithm, now-KeyLife.Microseconds())
	return all, err
}

// Rotate retires the signing key and makes a new one. It deletes the keys whose tokens have all expired.
func Rotate(tx db.Tx, now int64) (Key, error) {
	if _, err := tx.Exec(`UPDATE signing_key SET retired_at = ? WHERE algorithm = ? AND retired_at IS NULL`, now,
		Algorithm); err != nil {
		return Key{}, err
	}
	key, err := add(tx, now)
	if err != nil {
		return Key{}, err
	}
	_, err = tx.Exec(`DELETE FROM signing_key WHERE algorithm = ? AND retired_at < ?`, Algorithm,
		now-KeyLife.Microseconds())
	return key, err
}

// Current returns the signing key, and makes one if there is none. It reads the file each time, since another process
// may have rotated the key; only one process writes at a time, so two cannot both make one.
func (k *Keys) Current(tx db.Tx, now int64) (Key, error) {
	ids, err := db.Column[string](tx, `SELECT kid FROM signing_key WHERE algorithm = ? AND retired_at IS NULL`, Algorithm)
	if err != nil {
		return Key{}, err
	}
	if len(ids) == 0 {
		return add(tx, now)
	}
	key, found, err := k.Find(tx, ids[0])
	if err == nil && !found {
		err = fault.Damaged(db.ErrNoRows, "the signing key %s", ids[0])
	}
	return key, err
}

func add(tx db.Tx, now int64) (Key, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Key{}, err
	}
	key := Key{ID: strings.ToLower(rand.Text()), private: private}
	_, err = tx.Exec(`INSERT INTO signing_key (kid, algorithm, private_key, created_at) VALUES (?, ?, ?, ?)`, key.ID,
		Algorithm, private.Seed(), now)
	return key, err
}

// Find returns a key by its id, from memory or from the file.
func (k *Keys) Find(tx db.Tx, id string) (key Key, found bool, err error) {
	if known, ok := k.known.Load(id); ok {
		return known.(Key), true, nil
	}
	seeds, err := db.Column[[]byte](tx, `SELECT private_key FROM signing_key WHERE kid = ? AND algorithm = ?`, id,
		Algorithm)
	if err != nil || len(seeds) == 0 {
		return Key{}, false, err
	}
	if key, err = newKey(id, seeds[0]); err != nil {
		return Key{}, false, err
	}
	k.known.Store(id, key)
	return key, true, nil
}

// Forget drops all keys from memory. They are read from the file again.
func (k *Keys) Forget() { k.known.Clear() }

// public returns the public half of a key, nil if it is unknown. It opens a transaction only for a key not in memory.
func (k *Keys) public(ctx context.Context, store db.DB, id string) (any, error) {
	if known, ok := k.known.Load(id); ok {
		return known.(Key).Public(), nil
	}
	var key Key
	var found bool
	err := store.Read(ctx, func(tx db.Tx) (err error) {
		key, found, err = k.Find(tx, id)
		return err
	})
	if err != nil || !found {
		return nil, err
	}
	return key.Public(), nil
}

func newKey(id string, seed []byte) (Key, error) {
	if len(seed) != ed25519.SeedSize {
		return Key{}, fault.Damaged(errors.New("it has a wrong length"), "the signing key %s", fault.Show(id))
	}
	return Key{ID: id, private: ed25519.NewKeyFromSeed(seed)}, nil
}
