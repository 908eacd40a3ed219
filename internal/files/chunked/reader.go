// Package chunked reads content a few chunks at a time: stored content in any order, and a caller's content to its end.
package chunked

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/souvenir-ai/souvenir/internal/fault"
)

// Reader reads stored content in any order; it is an io.ReadSeekCloser, an io.ReaderAt and an io.WriterTo. Several
// goroutines may call ReadAt at once, even while one of them reads.
type Reader struct {
	ctx   context.Context // the only way to cancel an io.Reader
	size  int64
	piece int64 // bytes of a chunk
	load  func(number int64) ([]byte, error)

	mu     sync.Mutex // guards the fields below, and is not held while a chunk is loaded
	offset int64      // of the next Read
	closed bool
	number int64  // of the chunk read last
	chunk  []byte // nil: none yet; never written to
}

// NewReader returns a reader of content of a size, whose chunks but the last have the same size. The function loads a
// chunk, and may be called concurrently. The end of the context ends all reading.
func NewReader(ctx context.Context, size, piece int64, load func(number int64) ([]byte, error)) *Reader {
	return &Reader{ctx: ctx, size: size, piece: piece, load: load}
}

// Read reads the next bytes.
func (r *Reader) Read(p []byte) (int, error) {
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
func (r *Reader) ReadAt(p []byte, offset int64) (n int, err error) {
	if offset < 0 {
		return 0, fault.Invalid("offset", "{} is %d; expected 0 or more", offset)
	}
	for err = r.check(); n < len(p) && err == nil; {
		var data []byte
		data, err = r.from(offset + int64(n))
		n += copy(p[n:], data)
	}
	return n, err
}

// WriteTo writes the rest of the content to w.
func (r *Reader) WriteTo(w io.Writer) (written int64, err error) {
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
func (r *Reader) Seek(offset int64, whence int) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	base := map[int]int64{io.SeekStart: 0, io.SeekCurrent: r.offset, io.SeekEnd: r.size}
	from, known := base[whence]
	switch {
	case r.closed:
		return 0, errClosed()
	case !known:
		return 0, fault.Invalid("whence", "{} is %d; expected 0 (start), 1 (current) or 2 (end)", whence)
	case offset < -from || offset > 0 && from+offset < 0:
		return 0, fault.Invalid("offset", "{} is %d from byte %d; the result must be 0 or more", offset, from)
	}
	r.offset = from + offset
	return r.offset, nil
}

// Close ends the reading. It never fails.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed, r.chunk = true, nil
	return nil
}

func errClosed() error { return fault.New(fault.KindClosed, "", "the file's reader is closed") }

// check returns why nothing can be read, nil if reading is possible.
func (r *Reader) check() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed()
	}
	return r.ctx.Err()
}

func (r *Reader) move(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.offset += n
}

// from returns the bytes from an offset to the end of its chunk, which must not be modified; io.EOF past the end.
func (r *Reader) from(offset int64) ([]byte, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if offset >= r.size {
		return nil, io.EOF
	}
	number := offset / r.piece
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
	return chunk[offset-number*r.piece:], nil
}
