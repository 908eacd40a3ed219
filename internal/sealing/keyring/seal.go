package keyring

import (
	"context"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sealing"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
)

// The parts of a sealed value: the form, the id of the key, a nonce, the text, a tag.
const (
	form     = 1
	head     = 1 + len(ID{})
	text     = head + chacha20poly1305.NonceSizeX
	overhead = text + chacha20poly1305.Overhead
)

// Seal seals a value under the current key of an owner. It opens only with the same purpose.
func (r *Ring) Seal(ctx context.Context, o Owner, purpose string, plain []byte) ([]byte, error) {
	k, err := r.current(ctx, o)
	if err != nil {
		return nil, err
	}
	return k.Seal(purpose, plain), nil
}

// Seal seals a value under the key.
func (k *key) Seal(purpose string, plain []byte) []byte {
	return k.seal(purpose, plain, func(nonce []byte) {
		_, _ = rand.Read(nonce) // it never fails
	})
}

// SealSame seals equal values of a purpose to equal bytes: the nonce is a keyed hash of both. It reveals only which
// values are equal, since two values never share a nonce.
func (k *key) SealSame(purpose string, plain []byte) []byte {
	return k.seal(purpose, plain, func(nonce []byte) { copy(nonce, k.hash(ofNonce+purpose, plain)) })
}

// ofNonce is the prefix of the purpose of hashes that are nonces.
const ofNonce = "nonce\x00"

func (k *key) seal(purpose string, plain []byte, fill func(nonce []byte)) []byte {
	sealed := make([]byte, head+chacha20poly1305.NonceSizeX, len(plain)+overhead)
	sealed[0] = form
	copy(sealed[1:], k.id[:])
	nonce := sealed[head:]
	fill(nonce)
	return k.aead.Seal(sealed, nonce, plain, boundTo(purpose, sealed))
}

// blindSize is the length of a blinded value.
const blindSize = 16

// Blind returns a keyed hash of a value of an owner: equal values of one purpose have the same hash, and guesses cannot
// be checked without the key.
func (r *Ring) Blind(ctx context.Context, o Owner, purpose string, value []byte) ([]byte, error) {
	k, err := r.current(ctx, o)
	if err != nil {
		return nil, err
	}
	return k.Blind(purpose, value), nil
}

// Blind is [Ring.Blind] under the key.
func (k *key) Blind(purpose string, value []byte) []byte { return k.hash(purpose, value)[:blindSize] }

// hash returns the keyed hash of a value, of 32 bytes.
func (k *key) hash(purpose string, value []byte) []byte {
	mac := hmac.New(sha256.New, k.blind)
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(purpose))))
	mac.Write([]byte(purpose))
	mac.Write(value)
	return mac.Sum(nil)
}

// Of returns a sealer for the values of a user, given by row, in one transaction.
func (r *Ring) Of(tx db.Tx, user int64) (sealedrows.Sealer, error) {
	o, err := OwnerOf(tx, user)
	if err != nil {
		return nil, err
	}
	k, err := r.current(tx.Context(), o)
	if err != nil {
		return nil, err // not a nil key in an interface
	}
	return k, nil
}

// Known is Of for comparisons with stored values; nil if the owner has no key. The key may have been erased a short
// time ago.
func (r *Ring) Known(tx db.Tx, user int64) (sealedrows.Sealer, error) {
	o, err := OwnerOf(tx, user)
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil //nolint:nilnil // who has stored nothing yet
	}
	if err != nil {
		return nil, err
	}
	k, err := r.known(tx.Context(), o)
	if err != nil || k == nil {
		return nil, err // not a nil key in an interface
	}
	return k, nil
}

// Open opens a value.
func (r *Ring) Open(ctx context.Context, purpose string, sealed []byte) ([]byte, error) {
	if len(sealed) < overhead || sealed[0] != form {
		return nil, ErrSealed
	}
	if r == nil {
		return nil, ErrNone
	}
	k, err := r.find(ctx, ID(sealed[1:head]))
	if err != nil {
		return nil, err
	}
	plain, err := k.aead.Open(nil, sealed[head:text], sealed[text:], boundTo(purpose, sealed))
	if err != nil {
		return nil, ErrSealed
	}
	return plain, nil
}

