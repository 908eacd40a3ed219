package souvenir

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// The keys that access tokens are signed with. They lie in the file, so that all processes on it accept each other's tokens,
// and tokens outlive a restart.

// algorithm is the only one: Ed25519 (RFC 8037).
const algorithm = "EdDSA"

// SigningKey is the public half of a key that access tokens are signed with. It encodes to a JSON Web Key (RFC 7517, RFC 8037).
type SigningKey struct {
	ID        string // kid
	Public    ed25519.PublicKey
	CreatedAt time.Time
	RetiredAt time.Time // since when it signs no more; zero: it is the one that signs
}

// MarshalJSON gives kty, crv, x, kid, use and alg.
func (k SigningKey) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Type      string `json:"kty"`
		Curve     string `json:"crv"`
		X         string `json:"x"`
		ID        string `json:"kid"`
		Use       string `json:"use"`
		Algorithm string `json:"alg"`
	}{"OKP", "Ed25519", base64.RawURLEncoding.EncodeToString(k.Public), k.ID, "sig", algorithm})
}

// signingKey is a key with its private half, as it is kept in memory.
type signingKey struct {
	id      string
	private ed25519.PrivateKey
}

func (k signingKey) public() ed25519.PublicKey {
	return ed25519.PublicKey(k.private[ed25519.PrivateKeySize-ed25519.PublicKeySize:])
}

// SigningKeys returns the keys whose tokens are accepted, the one that signs first; none before the first token. Only for the operator's store.
func (h *Accounts) SigningKeys(ctx context.Context) ([]SigningKey, error) {
	s, err := h.operator("SigningKeys")
	if err != nil {
		return nil, err
	}
	all := []SigningKey{}
	err = s.inspect(ctx, func(tx db.Tx) error {
		return tx.Each(func(row db.Rows) error {
			var k SigningKey
			var seed []byte
			var created, retired int64
			if err := row.Scan(&k.ID, &seed, &created, &retired); err != nil {
				return err
			}
			key, err := newSigningKey(k.ID, seed)
			if err != nil {
				return err
			}
			k.Public, k.CreatedAt = key.public(), toTime(created)
			if retired != 0 {
				k.RetiredAt = toTime(retired)
			}
			all = append(all, k)
			return nil
		}, `SELECT kid, private_key, created_at, coalesce(retired_at, 0) FROM signing_key
			WHERE retired_at IS NULL OR retired_at >= ? ORDER BY retired_at IS NOT NULL, retired_at DESC, id DESC`,
			s.now()-(accessLifetime+clockLeeway).Microseconds())
	})
	return all, err
}

// RotateSigningKey makes a new key for the tokens to come. The old one signs nothing more; what it has signed is accepted
// until it expires, at most an hour later. Only for the operator's store.
func (h *Accounts) RotateSigningKey(ctx context.Context) (SigningKey, error) {
	s, err := h.operator("RotateSigningKey")
	if err != nil {
		return SigningKey{}, err
	}
	var made SigningKey
	err = s.operate(ctx, func(tx db.Tx) error {
		now := s.now()
		if _, err := tx.Exec(`UPDATE signing_key SET retired_at = ? WHERE retired_at IS NULL`, now); err != nil {
			return err
		}
		key, err := s.addSigningKey(tx)
		made = SigningKey{ID: key.id, Public: key.public(), CreatedAt: toTime(now)}
		if err != nil {
			return err
		}
		_, err = tx.Exec(`DELETE FROM signing_key WHERE retired_at < ?`, now-(accessLifetime+clockLeeway).Microseconds())
		return err
	})
	if err != nil {
		return SigningKey{}, err
	}
	return made, nil
}

// currentKey returns the key that signs and makes it when there is none. It asks the file each time, since another process
// may have rotated it; only one process at a time writes, so that two do not make one each.
func (s *shared) currentKey(tx db.Tx) (signingKey, error) {
	ids, err := db.Column[string](tx, `SELECT kid FROM signing_key WHERE algorithm = ? AND retired_at IS NULL`, algorithm)
	if err != nil {
		return signingKey{}, err
	}
	if len(ids) == 0 {
		return s.addSigningKey(tx)
	}
	key, found, err := s.signingKey(tx, ids[0])
	if err == nil && !found {
		err = damaged(db.ErrNoRows, "the signing key %s", ids[0])
	}
	return key, err
}

func (s *shared) addSigningKey(tx db.Tx) (signingKey, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return signingKey{}, err
	}
	key := signingKey{id: newIdentifier(), private: private}
	_, err = tx.Exec(`INSERT INTO signing_key (kid, algorithm, private_key, created_at) VALUES (?, ?, ?, ?)`, key.id, algorithm, private.Seed(), s.now())
	return key, err
}

// signingKey returns a key by its id, from memory or else from the file.
func (s *shared) signingKey(tx db.Tx, id string) (key signingKey, found bool, err error) {
	if known, ok := s.oauth.keys.Load(id); ok {
		return known.(signingKey), true, nil
	}
	seeds, err := db.Column[[]byte](tx, `SELECT private_key FROM signing_key WHERE kid = ? AND algorithm = ?`, id, algorithm)
	if err != nil || len(seeds) == 0 {
		return signingKey{}, false, err
	}
	if key, err = newSigningKey(id, seeds[0]); err != nil {
		return signingKey{}, false, err
	}
	s.oauth.keys.Store(id, key)
	return key, true, nil
}

func newSigningKey(id string, seed []byte) (signingKey, error) {
	if len(seed) != ed25519.SeedSize {
		return signingKey{}, damaged(errors.New("it has a wrong length"), "the signing key %s", show(id))
	}
	return signingKey{id: id, private: ed25519.NewKeyFromSeed(seed)}, nil
}
