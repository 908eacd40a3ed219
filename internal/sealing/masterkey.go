// Package sealing has the keys that encrypt the files of a store: the key of a file, which seals its blocks, is in the
// file's header, wrapped by a master key. Package pages lays out the blocks.
//
// The AEAD is XChaCha20-Poly1305 of golang.org/x/crypto. Its nonces have 24 bytes and are random, so any number of
// blocks may be written under one key.
package sealing

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/chacha20poly1305"
)

// KeySize is the length of keys, in bytes.
const KeySize = chacha20poly1305.KeySize

// The classes of errors of keys.
var (
	ErrKeyMissing = errors.New("the file is encrypted, but no master key was given")
	ErrKeyWrong   = errors.New("the file is encrypted with another master key")
	ErrNotSealed  = errors.New("the file is not encrypted, but a master key was given")
)

// MasterKey wraps the keys of files. The zero value is no key. It prints as its id, so that the key never gets into a
// log.
type MasterKey struct{ key *[KeySize]byte }

// NewMasterKey returns a master key of 32 bytes.
func NewMasterKey(key []byte) (MasterKey, error) {
	if len(key) != KeySize {
		return MasterKey{}, fmt.Errorf("a master key has %d bytes, but this one has %d", KeySize, len(key))
	}
	return MasterKey{key: (*[KeySize]byte)(append([]byte(nil), key...))}, nil
}

// ParseMasterKey reads a master key as text: 64 hexadecimal digits, or the base64 of 32 bytes. Its errors never
// contain the text.
func ParseMasterKey(text string) (MasterKey, error) {
	text = strings.TrimSpace(text)
	if key, err := hex.DecodeString(text); err == nil && len(key) == KeySize {
		return NewMasterKey(key)
	}
	if key, err := base64.StdEncoding.DecodeString(text); err == nil && len(key) == KeySize {
		return NewMasterKey(key)
	}
	return MasterKey{}, fmt.Errorf("a master key is 64 hexadecimal digits, or the base64 of 32 bytes; "+
		"this text has %d characters", len(text))
}

// GenerateMasterKey returns a new random master key.
func GenerateMasterKey() MasterKey {
	key := new([KeySize]byte)
	_, _ = rand.Read(key[:]) // it never fails
	return MasterKey{key: key}
}

// IsZero reports whether there is no key.
func (k MasterKey) IsZero() bool { return k.key == nil }

// Text returns the key as 64 hexadecimal digits, for the place where it is kept.
func (k MasterKey) Text() string {
	if k.key == nil {
		return ""
	}
	return hex.EncodeToString(k.key[:])
}

// ID returns 16 hexadecimal digits by which people tell keys apart. It reveals nothing about the key.
func (k MasterKey) ID() string {
	if k.key == nil {
		return ""
	}
	id := k.id()
	return hex.EncodeToString(id[:])
}

func (k MasterKey) id() (id [idSize]byte) {
	mac := hmac.New(sha256.New, k.key[:])
	mac.Write([]byte("souvenir: id of a master key"))
	copy(id[:], mac.Sum(nil))
	return id
}

// String returns "master key" and the id.
func (k MasterKey) String() string {
	if k.key == nil {
		return "no master key"
	}
	return "master key " + k.ID()
}

// GoString is String, for %#v.
func (k MasterKey) GoString() string { return k.String() }

// Equal reports whether two keys are the same.
func (k MasterKey) Equal(other MasterKey) bool {
	if k.key == nil || other.key == nil {
		return k.key == other.key
	}
	return hmac.Equal(k.key[:], other.key[:])
}
