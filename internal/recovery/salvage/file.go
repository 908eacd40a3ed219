// Package salvage reads the pages of an SQLite file without SQLite, and trusts none of its structures, to recover the
// readable content of a damaged file. It follows https://www.sqlite.org/fileformat2.html and never writes.
package salvage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/souvenir-ai/souvenir/internal/sealing"
	"github.com/souvenir-ai/souvenir/internal/sealing/pages"
)

const (
	headerSize  = 100
	magic       = "SQLite format 3\x00"
	defaultPage = 4096
	maxPages    = 1 << 31
)

// ErrNoFile means that the file has nothing to read. ErrKey means that its master key is missing or wrong.
var (
	ErrNoFile = errors.New("not a file with pages")
	ErrKey    = errors.New("not readable with the master key that was given")
)

// File reads a file page by page, including the pages in its write-ahead log.
type File struct {
	file     *os.File
	log      *os.File
	key      *sealing.File    // nil: the file is not encrypted
	inLog    map[uint32]int64 // page -> place of its newest committed version in the log
	size     int              // of a page, in bytes
	usable   int              // of those, without the part reserved at the end
	pages    uint32
	header   []byte
	Problems []string // problems of the file as a whole
}

const damagedLog = "the write-ahead log is damaged and was skipped"

// Open opens a file for reading, with the master key if it is encrypted. It returns an error if the file cannot be
// read, is empty, or has another key; all other problems go to Problems.
func Open(path string, key sealing.MasterKey) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	s := &File{file: f, inLog: map[uint32]int64{}, header: make([]byte, headerSize)}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%w: it is not a regular file", ErrNoFile)
	}
	if err == nil && info.Size() == 0 {
		err = fmt.Errorf("%w: it is empty", ErrNoFile)
	}
	if err == nil {
		err = s.unseal(key)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	size := info.Size()
	if s.key != nil {
		size = pages.PlainSize(size)
	}
	if _, err := s.database().ReadAt(s.header, 0); err != nil && err != io.EOF && !errors.Is(err, sealing.ErrBlock) {
		_ = f.Close()
		return nil, err
	}
	s.readLog(path + "-wal")
	if first, ok := s.raw(1, defaultPage); ok && len(s.inLog) > 0 {
		copy(s.header, first)
	}
	s.pageSize()
	s.pages = max(s.pages, uint32(min((size+int64(s.size)-1)/int64(s.size), maxPages)))
	return s, nil
}

