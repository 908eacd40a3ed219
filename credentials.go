package souvenir

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/audit"
	"github.com/souvenir-ai/souvenir/internal/auth/accesstoken"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/redact"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Credentials are the name and password that a user signs in with.
type Credentials struct {
	Name     string // case, width and the encoding of a character make no difference
	Password string
}

// Format prints the credentials without the password.
func (c Credentials) Format(f fmt.State, _ rune) { redact.Format(f, c, "Password") }

// PasswordChange describes a change of the user's own password.
type PasswordChange struct {
	Old string // the current one; empty if there is none

	// New is at least 8 characters and at most 1,024 bytes long, without control characters, and not easy to guess: the
	// user's name, a common word, a row of the keyboard or a short repeated piece, with little added, is refused.
	// Different encodings of the same characters are the same password (RFC 8265, OpaqueString).
	New string

	KeepSignIn string // id of a sign-in that stays, such as the caller's own; empty: all end

	// End lists other kinds of access to end in the same commit: AccessGrants, AccessTokens. A person who knew the old
	// password may have created some. Nil means none.
	End []AccessKind
}

// Format prints the change without the passwords.
func (c PasswordChange) Format(f fmt.State, _ rune) { redact.Format(f, c, "Old", "New") }

// CheckPassword returns the user with this name and password. Anything else is ErrUnauthenticated, with the same
// message and after the same work, whether the user does not exist, the password is wrong or missing, or the user is
// disabled. The caller must limit the number of attempts. It works read-only, too.
func (h *Accounts) CheckPassword(ctx context.Context, c Credentials) (_ User, err error) {
	defer inGo[Credentials](&err)
	s, err := h.operator(ctx, "CheckPassword")
	if err != nil {
		return User{}, err
	}
	var u storedUser
	if len(c.Name) <= valid.MaxFoldedName {
		err := s.read(ctx, func(tx db.Tx, _ viewer) error {
			found, err := loadUsers(tx, `u.namespace = ? AND u.name_key = ?`, s.access.Namespace,
				foldname.Key(c.Name))
			if len(found) > 0 {
				u = found[0]
			}
			return err
		})
		if err != nil {
			return User{}, err
		}
	}
	right, err := s.hashing.Compare(ctx, u.password, c.Password)
	if err != nil {
		return User{}, err
	}
	if !right || s.isShut(s.access.Namespace, u.User) {
		return User{}, newError(KindUnauthenticated, "", "name or password is wrong")
	}
	s.renewHash(ctx, u, c.Password)
	return u.User, nil
}

// ChangePassword sets the password of this view's user, and ends the user's sign-ins except KeepSignIn. MCP tokens and
// OAuth grants stay valid, unless End names them. A wrong old password is ErrUnauthenticated, with the argument
// old_password; a user without an account is ErrConflict. A view that is limited to projects may not call it.
func (h *Accounts) ChangePassword(ctx context.Context, c PasswordChange) (err error) {
	defer inGo[PasswordChange](&err)
	s, err := h.own(ctx, "ChangePassword")
	if err != nil {
		return err
	}
	if err := s.checkWritable(); err != nil {
		return err
	}
	if err := checkKinds("end", c.End); err != nil {
		return err
	}
	var u storedUser
	err = s.read(ctx, func(tx db.Tx, v viewer) (err error) {
		u, err = s.account(tx, v, "")
		return err
	})
	if err != nil {
		return err
	}
	if err := u.checkHasAccount(); err != nil {
		return err
	}
	if u.HasPassword {
		right, err := s.hashing.Compare(ctx, u.password, c.Old)
		if err != nil {
			return err
		}
		if !right {
			return newError(KindUnauthenticated, "old_password", "{} is not the current password")
		}
	}
	hash, err := s.hashing.New(ctx, "new_password", c.New, u.Name)
	if err != nil {
		return err
	}
	return s.write(ctx, func(tx db.Tx, _ viewer) error {
		if err := s.replaceHash(tx, u, hash); err != nil {
			return err
		}
		if err := endSignIns(tx, u.row, c.KeepSignIn); err != nil {
			return err
		}
		return s.note(ctx, tx, s.endKinds(tx, u.row, c.KeepSignIn, c.End),
			event{"user.password", "user", u.ID, audit.Details{"end": emptyList(c.End)}})
	})
}

