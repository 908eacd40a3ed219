package souvenir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/files/filetype"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"golang.org/x/text/unicode/norm"
)

// What files do to the store, and what damage and crashes do to files.

// zeros is content of n bytes.
func zeros(n int64) io.Reader { return io.LimitReader(zeroReader{}, n) }

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// hook is an empty reader that calls a function once.
type hook func()

func (h hook) Read([]byte) (int, error) { h(); return 0, io.EOF }

func mustAddFile(tb testing.TB, s *Store, f NewFile, content string) File {
	tb.Helper()
	added, err := s.AddFile(context.Background(), f, strings.NewReader(content))
	if err != nil {
		tb.Fatal(err)
	}
	return added
}

// fileNames returns the names of all visible files, sorted.
func fileNames(tb testing.TB, s *Store, l FileList) []string {
	tb.Helper()
	var names []string
	for f, err := range s.Files(context.Background(), l) {
		if err != nil {
			tb.Fatal(err)
		}
		names = append(names, f.Filename)
	}
	slices.Sort(names)
	return names
}

// filesHeld counts the rows of files, their chunks and their tags.
func filesHeld(tb testing.TB, s *Store) [3]int {
	tb.Helper()
	var n [3]int
	err := s.db.Read(context.Background(), func(tx db.Tx) error {
		return tx.QueryRow(`SELECT (SELECT count(*) FROM file), (SELECT count(*) FROM file_chunk), (SELECT count(*) `+
			`FROM file_tag)`).Scan(&n[0], &n[1], &n[2])
	})
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

func TestUnfinishedFilesAreNotSeenAndBlockNoWriting(t *testing.T) {
	longtest.Only(t)
	s := openWords(t, filepath.Join(t.TempDir(), "files.db"), Options{})
	looked := 0
	look := hook(func() { // in the middle of the content, when its beginning is stored
		looked++
		if names := fileNames(t, s, FileList{}); len(names) != 0 {
			t.Errorf("unfinished files are listed: %v, want none", names)
		}
		if held := filesHeld(t, s); held[0] != 1 || held[1] == 0 {
			t.Errorf("the store holds %v, want 1 file and some bytes", held)
		}
		mustAdd(t, s, NewMemory{Content: "written meanwhile"}) // an open transaction would block it
		mustAddFile(t, s, NewFile{Filename: "another"}, "stored meanwhile")
		for f, err := range s.Files(t.Context(), FileList{}) {
			if err := errors.Join(err, s.DeleteFile(t.Context(), f.ID, &DeletionOptions{Erase: true})); err != nil {
				t.Error(err)
			}
		}
		if n, err := s.purgeFiles(t.Context(), time.Now().Add(time.Hour)); n != 0 || err != nil {
			t.Errorf("a file that is arriving is purged: %d, %v; want 0", n, err)
		}
	})
	f, err := s.AddFile(t.Context(), NewFile{Filename: "large"}, io.MultiReader(zeros(5<<20), look, zeros(5<<20)))
	if err != nil || looked != 1 || f.Size != 10<<20 {
		t.Fatalf("got %+v, %v, want no error, looked 1 and size %v", f, err, 10<<20)
	}
	if held := filesHeld(t, s); held != [3]int{1, 40, 0} {
		t.Errorf("the store holds %v, want %v", held, [3]int{1, 40, 0})
	}
}

func TestNothingOfAFailedFileRemains(t *testing.T) {
	longtest.Only(t)
	s := openWords(t, filepath.Join(t.TempDir(), "files.db"), Options{MaxFile: 30 << 20})
	ctx, cancel := context.WithCancel(t.Context())
	for _, c := range []struct {
		what     string
		mimeType string
		content  io.Reader
	}{
		{"that fails", "", io.MultiReader(zeros(9<<20), iotest.ErrReader(errors.New("broken")))},
		{"that is too large", "", zeros(31 << 20)},
		{"of another type", "image/png", io.MultiReader(strings.NewReader("<html><script>"), zeros(9<<20))},
		{"whose context ends", "", io.MultiReader(zeros(25<<20), hook(cancel), zeros(1<<20))},
	} {
		if _, err := s.AddFile(ctx, NewFile{MIMEType: c.mimeType, ProjectName: "fresh", Tags: []string{"a"}},
			c.content); err == nil {
			t.Errorf("content %s is stored, want an error", c.what)
		}
		if held := filesHeld(t, s); held != [3]int{} {
			t.Errorf("of content %s remains %v, want %v", c.what, held, [3]int{})
		}
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("got no panic from the content, want one")
			}
		}()
		_, _ = s.AddFile(t.Context(), NewFile{},
			io.MultiReader(zeros(9<<20), hook(func() { panic("a reader out of order") })))
	}()
	if held := filesHeld(t, s); held != [3]int{} {
		t.Errorf("of content that panics remains %v, want %v", held, [3]int{})
	}
	if strings.Contains(rowsOf(t, s), "fresh") {
		t.Error(`the project was made, want no "fresh" in it`)
	}
}

