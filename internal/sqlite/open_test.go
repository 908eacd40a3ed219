package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	base "github.com/souvenir-ai/souvenir/internal/db"
)

// makeFile creates a SQLite file with a script.
func makeFile(t *testing.T, path, script string) {
	t.Helper()
	c, err := connect(fileDSN(path, modeCreate), nil)
	must(t, err)
	must(t, c.script(script))
	must(t, c.close())
}

// folder returns the files of a folder: names and contents.
func folder(t *testing.T, path string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(path)
	must(t, err)
	for _, e := range entries {
		if !e.IsDir() {
			files[e.Name()] = fileBytes(t, filepath.Join(path, e.Name()))
		}
	}
	return files
}

func TestForeignFilesAreRefusedAndUntouched(t *testing.T) {
	ours := newFile(t)
	must(t, openTest(t, testConfig(ours)).Close())
	content := fileBytes(t, ours)

	for name, test := range map[string]struct {
		make func(path string)
		kind error
		says string
	}{
		"text": {func(p string) { must(t, os.WriteFile(p, []byte("hello"), 0o644)) }, base.ErrForeign, "not a SQLite file"},
		"long text": {func(p string) { must(t, os.WriteFile(p, []byte(strings.Repeat("hello\n", 5000)), 0o644)) },
			base.ErrForeign, "not a SQLite file"},
		"zero bytes that are not empty": {func(p string) { must(t, os.WriteFile(p, make([]byte, 8192), 0o644)) },
			base.ErrForeign, "not a SQLite file"},
		"folder": {func(p string) { must(t, os.Mkdir(p, 0o755)) }, base.ErrForeign, "folder"},
		"another program's": {func(p string) { makeFile(t, p, "PRAGMA application_id = 42; CREATE TABLE x (y)") },
			base.ErrForeign, "application id 0x2a"},
		"another program's without tables": {func(p string) { makeFile(t, p, "PRAGMA application_id = 42; VACUUM") },
			base.ErrForeign, "application id 0x2a"},
		"no application id": {func(p string) { makeFile(t, p, "CREATE TABLE x (y)") }, base.ErrForeign,
			"tables of another program"},
		"no application id, WAL": {func(p string) { makeFile(t, p, "PRAGMA journal_mode = WAL; CREATE TABLE x (y)") },
			base.ErrForeign, "tables of another program"},
		"only a view": {func(p string) { makeFile(t, p, "CREATE VIEW x AS SELECT 1") }, base.ErrForeign, "another program"},
		"newer": {func(p string) {
			makeFile(t, p, "PRAGMA application_id = 0x534f5556; PRAGMA user_version = 9; CREATE TABLE x (y)")
		},
			base.ErrNewer, "version 9, but this program supports up to 2"},
		"cut off": {func(p string) { must(t, os.WriteFile(p, []byte(content[:5000]), 0o644)) }, base.ErrCorrupt, ""},
	} {
		for _, readOnly := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, "a.db")
				test.make(path)
				before := folder(t, dir)
				c := testConfig(path)
				c.ReadOnly = readOnly
				db, err := Open(t.Context(), c)
				if err == nil {
					_ = db.Close()
				}
				mustBe(t, err, test.kind)
				if refused := new(FileError); !errors.As(err, &refused) || refused.Path != path {
					t.Errorf("the error does not name the path: %v, got %v, want %v", err, refused.Path, path)
				}
				if !strings.Contains(err.Error(), test.says) {
					t.Errorf("the error is %q, want it to say %q", err, test.says)
				}
				after := folder(t, dir)
				if after["a.db"] != before["a.db"] {
					t.Errorf("the file was changed: got %v, want %v", after["a.db"], before["a.db"])
				}
				if name != "cut off" && !maps.Equal(before, after) {
					t.Errorf("files were left behind: %v, want those from before", slices.Collect(maps.Keys(after)))
				}
			})
		}
	}
}

func TestForeignLogIsNotCopiedIntoItsFile(t *testing.T) {
	for name, script := range map[string]string{
		"foreign": "CREATE TABLE x (y)",
		"newer":   "PRAGMA application_id = 0x534f5556; PRAGMA user_version = 9; CREATE TABLE x (y)",
	} {
		t.Run(name, func(t *testing.T) {
			source := newFile(t)
			c, err := connect(fileDSN(source, modeCreate), nil)
			must(t, err)
			must(t, c.script("PRAGMA journal_mode = WAL; "+script))
			path := newFile(t) // as a killed process leaves it: the content only in the log
			must(t, os.WriteFile(path, []byte(fileBytes(t, source)), 0o644))
			must(t, os.WriteFile(path+"-wal", []byte(fileBytes(t, source+"-wal")), 0o644))
			must(t, c.close())
			before, log := fileBytes(t, path), fileBytes(t, path+"-wal")
			_, err = Open(t.Context(), testConfig(path))
			if name == "newer" {
				mustBe(t, err, base.ErrNewer)
			} else {
				mustBe(t, err, base.ErrForeign)
			}
			if fileBytes(t, path) != before || fileBytes(t, path+"-wal") != log {
				t.Error("the file or its log was changed, want the bytes from before")
			}
		})
	}
}