// replaceHash writes a new hash, unless the stored one has changed since u was read.
func (s *Store) replaceHash(tx db.Tx, u storedUser, hash string) error {
	result, err := tx.Exec(`UPDATE users SET password = ?, updated_at = ? WHERE id = ? AND coalesce(password, '') = ?`,
		hash, s.now(), u.row, u.password)
	if err == nil && result.RowsAffected == 0 {
		return newError(KindConflict, "old_password",
			"the password has changed in the meantime; try again with the new one")
	}
	return err
}

// renewHash replaces a hash that was made with less work than new ones. Its failure does not fail the sign-in.
func (s *Store) renewHash(ctx context.Context, u storedUser, password string) {
	if s.db.ReadOnly() {
		return
	}
	hash, err := s.hashing.Renew(ctx, u.password, password)
	if err == nil && hash == "" {
		return
	}
	if err == nil {
		err = s.writeStore(ctx, func(tx db.Tx) error {
			_, err := tx.Exec(`UPDATE users SET password = ? WHERE id = ? AND password = ?`, hash, u.row,
				u.password) // the account does not change
			return err
		})
	}
	if err != nil {
		s.log.DebugContext(ctx, "could not renew a password hash", "user", u.ID, "error", err)
	}
}

// Identity is a user's identity at an external identity provider.
type Identity struct {
	Issuer    string    `json:"issuer"`  // OpenID Connect Core 1.0, section 2: iss
	Subject   string    `json:"subject"` // sub, unique only within the issuer
	Email     string    `json:"email,omitempty"`
	CreatedAt time.Time `json:"created_at"`
}

// NewIdentity describes an identity to link to a user.
type NewIdentity struct {
	User    string // id or name; empty: the view's user. Only the operator's store may name another
	Issuer  string // 1 to 512 characters, compared byte by byte
	Subject string // 1 to 255 characters, compared byte by byte
	Email   string // for people; empty: none
}

const maxIdentities = 32

// LinkIdentity lets a user sign in with an identity at a provider. The caller must have verified it with the provider.
// An identity that belongs to another user is ErrConflict; linking one's own again updates its email address. More than
// 32 identities of a user are ErrTooLarge. A view limited to projects may not call it, nor may a user without an
// account.
func (h *Accounts) LinkIdentity(ctx context.Context, n NewIdentity) (_ Identity, err error) {
	defer inGo[NewIdentity](&err)
	s, err := h.servingOwn(ctx, "LinkIdentity")
	if err != nil {
		return Identity{}, err
	}
	if err := checkIdentity(n.Issuer, n.Subject); err != nil {
		return Identity{}, err
	}
	if err := valid.Email(n.Email); err != nil {
		return Identity{}, err
	}
	var linked Identity
	err = s.write(ctx, func(tx db.Tx, v viewer) error {
		u, err := s.account(tx, v, n.User)
		if err != nil {
			return err
		}
		if err := u.checkHasAccount(); err != nil {
			return err
		}
		linked, err = s.linkIdentity(tx, u, n)
		return s.note(ctx, tx, err, event{"identity.link", "user", u.ID, nil})
	})
	return linked, err
}

