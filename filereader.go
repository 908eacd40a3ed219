package souvenir

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// FileReader reads the bytes of a file in any order; it is an io.ReadSeekCloser, an io.ReaderAt and an io.WriterTo. It
// holds no transaction between two reads. Each piece is compared with its SHA-256 before a byte of it is handed out:
// damage is ErrCorrupt. A file that was deleted in the meantime, or is no longer visible, is ErrNotFound from the next
// piece (of 256 KiB) on. [Store.OpenFile] returns one.
//
// Several goroutines may call ReadAt at once, even while one of them reads.
type FileReader struct {
	ctx   context.Context // of OpenFile: an io.Reader can be cancelled in no other way
	store *Store
	file  storedFile

	mu     sync.Mutex // guards the fields below, and is not held while the store is read
	offset int64      // of the next Read
	closed bool
	number int64  // of the chunk read last
	chunk  []byte // nil: none yet; never written to
}

// OpenFile opens a file for reading. The context also ends all reading from it. A file that does not exist, or that
// this view may not see, is ErrNotFound; one with missing bytes is ErrCorrupt.
func (s *Store) OpenFile(ctx context.Context, id string) (*FileReader, error) {
	r := &FileReader{ctx: ctx, store: s}
	err := s.read(ctx, func(tx db.Tx, sc scope) (err error) {
		if r.file, err = s.file(tx, sc, id); err != nil {
			return err
		}
		var chunks, size int64
		if err := tx.QueryRow(`SELECT count(*), coalesce(sum(length(data)), 0) FROM file_chunk WHERE id >= ? AND id < ?`,
			r.file.row<<kernel.ChunkBits, (r.file.row+1)<<kernel.ChunkBits).Scan(&chunks, &size); err != nil {
			return err
		}
		if chunks != chunksOf(r.file.Size) || size != r.file.Size {
			return r.damaged("it has %d bytes in %d chunks, of %d in %d", size, chunks, r.file.Size, chunksOf(r.file.Size))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// chunksOf is how many chunks a file of this size has.
func chunksOf(size int64) int64 { return (size + kernel.ChunkSize - 1) / kernel.ChunkSize }

func (r *FileReader) damaged(format string, args ...any) error {
	return damaged(fmt.Errorf(format, args...), "file %s (%s)", r.file.ID, show(r.file.Filename))
}

// File returns the file's details, as they were when it was opened.
func (r *FileReader) File() File { return r.file.File }

// Read reads the next bytes.
func (r *FileReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	offset := r.offset
	r.mu.Unlock()
	if len(p) == 0 {
		return 0, r.check()
	}
	data, err := r.from(offset)
	n := copy(p, data)
	r.move(int64(n))
	return n, err
}

// ReadAt reads len(p) bytes from an offset, fewer with io.EOF at the end. It neither uses nor moves the position of
// Read.
func (r *FileReader) ReadAt(p []byte, offset int64) (n int, err error) {
	if offset < 0 {
		return 0, invalid("offset", "offset is %d; 0 or more is allowed", offset)
	}
	for err = r.check(); n < len(p) && err == nil; {
		var data []byte
		data, err = r.from(offset + int64(n))
		n += copy(p[n:], data)
	}
	return n, err
}

// WriteTo writes the rest of the file to w.
func (r *FileReader) WriteTo(w io.Writer) (written int64, err error) {
	for {
		r.mu.Lock()
		offset := r.offset
		r.mu.Unlock()
		data, err := r.from(offset)
		if errors.Is(err, io.EOF) {
			return written, nil
		}
		if err != nil {
			return written, err
		}
		n, err := w.Write(data)
		if n < 0 || n > len(data) {
			return written, errors.New("souvenir: the writer returned an impossible count")
		}
		r.move(int64(n))
		written += int64(n)
		if err == nil && n < len(data) {
			err = io.ErrShortWrite
		}
		if err != nil {
			return written, err
		}
	}
}

// Seek moves the position of Read, even past the end.
func (r *FileReader) Seek(offset int64, whence int) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	base := map[int]int64{io.SeekStart: 0, io.SeekCurrent: r.offset, io.SeekEnd: r.file.Size}
	from, known := base[whence]
	switch {
	case r.closed:
		return 0, errReaderClosed()
	case !known:
		return 0, invalid("whence", "whence is %d; 0 (start), 1 (current) and 2 (end) are allowed", whence)
	case offset < -from || offset > 0 && from+offset < 0:
		return 0, invalid("offset", "offset is %d from byte %d; the result must be 0 or more", offset, from)
	}
	r.offset = from + offset
	return r.offset, nil
}

// Close ends the reading. It never fails.
func (r *FileReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed, r.chunk = true, nil
	return nil
}

func errReaderClosed() error { return newError(KindClosed, "", "the file's reader is closed") }

// check returns why nothing can be read, nil if reading is possible.
func (r *FileReader) check() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errReaderClosed()
	}
	return r.ctx.Err()
}

func (r *FileReader) move(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.offset += n
}

// from returns the bytes from an offset to the end of its chunk, which must not be modified; io.EOF past the end.
func (r *FileReader) from(offset int64) ([]byte, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if offset >= r.file.Size {
		return nil, io.EOF
	}
	number := offset / kernel.ChunkSize
	r.mu.Lock()
	chunk := r.chunk
	if r.number != number {
		chunk = nil
	}
	r.mu.Unlock()
	if chunk == nil {
		var err error
		if chunk, err = r.load(number); err != nil {
			return nil, err
		}
		r.mu.Lock()
		if !r.closed {
			r.number, r.chunk = number, chunk
		}
		r.mu.Unlock()
	}
	return chunk[offset-number*kernel.ChunkSize:], nil
}

// load reads one chunk, if the file is still there and visible.
func (r *FileReader) load(number int64) ([]byte, error) {
	var sum, data []byte
	err := r.store.read(r.ctx, func(tx db.Tx, sc scope) error {
		visible, args := sc.VisibleFile()
		err := tx.QueryRow(`SELECT k.sha256, k.data `+kernel.FromFile+` LEFT JOIN file_chunk k ON k.id = ? WHERE f.id = ? AND `+
			visible,
			append([]any{r.file.row<<kernel.ChunkBits | number, r.file.row}, args...)...).Scan(&sum, &data)
		if errors.Is(err, db.ErrNoRows) {
			_, err = r.store.file(tx, sc, r.file.ID) // says so
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	want := min(r.file.Size-number*kernel.ChunkSize, kernel.ChunkSize)
	if found := sha256.Sum256(data); int64(len(data)) != want || string(found[:]) != string(sum) {
		return nil, r.damaged("chunk %d of %d is not what was stored: it has %d bytes of %d, or other ones", number+1,
			chunksOf(r.file.Size), len(data), want)
	}
	return data, nil
}
