package passwords

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"

	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/foldname"
)

// longest is the maximum length of a password in bytes.
const longest = 1024

// Hasher hashes and compares passwords. Its capacity limits how many at once, since each uses megabytes and a flood of
// sign-ins must not use all memory. It holds a value for each password in work.
type Hasher chan struct{}

// New checks a new password of the user with a name and returns its hash. It is slow and uses much memory on purpose.
// Errors call the password by the name in argument.
func (h Hasher) New(ctx context.Context, argument, password, name string) (string, error) {
	prepared, ok := prepare(password)
	switch { // no message contains the password itself
	case len(password) > longest || len(prepared) > longest:
		return "", fault.New(fault.KindTooLarge, argument, "{} is longer than %d bytes, the maximum",
			longest)
	case !ok:
		return "", fault.Invalid(argument,
			"{} is not valid UTF-8 or contains a control character; all other characters are allowed")
	case utf8.RuneCountInString(prepared) < Shortest:
		return "", fault.Invalid(argument, "{} is shorter than %d characters, the minimum",
			Shortest)
	case foldname.Key(prepared) == foldname.Key(name):
		return "", fault.Invalid(argument, "{} is the user's name; choose another")
	}
	if why := Easy(prepared, name); why != "" {
		return "", fault.Invalid(argument,
			"{} is %s, which is easy to guess; choose another, such as a few unrelated words", why)
	}
	return h.hash(ctx, prepared)
}

// hash returns the hash of a prepared password.
func (h Hasher) hash(ctx context.Context, prepared string) (string, error) {
	salt := make([]byte, saltSize)
	rand.Read(salt) // never fails
	made := hash{hashCost: presentCost, salt: salt, key: make([]byte, keySize)}
	var err error
	made.key, err = h.derive(ctx, prepared, made)
	return made.String(), err
}

// prepare converts a password to the form that is hashed, by the profile OpaqueString of RFC 8265: it maps
// every space to the ASCII space, and normalizes to Unicode NFC.
func prepare(password string) (prepared string, ok bool) {
	if len(password) > longest || !utf8.ValidString(password) || strings.ContainsFunc(password, unicode.IsControl) {
		return "", false
	}
	return norm.NFC.String(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Zs, r) {
			return ' '
		}
		return r
	}, password)), true
}

// Compare compares a password with a stored hash. Without a hash, or with an impossible password, it does the same
// work and returns false, so that its duration reveals nothing.
func (h Hasher) Compare(ctx context.Context, stored, password string) (bool, error) {
	prepared, ok := prepare(password)
	known := hash{hashCost: presentCost, salt: make([]byte, saltSize), key: make([]byte, keySize)}
	if stored == "" {
		ok = false
	} else {
		var err error
		if known, err = parseHash(stored); err != nil {
			return false, fault.Damaged(err, "could not read a password hash")
		}
	}
	key, err := h.derive(ctx, prepared, known)
	if err != nil {
		return false, err
	}
	return subtle.ConstantTimeCompare(key, known.key) == 1 && ok, nil
}

// Renew returns a new hash of a verified password if its stored hash was made with less work than new ones, and "" if
// it need not be replaced.
func (h Hasher) Renew(ctx context.Context, stored, password string) (string, error) {
	known, err := parseHash(stored)
	if err != nil || !known.weakerThan(presentCost) {
		return "", err
	}
	prepared, _ := prepare(password) // the password was right
	return h.hash(ctx, prepared)
}

// CheckHash returns the problem of a stored hash, if any.
func CheckHash(stored string) error {
	_, err := parseHash(stored)
	return err
}

// hashCost is the cost of a hash.
type hashCost struct {
	memory  uint32 // KiB
	time    uint32 // passes
	threads uint8
}

// CheapForTests makes new hashes very cheap until the process ends. Only a TestMain calls it, through
// internal/testing/longtest, before anything is hashed.
func CheapForTests() { presentCost = hashCost{memory: 8, time: 1, threads: 1} }

// presentCost is the cost of new hashes. It is one of the settings that the OWASP Password Storage Cheat Sheet
// considers equally strong, with little memory, since a small machine may hash for several people at once.
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

// hash is an argon2id hash (RFC 9106).
type hash struct {
	hashCost
	salt, key []byte
}

// String returns the PHC string format: $argon2id$v=19$m=19456,t=2,p=1$SALT$KEY, in base64 without padding.
func (h hash) String() string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.memory, h.time, h.threads,
		b64.EncodeToString(h.salt), b64.EncodeToString(h.key))
}

func parseHash(encoded string) (hash, error) {
	var h hash
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
		return h, errors.New("it is not in canonical form")
	}
	return h, nil
}

// derive computes the key of a password with the salt, cost and key length of a hash, when the hasher has
// room for it.
func (h Hasher) derive(ctx context.Context, prepared string, as hash) ([]byte, error) {
	select {
	case h <- struct{}{}:
		defer func() { <-h }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return argon2.IDKey([]byte(prepared), as.salt, as.time, as.memory, as.threads, uint32(len(as.key))), nil
}
