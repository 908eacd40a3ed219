package sealing

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"

	"golang.org/x/crypto/chacha20poly1305"
)

// Overhead is how many bytes longer a sealed block is: the tag and the nonce.
const Overhead = chacha20poly1305.Overhead + chacha20poly1305.NonceSizeX

// Kind is the kind of a block: a part of the file, or of the log.
type Kind byte

// File is the key of a file. It is safe for concurrent use.
type File struct {
	aead       cipher.AEAD
	key        [KeySize]byte
	id         [fileSize]byte
	generation uint64
}

func (f *File) start() (err error) {
	f.aead, err = chacha20poly1305.NewX(f.key[:])
	return err
}

// ErrBlock means that a block was changed or moved after sealing.
var ErrBlock = errors.New("the block is not what was sealed")

// bound returns the context that a block is bound to: its file, its kind and its place.
func (f *File) bound(kind Kind, at int64) (b [fileSize + 9]byte) {
	copy(b[:], f.id[:])
	b[fileSize] = byte(kind)
	binary.BigEndian.PutUint64(b[fileSize+1:], uint64(at))
	return b
}

// Seal seals a block in its place into sealed, which has Overhead bytes more.
func (f *File) Seal(sealed, plain []byte, kind Kind, at int64) {
	nonce := sealed[len(plain)+chacha20poly1305.Overhead : len(plain)+Overhead]
	_, _ = rand.Read(nonce) // it never fails
	bound := f.bound(kind, at)
	f.aead.Seal(sealed[:0], nonce, plain, bound[:])
}

// Open opens a block into plain, which has Overhead bytes less and may begin where sealed does. Zeros open as zeros,
// since they are never sealed: a page that became free before it was written is a hole in the file. After an error
// plain is zeros, too.
func (f *File) Open(plain, sealed []byte, kind Kind, at int64) (err error) {
	end := len(plain) + chacha20poly1305.Overhead
	nonce := sealed[end : end+chacha20poly1305.NonceSizeX]
	switch bound := f.bound(kind, at); {
	case !zeros(nonce): // random bytes are never zeros
		_, err = f.aead.Open(plain[:0], nonce, sealed[:end], bound[:])
	case !zeros(sealed):
		err = ErrBlock
	default:
		clear(plain)
	}
	if err != nil {
		clear(plain)
		return ErrBlock
	}
	return nil
}

func zeros(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// ID returns the random id of the file.
func (f *File) ID() [16]byte { return f.id }

// Derive returns a key for another purpose than blocks of the file.
func (f *File) Derive(purpose string) ([]byte, error) {
	return hkdf.Expand(sha256.New, f.key[:], "souvenir: "+purpose, KeySize)
}