func (s *Store) linkIdentity(tx db.Tx, u storedUser, n NewIdentity) (Identity, error) {
	if _, err := tx.Exec(`INSERT INTO external_identity (issuer, subject, user_id, email, created_at)
		VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (issuer, subject) DO UPDATE SET email = excluded.email
		WHERE external_identity.user_id = excluded.user_id`, n.Issuer, n.Subject, u.row, n.Email, s.now()); err != nil {
		return Identity{}, err
	}
	all, err := identities(tx, u.row)
	if err != nil {
		return Identity{}, err
	}
	if len(all) > maxIdentities {
		return Identity{}, newError(KindTooLarge, "user", "{} %s has %d identities; at most %d are allowed", show(u.ID),
			len(all)-1, maxIdentities)
	}
	for _, i := range all {
		if i.Issuer == n.Issuer && i.Subject == n.Subject {
			return i, nil
		}
	}
	return Identity{}, newError(KindConflict, "subject", "{} %s of the issuer %s is linked to another user",
		show(n.Subject), show(n.Issuer))
}

func checkIdentity(issuer, subject string) error {
	if err := valid.Line("issuer", issuer, valid.MaxIssuer); err != nil {
		return err
	}
	return orNil(valid.Line("subject", subject, valid.MaxSubject))
}

// identities reads the identities of a user (a row), the oldest first.
func identities(tx db.Tx, user int64) ([]Identity, error) {
	all := []Identity{}
	err := tx.Each(func(row db.Rows) error {
		var i Identity
		var created int64
		err := row.Scan(&i.Issuer, &i.Subject, &i.Email, &created)
		i.CreatedAt = kernel.ToTime(created)
		all = append(all, i)
		return err
	}, `SELECT issuer, subject, email, created_at FROM external_identity WHERE user_id = ? `+
		`ORDER BY created_at, issuer, subject`, user)
	return all, err
}

// Identities returns the identities linked to a user (id or name; empty: the view's user), the oldest first. Only the
// operator's store may name another user; a view limited to projects may not call it.
func (h *Accounts) Identities(ctx context.Context, user string) (_ []Identity, err error) {
	defer inGo[struct{}](&err, "user", "user")
	s, err := h.servingOwn(ctx, "Identities")
	if err != nil {
		return nil, err
	}
	var all []Identity
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		u, err := s.account(tx, v, user)
		if err != nil {
			return err
		}
		all, err = identities(tx, u.row)
		return err
	})
	return all, err
}

// UnlinkIdentity unlinks an identity of a user (id or name; empty: the view's user), who can then no longer sign in
// with it; one that is not linked to the user is ErrNotFound. Through the user's own view, unlinking the only way to
// sign in is ErrConflict.
func (h *Accounts) UnlinkIdentity(ctx context.Context, user, issuer, subject string) (err error) {
	defer inGo[struct{}](&err, "user", "user", "issuer", "issuer", "subject", "subject")
	s, err := h.servingOwn(ctx, "UnlinkIdentity")
	if err != nil {
		return err
	}
	if err := checkIdentity(issuer, subject); err != nil {
		return err
	}
	return s.write(ctx, func(tx db.Tx, v viewer) error {
		u, err := s.account(tx, v, user)
		if err != nil {
			return err
		}
		result, err := tx.Exec(`DELETE FROM external_identity WHERE issuer = ? AND subject = ? AND user_id = ?`, issuer,
			subject, u.row)
		if err != nil {
			return err
		}
		if result.RowsAffected == 0 {
			return newError(KindNotFound, "subject", "{} %s of the issuer %s is not linked to this user", show(subject),
				show(issuer))
		}
		left, err := identities(tx, u.row)
		if err == nil && len(left) == 0 && !u.HasPassword && !s.operator {
			return newError(KindConflict, "subject",
				"{} %s of the issuer %s is the only way to sign in; set a password or link another identity first",
				show(subject), show(issuer))
		}
		return s.note(ctx, tx, err, event{"identity.unlink", "user", u.ID, nil})
	})
}