// boundTo is the context that a value is bound to: its purpose, and its head.
func boundTo(purpose string, sealed []byte) []byte {
	return append(append([]byte(purpose), 0), sealed[:head]...)
}

// File is the key of the content of one file. With a nil File, nothing is sealed.
//
// The file's record, which is stored instead of its SHA-256, contains this key and the SHA-256, sealed under the key of
// the file's owner. So a file with a new owner only needs a new record.
type File struct {
	key  [sealing.KeySize]byte
	aead cipher.AEAD
}

const ofFile, ofChunk = "file", "chunk"

// recordSize is the length of a record. A SHA-256 is shorter, so the two differ.
const recordSize = overhead + sealing.KeySize + sha256.Size

// IsRecord reports whether the stored value is a record instead of a SHA-256.
func IsRecord(stored []byte) bool { return len(stored) == recordSize && stored[0] == form }

// NewFile makes the key of a new file. A nil ring returns nil.
func (r *Ring) NewFile() (*File, error) {
	if r == nil {
		return nil, nil // a nil File means no key
	}
	f := &File{}
	_, _ = rand.Read(f.key[:]) // it never fails
	return f, f.start()
}

func (f *File) start() (err error) {
	f.aead, err = chacha20poly1305.NewX(f.key[:])
	return err
}

// Record returns the value to store instead of the SHA-256 of an owner's file. An empty SHA-256 is read back as zeros.
func (r *Ring) Record(ctx context.Context, o Owner, f *File, sum []byte) ([]byte, error) {
	if f == nil {
		return sum, nil
	}
	if r == nil {
		return nil, ErrNone
	}
	plain := make([]byte, sealing.KeySize+sha256.Size)
	copy(plain, f.key[:])
	copy(plain[sealing.KeySize:], sum)
	return r.Seal(ctx, o, ofFile, plain)
}

// OpenFile returns the key of a file and its SHA-256 from the stored value. The key is nil if the file is not sealed.
func (r *Ring) OpenFile(ctx context.Context, stored []byte) (f *File, sum []byte, err error) {
	if !IsRecord(stored) {
		return nil, stored, nil
	}
	plain, err := r.Open(ctx, ofFile, stored)
	if err != nil {
		return nil, nil, err
	}
	f = &File{key: [sealing.KeySize]byte(plain)}
	return f, plain[sealing.KeySize:], f.start()
}

// Overhead returns the number of bytes that sealing adds to a chunk.
func (f *File) Overhead() int64 {
	if f == nil {
		return 0
	}
	return chacha20poly1305.NonceSizeX + chacha20poly1305.Overhead
}

// Seal seals a chunk of the file's content.
func (f *File) Seal(number int64, data []byte) []byte {
	if f == nil {
		return data
	}
	sealed := make([]byte, chacha20poly1305.NonceSizeX, int64(len(data))+f.Overhead())
	_, _ = rand.Read(sealed) // it never fails
	return f.aead.Seal(sealed, sealed, data, chunkBound(number))
}

// Open opens a chunk of the file's content.
func (f *File) Open(number int64, sealed []byte) ([]byte, error) {
	if f == nil {
		return sealed, nil
	}
	if int64(len(sealed)) < f.Overhead() {
		return nil, fmt.Errorf("%w: chunk %d", ErrSealed, number)
	}
	nonce := sealed[:chacha20poly1305.NonceSizeX]
	data, err := f.aead.Open(nil, nonce, sealed[len(nonce):], chunkBound(number))
	if err != nil {
		return nil, fmt.Errorf("%w: chunk %d", ErrSealed, number)
	}
	return data, nil
}

func chunkBound(number int64) []byte {
	return binary.BigEndian.AppendUint64([]byte(ofChunk), uint64(number))
}

type given struct{}

// With returns a context that makes souvenir.Open seal users' data under the keys of a ring, which the caller closes.
// It is for tests, and for stores that already have content. Callers outside the module use Options.UserKeys.
func With(ctx context.Context, r *Ring) context.Context { return context.WithValue(ctx, given{}, r) }

// Of returns the ring of a context, nil if there is none.
func Of(ctx context.Context) *Ring {
	r, _ := ctx.Value(given{}).(*Ring)
	return r
}
