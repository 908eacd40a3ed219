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
	"slices"
	"strings"
	"time"
)

// maxObject bounds one conversation, entity or memory in a file, in bytes. One of them is in memory at a time.
const maxObject = 64 << 20

// eachFile passes a file to use, or each file in a folder or ZIP archive whose name matches one of the patterns, in the
// order of the names.
func eachFile(at string, patterns []string, use func(io.Reader) error) error {
	info, err := os.Stat(at)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return eachInFolder(at, patterns, use)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%q is neither a file nor a folder", at)
	}
	file, err := os.Open(at)
	if err != nil {
		return err
	}
	defer file.Close()
	start := make([]byte, 4)
	if n, _ := file.ReadAt(start, 0); n == 4 && bytes.Equal(start, []byte("PK\x03\x04")) {
		return eachInArchive(file, info.Size(), patterns, use)
	}
	return use(file)
}

func eachInFolder(at string, patterns []string, use func(io.Reader) error) error {
	root, err := openFolder(at)
	if err != nil {
		return err
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	found := false
	for _, entry := range entries {
		if !matches(entry.Name(), patterns) {
			continue
		}
		found = true
		file, err := openFile(root, entry.Name())
		if err == nil {
			err = errors.Join(use(file), file.Close())
		}
		if err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("%q has no %s; name the file, its folder or the ZIP archive", at, patterns[0])
	}
	return nil
}

// openFolder opens a folder that links cannot leave. [os.OpenRoot] alone would block on a pipe.
func openFolder(at string) (*os.Root, error) {
	info, err := os.Stat(at)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%q is not a folder", at)
	}
	if err != nil {
		return nil, err
	}
	return os.OpenRoot(at)
}

// openFile opens a regular file of a folder. Anything else is an error: a link that leads out of the folder, or a pipe,
// from which a read might never return.
func openFile(root *os.Root, name string) (*os.File, error) {
	info, err := root.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%q is not a file", filepath.Join(root.Name(), name))
	}
	if err != nil {
		return nil, err
	}
	return root.Open(name)
}

// mostUnpacked is the maximum ratio of a file's size to its size in the archive. That of conversations is about ten.
const mostUnpacked = 100

func eachInArchive(file *os.File, size int64, patterns []string, use func(io.Reader) error) error {
	archive, err := zip.NewReader(file, size)
	if err != nil {
		return fmt.Errorf("%q is a damaged ZIP archive: %w", file.Name(), err)
	}
	var found []*zip.File
	for _, entry := range archive.File {
		if matches(path.Base(entry.Name), patterns) {
			found = append(found, entry)
		}
	}
	if len(found) == 0 {
		return fmt.Errorf("%q has no %s", file.Name(), patterns[0])
	}
	slices.SortStableFunc(found, func(a, b *zip.File) int { return strings.Compare(a.Name, b.Name) })
	for _, entry := range found {
		if entry.UncompressedSize64 > maxObject && entry.UncompressedSize64/mostUnpacked > entry.CompressedSize64 {
			return fmt.Errorf("%s in %q is more than %d times as large as in the archive, which conversations never are; if "+
				"they are yours, unpack the archive and name the file", entry.Name, file.Name(), mostUnpacked)
		}
		content, err := entry.Open()
		if err == nil {
			err = errors.Join(use(content), content.Close())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// matches reports whether a name matches one of the patterns of [path.Match].
func matches(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

// limited reads up to a limit of bytes, which can be reset.
type limited struct {
	in   io.Reader
	left int
}

var errObject = fmt.Errorf("one object has more than %d MiB", maxObject>>20)

// Read fills p as far as possible, since a decoder scans its whole buffer after each read, and some readers return
// little.
func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errObject
	}
	n, err := io.ReadFull(l.in, p[:min(len(p), l.left)])
	if l.left -= n; n > 0 {
		err = nil // the next read returns it again
	}
	return n, err
}

// elements yields the elements of a JSON list, one at a time. If member is given, the list is that member of an object.
func elements[T any](in io.Reader, member string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		bounded := &limited{in, maxObject}
		decoder := json.NewDecoder(bounded)
		start, err := decoder.Token()
		expected := "expected a JSON list, beginning with ["
		if member != "" {
			expected = fmt.Sprintf("expected a JSON list, or an object with a list %q", member)
			if err == nil && start == json.Delim('{') {
				start, err = valueOf(decoder, member)
			}
		}
		if err != nil || start != json.Delim('[') {
			yield(none, fmt.Errorf("%s: got %v", expected, firstOf(err, start)))
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

// valueOf returns the first token of the value of a member, in the object that the decoder has begun.
func valueOf(decoder *json.Decoder, member string) (json.Token, error) {
	var skipped json.RawMessage
	for decoder.More() {
		name, err := decoder.Token()
		if err == nil && name == member {
			return decoder.Token()
		}
		if err == nil {
			err = decoder.Decode(&skipped)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, errors.New("an object without it")
}

// firstOf returns the error if there is one, or else the value.
func firstOf(err error, value any) any {
	if err != nil {
		return err
	}
	return value
}

// inFiles yields the items that read yields for a file, or for the matching files of a folder or ZIP archive.
func inFiles[T any](at string, patterns []string, read func(io.Reader) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		stopped := errors.New("stopped")
		err := eachFile(at, patterns, func(in io.Reader) error {
			for item, err := range read(in) {
				if err != nil {
					return err
				}
				if !yield(item, nil) {
					return stopped
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, stopped) {
			yield(none, err)
		}
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

// keyOf returns the key for a name in a source. Long names are cut and get a hash.
func keyOf(source, name string) string {
	const longest = 200 // a conversation's turns have keys of at most 256 bytes
	name = strings.ToValidUTF8(strings.ReplaceAll(name, "\x00", ""), "?")
	if len(name) > longest {
		sum := sha256.Sum256([]byte(name))
		name = strings.ToValidUTF8(name[:longest-40], "") + "#" + hex.EncodeToString(sum[:16])
	}
	return source + ":" + name
}
