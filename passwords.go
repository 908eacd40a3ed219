package souvenir

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/passwords"
)

// Credentials are the name and password that a user signs in with.
type Credentials struct {
	Name     string // case, width and the encoding of a character make no difference
	Password string
}

// PasswordChange describes a change of the user's own password.
type PasswordChange struct {
	Old string // the current one; empty if there is none

	// New is at least 8 characters and at most 1,024 bytes long, without control characters, and not easy to guess: the
	// user's name, a common word, a row of the keyboard or a short repeated piece, with little added, is refused.
	// Different encodings of the same characters are the same password (RFC 8265, OpaqueString).
	New string

	KeepSession string // id of a session that stays, such as the caller's own; empty: all end

	// End is what else ends in the same commit: AccessGrants, AccessTokens. A person who knew the old password may have
	// made some. Nil: nothing.
	End []AccessKind
}

const (
	minPassword = passwords.Shortest // characters (NIST SP 800-63B, section 5.1.1.2)
	maxPassword = 1024               // bytes
)

// CheckPassword returns the user with this name and password. Anything else is ErrUnauthenticated, with the same
// message and after the same work, whether the user does not exist, the password is wrong or missing, or the user is
// disabled. The caller must limit the number of attempts. Only for the operator's store; it works read-only, too.
func (h *Accounts) CheckPassword(ctx context.Context, c Credentials) (User, error) {
	s, err := h.operator("CheckPassword")
	if err != nil {
		return User{}, err
	}
	var u storedUser
	if len(c.Name) <= maxFolded {
		err := s.read(ctx, func(tx db.Tx, _ scope) error {
			found, err := loadUsers(tx, `u.name_key = ?`, foldname.Key(c.Name))
			if len(found) > 0 {
				u = found[0]
			}
			return err
		})
		if err != nil {
			return User{}, err
		}
	}
	right, err := s.isPassword(ctx, u.password, c.Password)
	if err != nil {
		return User{}, err
	}
	if !right || u.Disabled {
		return User{}, newError(KindUnauthenticated, "", "name or password is wrong")
	}
	s.renewHash(ctx, u, c.Password)
	return u.User, nil
}

// ChangePassword sets the password of this view's user, and ends the user's sessions except KeepSession. MCP tokens and
// OAuth grants stay valid, unless End names them. A wrong old password is ErrUnauthenticated, with the argument
// old_password; a user without an account is ErrConflict. A view that is limited to projects may not call it.
func (h *Accounts) ChangePassword(ctx context.Context, c PasswordChange) error {
	s, err := h.own("ChangePassword")
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
	err = s.read(ctx, func(tx db.Tx, sc scope) (err error) {
		u, err = s.account(tx, sc, "")
		return err
	})
	if err != nil {
		return err
	}
	if err := u.checkHasAccount(); err != nil {
		return err
	}
	if u.HasPassword {
		right, err := s.isPassword(ctx, u.password, c.Old)
		if err != nil {
			return err
		}
		if !right {
			return newError(KindUnauthenticated, "old_password", "old_password is not the present password")
		}
	}
	hash, err := s.newPassword(ctx, "new_password", c.New, u.Name)
	if err != nil {
		return err
	}
	return s.write(ctx, func(tx db.Tx, _ scope) error {
		if err := s.replaceHash(tx, u, hash); err != nil {
			return err
		}
		if err := endSessions(tx, u.row, c.KeepSession); err != nil {
			return err
		}
		return s.endKinds(tx, u.row, AccessEnd{Kinds: c.End, KeepSession: c.KeepSession})
	})
}

// replaceHash writes a new hash, unless the stored one has changed since u was read.
func (s *Store) replaceHash(tx db.Tx, u storedUser, hash string) error {
	result, err := tx.Exec(`UPDATE users SET password = ?, updated_at = ? WHERE id = ? AND coalesce(password, '') = ?`,
		hash, s.now(), u.row, u.password)
	if err == nil && result.RowsAffected == 0 {
		return newError(KindConflict, "old_password",
			"the password has been changed in the meantime; try again with that one")
	}
	return err
}

