package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/internal/storefile"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

func TestForeignAndDamagedFilesAreLeftAsTheyAre(t *testing.T) {
	good := newStore(t)
	good.ok(t, "backup", "good.db")
	content, err := os.ReadFile(filepath.Join(good.dir, "good.db"))
	if err != nil {
		t.Fatal(err)
	}
	damaged := append([]byte(nil), content...)
	for i := 4096; i < len(damaged); i += 2 {
		damaged[i] ^= 0x55
	}
	files := map[string][]byte{
		"text":      []byte("these are my notes\n"),
		"foreign":   foreignDatabase(content),
		"cut off":   content[:len(content)/3],
		"scrambled": damaged,
	}
	for _, name := range longtest.Keys(files, 1, 3) {
		bad := files[name]
		t.Run(name, func(t *testing.T) {
			c := call{dir: t.TempDir(), env: []string{"SOUVENIR_DB=bad.db"}}
			if err := os.WriteFile(filepath.Join(c.dir, "bad.db"), bad, 0o600); err != nil {
				t.Fatal(err)
			}
			before := fmt.Sprint(readFolder(t, c.dir))
			for _, args := range []string{
				"check", "check --repair", "stats", "user list", "user add zoe --no-password", "user delete anna",
				"token add --user anna --name x",
				"token list --user anna", "search kettle --user anna", "export -", "backup copy.db", "restore bad.db --db new.db",
				"reindex", "purge --compact",
				"import bad.db", "serve --listen 127.0.0.1:0",
			} {
				o := c.run(t, strings.Fields(args)...)
				if o.code != exitError || o.stdout != "" || !strings.HasPrefix(o.stderr, "souvenir: ") {
					t.Errorf("souvenir %s: %+v; want exit status 1 and an error only", args, o)
				}
				if after := fmt.Sprint(readFolder(t, c.dir)); after != before {
					t.Fatalf("souvenir %s has changed the file, or made another; got %v, want %v", args, after, before)
				}
			}
			o := c.run(t, "check", "--json")
			if report := decode[checkResult](t, o.stdout); o.code != exitError || report.OK || report.Error == "" ||
				!strings.Contains(o.stderr, "bad.db") {
				t.Errorf(`check --json: %+v, want code %v, not OK, an error and "bad.db" in the stderr`,
					o, exitError)
			}
		})
	}
}

// foreignDatabase returns a store's file with another program's application id (bytes 68 to 71 of SQLite's header).
func foreignDatabase(content []byte) []byte {
	foreign := append([]byte(nil), content...)
	copy(foreign[68:], "Othr")
	return foreign
}