func TestMaxFile(t *testing.T) {
	longtest.Only(t)
	for _, c := range []struct {
		most     int64
		size     int64
		refused  bool
		announce bool
	}{
		{0, 100 << 20, false, true}, {0, 100<<20 + 1, true, true}, {1000, 1000, false, false}, {1000, 1001, true, false},
		{5 << 20, 5 << 20, false, false}, {5 << 20, 5<<20 + 1, true, false}, {-1, 101 << 20, false, true},
	} {
		s := openWords(t, "", Options{MaxFile: c.most})
		f := NewFile{}
		content := zeros(c.size)
		if c.announce {
			f.Size, content = c.size, strings.NewReader("short") // the declared size is checked before anything is read
		}
		_, err := s.AddFile(t.Context(), f, content)
		switch {
		case c.refused && (!errors.Is(err, ErrTooLarge) || c.most > 0 && !strings.Contains(err.Error(), fmt.Sprint(c.most))):
			t.Errorf("%d bytes of %d: %v", c.size, c.most, err)
		case !c.refused && errors.Is(err, ErrTooLarge), !c.refused && !c.announce && err != nil:
			t.Errorf("%d bytes of %d: %v", c.size, c.most, err)
		}
	}
	if _, err := Open(t.Context(), ":memory:", &Options{FileQuota: -1}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a negative quota: %v, want ErrInvalid", err)
	}
}

func TestFileQuota(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "files.db"), Options{FileQuota: 1000})
	ann := s.As(Access{User: "ann"})
	one := mustAddFile(t, s, NewFile{}, strings.Repeat("x", 600))
	mustAddFile(t, ann, NewFile{}, strings.Repeat("x", 1000)) // hers do not count here
	_, err := s.AddFile(t.Context(), NewFile{}, zeros(401))
	if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "1001") || !strings.Contains(err.Error(), "1000") {
		t.Errorf(`past the quota: %v, want ErrTooLarge, "1001" in the error and "1000" in the error`, err)
	}
	mustAddFile(t, s, NewFile{}, strings.Repeat("x", 400))
	if err := s.DeleteFile(t.Context(), one.ID, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddFile(t.Context(), NewFile{}, zeros(600)); !errors.Is(err, ErrTooLarge) ||
		!strings.Contains(err.Error(), "trash") {
		t.Errorf(`while a file is in the trash: %v, want ErrTooLarge and "trash" in the error`, err)
	}
	if err := s.Trash().Erase(t.Context(), one.ID); err != nil {
		t.Fatal(err)
	}
	mustAddFile(t, s, NewFile{}, strings.Repeat("x", 600))
}