// newPassword checks a password and returns its hash. It is slow and uses much memory on purpose.
func (s *Store) newPassword(ctx context.Context, argument, password, name string) (string, error) {
	prepared, ok := preparePassword(password)
	switch { // no message contains the password itself
	case len(password) > maxPassword || len(prepared) > maxPassword:
		return "", newError(KindTooLarge, argument, "%s is longer than %d bytes, which are the most allowed", argument,
			maxPassword)
	case !ok:
		return "", invalid(argument,
			"%s is not valid UTF-8 or contains a control character; any other characters are allowed", argument)
	case utf8.RuneCountInString(prepared) < minPassword:
		return "", invalid(argument, "%s is shorter than %d characters, which are the least allowed", argument, minPassword)
	case foldname.Key(prepared) == foldname.Key(name):
		return "", invalid(argument, "%s is the user's name; choose another", argument)
	}
	if why := passwords.Easy(prepared, name); why != "" {
		return "", invalid(argument,
			"%s is %s, which is guessed soon; choose another, such as some words that do not belong together", argument, why)
	}
	return s.hashPassword(ctx, prepared)
}

// hashPassword returns the hash of a prepared password.
func (s *Store) hashPassword(ctx context.Context, prepared string) (string, error) {
	salt := make([]byte, saltSize)
	rand.Read(salt) // never fails
	made := passwordHash{hashCost: presentCost, salt: salt, key: make([]byte, keySize)}
	var err error
	made.key, err = s.derive(ctx, prepared, made)
	return made.String(), err
}

// preparePassword converts a password to the form that is hashed, by the profile OpaqueString of RFC 8265: it maps
// every space to the ASCII space, and normalizes to Unicode NFC.
func preparePassword(password string) (prepared string, ok bool) {
	if len(password) > maxPassword || !utf8.ValidString(password) || strings.ContainsFunc(password, unicode.IsControl) {
		return "", false
	}
	return norm.NFC.String(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Zs, r) {
			return ' '
		}
		return r
	}, password)), true
}

// isPassword compares a password with a stored hash. Without a hash, or with an impossible password, it does the same
// work and returns false, so that its duration reveals nothing.
func (s *Store) isPassword(ctx context.Context, stored, password string) (bool, error) {
	prepared, ok := preparePassword(password)
	h := passwordHash{hashCost: presentCost, salt: make([]byte, saltSize), key: make([]byte, keySize)}
	if stored == "" {
		ok = false
	} else {
		var err error
		if h, err = parseHash(stored); err != nil {
			return false, damaged(err, "a password's hash cannot be read")
		}
	}
	key, err := s.derive(ctx, prepared, h)
	if err != nil {
		return false, err
	}
	return subtle.ConstantTimeCompare(key, h.key) == 1 && ok, nil
}

// renewHash replaces a hash that was made with less work than new ones. Its failure does not fail the sign-in.
func (s *Store) renewHash(ctx context.Context, u storedUser, password string) {
	h, err := parseHash(u.password)
	if err != nil || !h.weakerThan(presentCost) || s.db.ReadOnly() {
		return
	}
	prepared, _ := preparePassword(password) // the password was correct
	hash, err := s.hashPassword(ctx, prepared)
	if err == nil {
		err = s.operate(ctx, func(tx db.Tx) error {
			_, err := tx.Exec(`UPDATE users SET password = ? WHERE id = ? AND password = ?`, hash, u.row,
				u.password) // the account does not change
			return err
		})
	}
	if err != nil {
		s.log.DebugContext(ctx, "a password's hash was not renewed", "user", u.ID, "error", err)
	}
}

// hashCost is the cost of a hash.
type hashCost struct {
	memory  uint32 // KiB
	time    uint32 // passes
	threads uint8
}

// presentCost is the cost of new hashes. Of the settings that the OWASP Password Storage Cheat Sheet counts as equally
// strong, it takes one with little memory, since a small machine may hash for several people at once.
var presentCost = hashCost{memory: 19 << 10, time: 2, threads: 1}

const (
	saltSize = 16
	keySize  = 32

	// Limits for a stored hash, so that a damaged or planted one cannot exhaust the machine: four times the memory of the
	// second choice of RFC 9106, and a few seconds of work.
	maxHashMemory  = 256 << 10 // KiB
	maxHashTime    = 8
	maxHashThreads = 16
)

func (c hashCost) weakerThan(d hashCost) bool { return c.memory < d.memory || c.time < d.time }

// passwordHash is an argon2id hash (RFC 9106).
type passwordHash struct {
	hashCost
	salt, key []byte
}

// String returns the PHC string format: $argon2id$v=19$m=19456,t=2,p=1$SALT$KEY, in base64 without padding.
func (h passwordHash) String() string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.memory, h.time, h.threads,
		b64.EncodeToString(h.salt), b64.EncodeToString(h.key))
}

