package souvenir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/internal/storefile"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// filesIn lists the files in a folder.
func filesIn(tb testing.TB, folder string) (all []string) {
	tb.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		tb.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestBackupIsAStoreOfTheSameMemories(t *testing.T) {
	folder := t.TempDir()
	file := openWords(t, filepath.Join(folder, "store.db"), Options{})
	memory := openWords(t, ":memory:", Options{})
	for name, s := range map[string]*Store{"a file": file, "memory": memory} {
		varied(t, s)
		want, rows := idsOf(t, s), rowsOf(t, s)
		path := filepath.Join(t.TempDir(), "backup ü?#%.db")
		last, total := 0, 0
		if err := s.Upkeep().Backup(t.Context(), path, &BackupOptions{Progress: func(stage string, done, of int) {
			if stage != "copy" || done < last || done > of {
				t.Errorf(`progress of %s: %s %d, want stage "copy" and %d to %d`, name, stage, done, last, of)
			}
			last, total = done, of
		}}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if last == 0 || last != total {
			t.Errorf("%s: the progress ends at %d, want the end at %d, which is not 0", name, last, total)
		}
		onlyFile(t, path)
		copied := openWords(t, path, Options{ReadOnly: true})
		if got := rowsOf(t, copied); got != rows {
			t.Errorf("the backup of %s has other rows, got %v, want %v", name, got, rows)
		}
		if report := mustCheck(t, copied, nil); !report.OK {
			t.Errorf("the backup of %s: %+v, want OK", name, report)
		}
		if err := copied.Close(); err != nil {
			t.Error(err)
		}
		onlyFile(t, path)
		writable := openWords(t, path, Options{})
		mustAdd(t, writable, NewMemory{Content: "stored in the copy"})
		if got := idsOf(t, s); !maps.Equal(got, want) {
			t.Errorf("what is stored in the backup of %s is in the store, got %v, want %v", name, got, want)
		}
	}
	readOnly := openWords(t, filepath.Join(folder, "store.db"), Options{ReadOnly: true})
	if err := readOnly.Upkeep().Backup(t.Context(), filepath.Join(folder, "of read-only.db"), nil); err != nil {
		t.Errorf("of a read-only store: %v", err)
	}
}

func TestBackupHasThePermissionsOfTheStore(t *testing.T) {
	folder := t.TempDir()
	s := openWords(t, filepath.Join(folder, "store.db"), Options{})
	for _, mode := range []fs.FileMode{0o600, 0o644} {
		if err := os.Chmod(filepath.Join(folder, "store.db"), mode); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, fmt.Sprint(mode))
		if err := s.Upkeep().Backup(t.Context(), path, nil); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%v, %v; want %v", info.Mode(), err, mode)
		}
	}
}

func TestBackupOverwritesNothingAndLeavesNothing(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "store.db"), Options{})
	varied(t, s)
	folder := t.TempDir()
	taken := filepath.Join(folder, "taken.db")
	writeFile(t, taken, []byte("of value"))
	for _, suffix := range []string{"-wal", "-shm", "-journal"} {
		writeFile(t, filepath.Join(folder, "free"+suffix+".db"+suffix), []byte("of another file"))
	}
	if err := os.Symlink(filepath.Join(folder, "nowhere"), filepath.Join(folder, "link.db")); err != nil {
		t.Fatal(err)
	}
	before := fmt.Sprint(filesIn(t, folder))
	backup := filepath.Join(t.TempDir(), "backup.db")
	if err := s.Upkeep().Backup(t.Context(), backup, nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		kind error
		says string
	}{
		{taken, ErrConflict, "taken.db"},
		{folder, ErrConflict, "exists"},
		{s.db.Upkeep().Path, ErrConflict, "exists"},
		{filepath.Join(folder, "link.db"), ErrConflict, "link.db"},
		{filepath.Join(folder, "free-wal.db"), ErrConflict, "free-wal.db-wal"},
		{filepath.Join(folder, "free-shm.db"), ErrConflict, "free-shm.db-shm"},
		{filepath.Join(folder, "free-journal.db"), ErrConflict, "free-journal.db-journal"},
		{filepath.Join(folder, "none", "x.db"), ErrNotFound, "none"},
		{filepath.Join(taken, "x.db"), ErrInvalid, "taken.db"},
		{filepath.Join(folder, strings.Repeat("x", 300)), ErrInvalid, "xxx"},
		{"", ErrInvalid, "path"},
		{":memory:", ErrInvalid, "path"},
		{"a\x00b", ErrInvalid, "zero byte"},
	} {
		for what, call := range map[string]func() error{
			"Backup":  func() error { return s.Upkeep().Backup(t.Context(), c.path, nil) },
			"Restore": func() error { return Restore(t.Context(), Restoration{From: backup, To: c.path}) },
		} {
			err := call()
			if !errors.Is(err, c.kind) || what == "Backup" && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s to %q gives %v; want %v and %q", what, c.path, err, c.kind, c.says)
			}
			var known *Error
			if errors.As(err, &known) && known.Argument != map[string]string{"Backup": "path", "Restore": "To"}[what] {
				t.Errorf("%s to %q blames %q, want %v", what, c.path, known.Argument,
					map[string]string{"Backup": "path", "Restore": "To"}[what])
			}
		}
	}
	if string(readFile(t, taken)) != "of value" {
		t.Error(`a file was overwritten, want "of value"`)
	}
	if after := fmt.Sprint(filesIn(t, folder)); after != before {
		t.Errorf("the folder had %s and has %s, want no change", before, after)
	}
}

