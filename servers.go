package souvenir

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/souvenir-ai/souvenir/internal/auth/accesstoken"
	"github.com/souvenir-ai/souvenir/internal/auth/browsermark"
	"github.com/souvenir-ai/souvenir/internal/auth/serverkeys"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/sharedstate"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// What all servers of a store share: the keys that sign access tokens, a secret, and small values for a short while.

// SigningKey is the public half of a key that signs access tokens. It encodes to a JSON Web Key (RFC 7517, RFC 8037).
type SigningKey struct {
	ID        string // kid
	Public    ed25519.PublicKey
	CreatedAt time.Time
	RetiredAt time.Time // when it stopped signing; zero: it is the signing key
}

// MarshalJSON returns kty, crv, x, kid, use and alg.
func (k SigningKey) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Type      string `json:"kty"`
		Curve     string `json:"crv"`
		X         string `json:"x"`
		ID        string `json:"kid"`
		Use       string `json:"use"`
		Algorithm string `json:"alg"`
	}{"OKP", "Ed25519", base64.RawURLEncoding.EncodeToString(k.Public), k.ID, "sig", accesstoken.Algorithm})
}

// SigningKeys returns the keys whose tokens are accepted, the signing key first; none before the first token.
func (h *Accounts) SigningKeys(ctx context.Context) ([]SigningKey, error) {
	s, err := h.serving(ctx, "SigningKeys")
	if err != nil {
		return nil, err
	}
	all := []SigningKey{}
	err = s.readStore(ctx, func(tx db.Tx) error {
		found, err := accesstoken.List(tx, s.now())
		for _, k := range found {
			key := SigningKey{ID: k.ID, Public: k.Public(), CreatedAt: kernel.ToTime(k.Created)}
			if k.Retired != 0 {
				key.RetiredAt = kernel.ToTime(k.Retired)
			}
			all = append(all, key)
		}
		return err
	})
	return all, err
}

// RotateSigningKey makes a new key for future tokens. The old one no longer signs; tokens that it signed are accepted
// until they expire, at most an hour later. The marks of browsers (see [AddedSignIn]) and the key of
// [Accounts.GetSealingKey] become invalid at once.
func (h *Accounts) RotateSigningKey(ctx context.Context) (SigningKey, error) {
	s, err := h.serving(ctx, "RotateSigningKey")
	if err != nil {
		return SigningKey{}, err
	}
	var made SigningKey
	err = s.writeStore(ctx, func(tx db.Tx) error {
		now := s.now()
		err := cmp.Or(serverkeys.Remove(tx, markAlgorithm), serverkeys.Remove(tx, sealAlgorithm), purgeKeys(tx, now))
		if err != nil {
			return err
		}
		key, err := accesstoken.Rotate(tx, now)
		if err == nil {
			made = SigningKey{ID: key.ID, Public: key.Public(), CreatedAt: kernel.ToTime(now)}
		}
		return s.note(ctx, tx, err, event{"key.rotate", "key", AuditID("key", made.ID), nil})
	})
	if err != nil {
		return SigningKey{}, err
	}
	return made, nil
}

// purgeKeys deletes the keys with which nothing can be verified any more.
func purgeKeys(tx db.Tx, now int64) error {
	return serverkeys.RemoveRetired(tx, now-accesstoken.KeyLife.Microseconds(), markAlgorithm,
		now-browsermark.Life.Microseconds())
}

// The algorithms of keys that are stored with the signing keys (RFC 7518), so that they stay valid after a restart and
// for all processes on a store.
const (
	markAlgorithm = "HS256"   // of marks of browsers
	sealAlgorithm = "A256GCM" // of [Accounts.GetSealingKey]
)

