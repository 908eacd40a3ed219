package souvenir

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"time"

	"github.com/souvenir-ai/souvenir/internal/auth/accesstoken"
	"github.com/souvenir-ai/souvenir/internal/auth/secretvalue"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

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
		if _, err := tx.Exec(`DELETE FROM signing_key WHERE algorithm IN (?, ?)`, markAlgorithm,
			sealAlgorithm); err != nil {
			return err
		}
		now := s.now()
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

// sealAlgorithm is the algorithm of the key of [Accounts.GetSealingKey] (RFC 7518).
const sealAlgorithm = "A256GCM"

// GetSealingKey returns the secret with which servers seal data that browsers keep for them: 32 bytes, the same for
// every server on the store. The first call creates it. It is replaced when the signing key is rotated. On a read-only
// store that has none it is ErrReadOnly.
func (h *Accounts) GetSealingKey(ctx context.Context) (key []byte, err error) {
	s, err := h.serving(ctx, "GetSealingKey")
	if err != nil {
		return nil, err
	}
	find := func(tx db.Tx) error {
		return tx.QueryRow(`SELECT private_key FROM signing_key WHERE algorithm = ? AND retired_at IS NULL`,
			sealAlgorithm).Scan(&key)
	}
	err = s.readStore(ctx, find)
	if !errors.Is(err, db.ErrNoRows) {
		return key, err
	}
	err = s.writeStore(ctx, func(tx db.Tx) error {
		if err := find(tx); !errors.Is(err, db.ErrNoRows) {
			return err
		}
		key = make([]byte, 32)
		_, _ = rand.Read(key) // never fails
		_, err := tx.Exec(`INSERT INTO signing_key (kid, algorithm, private_key, created_at) VALUES (?, ?, ?, ?)`,
			secretvalue.Identifier(), sealAlgorithm, key, s.now())
		return err
	})
	if err != nil {
		return nil, err
	}
	return key, nil
}
