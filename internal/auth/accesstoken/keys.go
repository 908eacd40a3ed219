package accesstoken

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"math"
	"sync"

	"github.com/souvenir-ai/souvenir/internal/auth/serverkeys"
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
	mu       sync.RWMutex
	known    map[string]Key // by id; the key of an id never changes
	verified verifiedTokens
}

// List returns the keys whose tokens are still accepted, the signing key first.
func List(tx db.Tx, now int64) ([]StoredKey, error) {
	found, err := serverkeys.List(tx, Algorithm, now-KeyLife.Microseconds())
	var all []StoredKey
	for _, k := range found {
		key, err := newKey(k)
		if err != nil {
			return nil, err
		}
		all = append(all, StoredKey{key, k.Created, k.Retired})
	}
	return all, err
}

// Rotate retires the signing key and makes a new one.
func Rotate(tx db.Tx, now int64) (Key, error) {
	if err := serverkeys.Retire(tx, Algorithm, now, math.MaxInt64); err != nil {
		return Key{}, err
	}
	return add(tx, now)
}

// Current returns the signing key, and makes one if there is none. It reads the file each time, since another process
// may have rotated the key; only one process writes at a time, so two cannot both make one.
func (k *Keys) Current(tx db.Tx, now int64) (Key, error) {
	stored, found, err := serverkeys.Current(tx, Algorithm)
	if err != nil {
		return Key{}, err
	}
	if !found {
		return add(tx, now)
	}
	return k.keep(stored)
}

func add(tx db.Tx, now int64) (Key, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Key{}, err
	}
	stored, err := serverkeys.Add(tx, Algorithm, private.Seed(), now)
	return Key{ID: stored.ID, private: private}, err
}

// Find returns a key by its id, from memory or from the file.
func (k *Keys) Find(tx db.Tx, id string) (key Key, found bool, err error) {
	if known, ok := k.kept(id); ok {
		return known, true, nil
	}
	stored, found, err := serverkeys.Find(tx, Algorithm, id)
	if err != nil || !found {
		return Key{}, false, err
	}
	key, err = k.keep(stored)
	return key, err == nil, err
}

// keep returns a stored key, and keeps it in memory.
func (k *Keys) keep(stored serverkeys.Key) (Key, error) {
	if known, ok := k.kept(stored.ID); ok {
		return known, nil
	}
	key, err := newKey(stored)
	if err == nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.known == nil {
			k.known = map[string]Key{}
		}
		k.known[key.ID] = key
	}
	return key, err
}

// kept returns a key that is in memory.
func (k *Keys) kept(id string) (key Key, ok bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	key, ok = k.known[id]
	return key, ok
}

// Forget drops all keys from memory. They are read from the file again.
func (k *Keys) Forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.known)
}

// public returns the public half of a key, nil if it is unknown. It opens a transaction only for a key not in memory.
func (k *Keys) public(ctx context.Context, store db.DB, id string) (any, error) {
	if known, ok := k.kept(id); ok {
		return known.Public(), nil
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

func newKey(stored serverkeys.Key) (Key, error) {
	if len(stored.Secret) != ed25519.SeedSize {
		return Key{}, fault.Damaged(errors.New("it has a wrong length"), "the signing key %s", fault.Show(stored.ID))
	}
	return Key{ID: stored.ID, private: ed25519.NewKeyFromSeed(stored.Secret)}, nil
}