// GetUserByIdentity returns the user to whom an identity is linked, to sign them in. ErrNotFound means that the
// identity is not linked, ErrUnauthenticated that the user is disabled.
func (h *Accounts) GetUserByIdentity(ctx context.Context, issuer, subject string) (_ User, err error) {
	defer inGo[struct{}](&err, "issuer", "issuer", "subject", "subject")
	s, err := h.serving(ctx, "GetUserByIdentity")
	if err != nil {
		return User{}, err
	}
	if err := checkIdentity(issuer, subject); err != nil {
		return User{}, err
	}
	var found []storedUser
	err = s.read(ctx, func(tx db.Tx, _ viewer) (err error) {
		found, err = loadUsers(tx, `u.id = (SELECT user_id FROM external_identity WHERE issuer = ? AND subject = ?)`, issuer,
			subject)
		return err
	})
	switch {
	case err != nil:
		return User{}, err
	case len(found) == 0:
		return User{}, newError(KindNotFound, "subject", "{} %s of the issuer %s is not linked to a user", show(subject),
			show(issuer))
	case s.isShut(s.access.Namespace, found[0].User):
		return User{}, newError(KindUnauthenticated, "", "this user is disabled")
	}
	return found[0].User, nil
}

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
			newIdentifier(), sealAlgorithm, key, s.now())
		return err
	})
	if err != nil {
		return nil, err
	}
	return key, nil
}

// use describes one use of a credential.
type use struct {
	of, id string
	last   *int64 // last use recorded in the file; nil: never
	now    int64
}

// noteUse calls write to record the use of a credential: once a minute, without making the caller wait long or fail.
func (s *Store) noteUse(ctx context.Context, u use, write func(db.Tx) error) {
	const (
		every    = int64(time.Minute / time.Microsecond)
		patience = 250 * time.Millisecond
	)
	if u.last != nil && u.now-*u.last < every || s.db.ReadOnly() {
		return
	}
	// Only one caller tries, so that not every call waits while another process holds the file.
	key := u.of + " " + u.id
	tried, again := s.uses.LoadOrStore(key, u.now)
	if again && (u.now-tried.(int64) < every || !s.uses.CompareAndSwap(key, tried, u.now)) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.db.Write(ctx, write); err != nil {
		s.log.DebugContext(ctx, "the use of a "+u.of+" was not noted", "id", u.id, "error", err)
	}
}

// newSecret returns 256 random bits in the characters a-z and 2-7, newIdentifier 128 bits.
func newSecret() string { return randomText(32) }

func newIdentifier() string { return randomText(16) }

func randomText(size int) string {
	random := make([]byte, size)
	_, _ = rand.Read(random) // never fails: without randomness the program crashes
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(random))
}

// digest returns the hash that secrets, codes and tokens are stored as. They are random and long, so a plain hash is
// enough.
func digest(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// listOrNull returns a list as JSON, and NULL for nil.
func listOrNull[T any](list []T) (any, error) {
	if list == nil {
		return nil, nil
	}
	encoded, err := json.Marshal(list)
	return string(encoded), err
}

// decodeProjects reads the projects that a credential is limited to. NULL is nil: no limit.
func decodeProjects(stored *string) (projects []string, err error) {
	if stored == nil {
		return nil, nil
	}
	if err = json.Unmarshal([]byte(*stored), &projects); err == nil && projects == nil {
		err = errors.New("null instead of a list")
	}
	return projects, err
}

// valueDigits is the length of a secret in letters and digits: 62^43 > 2^256.
const valueDigits = 43

// newValue makes a secret of 256 random bits after a prefix for its purpose, in letters and digits: shells, URLs and
// forms need no quoting, and a double click selects all of it.
func newValue(start string) string {
	secret := make([]byte, 32)
	rand.Read(secret) // never fails
	digits := new(big.Int).SetBytes(secret).Text(62)
	return start + strings.Repeat("0", valueDigits-len(digits)) + digits
}

// isValue reports whether a text has the form of newValue's results: anything else need not be looked up.
func isValue(start, value string) bool {
	return strings.HasPrefix(value, start) && len(value) == len(start)+valueDigits
}
