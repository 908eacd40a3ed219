// Package keyring keeps a key for each user. The store seals the user's data with it. The keys are kept apart from the
// store: once a user's key is erased, no backup of the store can open the data sealed with it.
//
// Each key is wrapped by the ring's key, which is wrapped by the master key. So a new master key changes only one row.
// Sealed values begin with the id of their key. The id of an erased key stays, so that a store restored from an older
// backup reports erased data instead of damage.
package keyring

import (
	"context"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/lru"
	"github.com/souvenir-ai/souvenir/internal/sealing"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
)

// ID identifies a user key. It is random.
type ID [16]byte

// Owner is the user to whom a key belongs.
type Owner struct {
	Namespace, User string

	Changed int64 // when the user's row in the store last changed
}

// The classes of errors.
var (
	ErrErased  = sealedrows.ErrErased
	ErrUnknown = errors.New("the key is not in the ring: the ring is older than the store, or belongs to another store")
	ErrNone    = errors.New("it is sealed with a user's key, but the store was opened without user keys")
	ErrSealed  = errors.New("the sealed value has changed, or is incomplete")
)

const (
	// fresh is how long a cached key may open values before its row is read again.
	fresh = time.Minute
	// cached is the maximum size of all keys in memory, in bytes; a key counts as keyBytes.
	cached   = 4 << 20
	keyBytes = 320
)

// Ring holds the keys of all users. It is safe for concurrent use, and several processes may share a place. A nil ring
// seals nothing, and opens only values that are not sealed.
type Ring struct {
	place  db.Keys
	now    func() time.Time
	wrap   cipher.AEAD
	owner  []byte // the key of the hash of owners
	id     int64
	keys   lru.Cache // *key by ID
	owners lru.Cache // *key by ownerHash

	flushed atomic.Int64 // when traces of erased keys were last removed, in microseconds since 1970

	mu   sync.Mutex
	ring *sealing.Ring
}

// ownerHash identifies an owner in the place.
type ownerHash [16]byte

// key is a user's key.
type key struct {
	id     ID
	aead   cipher.AEAD
	blind  []byte    // the key of blinded values
	looked time.Time // when its row was last seen; the zero time: it was erased by this process
}

