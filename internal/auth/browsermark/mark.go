// Package browsermark makes and verifies the marks that browsers keep after a sign-in: they show that an account has
// been used in that browser before. A mark signs no one in.
package browsermark

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

const (
	// Life is how long a mark is valid.
	Life = 365 * 24 * time.Hour

	// KeyLife is how long a key makes marks. It verifies them until the last one has expired.
	KeyLife = 90 * 24 * time.Hour

	// KeySize is the size of a key in bytes.
	KeySize = 32

	day = 24 * time.Hour
)

// New returns the mark of a user, made at a time with a key.
func New(keyID string, key []byte, user string, at time.Time) string {
	made := strconv.FormatInt(at.Unix()/int64(day/time.Second), 10)
	return keyID + "." + made + "." + sign(key, user, made)
}

// KeyID returns the id of the key in a mark; empty if it is not a mark.
func KeyID(mark string) string {
	const longest = 256
	if len(mark) > longest || strings.Count(mark, ".") != 2 {
		return ""
	}
	id, _, _ := strings.Cut(mark, ".")
	return id
}

// Valid reports whether a mark belongs to the user, was made with the key, and has not expired.
func Valid(mark string, key []byte, user string, now time.Time) bool {
	parts := strings.Split(mark, ".")
	if len(parts) != 3 || len(key) != KeySize || user == "" {
		return false
	}
	days, err := strconv.ParseInt(parts[1], 10, 32)
	if err != nil || !hmac.Equal([]byte(parts[2]), []byte(sign(key, user, parts[1]))) {
		return false
	}
	age := now.Sub(time.Unix(days*int64(day/time.Second), 0))
	return age < Life && age > -day // the clocks of two processes may differ
}

func sign(key []byte, user, made string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("browser\x00" + made + "\x00" + user))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
