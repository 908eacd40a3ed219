package sealing

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Storage stores sealed bytes.
type Storage interface {
	io.ReaderAt
	io.WriterAt
}

// Database is the file of a database as SQLite sees it. It is used by one goroutine at a time.
type Database struct {
	key     *File
	storage Storage
	page    [PageSize]byte
}

// NewDatabase returns the view of a sealed file.
func NewDatabase(key *File, storage Storage) *Database { return &Database{key: key, storage: storage} }

// ReadAt reads any part of the database. Bytes beyond its end read as zeros with io.EOF. The error for a changed page
// is ErrBlock.
func (d *Database) ReadAt(p []byte, at int64) (int, error) {
	if at%PageSize == 0 && len(p) == PageSize {
		return len(p), d.readPage(p, at/PageSize)
	}
	for done := 0; done < len(p); {
		if err := d.readPage(d.page[:], at/PageSize); err != nil {
			clear(p[done:])
			return done, err
		}
		n := copy(p[done:], d.page[at%PageSize:])
		done, at = done+n, at+int64(n)
	}
	return len(p), nil
}

func (d *Database) readPage(p []byte, number int64) error {
	if err := readBlock(d.storage, p, PageAt(number)); err != nil {
		return err
	}
	err := d.key.Open(p[:PageSize-Reserved], p, Page, number)
	clear(p[PageSize-Reserved:])
	return err
}

// readBlock reads a sealed block from disk. The error for an incomplete block is ErrBlock.
func readBlock(storage Storage, p []byte, at int64) error {
	switch n, err := storage.ReadAt(p, at); {
	case n == len(p):
		return nil
	case !errors.Is(err, io.EOF):
		return err
	case zeros(p[:n]):
		clear(p)
		return io.EOF
	default:
		clear(p)
		return ErrBlock
	}
}

// errWrite means that SQLite wrote something unexpected. An error is better than an unreadable file.
var errWrite = errors.New("not a whole page with room for its seal")

// WriteAt writes a page.
func (d *Database) WriteAt(p []byte, at int64) (int, error) {
	if at%PageSize != 0 || len(p) != PageSize {
		return 0, fmt.Errorf("%w: %d bytes at %d", errWrite, len(p), at)
	}
	if at == 0 && (p[20] != Reserved || binary.BigEndian.Uint16(p[16:]) != PageSize) {
		return 0, fmt.Errorf("%w: pages of %d bytes, %d of them reserved", errWrite, binary.BigEndian.Uint16(p[16:]), p[20])
	}
	d.key.Seal(d.page[:], p[:PageSize-Reserved], Page, at/PageSize)
	return d.storage.WriteAt(d.page[:], PageAt(at/PageSize))
}

// Log is the write-ahead log of a database as SQLite sees it. It is used by one goroutine at a time.
type Log struct {
	key     *File
	storage Storage
	head    [SealedHead]byte
	page    [sealedPage]byte
}

// NewLog returns the view of a sealed log.
func NewLog(key *File, storage Storage) *Log { return &Log{key: key, storage: storage} }

// ReadAt reads any part of the log, as [Database.ReadAt] does. Only a read of a single page returns ErrBlock. A search
// for the log's end reads frames, and finds zeros in place of an incomplete one.
func (l *Log) ReadAt(p []byte, at int64) (int, error) {
	if number, within := FrameAt(at); at >= LogHead && within == FrameHead && len(p) == PageSize {
		return len(p), l.readPage(p, number)
	}
	for done := 0; done < len(p); {
		part, err := l.part(at)
		switch {
		case errors.Is(err, ErrBlock):
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
	if at < LogHead {
		err := readBlock(l.storage, l.head[:LogHead], 0)
		if err == nil {
			reversion(l.head[:LogHead], sealedVersion, plainVersion)
		}
		return l.head[at:LogHead], err
	}
	number, within := FrameAt(at)
	if within >= FrameHead {
		err := l.readPage(l.page[:PageSize], number)
		return l.page[within-FrameHead : PageSize], err
	}
	err := readBlock(l.storage, l.head[:], HeadAt(number))
	if err == nil {
		err = l.key.Open(l.head[:FrameHead], l.head[:], Head, number)
	}
	return l.head[within:FrameHead], err
}

// readPage reads the page of a frame into p.
func (l *Log) readPage(p []byte, number int64) error {
	if err := readBlock(l.storage, l.page[:], LoggedPageAt(number)); err != nil {
		clear(p)
		return err
	}
	return l.key.Open(p, l.page[:], LoggedPage, number)
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
	number, within := FrameAt(at)
	switch {
	case at == 0 && len(p) == LogHead:
		copy(l.head[:], p)
		reversion(l.head[:LogHead], plainVersion, sealedVersion)
		return l.storage.WriteAt(l.head[:LogHead], 0)
	case at >= LogHead && within == 0 && len(p) == FrameHead:
		l.key.Seal(l.head[:], p, Head, number)
		return l.storage.WriteAt(l.head[:], HeadAt(number))
	case at >= LogHead && within == FrameHead && len(p) == PageSize:
		l.key.Seal(l.page[:], p, LoggedPage, number)
		return l.storage.WriteAt(l.page[:], LoggedPageAt(number))
	}
	return 0, fmt.Errorf("%w: %d bytes at %d of the log", errWrite, len(p), at)
}
