package souvenir

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// How a store handles failing files, disks, contexts and Close.

// storeFile returns the bytes of a file with some memories.
func storeFile(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	s, err := Open(t.Context(), path, &Options{Embedder: wordEmbedder("words-1")})
	if err != nil {
		t.Fatal(err)
	}
	many := make([]NewMemory, 200)
	for i := range many {
		many[i] = NewMemory{Content: fmt.Sprintf("memory %d tells of w%d and of much else besides", i, i),
			Tags: []string{fmt.Sprint("t", i%5)}}
	}
	if _, err := s.AddMemories(t.Context(), many, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return readFile(t, path)
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// changed returns a copy of a file with a big-endian number written at an offset, as in SQLite's header.
func changed(file []byte, at int, number uint32) []byte {
	file = bytes.Clone(file)
	binary.BigEndian.PutUint32(file[at:], number)
	return file
}

func TestOpenRefusesForeignFilesUnchanged(t *testing.T) {
	const userVersion, application = 60, 68 // offsets in SQLite's header
	store := storeFile(t)
	garbled := bytes.Clone(store)
	for i := range 100 {
		garbled[i] ^= 0x55
	}
	badPageSize := bytes.Clone(store)
	badPageSize[16], badPageSize[17] = 0x01, 0x03
	schema := bytes.Clone(store)
	for i := 100; i < 600; i++ {
		schema[i] ^= 0xff
	}
	for _, c := range []struct {
		name    string
		content []byte
		kinds   []error
		says    string
	}{
		{"text", []byte(strings.Repeat("Dear diary, nothing happened.\n", 50)), []error{ErrForeign}, "not a SQLite file"},
		{"one byte", []byte("x"), []error{ErrForeign}, ""},
		{"zeros", make([]byte, 8192), []error{ErrForeign, ErrCorrupt}, ""},
		{"another program's file", changed(store, application, 0x12345678), []error{ErrForeign}, "0x12345678"},
		{"a file of no program", changed(store, application, 0), []error{ErrForeign}, "no application id"},
		{"a newer version", changed(store, userVersion, 9999), []error{ErrNewer}, "9999"},
		{"a garbled header", garbled, []error{ErrForeign, ErrCorrupt}, ""},
		{"an invalid page size", badPageSize, []error{ErrForeign, ErrCorrupt}, ""},
		{"a garbled schema", schema, []error{ErrCorrupt}, ""},
		{"half a header", store[:50], []error{ErrForeign, ErrCorrupt}, ""},
		{"a header alone", store[:100], []error{ErrForeign, ErrCorrupt}, ""},
		{"half a page", store[:2048], []error{ErrForeign, ErrCorrupt}, ""},
	} {
		for _, readOnly := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, read-only %v", c.name, readOnly), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "it.db")
				writeFile(t, path, c.content)
				s, err := Open(t.Context(), path, &Options{Embedder: wordEmbedder("words-1"), ReadOnly: readOnly})
				if err == nil {
					s.Close()
					t.Fatal("it was opened, want an error")
				}
				if !isAny(err, c.kinds...) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), path) {
					t.Errorf("error is %v; want kind %v, the path, and %q", err, c.kinds, c.says)
				}
				if !bytes.Equal(readFile(t, path), c.content) {
					t.Errorf("the refused file was changed, want %.200q", c.content)
				}
				onlyFile(t, path)
			})
		}
	}
}

func isAny(err error, kinds ...error) bool {
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// onlyFile checks that the folder holds only the file.
func onlyFile(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != filepath.Base(path) {
			t.Errorf("%s was left beside the file, want %v", e.Name(), filepath.Base(path))
		}
	}
}

func TestOpenRefusesPathsWithoutAFile(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	writeFile(t, file, []byte("text"))
	for _, c := range []struct {
		name, path string
		kinds      []error
	}{
		{"a folder", folder, []error{ErrForeign}},
		{"a missing folder", filepath.Join(folder, "none", "store.db"), []error{ErrNotFound, ErrInvalid}},
		{"a file as a folder", filepath.Join(file, "store.db"), []error{ErrNotFound, ErrInvalid}},
		{"a long name", filepath.Join(folder, strings.Repeat("x", 300)), []error{ErrNotFound, ErrInvalid}},
	} {
		for _, readOnly := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, read-only %v", c.name, readOnly), func(t *testing.T) {
				s, err := Open(t.Context(), c.path, &Options{Embedder: wordEmbedder("words-1"), ReadOnly: readOnly})
				if err == nil {
					s.Close()
					t.Fatal("it was opened, want an error")
				}
				if !isAny(err, c.kinds...) || !strings.Contains(err.Error(), c.path) {
					t.Errorf("error is %v; want kind %v and the path", err, c.kinds)
				}
				onlyFile(t, file)
			})
		}
	}
	t.Run("nothing there, read-only", func(t *testing.T) {
		path := filepath.Join(folder, "absent.db")
		s, err := Open(t.Context(), path, &Options{Embedder: wordEmbedder("words-1"), ReadOnly: true})
		if err == nil {
			s.Close()
			t.Fatal("it was opened, want an error")
		}
		if !isAny(err, ErrNotFound, ErrReadOnly, ErrForeign) {
			t.Errorf("error is %v; want a kind that says so", err)
		}
		onlyFile(t, file)
	})
}

func TestEmptyFileBecomesAStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "empty.db")
	writeFile(t, path, nil)
	s := openWords(t, path, Options{})
	mustAdd(t, s, NewMemory{Content: "first"})
	checkConsistency(t, s)
}

func TestOddPathsAreTakenLiterally(t *testing.T) {
	folder := t.TempDir()
	for i, name := range []string{"a b.db", "a?mode=memory.db", "a#b.db", "100%41.db", "a&b=c;d.db", "Gedächtnis-記憶-🐘.db",
		"file:x.db", "'q\"uote'.db", "%00.db", " .db", "a\nb.db", ":memory:.db"} {
		if !longtest.Part(i, 1, 6) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(folder, "dir ?#% ü", name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			s := openWords(t, path, Options{})
			id := mustAdd(t, s, NewMemory{Content: "kept"}).ID
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(path); err != nil {
				t.Fatal("the file has another name:", err)
			}
			again := openWords(t, path, Options{ReadOnly: true})
			if m, err := again.GetMemory(t.Context(), id); err != nil || m.Content != "kept" {
				t.Errorf("after opening it again: %v, %v; want content \"kept\"", m, err)
			}
		})
	}
}

func TestReadOnlyFilesAreReadAndNeverWritten(t *testing.T) {
	store := storeFile(t)
	for _, c := range []struct {
		name    string
		options Options
		prepare func(t *testing.T, path string)
	}{
		{"by option", Options{ReadOnly: true}, func(*testing.T, string) {}},
		{"by option, with another model", Options{ReadOnly: true, Embedder: wordEmbedder("words-2")},
			func(*testing.T, string) {}},
		{"by the file's permissions", Options{}, func(t *testing.T, path string) { forbidWriting(t, path, 0o400) }},
		{"by the folder's permissions", Options{}, func(t *testing.T, path string) {
			forbidWriting(t, path, 0o400)
			forbidWriting(t, filepath.Dir(path), 0o500)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "folder", "read.db")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			writeFile(t, path, store)
			c.prepare(t, path)
			s := openWords(t, path, c.options)
			found, err := s.Search(t.Context(), Query{Text: "memory w17", Limit: 1})
			if err != nil || len(found.Hits) != 1 || !strings.Contains(found.Hits[0].Content, "w17") {
				t.Fatalf(`found %v, %v, want no error, 1 hit and "w17" in the content`, found.Hits, err)
			}
			if c.options.Embedder != nil && len(found.Warnings) == 0 {
				t.Error("a search by words only does not say so, want a warning")
			}
			id := found.Hits[0].ID
			for method, call := range map[string]func() error{
				"AddMemory": func() error { _, err := s.AddMemory(t.Context(), NewMemory{Content: "more"}); return err },
				"AddMemories": func() error {
					_,
						err := s.AddMemories(t.Context(), []NewMemory{{Content: "more"}}, nil)
					return err
				},
				"AddCollection": func() error { _, err := s.AddCollection(t.Context(), NewCollection{Name: "c"}); return err },
				"UpdateMemory": func() error {
					_, err := s.UpdateMemory(t.Context(), id, MemoryUpdate{Content: content("x")})
					return err
				},
				"DeleteMemory": func() error { return s.DeleteMemory(t.Context(), id, nil) },
				"UpdateCollection": func() error {
					_, err := s.UpdateCollection(t.Context(), "default", CollectionUpdate{Description: content("x")})
					return err
				},
				"DeleteCollection": func() error {
					return s.DeleteCollection(t.Context(), "default", &DeletionOptions{WithMemories: true})
				},
			} {
				if err := call(); !errors.Is(err, ErrReadOnly) {
					t.Errorf("%s gives %v, want ErrReadOnly", method, err)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if !bytes.Equal(readFile(t, path), store) {
				t.Errorf("the file was changed, want %.200q", store)
			}
		})
	}
}

// forbidWriting takes permissions away. It skips the test for users who can write regardless.
func forbidWriting(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(path, 0o700) })
	if os.Geteuid() == 0 {
		t.Skip("permissions do not stop root")
	}
}