// GetSealingKey returns the secret with which servers seal data that browsers keep for them: 32 bytes, the same for
// every server on the store. The first call creates it. It is replaced when the signing key is rotated. On a read-only
// store that has none it is ErrReadOnly.
func (h *Accounts) GetSealingKey(ctx context.Context) ([]byte, error) {
	const size = 32
	s, err := h.serving(ctx, "GetSealingKey")
	if err != nil {
		return nil, err
	}
	var key serverkeys.Key
	found := false
	err = s.readStore(ctx, func(tx db.Tx) (err error) {
		key, found, err = serverkeys.Current(tx, sealAlgorithm)
		return err
	})
	if err == nil && !found {
		err = s.writeStore(ctx, func(tx db.Tx) (err error) {
			key, err = serverkeys.CurrentOrNew(tx, sealAlgorithm, size, s.now())
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	return key.Secret, nil
}

// SharedValuesUpdate is a change of values that all servers of a store share; see [Accounts.UpdateSharedValues].
type SharedValuesUpdate struct {
	Keys []string      // at most 16 different ones, of 1 to 200 bytes
	Life time.Duration // how long a new value is kept: more than 0, at most a day
	// Change receives the values in the order of the keys, nil for missing ones, and replaces the ones that change;
	// setting nil deletes a value. A value has at most 1,000 bytes. Change may run again before UpdateSharedValues
	// returns, so it must reset its results each time.
	Change func(values [][]byte)
}

// Limits of [Accounts.UpdateSharedValues].
const (
	maxSharedKeys   = 16
	maxSharedKey    = 200
	maxSharedValue  = 1000
	maxSharedLife   = 24 * time.Hour
	maxSharedValues = 50_000 // of the store; beyond that, the ones that expire first are deleted
	trimEvery       = 64     // updates
)

// UpdateSharedValues changes small values that all servers on the store share for a while, such as counts of failed
// sign-ins, in one transaction. Exports and copies leave them out. If there are too many values, the oldest are deleted
// early.
//
// It is for the Store that Open returned; a view gets ErrForbidden.
func (h *Accounts) UpdateSharedValues(ctx context.Context, u SharedValuesUpdate) (err error) {
	defer setGoNames[SharedValuesUpdate](&err)
	s, err := h.serving(ctx, "UpdateSharedValues")
	if err != nil {
		return err
	}
	if err := u.check(); err != nil {
		return err
	}
	if s.sharedUpdates.Add(1)%trimEvery == 1 {
		err := s.writeStore(ctx, func(tx db.Tx) error { return sharedstate.Trim(tx, maxSharedValues) })
		if err != nil {
			return err
		}
	}
	return s.writeStore(ctx, func(tx db.Tx) error {
		var tooLong error
		err := sharedstate.Update(tx, u.Keys, u.Life, func(values [][]byte) {
			u.Change(values)
			for i, value := range values {
				if len(value) > maxSharedValue {
					tooLong = newError(KindTooLarge, "Change", "{} makes a value of %d bytes for the key %s; at most %d are allowed",
						len(value), show(u.Keys[i]), maxSharedValue)
				}
			}
		})
		if tooLong != nil {
			return tooLong
		}
		return err
	})
}

func (u SharedValuesUpdate) check() error {
	if n := len(u.Keys); n == 0 || n > maxSharedKeys {
		return invalid("Keys", "{} has %d keys; expected 1 to %d", n, maxSharedKeys)
	}
	known := map[string]bool{}
	for _, key := range u.Keys {
		if n := len(key); n == 0 || n > maxSharedKey {
			return invalid("Keys", "{} has a key of %d bytes; expected 1 to %d", n, maxSharedKey)
		}
		if err := valid.Text("Keys", key); err != nil {
			return err
		}
		if known[key] {
			return invalid("Keys", "{} has %s twice; give each key once", show(key))
		}
		known[key] = true
	}
	if u.Life <= 0 || u.Life > maxSharedLife {
		return invalid("Life", "{} is %s; expected more than 0 and at most %s", u.Life, maxSharedLife)
	}
	if u.Change == nil {
		return invalid("Change", "{} is nil; give a function")
	}
	return nil
}