func TestNewFileCases(t *testing.T) {
	for name, prepare := range map[string]func(path string){
		"missing":                 func(string) {},
		"zero bytes":              func(p string) { must(t, os.WriteFile(p, nil, 0o644)) },
		"SQLite file of no table": func(p string) { makeFile(t, p, "VACUUM") },
		"created but no schema":   func(p string) { makeFile(t, p, "PRAGMA application_id = 0x534f5556") },
		"log of a deleted file":   func(p string) { must(t, os.WriteFile(p+"-wal", []byte("stale"), 0o644)) },
	} {
		t.Run(name, func(t *testing.T) {
			path := newFile(t)
			prepare(path)
			db := openTest(t, testConfig(path))
			must(t, db.Write(t.Context(), insert("a")))
			must(t, db.Close())
			found, err := (&DB{path: path}).lookOnce(modeImmutable)
			must(t, err)
			if found.application != testID || found.version != 2 {
				t.Errorf("file is marked %+v, want application %v and version 2", found, testID)
			}
			if got := names(t, openTest(t, testConfig(path))); len(got) != 1 {
				t.Errorf("stored: %q, want a length of 1", got)
			}
		})
	}
}

func TestTheMarkIsInTheFileItselfBeforeAnythingIsInTheLog(t *testing.T) {
	path := newFile(t)
	openTest(t, testConfig(path)) // still open: the schema may only be in the log
	found, err := (&DB{path: path}).lookOnce(modeImmutable)
	must(t, err)
	if found.application != testID {
		t.Errorf("the file's first page says %#x, want %v", found.application, testID)
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	for name, test := range map[string]struct {
		config Config
		is     error
		says   string
	}{
		"missing folder":    {testConfig(filepath.Join(dir, "no", "a.db")), fs.ErrNotExist, "no"},
		"empty path":        {testConfig(""), nil, "path is empty"},
		"zero byte in path": {testConfig("a\x00b"), nil, "zero byte"},
		"no application id": {Config{Path: filepath.Join(dir, "a.db")}, nil, "ApplicationID is 0"},
		"read-only missing": {Config{Path: filepath.Join(dir, "a.db"), ApplicationID: testID, ReadOnly: true}, fs.ErrNotExist,
			"a.db"},
		"read-only memory": {Config{Path: ":memory:", ApplicationID: testID, ReadOnly: true}, nil, "read-only"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(t.Context(), test.config)
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error is %v, want it to say %q", err, test.says)
			}
			if test.is != nil {
				mustBe(t, err, test.is)
			}
		})
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("files were made: %v, want none", entries)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Open(ctx, testConfig(filepath.Join(dir, "a.db")))
	mustBe(t, err, context.Canceled)
}

func TestReadOnlyReadsAndNeverWrites(t *testing.T) {
	path := newFile(t)
	writer := openTest(t, testConfig(path))
	must(t, writer.Write(t.Context(), insert("a")))
	c := testConfig(path)
	c.ReadOnly = true
	db := openTest(t, c)
	if !db.ReadOnly() {
		t.Error("ReadOnly is false, want true")
	}
	mustBe(t, db.Write(t.Context(), insert("x")), base.ErrReadOnly)
	mustBe(t, db.Read(t.Context(), insert("x")), base.ErrReadOnly)
	must(t, writer.Write(t.Context(), insert("b"))) // visible to open readers
	if got := names(t, db); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("read: %q, want %v", got, []string{"a", "b"})
	}
	c.Migrations = migrationsAnd(t, "0003_more.sql", "SELECT 1")
	_, err := Open(t.Context(), c)
	mustBe(t, err, base.ErrOlder)
}

// readUnwritable runs as a user who may not write the file, its folder, or both.
func readUnwritable(path, want string) error {
	if err := dropPrivileges(); err != nil {
		return err
	}
	before, err := os.ReadFile(path) // the only process that has it open
	if err != nil {
		return err
	}
	db, err := Open(context.Background(), testConfig(path))
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.Write(context.Background(), insert("x")); !errors.Is(err, base.ErrReadOnly) {
		return errors.New("a write gave no base.ErrReadOnly")
	}
	err = db.Read(context.Background(), func(tx base.Tx) error {
		got, err := base.Column[string](tx, "SELECT name FROM item ORDER BY id")
		if err == nil && strings.Join(got, " ") != want {
			err = errors.New("read " + strings.Join(got, " ") + ", want " + want)
		}
		return err
	})
	if after, rerr := os.ReadFile(path); rerr != nil || string(after) != string(before) {
		err = errors.Join(err, rerr, errors.New("the file was changed"))
	}
	return err
}