func TestCheckFindsAndRepairs(t *testing.T) {
	c := newStore(t)
	if got := c.ok(t, "check"); !strings.HasPrefix(got, "ok: 2 memories") {
		t.Errorf("check of a sound store printed %q, want at its start \"ok: 2 memories\"", got)
	}
	// Damage a piece of a file where SQLite does not notice: on disk, within a row.
	store, err := souvenir.Open(t.Context(), filepath.Join(c.dir, "souvenir.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	const marked = "a text that is easy to find in a file"
	if _, err := store.AddFile(t.Context(), souvenir.NewFile{Filename: "a.txt"}, strings.NewReader(marked)); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(c.dir, "souvenir.db")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(content), marked, strings.ToUpper(marked), 1)
	if changed == string(content) {
		t.Fatalf("the file's bytes are not found: got %v, want something other than %v", changed, string(content))
	}
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	o := c.run(t, "check")
	if o.code != exitError || !strings.Contains(o.stdout, "cannot be repaired") ||
		!strings.Contains(o.stdout, "2 found, 0 repaired") || o.stderr != "" {
		t.Errorf(`check of a store with a damaged file: %+v, want code %v, "cannot be repaired" in the stdout, "2 found, `+
			`0 repaired" in the stdout and no stderr`, o, exitError)
	}
	o = c.run(t, "check", "--json")
	if report := decode[souvenir.CheckReport](t, o.stdout); o.code != exitError || report.OK || report.Total != 2 ||
		o.stderr != "" {
		t.Errorf("check --json: %+v, want code %v, not OK, total 2 and no stderr", o, exitError)
	}
	if o := c.run(t, "check", "--repair"); o.code != exitError {
		t.Errorf("check --repair of what cannot be repaired: %+v; want code %v", o, exitError)
	}
}

func TestCheckRepairsDerivedData(t *testing.T) {
	longtest.Only(t)
	c := newStore(t)
	change(t, filepath.Join(c.dir, "souvenir.db"), `UPDATE passage SET vector = x''`)
	if o := c.run(t, "check"); o.code != exitError || !strings.Contains(o.stdout, "--repair fixes it") {
		t.Errorf(`check: %+v, want code %v and "--repair fixes it" in the stdout`, o, exitError)
	}
	if got := c.ok(t, "check", "--repair"); !strings.Contains(got, "repaired") {
		t.Errorf("check --repair printed %q, want in it \"repaired\"", got)
	}
	if got := c.ok(t, "check"); !strings.HasPrefix(got, "ok: ") {
		t.Errorf("check after the repair printed %q, want at its start \"ok: \"", got)
	}
}

func TestRecoverMakesAStoreOfADamagedFile(t *testing.T) {
	c := newStore(t)
	o := c.run(t, "recover", "souvenir.db", "same.db")
	if o.code != 0 || !strings.Contains(o.stdout, "everything was recovered and verified") {
		t.Errorf(`of a sound file: %+v, want code 0 and "everything was recovered and verified" in the stdout`, o)
	}
	path := filepath.Join(c.dir, "souvenir.db")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	clear(content[:4096])
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check"}, {"check", "--repair"}, {"restore", "souvenir.db", "--db", "restored.db"}} {
		if o := c.run(t, args...); o.code == 0 {
			t.Errorf("%v of a file without its first page: %+v, want another exit code than 0", args, o)
		}
	}
	o = c.run(t, "recover", "souvenir.db", "recovered.db", "--json")
	report := decode[souvenir.RecoveryReport](t, o.stdout)
	if report.Tables["memory"].Rows != 2 || len(report.Notes) == 0 || (o.code == 0) != report.OK {
		t.Errorf("recover: %+v, want 2 memories and a note", o)
	}
	if o := c.run(t, "recover", "souvenir.db", "recovered.db"); o.code != exitError ||
		!strings.Contains(o.stderr, "OUT") || !strings.Contains(o.stderr, "exists") {
		t.Errorf(`onto a file that is there: %+v, want code %v, "OUT" in the stderr and "exists" in the stderr`, o, exitError)
	}
	if o := c.run(t, "recover", "none.db", "other.db"); o.code != exitError || !strings.Contains(o.stderr, "IN") {
		t.Errorf(`of no file: %+v, want code %v and "IN" in the stderr`, o, exitError)
	}
	if o := c.run(t, "check", "--accept"); o.code != exitUsage || !strings.Contains(o.stderr, "--repair") {
		t.Errorf(`--accept alone: %+v, want code %v and "--repair" in the stderr`, o, exitUsage)
	}
}

func TestCheckNamesAChangedByteAndRepairDoesNotCallItSound(t *testing.T) {
	longtest.Only(t)
	c := newStore(t)
	change(t, filepath.Join(c.dir, "souvenir.db"), `UPDATE memory SET content = content || '!' WHERE id = 1`)
	for _, args := range [][]string{{"check"}, {"check", "--repair"}} {
		if o := c.run(t, args...); o.code != exitError || !strings.Contains(o.stdout, "differs from what was stored") ||
			!strings.Contains(o.stdout, "1 are damaged or lost") {
			t.Errorf(`%v: got %+v, want code %v, "differs from what was stored" and "1 are damaged or lost" in the stdout`,
				args, o, exitError)
		}
	}
	o := c.run(t, "check", "--repair", "--json")
	report := decode[souvenir.CheckReport](t, o.stdout)
	if o.code != exitError || report.OK || report.Verified == 0 || len(report.Damaged) != 1 ||
		report.Damaged[0].Table != "memory" {
		t.Errorf("as JSON: %+v, want one damaged memory", o)
	}
	if got := c.ok(t, "check", "--repair", "--accept"); !strings.Contains(got, "0 are damaged") {
		t.Errorf("accepted: %q, want in it \"0 are damaged\"", got)
	}
	c.ok(t, "check")
}