func TestFileQuotaHoldsHoweverManyAreStoredAtOnce(t *testing.T) {
	longtest.Only(t)
	const quota = 10 << 20
	path := filepath.Join(t.TempDir(), "files.db")
	stores := []*Store{openWords(t, path, Options{FileQuota: quota}), openWords(t, path, Options{FileQuota: quota})}
	var all sync.WaitGroup
	var stored atomic.Int64
	for i := range 8 {
		all.Go(func() {
			_, err := stores[i%2].AddFile(t.Context(), NewFile{Filename: fmt.Sprint(i), Size: int64(i%3) * (9 << 19)},
				zeros(9<<19))
			switch {
			case err == nil:
				stored.Add(9 << 19)
			case !errors.Is(err, ErrTooLarge) && !errors.Is(err, ErrInvalid): // sizes that differ are ErrInvalid
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := stored.Load(); n > quota {
		t.Errorf("%d bytes are stored, want at most the quota of %d", n, quota)
	}
	if stored.Load() == 0 { // all were refused because of each other; now nothing is in the way
		if _, err := stores[0].AddFile(t.Context(), NewFile{}, zeros(9<<19)); err != nil {
			t.Errorf("the refused files still count: %v", err)
		}
		stored.Add(9 << 19)
	}
	for _, s := range stores {
		if held := filesHeld(t, s); int64(held[1])*kernel.ChunkSize != stored.Load() {
			t.Errorf("%d bytes were answered, the store holds %v, want chunks of as many bytes", stored.Load(), held)
		}
	}
}

func TestAbandonedFilesAreRemoved(t *testing.T) {
	longtest.Only(t)
	var passed atomic.Int64
	clock := func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }
	s := openWords(t, filepath.Join(t.TempDir(), "files.db"), Options{Now: clock})
	_, err := s.AddFile(t.Context(), NewFile{}, io.MultiReader(zeros(5<<20), hook(func() {
		passed.Store(int64(23 * time.Hour))
		if n, err := s.purgeFiles(t.Context(), clock()); n != 0 || err != nil {
			t.Errorf("after 23 hours: %d, %v; want 0", n, err)
		}
		passed.Store(int64(25 * time.Hour))
		if n, err := s.purgeFiles(t.Context(), clock().Add(-48*time.Hour)); n != 0 || err != nil {
			t.Errorf("after 25 hours, those of two days: %d, %v; want 0", n, err)
		}
		if n, err := s.purgeFiles(t.Context(), clock()); n != 1 || err != nil {
			t.Errorf("after 25 hours: %d, %v; want 1", n, err)
		}
	}), zeros(5<<20)))
	if !errors.Is(err, ErrConflict) {
		t.Errorf("a write after it: %v, want ErrConflict", err)
	}
	if held := filesHeld(t, s); held != [3]int{} {
		t.Errorf("the store holds %v, want %v", held, [3]int{})
	}

	f := mustAddFile(t, s, NewFile{Tags: []string{"a"}}, "stored")
	gone, err := s.AddFile(t.Context(), NewFile{Tags: []string{"a"}}, zeros(20<<20)) // too large for one deletion
	if err != nil {
		t.Fatal(err)
	}
	mustExec(t, s, `UPDATE file SET state = 'leaving' WHERE uid = ?`, gone.ID)
	if n, err := s.purgeFiles(t.Context(), time.Time{}); n != 1 || err != nil {
		t.Errorf("one that is leaving: %d, %v; want 1", n, err)
	}
	if held := filesHeld(t, s); held != [3]int{1, 1, 1} {
		t.Errorf("the store holds %v, want %v", held, [3]int{1, 1, 1})
	}
	if _, err := s.GetFile(t.Context(), f.ID); err != nil {
		t.Errorf("a stored file: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.purgeFiles(ctx, clock()); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v, want context.Canceled", err)
	}
}

func TestLargeFilesAreDeletedWhole(t *testing.T) {
	longtest.Only(t)
	s := openWords(t, filepath.Join(t.TempDir(), "files.db"), Options{})
	for _, size := range []int64{0, kernel.DeleteBatch*kernel.ChunkSize - kernel.ChunkSize,
		kernel.DeleteBatch * kernel.ChunkSize, kernel.DeleteBatch*kernel.ChunkSize + 1,
		3 * kernel.DeleteBatch * kernel.ChunkSize} {
		if size > kernel.DeleteBatch*kernel.ChunkSize+1 && !longtest.All() {
			continue
		}
		f, err := s.AddFile(t.Context(), NewFile{Tags: []string{"a"}}, zeros(size))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.DeleteFile(t.Context(), f.ID, &DeletionOptions{Erase: true}); err != nil {
			t.Fatal(err)
		}
		if held := filesHeld(t, s); held != [3]int{} {
			t.Errorf("of %d bytes remains %v, want %v", size, held, [3]int{})
		}
	}
}

func TestDamagedFilesAreNotReadAsIfTheyWereWhole(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "files.db"), Options{})
	f := mustAddFile(t, s, NewFile{Filename: "precious"}, strings.Repeat("x", 3*kernel.ChunkSize+5))
	corrupt := func(what string, err error, says ...string) {
		t.Helper()
		for _, part := range append(says, f.ID, "precious") {
			if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), part) {
				t.Errorf("%s gives %v, which does not say %q, want ErrCorrupt and it in the error", what, err, part)
			}
		}
	}
	chunk := func(n int64) int64 { return 1<<kernel.ChunkBits | n }
	r, err := s.OpenFile(t.Context(), f.ID)
	if err != nil {
		t.Fatal(err)
	}
	mustExec(t, s, `UPDATE file_chunk SET data = CAST(replace(data, 'xxxxxxxx', 'xxxyxxxx') AS BLOB) WHERE id = ?`,
		chunk(2))
	var b bytes.Buffer
	n, err := r.WriteTo(&b)
	corrupt("another byte", err, "chunk 3 of 4")
	if n != 2*kernel.ChunkSize || b.Len() != 2*kernel.ChunkSize {
		t.Errorf("got %d bytes, want %v as stored, in chunks of %v", n,
			2*kernel.ChunkSize, 2*kernel.ChunkSize)
	}
	if _, err := r.ReadAt(make([]byte, 5), 3*kernel.ChunkSize); err != nil {
		t.Errorf("the chunk after it: %v", err)
	}
	mustExec(t, s, `UPDATE file_chunk SET data = x'00' WHERE id = ?`, chunk(3))
	_, err = s.OpenFile(t.Context(), f.ID)
	corrupt("a shorter chunk", err)
	mustExec(t, s, `DELETE FROM file_chunk WHERE id = ?`, chunk(1))
	_, err = r.ReadAt(make([]byte, 5), 2*kernel.ChunkSize-1)
	corrupt("a missing chunk", err, "chunk 2 of 4", "0 bytes")
	_, err = s.OpenFile(t.Context(), f.ID)
	corrupt("fewer chunks", err, "3 chunks", "of "+fmt.Sprint(f.Size)+" in 4")
	if err := s.DeleteFile(t.Context(), f.ID, &DeletionOptions{Erase: true}); err != nil || filesHeld(t, s) != [3]int{} {
		t.Errorf("a damaged file cannot be deleted: %v, want no error and no rows", err)
	}
}

