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

// Sizes of sealed blocks. SQLite does not use the last Reserved bytes of each page: they hold the tag and the nonce, so
// that a sealed page is as long as a plain one. In the write-ahead log, the head and the page of a frame grow, since
// SQLite's checksums there cover whole pages with the reserved part. The head of the log itself stays readable; it has
// sizes, random numbers and a checksum of itself.
const (
	PageSize   = 4096
	Reserved   = chacha20poly1305.Overhead + chacha20poly1305.NonceSizeX
	FrameHead  = 24
	SealedHead = FrameHead + Reserved
	LogHead    = 32

	sealedPage = PageSize + Reserved // in the log

	frame  = FrameHead + PageSize
	onDisk = SealedHead + sealedPage

	// SQLite locks bytes from here on, which cannot be written on Windows then. No page is stored there.
	lockAt = 1 << 30
)

// Kind is the kind of a block: a part of the file, or of the log.
type Kind byte

// The kinds.
const (
	Page       Kind = 'p'
	Head       Kind = 'h' // the head of a frame
	LoggedPage Kind = 'f' // the page of a frame
)

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

// Seal seals a block in its place into sealed, which has Reserved bytes more.
func (f *File) Seal(sealed, plain []byte, kind Kind, at int64) {
	nonce := sealed[len(plain)+chacha20poly1305.Overhead : len(plain)+Reserved]
	_, _ = rand.Read(nonce) // it never fails
	bound := f.bound(kind, at)
	f.aead.Seal(sealed[:0], nonce, plain, bound[:])
}

// Open opens a block into plain, which has Reserved bytes less and may begin where sealed does. Zeros open as zeros,
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

// PageAt returns the place of a page on disk; pages are numbered from 0 here.
func PageAt(page int64) int64 {
	at := HeaderSize + page*PageSize
	if at >= lockAt {
		at += PageSize
	}
	return at
}

// PlainSize converts a file's size on disk to the size that SQLite sees.
func PlainSize(size int64) int64 {
	if size > lockAt {
		size -= PageSize
	}
	return max(0, size-HeaderSize)
}

// SizeOf converts a file's size that SQLite sees to its size on disk.
func SizeOf(plain int64) int64 {
	if plain <= 0 {
		return HeaderSize
	}
	return PageAt((plain-1)/PageSize) + (plain-1)%PageSize + 1
}

// FrameAt returns the frame at a place of the log as SQLite sees it, and the offset in the frame.
func FrameAt(place int64) (number, within int64) {
	return (place - LogHead) / frame, (place - LogHead) % frame
}

// HeadAt returns the place of a frame's head on disk.
func HeadAt(number int64) int64 { return LogHead + number*onDisk }

// LoggedPageAt returns the place of a frame's page on disk.
func LoggedPageAt(number int64) int64 { return HeadAt(number) + SealedHead }

// PlainLogSize converts a log's size on disk to the size that SQLite sees, in whole frames.
func PlainLogSize(size int64) int64 {
	if size <= LogHead {
		return max(0, size)
	}
	return LogHead + (size-LogHead)/onDisk*frame
}

// LogSizeOf returns the size on disk of a log that is cut to a size by SQLite, in whole frames.
func LogSizeOf(plain int64) int64 {
	if plain <= LogHead {
		return max(0, plain)
	}
	return LogHead + (plain-LogHead)/frame*onDisk
}

// ID returns the random id of the file.
func (f *File) ID() [16]byte { return f.id }

// Derive returns a key for another purpose than blocks of the file.
func (f *File) Derive(purpose string) ([]byte, error) {
	return hkdf.Expand(sha256.New, f.key[:], "souvenir: "+purpose, KeySize)
}
