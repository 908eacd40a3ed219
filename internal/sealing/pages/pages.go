// Package pages lays out the sealed pages of a database's file and the sealed frames of its write-ahead log, and reads
// and writes them as SQLite sees them. Each is a block that the key of the file seals.
package pages

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/souvenir-ai/souvenir/internal/sealing"
)

// Storage stores sealed bytes.
type Storage interface {
	io.ReaderAt
	io.WriterAt
}

// Database is the file of a database as SQLite sees it. It is used by one goroutine at a time.
type Database struct {
	key     *sealing.File
	storage Storage
	page    [Size]byte
}

// NewDatabase returns the view of a sealed file.
func NewDatabase(key *sealing.File, storage Storage) *Database {
	return &Database{key: key, storage: storage}
}

// ReadAt reads any part of the database. Bytes beyond its end read as zeros with io.EOF. The error for a changed page
// is [sealing.ErrBlock].
func (d *Database) ReadAt(p []byte, at int64) (int, error) {
	if at%Size == 0 && len(p) == Size {
		return len(p), d.readPage(p, at/Size)
	}
	for done := 0; done < len(p); {
		if err := d.readPage(d.page[:], at/Size); err != nil {
			clear(p[done:])
			return done, err
		}
		n := copy(p[done:], d.page[at%Size:])
		done, at = done+n, at+int64(n)
	}
	return len(p), nil
}

func (d *Database) readPage(p []byte, number int64) error {
	if err := readBlock(d.storage, p, At(number)); err != nil {
		return err
	}
	err := d.key.Open(p[:Size-Reserved], p, page, number)
	clear(p[Size-Reserved:])
	return err
}

// readBlock reads a sealed block from disk. The error for an incomplete block is [sealing.ErrBlock].
func readBlock(storage Storage, p []byte, at int64) error {
	switch n, err := storage.ReadAt(p, at); {
	case n == len(p):
		return nil
	case !errors.Is(err, io.EOF):
		return err
	case len(bytes.Trim(p[:n], "\x00")) == 0:
		clear(p)
		return io.EOF
	default:
		clear(p)
		return sealing.ErrBlock
	}
}

// errWrite means that SQLite wrote something unexpected. An error is better than an unreadable file.
var errWrite = errors.New("not a whole page with room for its seal")

// WriteAt writes a page.
func (d *Database) WriteAt(p []byte, at int64) (int, error) {
	if at%Size != 0 || len(p) != Size {
		return 0, fmt.Errorf("%w: %d bytes at %d", errWrite, len(p), at)
	}
	if at == 0 && (p[20] != Reserved || binary.BigEndian.Uint16(p[16:]) != Size) {
		return 0, fmt.Errorf("%w: pages of %d bytes, %d of them reserved", errWrite, binary.BigEndian.Uint16(p[16:]), p[20])
	}
	d.key.Seal(d.page[:], p[:Size-Reserved], page, at/Size)
	return d.storage.WriteAt(d.page[:], At(at/Size))
}

// Log is the write-ahead log of a database as SQLite sees it. It is used by one goroutine at a time.
type Log struct {
	key     *sealing.File
	storage Storage
	head    [sealedHead]byte
	page    [sealedPage]byte
}

// NewLog returns the view of a sealed log.
func NewLog(key *sealing.File, storage Storage) *Log { return &Log{key: key, storage: storage} }

// ReadAt reads any part of the log, as [Database.ReadAt] does. Only a read of a single page returns
// [sealing.ErrBlock]. A search for the log's end reads frames, and finds zeros in place of an incomplete one.
func (l *Log) ReadAt(p []byte, at int64) (int, error) {
	if number, within := frameAt(at); at >= logHead && within == frameHead && len(p) == Size {
		return len(p), l.readPage(p, number)
	}
	for done := 0; done < len(p); {
		part, err := l.part(at)
		switch {
		case errors.Is(err, sealing.ErrBlock):
		case err != nil:
			clear(p[done:])
			return done, err
		}
		n := copy(p[done:], part)
		done, at = done+n, at+int64(n)
	}
	return len(p), nil
}

// part returns the bytes from a place of the log to the end of the part that contains it.
func (l *Log) part(at int64) ([]byte, error) {
	if at < logHead {
		err := readBlock(l.storage, l.head[:logHead], 0)
		if err == nil {
			reversion(l.head[:logHead], sealedVersion, plainVersion)
		}
		return l.head[at:logHead], err
	}
	number, within := frameAt(at)
	if within >= frameHead {
		err := l.readPage(l.page[:Size], number)
		return l.page[within-frameHead : Size], err
	}
	err := readBlock(l.storage, l.head[:], headAt(number))
	if err == nil {
		err = l.key.Open(l.head[:frameHead], l.head[:], head, number)
	}
	return l.head[within:frameHead], err
}

// readPage reads the page of a frame into p.
func (l *Log) readPage(p []byte, number int64) error {
	if err := readBlock(l.storage, l.page[:], loggedPageAt(number)); err != nil {
		clear(p)
		return err
	}
	return l.key.Open(p, l.page[:], loggedPage, number)
}

// The version in the head of a log. A sealed log has another version, so that SQLite without the keys refuses it.
// Otherwise SQLite would find no frame, treat the log as empty, and delete it.
const (
	plainVersion  = 3007000
	sealedVersion = 3007001
)

// reversion changes the version in the head of a log, if it is from, and updates the checksum.
func reversion(head []byte, from, to uint32) {
	if binary.BigEndian.Uint32(head[4:]) != from {
		return
	}
	binary.BigEndian.PutUint32(head[4:], to)
	var order binary.ByteOrder = binary.LittleEndian
	if binary.BigEndian.Uint32(head)&1 != 0 {
		order = binary.BigEndian
	}
	var c0, c1 uint32
	for b := head[:24]; len(b) > 0; b = b[8:] {
		c0 += order.Uint32(b) + c1
		c1 += order.Uint32(b[4:]) + c0
	}
	binary.BigEndian.PutUint32(head[24:], c0)
	binary.BigEndian.PutUint32(head[28:], c1)
}

// WriteAt writes the head of the log, or the head or the page of a frame.
func (l *Log) WriteAt(p []byte, at int64) (int, error) {
	number, within := frameAt(at)
	switch {
	case at == 0 && len(p) == logHead:
		copy(l.head[:], p)
		reversion(l.head[:logHead], plainVersion, sealedVersion)
		return l.storage.WriteAt(l.head[:logHead], 0)
	case at >= logHead && within == 0 && len(p) == frameHead:
		l.key.Seal(l.head[:], p, head, number)
		return l.storage.WriteAt(l.head[:], headAt(number))
	case at >= logHead && within == frameHead && len(p) == Size:
		l.key.Seal(l.page[:], p, loggedPage, number)
		return l.storage.WriteAt(l.page[:], loggedPageAt(number))
	}
	return 0, fmt.Errorf("%w: %d bytes at %d of the log", errWrite, len(p), at)
}