func TestFilesAreReadByManyAtOnce(t *testing.T) {
	longtest.Only(t)
	s := openWords(t, filepath.Join(t.TempDir(), "files.db"), Options{})
	data := make([]byte, 5*kernel.ChunkSize+77)
	for i := range data {
		data[i] = byte(i * 31 >> 8)
	}
	f := mustAddFile(t, s, NewFile{}, string(data))
	r, err := s.OpenFile(t.Context(), f.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			p := make([]byte, kernel.ChunkSize)
			for k := range 10 {
				at := int64((i*7 + k*3) % 5 * 200_000)
				if n, err := r.ReadAt(p, at); err != nil || !bytes.Equal(p[:n], data[at:at+int64(n)]) {
					t.Errorf("at %d: %d bytes, %v, want no error and %.200q", at, n, err, data[at:at+int64(n)])
				}
			}
		})
	}
	all.Go(func() {
		if whole, err := io.ReadAll(r); err != nil || !bytes.Equal(whole, data) {
			t.Errorf("Read: got %d bytes, %v; want the %d bytes that were stored", len(whole), err, len(data))
		}
	})
	all.Wait()
}

// The write-ahead log restarts between the transactions of a file, and does not grow with it.
func TestWriteAheadLogStaysSmallWhileFilesAreStored(t *testing.T) {
	longtest.Only(t)
	path := filepath.Join(t.TempDir(), "files.db")
	s := openWords(t, path, Options{})
	var most int64
	look := func() {
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, info.Size())
	}
	f, err := s.AddFile(t.Context(), NewFile{Progress: func(string, int, int) { look() }}, zeros(96<<20))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteFile(t.Context(), f.ID, nil); err != nil {
		t.Fatal(err)
	}
	look()
	if most == 0 || most > 40<<20 {
		t.Errorf("the log has grown to %d bytes, want more than 0 and at most %v", most, 40<<20)
	}
}