// Open opens the keys in a place, and makes the ring's key if the place is empty. If it succeeds, the ring closes the
// place. Errors about the master key are those of package sealing.
func Open(ctx context.Context, place db.Keys, master sealing.MasterKey, now func() time.Time) (*Ring, error) {
	r := &Ring{place: place, now: now, ring: sealing.NewRing(master)}
	var header []byte
	find := func(tx db.Tx) (err error) {
		header, err = headerOf(tx)
		return err
	}
	err := place.Read(ctx, find)
	if err == nil && header == nil {
		err = place.Write(ctx, func(tx db.Tx) error {
			if err := find(tx); err != nil || header != nil {
				return err
			}
			made, _, err := r.ring.New()
			if err != nil {
				return err
			}
			header = made
			_, err = tx.Exec(`INSERT INTO ring (one, header) VALUES (1, ?)`, header)
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	of, err := r.ring.Open(header)
	if err != nil {
		return nil, err
	}
	wrap, err := of.Derive("wrap user keys")
	if err == nil {
		r.wrap, err = chacha20poly1305.NewX(wrap)
	}
	if err == nil {
		r.owner, err = of.Derive("hash owners of keys")
	}
	id := of.ID()
	r.id = int64(binary.BigEndian.Uint64(id[:8])>>1) | 1 // never 0
	return r, err
}

// randomNumber returns a random number that is not 0, and not negative.
func randomNumber() int64 {
	var n [8]byte
	_, _ = rand.Read(n[:]) // it never fails
	return int64(binary.BigEndian.Uint64(n[:])>>1) | 1
}

// IsMade reports whether a place has a ring.
func IsMade(ctx context.Context, place db.Keys) (made bool, err error) {
	err = place.Read(ctx, func(tx db.Tx) error {
		header, err := headerOf(tx)
		made = header != nil
		return err
	})
	return made, err
}

func headerOf(tx db.Tx) ([]byte, error) {
	found, err := db.Column[[]byte](tx, `SELECT header FROM ring`)
	return append(found, nil)[0], err
}

// ID returns a random number by which a store recognizes its keys. It is not 0.
func (r *Ring) ID() int64 { return r.id }

// Close closes the place.
func (r *Ring) Close() error {
	if r == nil {
		return nil
	}
	return r.place.Close()
}

// Rotate wraps the keys with another master key. Processes with an open ring continue, and need the new master key when
// they next open it.
func (r *Ring) Rotate(ctx context.Context, to sealing.MasterKey) error {
	if to.IsZero() {
		return sealing.ErrKeyMissing
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.place.Write(ctx, func(tx db.Tx) error {
		header, err := headerOf(tx)
		if err != nil {
			return err
		}
		slots, err := r.ring.Rewrap(header, to)
		if err != nil {
			return err
		}
		for _, s := range slots {
			copy(header[s.At:], s.Data)
		}
		_, err = tx.Exec(`UPDATE ring SET header = ?`, header)
		return err
	})
	if err == nil {
		r.ring.Taken(to)
	}
	return err
}

// hash returns the name of an owner in the place, which contains no ids of users.
func (r *Ring) hash(o Owner) []byte {
	mac := hmac.New(sha256.New, r.owner)
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(o.Namespace))))
	mac.Write([]byte(o.Namespace))
	mac.Write([]byte(o.User))
	return mac.Sum(nil)[:16]
}

// bound is the context that the wrapped key of an owner is bound to.
func bound(id ID, owner []byte) []byte {
	return append(append([]byte("key of a user\x00"), id[:]...), owner...)
}

// current returns the key that seals an owner's data, and makes it if there is none. It always reads the place: another
// process may have erased the key.
func (r *Ring) current(ctx context.Context, o Owner) (k *key, err error) {
	owner := r.hash(o)
	if k, err = r.there(ctx, owner); err != nil || k != nil {
		return k, err
	}
	err = r.place.Write(ctx, func(tx db.Tx) error {
		if k, err = r.read(tx, owner); err != nil || k != nil {
			return err
		}
		if err := r.checkNotDeleted(tx, owner, o); err != nil {
			return err
		}
		var id ID
		plain, wrapped := make([]byte, sealing.KeySize), make([]byte, r.wrap.NonceSize())
		_, _ = rand.Read(id[:]) // none of these fails
		_, _ = rand.Read(plain)
		_, _ = rand.Read(wrapped)
		wrapped = r.wrap.Seal(wrapped, wrapped, plain, bound(id, owner))
		if k, err = r.unwrap(id[:], owner, wrapped); err != nil {
			return err
		}
		_, err := tx.Exec(`INSERT INTO user_key (id, owner, wrapped, made_at) VALUES (?, ?, ?, ?)`, id[:], owner, wrapped,
			r.now().UnixMicro())
		return err
	})
	return k, err
}

// there reads the key of an owner from the place, nil if there is none.
func (r *Ring) there(ctx context.Context, owner []byte) (k *key, err error) {
	err = r.place.Read(ctx, func(tx db.Tx) error {
		k, err = r.read(tx, owner)
		return err
	})
	return k, err
}

func (r *Ring) read(tx db.Tx, owner []byte) (k *key, err error) {
	err = tx.Each(func(row db.Rows) error {
		var id, wrapped []byte
		err := row.Scan(&id, &wrapped)
		if err == nil {
			k, err = r.unwrap(id, owner, wrapped)
		}
		return err
	}, `SELECT id, wrapped FROM user_key WHERE owner = ?`, owner)
	return k, err
}

func (r *Ring) unwrap(id, owner, wrapped []byte) (*key, error) {
	size := r.wrap.NonceSize()
	if len(id) != len(ID{}) || len(wrapped) < size {
		return nil, fmt.Errorf("%w: the key of a user", ErrSealed)
	}
	k := &key{id: ID(id), looked: r.now()}
	plain, err := r.wrap.Open(nil, wrapped[:size], wrapped[size:], bound(k.id, owner))
	if err != nil {
		return nil, fmt.Errorf("%w: the key %x of a user", ErrSealed, id)
	}
	values, err := hkdf.Expand(sha256.New, plain, "souvenir: seal values", sealing.KeySize)
	if err == nil {
		k.aead, err = chacha20poly1305.NewX(values)
	}
	if err == nil {
		k.blind, err = hkdf.Expand(sha256.New, plain, "souvenir: blind values", sealing.KeySize)
	}
	return k, err
}

// find returns a key by its id.
func (r *Ring) find(ctx context.Context, id ID) (k *key, err error) {
	if known, ok := lru.Get[*key](&r.keys, id); ok && r.now().Sub(known.looked) < fresh {
		return known, nil
	}
	there := false
	err = r.place.Read(ctx, func(tx db.Tx) error {
		return tx.Each(func(row db.Rows) error {
			var owner, wrapped []byte
			if err := row.Scan(&owner, &wrapped); err != nil {
				return err
			}
			there = true
			if len(wrapped) == 0 {
				return fmt.Errorf("%w: %x", ErrErased, id)
			}
			k, err = r.unwrap(id[:], owner, wrapped)
			return err
		}, `SELECT owner, wrapped FROM user_key WHERE id = ?`, id[:])
	})
	if err == nil && !there {
		err = fmt.Errorf("%w: %x", ErrUnknown, id)
	}
	if err != nil {
		r.keys.Put(id, &key{}, keyBytes, cached) // the cached one must not be used
		return nil, err
	}
	r.keys.Put(id, k, keyBytes, cached)
	return k, nil
}
