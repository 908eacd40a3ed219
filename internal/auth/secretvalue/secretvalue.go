// Package secretvalue makes the random values of credentials and their ids, and the hashes that they are stored as.
package secretvalue

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"math/big"
	"strings"
)

// New returns 256 random bits in the characters a-z and 2-7.
func New() string { return random(32) }

// Identifier returns 128 random bits in the same characters.
func Identifier() string { return random(16) }

func random(size int) string {
	bytes := make([]byte, size)
	_, _ = rand.Read(bytes) // never fails: without randomness the program crashes
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(bytes))
}

// Hash returns the hash that secrets, codes and tokens are stored as. They are random and long, so a plain hash is
// enough.
func Hash(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// digits is the length of a secret in letters and digits: 62^43 > 2^256.
const digits = 43

// WithStart makes a secret of 256 random bits after a prefix for its purpose, in letters and digits: shells, URLs and
// forms need no quoting, and a double click selects all of it.
func WithStart(start string) string {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	text := new(big.Int).SetBytes(secret).Text(62)
	return start + strings.Repeat("0", digits-len(text)) + text
}

// HasForm reports whether a text has the form of WithStart's results: anything else need not be looked up.
func HasForm(start, value string) bool {
	return strings.HasPrefix(value, start) && len(value) == len(start)+digits
}