func parseHash(encoded string) (passwordHash, error) {
	var h passwordHash
	parts := strings.Split(encoded, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return h, fmt.Errorf("not an argon2id hash of version %d in PHC string format", argon2.Version)
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &h.memory, &h.time, &h.threads); err != nil {
		return h, fmt.Errorf("its parameters: %w", err)
	}
	var err error
	if h.salt, err = base64.RawStdEncoding.DecodeString(parts[4]); err != nil {
		return h, fmt.Errorf("its salt: %w", err)
	}
	if h.key, err = base64.RawStdEncoding.DecodeString(parts[5]); err != nil {
		return h, fmt.Errorf("its key: %w", err)
	}
	if h.memory < 8 || h.memory > maxHashMemory || h.time < 1 || h.time > maxHashTime || h.threads < 1 ||
		h.threads > maxHashThreads ||
		len(h.salt) < 8 || len(h.salt) > 64 || len(h.key) < 16 || len(h.key) > 64 {
		return h, fmt.Errorf("its parameters are out of bounds: %s", parts[3])
	}
	if h.String() != encoded {
		return h, errors.New("something in it is not as it would be written")
	}
	return h, nil
}

// derive computes the key of a password with the salt, cost and key length of h. At most one derivation per processor
// runs at once: each uses megabytes, and a flood of sign-ins must not use all memory.
func (s *Store) derive(ctx context.Context, prepared string, h passwordHash) ([]byte, error) {
	select {
	case s.hashing <- struct{}{}:
		defer func() { <-s.hashing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return argon2.IDKey([]byte(prepared), h.salt, h.time, h.memory, h.threads, uint32(len(h.key))), nil
}

// Types that hold a secret print without it, with every verb of fmt: values end up in messages and logs by mistake.
// Their JSON is complete.

// formatWithout prints a struct as %+v does, with some of its fields hidden.
func formatWithout(f fmt.State, value any, hidden ...string) {
	v := reflect.ValueOf(value)
	_, _ = fmt.Fprint(f, "{")
	for i := range v.NumField() {
		name, separator := v.Type().Field(i).Name, " "
		if i == 0 {
			separator = ""
		}
		if slices.Contains(hidden, name) && !v.Field(i).IsZero() {
			_, _ = fmt.Fprintf(f, "%s%s:[hidden]", separator, name)
		} else {
			_, _ = fmt.Fprintf(f, "%s%s:%+v", separator, name, v.Field(i).Interface())
		}
	}
	_, _ = fmt.Fprint(f, "}")
}

// Format prints the credentials without the password.
func (c Credentials) Format(f fmt.State, _ rune) { formatWithout(f, c, "Password") }

// Format prints the change without the passwords.
func (c PasswordChange) Format(f fmt.State, _ rune) { formatWithout(f, c, "Old", "New") }

// Format prints the user without the password.
func (n NewUser) Format(f fmt.State, _ rune) { formatWithout(f, n, "Password") }

// Format prints the acceptance without the invitation's value and the password.
func (a InvitationAcceptance) Format(f fmt.State, _ rune) { formatWithout(f, a, "Value", "Password") }

// Format prints the invitation without its value.
func (a AddedInvitation) Format(f fmt.State, _ rune) { formatWithout(f, a, "Value") }

// Format prints the session without its value.
func (a AddedSession) Format(f fmt.State, _ rune) { formatWithout(f, a, "Value") }

// Format prints the token without its value.
func (a AddedToken) Format(f fmt.State, _ rune) { formatWithout(f, a, "Value") }

// Format prints the client without its secret.
func (n NewClient) Format(f fmt.State, _ rune) { formatWithout(f, n, "Secret") }

// Format prints the client without its secret.
func (c RegisteredClient) Format(f fmt.State, _ rune) { formatWithout(f, c, "Secret") }

// Format prints the credentials without the secret.
func (c ClientCredentials) Format(f fmt.State, _ rune) { formatWithout(f, c, "Secret") }

// Format prints the answer without the code.
func (a AuthorizationCode) Format(f fmt.State, _ rune) { formatWithout(f, a, "Code") }

// Format prints the request without code, verifier and the client's secret.
func (x CodeExchange) Format(f fmt.State, _ rune) { formatWithout(f, x, "Code", "Verifier") }

// Format prints the request without the refresh token and the client's secret.
func (r TokenRefresh) Format(f fmt.State, _ rune) { formatWithout(f, r, "RefreshToken") }

// Format prints the request without the token and the client's secret.
func (r Revocation) Format(f fmt.State, _ rune) { formatWithout(f, r, "Token") }

// Format prints the answer without the tokens.
func (t TokenSet) Format(f fmt.State, _ rune) { formatWithout(f, t, "AccessToken", "RefreshToken") }

// Format prints the check without the token.
func (c AccessTokenCheck) Format(f fmt.State, _ rune) { formatWithout(f, c, "Token") }