func TestFullDiskRefusesWholeWritesAndLeavesTheStoreUsable(t *testing.T) {
	longtest.Only(t)
	for name, open := range map[string]func(*testing.T) (s *Store, more func()){
		"no more pages": openWithFewPages,
		"small disk":    openOnSmallDisk,
	} {
		t.Run(name, func(t *testing.T) {
			s, more := open(t)
			long := strings.Repeat("Of this much is to be said. ", 100)
			stored := map[string]bool{}
			var full error
			for i := 0; full == nil && i < 10_000; i++ {
				m, err := s.AddMemory(t.Context(),
					NewMemory{Content: fmt.Sprint("number ", i, ". ", long), Tags: []string{fmt.Sprint("t", i)}})
				if full = err; err == nil {
					stored[m.ID] = true
				}
			}
			if !errors.Is(full, ErrFull) {
				t.Fatalf("error is %v, want ErrFull", full)
			}
			before := rowsOf(t, s)
			many := make([]NewMemory, 300)
			for i := range many {
				many[i] = NewMemory{Content: fmt.Sprint("many ", i, ". ", long)}
			}
			if _, err := s.AddMemories(t.Context(), many, nil); !errors.Is(err, ErrFull) {
				t.Errorf("many at once: %v, want ErrFull", err)
			}
			var group sync.WaitGroup // if a shared commit fails, it must not lose the results of other writers
			var answered atomic.Int64
			for i := range 8 {
				group.Go(func() {
					_, err := s.AddMemory(t.Context(),
						NewMemory{Content: fmt.Sprint("side by side ", i, ". ", strings.Repeat(long, 50))})
					if err == nil {
						answered.Add(1)
					} else if !errors.Is(err, ErrFull) {
						t.Errorf("side by side: %v, want ErrFull", err)
					}
				})
			}
			group.Wait()
			if answered.Load() == 0 && rowsOf(t, s) != before {
				t.Error("refused writes left something behind, want the rows as before")
			}
			found, err := s.Search(t.Context(), Query{Text: "number 0", Limit: 1})
			if err != nil || len(found.Hits) != 1 {
				t.Errorf("a search while the disk is full: %v, %v; want a length of 1", found.Hits, err)
			}

			more()
			id := mustAdd(t, s, NewMemory{Content: "there is room again"}).ID
			got := idsOf(t, s)
			for id := range stored {
				if got[id] == "" {
					t.Errorf("memory %s was answered and is not there, want it stored", id)
				}
			}
			if want := len(stored) + int(answered.Load()) + 1; len(got) != want || got[id] == "" {
				t.Errorf("%d memories are stored, want %d, and the last answered one %s among them", len(got), want, id)
			}
			checkConsistency(t, s)
		})
	}
}

// openWithFewPages lets SQLite refuse to let the file grow.
func openWithFewPages(t *testing.T) (*Store, func()) {
	s := openWords(t, filepath.Join(t.TempDir(), "full.db"), Options{})
	pages := func(n int) {
		err := s.db.Write(t.Context(), func(tx db.Tx) error {
			var set int
			return tx.QueryRow(fmt.Sprintf(`PRAGMA max_page_count = %d`, n)).Scan(&set)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	pages(100)
	return s, func() { pages(1 << 30) }
}

// openOnSmallDisk opens a store on its own small file system, if the test may mount one.
func openOnSmallDisk(t *testing.T) (*Store, func()) {
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("no small disk can be made here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	ballast := filepath.Join(dir, "ballast")
	writeFile(t, ballast, make([]byte, 1<<20))
	s := openWords(t, filepath.Join(dir, "full.db"), Options{})
	return s, func() {
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
	}
}

// blocked is an embedder that blocks until its context ends, for texts that ask for it. It signals when it blocks.
func blocked(waiting chan<- struct{}) Embedder {
	words := wordEmbedder("words-1")
	return EmbedderFunc("words-1", wordSize,
		func(ctx context.Context, purpose Purpose, texts []string) ([][]float32, error) {
			if strings.Contains(texts[0], "block") {
				waiting <- struct{}{}
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return words.Embed(ctx, purpose, texts)
		})
}

func TestDeclaredTypesAreBroughtToOneForm(t *testing.T) {
	for declared, want := range map[string]string{
		"":                           "",
		"  ":                         "",
		"Image/PNG":                  "image/png",
		"text/plain;charset=utf-8":   "text/plain; charset=utf-8",
		`text/plain; name="a b.txt"`: `text/plain; name="a b.txt"`,
	} {
		if got, err := valid.MIMEType(declared); err != nil || got != want {
			t.Errorf("%q becomes %q, %v; want %q", declared, got, err, want)
		}
	}
	for _, declared := range []string{"png", "image/", "/png", "a/b/c", "text/plain; x", "text/plain; a=\"\xff\"\"",
		"image/\u00e4"} {
		if got, err := valid.MIMEType(declared); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q becomes %q, %v, want ErrInvalid", declared, got, err)
		}
	}
}
