package chunked_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/files/chunked"
)

// stored is content in chunks of 8 bytes.
type stored struct {
	content []byte
	mu      sync.Mutex
	loaded  []int64
	err     error
}

func (s *stored) load(number int64) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded = append(s.loaded, number)
	return s.content[8*number : min(8*number+8, int64(len(s.content)))], s.err
}

func (s *stored) open(ctx context.Context) *chunked.Reader {
	return chunked.NewReader(ctx, int64(len(s.content)), 8, s.load)
}

func TestContentOfAnySizeIsReadAsAnIOReader(t *testing.T) {
	for size := range 26 {
		s := &stored{content: []byte("abcdefghijklmnopqrstuvwxyz")[:size]}
		if err := iotest.TestReader(s.open(t.Context()), s.content); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
		var all bytes.Buffer
		r := s.open(t.Context())
		if _, err := r.Seek(int64(size/3), io.SeekStart); err != nil {
			t.Fatal(err)
		}
		if n, err := r.WriteTo(&all); err != nil || int(n) != size-size/3 || !bytes.Equal(all.Bytes(), s.content[size/3:]) {
			t.Errorf("%d bytes: WriteTo gives %d, %v, %q, want %d, no error and %.200q", size, n, err, all.Bytes(),
				size-size/3, s.content[size/3:])
		}
	}
}

func TestAChunkIsLoadedOnceForManyReads(t *testing.T) {
	s := &stored{content: make([]byte, 20)}
	r := s.open(t.Context())
	for range 20 {
		if _, err := r.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(s.loaded, []int64{0, 1, 2}) {
		t.Errorf("the chunks %v are loaded, want %v", s.loaded, []int64{0, 1, 2})
	}
}

func TestManyReadTheirPlacesAtOnce(t *testing.T) {
	s := &stored{content: []byte(strings.Repeat("0123456789", 40))}
	r := s.open(t.Context())
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for at := i; at < 390; at += 7 {
				piece := make([]byte, 10)
				if n, err := r.ReadAt(piece, int64(at)); n != 10 || err != nil || !bytes.Equal(piece, s.content[at:at+10]) {
					t.Errorf("at %d: %q, %d, %v, want %.200q, 10 and no error", at, piece, n, err, s.content[at:at+10])
				}
			}
		})
	}
	all.Wait()
}

func TestReadersSayWhyTheyDoNotRead(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &stored{content: make([]byte, 20)}
	r := s.open(ctx)
	kind := func(err error) fault.Kind {
		var known *fault.Error
		errors.As(err, &known)
		if known == nil {
			return ""
		}
		return known.Kind
	}
	for _, c := range []struct {
		offset int64
		whence int
	}{{-1, io.SeekStart}, {-21, io.SeekEnd}, {math.MaxInt64, io.SeekEnd}, {0, 3}} {
		if _, err := r.Seek(c.offset, c.whence); kind(err) != fault.KindInvalid {
			t.Errorf("seeking %+v gives %v, want %v", c, err, fault.KindInvalid)
		}
	}
	if _, err := r.ReadAt(make([]byte, 1), -1); kind(err) != fault.KindInvalid {
		t.Errorf("reading before the start gives %v, want %v", err, fault.KindInvalid)
	}
	s.err = errors.New("gone")
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, s.err) {
		t.Errorf("a chunk that cannot be loaded gives %v, want %v", err, s.err)
	}
	cancel()
	if _, err := r.Read(nil); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context it gives %v, want context.Canceled", err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	_, read := r.Read(make([]byte, 1))
	_, readAt := r.ReadAt(make([]byte, 1), 0)
	_, written := r.WriteTo(io.Discard)
	_, sought := r.Seek(0, io.SeekStart)
	for _, err := range []error{read, readAt, written, sought} {
		if kind(err) != fault.KindClosed {
			t.Errorf("a closed reader gives %v, want %v", err, fault.KindClosed)
		}
	}
}

// reads are the results of a reader, one after the other; the last one repeats.
type reads []struct {
	n   int
	err error
}

func (r *reads) Read([]byte) (int, error) {
	next := (*r)[0]
	if len(*r) > 1 {
		*r = (*r)[1:]
	}
	return next.n, next.err
}

func TestACallersReaderIsHeldToTheRules(t *testing.T) {
	wrapped := fmt.Errorf("connection lost: %w", io.EOF)
	for name, c := range map[string]struct {
		reads reads
		n     int
		says  string
	}{
		"to the end":              {reads{{2, nil}, {0, nil}, {1, io.EOF}}, 3, "EOF"},
		"more than the buffer":    {reads{{2, nil}, {5, nil}, {0, io.EOF}}, 2, "impossible count"},
		"fewer than none":         {reads{{-1, nil}}, 0, "impossible count"},
		"an end that is an error": {reads{{2, nil}, {0, wrapped}}, 2, "connection lost"},
		"nothing for ever":        {reads{{1, nil}, {0, nil}}, 1, io.ErrNoProgress.Error()},
	} {
		n, err := chunked.Fill(t.Context(), chunked.Strict{&c.reads}, make([]byte, 6))
		if n != c.n || err == nil || !strings.Contains(err.Error(), c.says) || errors.Is(err, io.EOF) != (c.says == "EOF") {
			t.Errorf("%s: %d bytes and %v, want %d and %q", name, n, err, c.n, c.says)
		}
	}
	if n, err := chunked.Fill(t.Context(), strings.NewReader("abcdef"), make([]byte, 6)); n != 6 || err != nil {
		t.Errorf("a full buffer: %d, %v; want 6", n, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := chunked.Fill(ctx, strings.NewReader("abcdef"), make([]byte, 6)); n != 0 ||
		!errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %d, %v; want 0", n, err)
	}
}