// change runs a statement on a store's file that no command would run.
func change(t *testing.T, path, statement string) {
	t.Helper()
	file, err := sqlite.Open(t.Context(),
		sqlite.Config{Path: path, ApplicationID: storefile.ApplicationID, Migrations: sqlite.Migrations()})
	if err != nil {
		t.Fatal(err)
	}
	err = file.Write(t.Context(), func(tx db.Tx) error {
		_, err := tx.Exec(statement)
		return err
	})
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestBackupOfAnOlderVersionLeavesItOld(t *testing.T) {
	c := newStore(t)
	path := filepath.Join(c.dir, "souvenir.db")
	change(t, path, `PRAGMA user_version = 1`)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c.fails(t, exitError, "older version|backup", "stats")
	c.ok(t, "backup", "copy.db")
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(after) != string(before) {
		t.Error("the backup has changed the file, want the same")
	}
	c.fails(t, exitError, "older version", "stats", "--db", "copy.db")
}

func TestBackupAndRestore(t *testing.T) {
	c := newStore(t)
	if got := c.ok(t, "backup", "copy.db"); !strings.HasPrefix(got, "wrote copy.db (") {
		t.Errorf("backup printed %q, want at its start \"wrote copy.db (\"", got)
	}
	c.ok(t, "user", "delete", "ben", "--with-memories")
	if got := c.ok(t, "restore", "copy.db", "--db", "again.db"); !strings.HasPrefix(got, "restored again.db (") {
		t.Errorf("restore printed %q, want at its start \"restored again.db (\"", got)
	}
	if got := c.ok(t, "user", "list", "--db", "again.db"); !strings.Contains(got, "ben") {
		t.Errorf("the restored store lacks ben: %s; want in it \"ben\"", got)
	}
	if got := c.ok(t, "search", "trains", "--user", "ben", "--db", "again.db"); !strings.Contains(got, "Husum") {
		t.Errorf("the restored store lacks a memory: %s; want in it \"Husum\"", got)
	}
	c.ok(t, "check", "--db", "again.db")
}

func TestExportAndImport(t *testing.T) {
	c := newStore(t)
	printed := c.ok(t, "export", "--no-vectors")
	for i, line := range strings.Split(strings.TrimSpace(printed), "\n") {
		value := decode[map[string]any](t, line)
		if i == 0 && value["souvenir"] != "export" {
			t.Errorf("the first line is %s, want that of an export", line)
		}
	}
	if c.ok(t, "export", "all.jsonl") != fmt.Sprintf("exported 2 memories and 0 files to all.jsonl (%s)\n",
		fileSize(t, filepath.Join(c.dir, "all.jsonl"))) {
		t.Error("the summary of the export is not what was written, want the same counts and size")
	}
	if strings.Contains(printed, `"type":"token"`) {
		t.Errorf(`credentials are exported without --credentials: got %v, want no "type":"token" in it`, printed)
	}
	c.ok(t, "import", "all.jsonl", "--db", "new.db")
	if got := c.ok(t, "import", "all.jsonl", "--db", "new.db", "--json"); decode[souvenir.ImportReport](t,
		got).Counts["memory"] != (souvenir.ImportCount{Unchanged: 2}) {
		t.Errorf("the same import again: %s, want %v", got, souvenir.ImportCount{Unchanged: 2})
	}
	c.stdin = `{"souvenir":"export","version":1}
{"type":"memory","content":"Made by hand.","owner":"anna"}
{"type":"memory","content":""}
`
	o := c.run(t, "import", "-", "--db", "hand.db")
	if o.code != exitError || o.stdout != "" || !strings.Contains(o.stderr, "line 3") {
		t.Errorf(`import of a bad line: %+v, want code %v, no stdout and "line 3" in the stderr`, o, exitError)
	}
	c.stdin = printed
	c.ok(t, "import", "-", "--db", "piped.db")
	if got := c.ok(t, "search", "kettle", "--user", "anna", "--db", "piped.db"); !strings.Contains(got, "blue") {
		t.Errorf("search after an import: %s; want in it \"blue\"", got)
	}
}

func TestAFolderIsNoEmptyExport(t *testing.T) {
	c := call{dir: t.TempDir()}
	c.fails(t, exitError, "IN cannot be read", "import", ".", "--db", "new.db")
	if files := readFolder(t, c.dir); len(files) != 0 {
		t.Errorf("got the files %v, want none", files)
	}
}

func TestARefusedImportCreatesNoStore(t *testing.T) {
	longtest.Only(t)
	const header = `{"souvenir":"export","version":1}`
	for name, c := range map[string]struct{ content, says string }{
		"notes": {"these are my notes\n", "not an export"}, "empty": {"", "empty"},
		"newer": {`{"souvenir":"export","version":99}`, "version 99"}, "store": {"SQLite format 3\x00", "SQLite"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := call{dir: t.TempDir(), stdin: c.content}
			write := func(content string) {
				if err := os.WriteFile(filepath.Join(folder.dir, "in.jsonl"), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			folder.fails(t, exitError, c.says, "import", "-", "--db", "new.db")
			write(c.content)
			folder.fails(t, exitError, c.says, "import", "in.jsonl", "--db", "new.db")
			write(header + "\n" + `{"type":"memory","content":""}`)
			folder.fails(t, exitError, "line 2", "import", "in.jsonl", "--db", "new.db")
			if files := readFolder(t, folder.dir); len(files) != 1 {
				t.Errorf("there are other files than in.jsonl: %d, want 1", len(files))
			}
			folder.stdin = "\n" + header + "\n" + `{"type":"memory","content":"after a blank line"}`
			folder.ok(t, "import", "-", "--db", "new.db")
			if got := folder.ok(t, "stats", "--json", "--db", "new.db"); decode[souvenir.Stats](t, got).Memories != 1 {
				t.Errorf("stats after an import: %s, want 1", got)
			}
		})
	}
}

func fileSize(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return size(info.Size())
}

func TestPurgeAndStats(t *testing.T) {
	c := newStore(t)
	store, err := souvenir.Open(t.Context(), filepath.Join(c.dir, "souvenir.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	added, err := store.AddMemory(t.Context(), souvenir.NewMemory{Content: "first"})
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"second", "third"} {
		if _, err := store.UpdateMemory(t.Context(), added.ID, souvenir.MemoryUpdate{Content: &content}); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if s := decode[souvenir.Stats](t, c.ok(t, "stats", "--json")); s.Memories != 3 || s.Revisions != 2 {
		t.Errorf("stats: %+v, want memories 3 and revisions 2", s)
	}
	if got := c.ok(t, "purge", "--keep-revisions", "1", "--compact"); !strings.HasPrefix(got,
		"deleted 1 past versions, 0 expired memories, 0 entries of the trash, ") {
		t.Errorf("purge printed %q, want at its start \"deleted 1 past versions, 0 expired memories\"", got)
	}
	if s := decode[souvenir.Stats](t, c.ok(t, "stats", "--json")); s.Revisions != 1 || s.FreeBytes != 0 {
		t.Errorf("stats after the purge: %+v, want revisions 1 and free bytes 0", s)
	}
	if got := c.ok(t, "reindex"); got != "reindexed 3 memories in 3 passages\n" {
		t.Errorf("reindex printed %q, want %v", got, "reindexed 3 memories in 3 passages\n")
	}
}
