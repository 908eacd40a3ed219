package migrate

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// maxObject bounds one conversation, entity or memory in a file, in bytes. One of them is in memory at a time.
const maxObject = 64 << 20

// openIn opens the file name in a folder or a ZIP archive, or the file that the path itself names.
func openIn(at, name string) (io.ReadCloser, error) {
	info, err := os.Stat(at)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return os.Open(filepath.Join(at, name))
	}
	file, err := os.Open(at)
	if err != nil {
		return nil, err
	}
	start := make([]byte, 4)
	if n, _ := io.ReadFull(file, start); n < 4 || !bytes.Equal(start, []byte("PK\x03\x04")) {
		_, err := file.Seek(0, io.SeekStart)
		return file, err
	}
	archive, err := zip.NewReader(file, info.Size())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%q is a damaged ZIP archive: %w", at, err), file.Close())
	}
	for _, entry := range archive.File {
		if path.Base(entry.Name) == name {
			content, err := entry.Open()
			if err != nil {
				return nil, errors.Join(err, file.Close())
			}
			return zipped{content, file}, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("%q has no %s", at, name), file.Close())
}

// zipped is a file in an archive, and the archive.
type zipped struct {
	io.ReadCloser
	archive *os.File
}

func (z zipped) Close() error { return errors.Join(z.ReadCloser.Close(), z.archive.Close()) }

// limited reads up to a number of bytes, which can be reset.
type limited struct {
	in   io.Reader
	left int
}

var errObject = fmt.Errorf("one object has more than %d MiB", maxObject>>20)

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errObject
	}
	n, err := l.in.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

// elements yields the elements of a JSON list, one at a time.
func elements[T any](in io.Reader) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		bounded := &limited{in, maxObject}
		decoder := json.NewDecoder(bounded)
		if start, err := decoder.Token(); err != nil || start != json.Delim('[') {
			yield(none, fmt.Errorf("a list of JSON is expected, beginning with [: got %v", firstOf(err, start)))
			return
		}
		for n := 1; decoder.More(); n++ {
			bounded.left = maxObject
			var element T
			if err := decoder.Decode(&element); err != nil {
				yield(none, fmt.Errorf("element %d of the list, at byte %d: %w", n, decoder.InputOffset(), err))
				return
			}
			if !yield(element, nil) {
				return
			}
		}
		if _, err := decoder.Token(); err != nil {
			yield(none, fmt.Errorf("the list has no end: %w", err))
		}
	}
}

// firstOf returns the error if there is one, and otherwise the value.
func firstOf(err error, value any) any {
	if err != nil {
		return err
	}
	return value
}

// inFile yields what read yields of the content of a file.
func inFile[T any](at, name string, read func(io.Reader) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		file, err := openIn(at, name)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("%w; name the file, its folder or the ZIP archive", err)
			}
			yield(none, err)
			return
		}
		defer file.Close()
		read(file)(yield)
	}
}

// secondsTime reads a time in seconds since 1970. Times outside the years 1970 to 9999 count as none.
func secondsTime(seconds float64) time.Time {
	if math.IsNaN(seconds) || seconds <= 0 || seconds > 253402300799 {
		return time.Time{}
	}
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(part*1e9)).UTC().Truncate(time.Microsecond)
}

// textTime reads a time in one of the usual formats; anything else counts as none.
func textTime(text string) time.Time {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999",
		"2006-01-02 15:04:05.999999999Z07:00", time.DateOnly} {
		if t, err := time.Parse(layout, strings.TrimSpace(text)); err == nil && t.Year() >= 1 && t.Year() <= 9999 {
			return t.UTC().Truncate(time.Microsecond)
		}
	}
	return time.Time{}
}

// past returns a time, or none if it is in the future, which the store would refuse.
func past(t time.Time) time.Time {
	if t.After(time.Now()) {
		return time.Time{}
	}
	return t
}

// keyOf returns the key of something that has a name in its source. Long names are cut, with a hash.
func keyOf(source, name string) string {
	const longest = 200 // a conversation's turns have keys of at most 256 bytes
	name = strings.ToValidUTF8(strings.ReplaceAll(name, "\x00", ""), "?")
	if len(name) > longest {
		sum := sha256.Sum256([]byte(name))
		name = strings.ToValidUTF8(name[:longest-40], "") + "#" + hex.EncodeToString(sum[:16])
	}
	return source + ":" + name
}