func TestCancelledBackupLeavesNothing(t *testing.T) {
	longtest.Only(t)
	s := openWords(t, filepath.Join(t.TempDir(), "store.db"), Options{})
	varied(t, s)
	damage(t, s, `INSERT INTO file_chunk (id, sha256, data) VALUES (9 << 24, x'', zeroblob(4000000))`)
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	backup := filepath.Join(t.TempDir(), "backup.db")
	if err := s.Upkeep().Backup(t.Context(), backup, nil); err != nil {
		t.Fatal(err)
	}
	for _, calls := range []int{0, 1, 2} {
		ctx, cancel := context.WithCancel(t.Context())
		heard := 0
		progress := func(stage string, done, total int) {
			if heard++; heard == calls {
				cancel()
			}
		}
		if calls == 0 {
			cancel()
		}
		if err := s.Upkeep().Backup(ctx, filepath.Join(folder, "x.db"), &BackupOptions{Progress: progress}); !errors.Is(err,
			context.Canceled) {
			t.Errorf("Backup cancelled at step %d: %v, want context.Canceled", calls, err)
		}
		heard = 0
		ctx, cancel = context.WithCancel(t.Context())
		if calls == 0 {
			cancel()
		}
		if err := Restore(ctx, Restoration{From: backup, To: filepath.Join(folder, "x.db"),
			Progress: progress}); !errors.Is(err, context.Canceled) {
			t.Errorf("Restore cancelled at step %d: %v, want context.Canceled", calls, err)
		}
		heard = 0
		ctx, cancel = context.WithCancel(t.Context())
		if calls == 0 {
			cancel()
		}
		if _, err := s.Upkeep().BackupTo(ctx, io.Discard, &BackupOptions{Progress: progress}); !errors.Is(err,
			context.Canceled) {
			t.Errorf("BackupTo cancelled at step %d: %v, want context.Canceled", calls, err)
		}
		cancel()
	}
	if left := filesIn(t, folder); len(left) > 0 {
		t.Errorf("%v were left, want none", left)
	}
	for _, name := range filesIn(t, filepath.Dir(s.db.Upkeep().Path)) {
		if !strings.HasPrefix(name, "store.db") {
			t.Errorf("%s was left beside the store, want at its start \"store.db\"", name)
		}
	}
}

// dropping is a writer that fails after some bytes.
type dropping struct {
	left int
	err  error
}

func (d *dropping) Write(p []byte) (int, error) {
	if len(p) > d.left {
		return d.left, d.err
	}
	d.left -= len(p)
	return len(p), nil
}

func TestBackupToStreamsTheSameStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	for name, s := range map[string]*Store{"a file": openWords(t, path, Options{}),
		"memory": openWords(t, ":memory:", Options{})} {
		varied(t, s)
		var b bytes.Buffer
		before := rowsOf(t, s)
		n, err := s.Upkeep().BackupTo(t.Context(), &b, nil)
		if err != nil || n != int64(b.Len()) || n == 0 {
			t.Fatalf("%s: %d bytes, %v, want no error and %v, which is not 0", name, n, err, int64(b.Len()))
		}
		copied := filepath.Join(t.TempDir(), "copy.db")
		writeFile(t, copied, b.Bytes())
		if again := openWords(t, copied, Options{ReadOnly: true}); rowsOf(t, again) != before ||
			!mustCheck(t, again, nil).OK {
			t.Errorf("the stream of %s is another store, want the same rows, and a sound store", name)
		}
		broken := errors.New("the line went dead")
		n, err = s.Upkeep().BackupTo(t.Context(), &dropping{left: 40_000, err: broken}, nil)
		if !errors.Is(err, broken) || n != 40_000 {
			t.Errorf("%s to a writer that fails: %d, %v; want 40_000", name, n, err)
		}
		if _, err = s.Upkeep().BackupTo(t.Context(), nil, nil); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s to no writer: %v, want ErrInvalid", name, err)
		}
	}
	for _, name := range filesIn(t, filepath.Dir(path)) {
		if !strings.HasPrefix(name, "store.db") {
			t.Errorf("%s was left beside the store, want at its start \"store.db\"", name)
		}
	}
}

func TestRestoreChecksTheBackupFirst(t *testing.T) {
	longtest.Only(t)
	folder := t.TempDir()
	store := storeFile(t)
	sound := filepath.Join(folder, "sound.db")
	writeFile(t, sound, store)
	torn := bytes.Clone(store)
	for i := range 3000 {
		torn[10*4096+i] ^= 0x5a
	}
	for _, c := range []struct {
		name    string
		content []byte
		kinds   []error
	}{
		{"text", []byte(strings.Repeat("Dear diary, nothing happened.\n", 50)), []error{ErrForeign}},
		{"another program's", changed(store, 68, 0x12345678), []error{ErrForeign}},
		{"newer", changed(store, 60, 9999), []error{ErrNewer}},
		{"torn", torn, []error{ErrCorrupt}},
		{"cut off", store[:len(store)/2/4096*4096], []error{ErrCorrupt}},
		{"empty", nil, []error{ErrInvalid}},
	} {
		t.Run(c.name, func(t *testing.T) {
			from, to := filepath.Join(t.TempDir(), "from.db"), filepath.Join(t.TempDir(), "to.db")
			writeFile(t, from, c.content)
			err := Restore(t.Context(), Restoration{From: from, To: to})
			if !isAny(err, c.kinds...) {
				t.Errorf("error is %v, want %v", err, c.kinds)
			}
			if left := filesIn(t, filepath.Dir(to)); len(left) > 0 || !bytes.Equal(readFile(t, from), c.content) {
				t.Errorf("%v were left, or the backup was changed, want left empty and %.200q", left, c.content)
			}
			onlyFile(t, from)
		})
	}
	for _, from := range []string{"", ":memory:", "a\x00b"} {
		if err := Restore(t.Context(), Restoration{From: from, To: filepath.Join(folder, "to.db")}); !errors.Is(err,
			ErrInvalid) {
			t.Errorf("from %q: %v, want ErrInvalid", from, err)
		}
	}
	if err := Restore(t.Context(),
		Restoration{From: filepath.Join(folder, "none.db"), To: filepath.Join(folder, "to.db")}); !errors.Is(err,
		ErrNotFound) || !strings.Contains(err.Error(), "none.db") {
		t.Errorf(`from what does not exist: %v, want ErrNotFound and "none.db" in the error`, err)
	}
	if err := Restore(t.Context(), Restoration{From: sound, To: sound}); !errors.Is(err, ErrConflict) {
		t.Errorf("onto itself: %v, want ErrConflict", err)
	}
	var stages []string
	to := filepath.Join(folder, "to.db")
	if err := os.Chmod(sound, 0o400); err != nil {
		t.Fatal(err)
	}
	err := Restore(t.Context(), Restoration{From: sound, To: to,
		Progress: func(stage string, done, total int) { stages = append(stages, stage) }})
	if err != nil || len(stages) < 3 || stages[0] != "check" || stages[len(stages)-1] != "copy" {
		t.Fatalf(`%v, stages %v, want no error and at least 3 stages, from "check" to "copy"`, err, stages)
	}
	if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the restored store has the permissions %v, %v, want no error and perm 0o600", info.Mode(), err)
	}
	s := openWords(t, to, Options{})
	if len(idsOf(t, s)) != 200 {
		t.Errorf("the restored store has %d memories, want 200", len(idsOf(t, s)))
	}
	mustAdd(t, s, NewMemory{Content: "it goes on"})
	checkConsistency(t, s)
}