func TestUnwritableFilesAreOpenedReadOnly(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs Unix permissions")
	}
	for name, test := range map[string]struct{ file, folder os.FileMode }{
		"file":            {0o444, 0o777},
		"folder":          {0o666, 0o555},
		"file and folder": {0o444, 0o555},
	} {
		t.Run(name, func(t *testing.T) {
			// Folders of t.TempDir may be closed to the user who reads the file.
			top, err := os.MkdirTemp("", "souvenir-*") //nolint:usetesting // see above
			must(t, err)
			t.Cleanup(func() { _ = os.RemoveAll(top) })
			must(t, os.Chmod(top, 0o755))
			dir := filepath.Join(top, "data")
			must(t, os.Mkdir(dir, 0o755))
			path := filepath.Join(dir, "a.db")
			db := openTest(t, testConfig(path))
			must(t, db.Write(t.Context(), insert("a")))
			must(t, db.Close())
			must(t, os.Chmod(path, test.file))
			must(t, os.Chmod(dir, test.folder))
			t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })

			exe, err := os.Executable()
			must(t, err)
			program := filepath.Join(top, "test")
			must(t, os.WriteFile(program, []byte(fileBytes(t, exe)), 0o755))
			cmd := child(t, "read unwritable", path, "a")
			cmd.Path, cmd.Dir = program, top
			must(t, cmd.Run())
		})
	}
}

func TestPathsAreTakenLiterally(t *testing.T) {
	base := t.TempDir()
	paths := []string{"with space.db", "a#b.db", "100%.db", "%41.db", "a&mode=memory.db", "ünïcödé 記憶.db", "a'b;c.db",
		"file:x.db", "-dash.db", "a+b=c.db"}
	if runtime.GOOS != "windows" {
		paths = append(paths, "what?mode=ro.db", `back\slash.db`, "double\"quote.db", "tab\tnewline\n.db")
	}
	if runtime.GOOS == "linux" {
		paths = append(paths, "not utf-8 \xff.db")
	}
	t.Chdir(base)
	for _, name := range paths {
		for _, path := range []string{filepath.Join(base, name), "relative " + name} {
			t.Run(path, func(t *testing.T) {
				db := openTest(t, testConfig(path))
				must(t, db.Write(t.Context(), insert(path)))
				if _, err := os.Stat(path); err != nil {
					t.Errorf("the file is elsewhere: %v", err)
				}
				if walSize(db.logPath) == 0 {
					t.Errorf("got no log at %s, want one", db.logPath)
				}
				must(t, db.Close())
				if got := names(t, openTest(t, testConfig(path))); !slices.Equal(got, []string{path}) {
					t.Errorf("stored: %q, want %v", got, []string{path})
				}
			})
		}
	}
	if entries, _ := os.ReadDir(base); len(entries) != 2*len(paths) {
		t.Errorf("got %d files, want %d: %v", len(entries), 2*len(paths), entries)
	}
}

func TestRelativePathStaysTheSameFile(t *testing.T) {
	t.Chdir(t.TempDir())
	db := openTest(t, testConfig("a.db"))
	must(t, db.Write(t.Context(), insert("a")))
	t.Chdir(t.TempDir())
	if got := names(t, db); len(got) != 1 { // opens its first reader only now
		t.Errorf("stored: %q, want a length of 1", got)
	}
}

func TestSymbolicLinkAndItsTargetAreOneDatabase(t *testing.T) {
	path := newFile(t)
	link := newFile(t)
	if err := os.Symlink(path, link); err != nil {
		t.Skipf("this system lets us make no symbolic link: %v", err)
	}
	through := openTest(t, testConfig(link))
	must(t, through.Write(t.Context(), insert("a")))
	direct := openTest(t, testConfig(path))
	must(t, direct.Write(t.Context(), insert("b")))
	if got := names(t, through); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("stored: %q, want %v", got, []string{"a", "b"})
	}
	if through.logPath != direct.logPath && runtime.GOOS == "linux" {
		t.Errorf("logs at %s and %s, want one place", through.logPath, direct.logPath)
	}
}

func TestEachMemoryDatabaseIsItsOwn(t *testing.T) {
	a, b := openTest(t, testConfig(":memory:")), openTest(t, testConfig(":memory:"))
	must(t, a.Write(t.Context(), insert("a")))
	if got := names(t, b); len(got) != 0 {
		t.Errorf("the other one holds %q, want none", got)
	}
}

func TestFilesOfTheLogVanishWithTheLastClose(t *testing.T) {
	path := newFile(t)
	a, b := openTest(t, testConfig(path)), openTest(t, testConfig(path))
	must(t, a.Write(t.Context(), insert("a")))
	must(t, b.Write(t.Context(), insert("b")))
	names(t, a)
	must(t, a.Close())
	must(t, b.Close())
	if left := folder(t, filepath.Dir(path)); len(left) != 1 {
		t.Errorf("left: %v, got %v, want 1", slices.Collect(maps.Keys(left)), len(left))
	}
}