func TestFilesOfMemories(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "files.db"), Options{Now: newMovingClock(time.Now()).Tick})
	one, two, three := mustAdd(t, s, NewMemory{Content: "one"}), mustAdd(t, s, NewMemory{Content: "two"}),
		mustAdd(t, s, NewMemory{Content: "three"})
	older := mustAddFile(t, s, NewFile{MemoryID: one.ID}, "older")
	newer := mustAddFile(t, s, NewFile{MemoryID: one.ID}, "newer")
	other := mustAddFile(t, s, NewFile{MemoryID: three.ID}, "other")
	mustAddFile(t, s, NewFile{}, "of none")
	filesOf := func(s *Store, memories ...StoredMemory) (files map[string][]File) {
		err := s.read(t.Context(), func(tx db.Tx, v viewer) error {
			ids := map[int64]string{}
			var rows []int64
			for _, m := range memories {
				row, err := db.Column[int64](tx, `SELECT id FROM memory WHERE uid = ?`, m.ID)
				if err != nil {
					return err
				}
				ids[row[0]], rows = m.ID, append(rows, row[0])
			}
			found, err := s.filesOf(tx, v, rows)
			files = map[string][]File{}
			for row, list := range found {
				files[ids[row]] = list
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	if got, want := filesOf(s, one, two), map[string][]File{one.ID: {newer, older}}; !reflect.DeepEqual(got, want) {
		t.Errorf("of two memories: %+v; want %v", got, want)
	}
	if got, want := filesOf(s, two, three), map[string][]File{three.ID: {other}}; !reflect.DeepEqual(got, want) {
		t.Errorf("of two others: %+v; want %v", got, want)
	}
	if got := filesOf(s); len(got) != 0 {
		t.Errorf("of none: %+v; want none", got)
	}
	if got := filesOf(s.As(Access{User: "ann"}), one, two, three); len(got) != 0 {
		t.Errorf("for a stranger: %+v; want none", got)
	}
}

func TestCleanFilename(t *testing.T) {
	for name, want := range map[string]string{
		"plan.txt":                          "plan.txt",
		"":                                  "file",
		".":                                 "file",
		"..":                                "file",
		"/":                                 "file",
		" ... ":                             "file",
		"../../etc/passwd":                  "passwd",
		`C:\Users\ann\My Plan.docx`:         "My Plan.docx",
		`mixed/and\last.md`:                 "last.md",
		".bashrc":                           ".bashrc",
		"trailing. . ":                      "trailing",
		"what?:now|*.txt":                   "what__now__.txt",
		"a\x00b\nc\x7f.txt":                 "abc.txt",
		"annexe\u202egnp.exe":               "annexegnp.exe",
		"in\u200bvis\ufeffible\u2028":       "invisible",
		"tab\u00a0and\u3000wide":            "tab and wide",
		"cafe\u0301.txt":                    "caf\u00e9.txt",
		"bad\xff\xfebytes":                  "bad_bytes",
		"CON":                               "_CON",
		"nul.tar.gz":                        "_nul.tar.gz",
		"COM¹.txt":                          "_COM¹.txt",
		"Lpt1 .txt":                         "_Lpt1 .txt",
		"console.log":                       "console.log",
		"日本語のファイル.pdf":                      "日本語のファイル.pdf",
		"👩\u200d🚀.png":                      "👩\u200d🚀.png",
		strings.Repeat("a", 300) + ".tar":   strings.Repeat("a", 251) + ".tar",
		strings.Repeat("ä", 200) + ".md":    strings.Repeat("ä", 126) + ".md",
		strings.Repeat("a", 300):            strings.Repeat("a", 255),
		"x." + strings.Repeat("long", 100):  "x." + strings.Repeat("long", 63) + "l",
		strings.Repeat("a", 250) + " .json": strings.Repeat("a", 250) + ".json",
	} {
		if got := CleanFilename(name); got != want {
			t.Errorf("CleanFilename(%q) is %q, want %q", name, got, want)
		}
	}
}

func FuzzFilename(f *testing.F) {
	for _, name := range []string{"plan.txt", `C:\a\b.txt`, "../..", "con.txt", "a\u202eb", "e\u0301", "<\u0338", "a\xffb",
		strings.Repeat("ä.", 200), "con" + strings.Repeat(" ", 300) + "x.txt", "\u212bngstr\u00f6m"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		clean := CleanFilename(name)
		switch {
		case clean == "" || clean == "." || clean == "..":
			t.Errorf("%q becomes %q", name, clean)
		case len(clean) > filetype.MaxFilename:
			t.Errorf("%q becomes %d bytes long", name, len(clean))
		case !utf8.ValidString(clean) || !norm.NFC.IsNormalString(clean):
			t.Errorf("%q becomes %q, which is not in normal form", name, clean)
		case strings.ContainsAny(clean, `/\<>:"|?*`) || strings.TrimRight(clean, " .") != clean ||
			filepath.Base(clean) != clean:
			t.Errorf("%q becomes %q", name, clean)
		case strings.ContainsFunc(clean,
			func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }):
			t.Errorf("%q becomes %q, with invisible characters", name, clean)
		case CleanFilename(clean) != clean:
			t.Errorf("%q becomes %q, then %q", name, clean, CleanFilename(clean))
		}
	})
}