// A backup of an earlier version is restored unchanged; Open migrates it.
func TestRestoreOfAnOlderVersion(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "old.db"), filepath.Join(t.TempDir(), "new.db")
	file, err := sqlite.Open(t.Context(),
		sqlite.Config{Path: from, ApplicationID: storefile.ApplicationID, Migrations: onlyFirst{sqlite.Migrations()}})
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Restore(t.Context(), Restoration{From: from, To: to}); err != nil {
		t.Fatal(err)
	}
	s := openWords(t, to, Options{})
	mustAdd(t, s, NewMemory{Content: "in a new table"})
	if report := mustCheck(t, s, nil); !report.OK {
		t.Errorf("got %+v, want OK", report)
	}
}

// onlyFirst holds only the first migration.
type onlyFirst struct{ fs.FS }

func (f onlyFirst) Glob(string) ([]string, error) { return []string{"0001_core.sql"}, nil }

func TestFullDiskRefusesABackupAndLeavesNothing(t *testing.T) {
	longtest.Only(t)
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("no small disk can be made here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	s := openWords(t, filepath.Join(t.TempDir(), "store.db"), Options{})
	varied(t, s)
	damage(t, s, `INSERT INTO file_chunk (id, sha256, data) VALUES (9 << 24, x'', zeroblob(2000000))`)
	backup := filepath.Join(t.TempDir(), "backup.db")
	if err := s.Upkeep().Backup(t.Context(), backup, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Upkeep().Backup(t.Context(), filepath.Join(dir, "x.db"), nil); !errors.Is(err, ErrFull) ||
		!strings.Contains(err.Error(), "full") || strings.Contains(err.Error(), "not an error") {
		t.Errorf("Backup gives %v, want ErrFull", err)
	}
	if err := Restore(t.Context(), Restoration{From: backup, To: filepath.Join(dir, "x.db")}); !errors.Is(err, ErrFull) {
		t.Errorf("Restore gives %v, want ErrFull", err)
	}
	memory := openWords(t, ":memory:", Options{})
	damage(t, memory, `INSERT INTO file_chunk (id, sha256, data) VALUES (9 << 24, x'', zeroblob(2000000))`)
	t.Setenv("TMPDIR", dir)
	if _, err := memory.Upkeep().BackupTo(t.Context(), io.Discard, nil); !errors.Is(err, ErrFull) {
		t.Errorf("BackupTo gives %v, want ErrFull", err)
	}
	if left := filesIn(t, dir); len(left) > 0 {
		t.Errorf("%v were left, want none", left)
	}
}

func TestBackupIsForTheOperatorOfAnOpenStore(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "store.db"), Options{})
	path := filepath.Join(t.TempDir(), "backup.db")
	view := s.As(Access{})
	if err := view.Upkeep().Backup(t.Context(), path, nil); !errors.Is(err, ErrForbidden) {
		t.Errorf("Backup through a view: %v, want ErrForbidden", err)
	}
	if _, err := view.Upkeep().BackupTo(t.Context(), io.Discard, nil); !errors.Is(err, ErrForbidden) {
		t.Errorf("BackupTo through a view: %v, want ErrForbidden", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Upkeep().Backup(t.Context(), path, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("Backup of a closed store: %v, want ErrClosed", err)
	}
	if _, err := s.Upkeep().BackupTo(t.Context(), io.Discard, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("BackupTo of a closed store: %v, want ErrClosed", err)
	}
	if left := filesIn(t, filepath.Dir(path)); len(left) > 0 {
		t.Errorf("%v were left, want none", left)
	}
}