// unseal takes the key of an encrypted file.
func (s *File) unseal(key sealing.MasterKey) (err error) {
	header := make([]byte, sealing.HeaderSize)
	n, err := s.file.ReadAt(header, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if key.IsZero() && !sealing.IsSealed(header[:n]) {
		return nil
	}
	if s.key, err = sealing.NewRing(key).Open(header[:n]); err != nil {
		return fmt.Errorf("%w: %w", ErrKey, err)
	}
	return nil
}

// database returns the file as SQLite would see it.
func (s *File) database() io.ReaderAt {
	if s.key == nil {
		return s.file
	}
	return pages.NewDatabase(s.key, s.file)
}

// logged returns the log as SQLite would see it.
func (s *File) logged() io.ReaderAt {
	if s.key == nil {
		return s.log
	}
	return pages.NewLog(s.key, s.log)
}

// Close closes the file.
func (s *File) Close() error {
	if s.log != nil {
		_ = s.log.Close()
	}
	return s.file.Close()
}

// pageSize reads the page size; with a damaged header, it assumes that of all our files.
func (s *File) pageSize() {
	if s.size == 0 {
		s.size = int(binary.BigEndian.Uint16(s.header[16:]))
	}
	if s.size == 1 {
		s.size = 1 << 16
	}
	reserved := int(s.header[20])
	if s.size < 512 || s.size > 1<<16 || s.size&(s.size-1) != 0 || !bytes.HasPrefix(s.header, []byte(magic)) {
		s.Problems = append(s.Problems, "the header of the file is damaged")
		s.size, reserved = defaultPage, 0
	}
	if s.key != nil {
		s.size, reserved = pages.Size, pages.Reserved
	}
	if s.size-reserved < 480 {
		reserved = 0
	}
	s.usable = s.size - reserved
}

// Version returns the version of the schema (PRAGMA user_version), 0 if the header is damaged.
func (s *File) Version() int {
	if len(s.Problems) > 0 {
		return 0
	}
	return int(int32(binary.BigEndian.Uint32(s.header[60:])))
}

// Application returns PRAGMA application_id.
func (s *File) Application() int32 { return int32(binary.BigEndian.Uint32(s.header[68:])) }

// Sound reports whether the header is that of a SQLite file.
func (s *File) Sound() bool { return bytes.HasPrefix(s.header, []byte(magic)) }

// Pages returns the number of pages; they are numbered from 1.
func (s *File) Pages() uint32 { return s.pages }

// page returns the usable bytes of a page; not ok if the file does not have all of them.
func (s *File) page(n uint32) ([]byte, bool) {
	data, ok := s.raw(n, s.size)
	if !ok {
		return nil, false
	}
	return data[:s.usable], true
}

func (s *File) raw(n uint32, size int) ([]byte, bool) {
	if n == 0 || n > maxPages {
		return nil, false
	}
	data := make([]byte, size)
	if at, ok := s.inLog[n]; ok {
		_, err := s.logged().ReadAt(data, at)
		return data, err == nil
	}
	_, err := s.database().ReadAt(data, int64(n-1)*int64(size))
	return data, err == nil
}

// readLog finds the pages in the write-ahead log: those of all committed transactions, up to the first invalid
// frame (section 4.2 of the format).
func (s *File) readLog(path string) {
	log, err := os.Open(path)
	if err != nil {
		return
	}
	s.log = log
	head := make([]byte, 32)
	if _, err := s.logged().ReadAt(head, 0); err != nil {
		_ = log.Close()
		s.log = nil
		return
	}
	word := binary.BigEndian.Uint32
	var order binary.ByteOrder = binary.LittleEndian
	switch word(head) {
	case 0x377f0683:
		order = binary.BigEndian
	case 0x377f0682:
	default:
		s.Problems = append(s.Problems, damagedLog)
		return
	}
	size := int(word(head[8:]))
	c0, c1 := checksum(order, 0, 0, head[:24])
	if size < 512 || size > 1<<16 || size&(size-1) != 0 || c0 != word(head[24:]) || c1 != word(head[28:]) {
		s.Problems = append(s.Problems, damagedLog)
		return
	}
	pending := map[uint32]int64{}
	frame := make([]byte, 24+size)
	for at := int64(32); ; at += int64(len(frame)) {
		if _, err := s.logged().ReadAt(frame, at); err != nil {
			return
		}
		if !bytes.Equal(frame[8:16], head[16:24]) {
			return // from an earlier use of the log
		}
		c0, c1 = checksum(order, c0, c1, frame[:8])
		c0, c1 = checksum(order, c0, c1, frame[24:])
		if c0 != word(frame[16:]) || c1 != word(frame[20:]) {
			return // its write was not finished
		}
		pending[word(frame)] = at + 24
		if pages := word(frame[4:]); pages != 0 { // a commit
			for n, where := range pending {
				s.inLog[n] = where
			}
			clear(pending)
			s.pages, s.size = pages, size
		}
	}
}

func checksum(order binary.ByteOrder, c0, c1 uint32, data []byte) (uint32, uint32) {
	for ; len(data) >= 8; data = data[8:] {
		c0 += order.Uint32(data) + c1
		c1 += order.Uint32(data[4:]) + c0
	}
	return c0, c1
}

// Free returns the pages that the file lists as free. They hold deleted content.
func (s *File) Free() map[uint32]bool {
	free := map[uint32]bool{}
	if !s.Sound() {
		return free
	}
	for n := binary.BigEndian.Uint32(s.header[32:]); n != 0 && n <= s.pages && !free[n]; {
		page, ok := s.page(n)
		if !ok {
			break
		}
		free[n] = true
		count := binary.BigEndian.Uint32(page[4:])
		if int64(count) > int64(len(page)/4-2) {
			s.Problems = append(s.Problems, "the list of free pages is damaged")
			break
		}
		for i := range count {
			if leaf := binary.BigEndian.Uint32(page[8+4*i:]); leaf != 0 && leaf <= s.pages {
				free[leaf] = true
			}
		}
		n = binary.BigEndian.Uint32(page)
	}
	return free
}
