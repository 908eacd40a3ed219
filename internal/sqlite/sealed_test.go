//go:build !souvenir_cgo

package sqlite

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	base "github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sealing"
	"github.com/souvenir-ai/souvenir/internal/sealing/pages"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

const secretWord = "marzipan-in-the-basement"

func sealedConfig(path string, key sealing.MasterKey) Config {
	c := testConfig(path)
	c.MasterKey = key
	return c
}

// fillSealed adds rows that fill many pages.
func fillSealed(tb testing.TB, d *DB, rows int) {
	tb.Helper()
	must(tb, d.Write(tb.Context(), func(tx base.Tx) error {
		for i := range rows {
			if _, err := tx.Exec(`INSERT INTO item (name, data) VALUES (?, ?)`, fmt.Sprint(secretWord, i),
				bytes.Repeat([]byte(secretWord), 50)); err != nil {
				return err
			}
		}
		_, err := tx.Exec(`INSERT INTO note (body) VALUES (?)`, secretWord)
		return err
	}))
}

func countRows(tb testing.TB, d *DB) (n int) {
	tb.Helper()
	must(tb, d.Read(tb.Context(), func(tx base.Tx) error {
		return tx.QueryRow(`SELECT count(*) FROM item WHERE length(data) > 100`).Scan(&n)
	}))
	return n
}

// readable returns the files of a folder that contain stored data in readable form.
func readable(tb testing.TB, folder string) (names []string) {
	tb.Helper()
	entries, err := os.ReadDir(folder)
	must(tb, err)
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(folder, e.Name()))
		must(tb, err)
		for _, text := range []string{"marzipan", "basement", "CREATE TABLE", "SQLite format"} {
			if bytes.Contains(content, []byte(text)) {
				names = append(names, e.Name()+": "+text)
			}
		}
	}
	return names
}

func TestASealedFileHoldsNothingReadable(t *testing.T) {
	folder, key := t.TempDir(), sealing.GenerateMasterKey()
	path := filepath.Join(folder, "a.db")
	d := openTest(t, sealedConfig(path, key))
	fillSealed(t, d, 500)
	must(t, d.Backup(t.Context(), filepath.Join(folder, "backup.db"), nil))
	must(t, d.Compact(t.Context()))
	fillSealed2 := func(d *DB) {
		must(t, d.Write(t.Context(), insert(secretWord+" again")))
	}
	fillSealed2(d)
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() == 0 {
		t.Fatalf("got %v, %v; want a log with content", info, err)
	}
	if found := readable(t, folder); found != nil {
		t.Errorf("got %v, want nothing that can be read", found)
	}
	must(t, d.Close())
	if found := readable(t, folder); found != nil {
		t.Errorf("after closing: got %v, want nothing that can be read", found)
	}
	for _, path := range []string{path, filepath.Join(folder, "backup.db")} {
		d := openTest(t, sealedConfig(path, key))
		if n := countRows(t, d); n != 500 {
			t.Errorf("%s: got %d rows, want 500", path, n)
		}
		must(t, d.Read(t.Context(), Sound))
	}
}

func TestASealedFileNeedsItsKey(t *testing.T) {
	folder, key := t.TempDir(), sealing.GenerateMasterKey()
	path, plain := filepath.Join(folder, "a.db"), filepath.Join(folder, "plain.db")
	d := openTest(t, sealedConfig(path, key))
	fillSealed(t, d, 10)
	must(t, d.Close())
	p := openTest(t, testConfig(plain))
	must(t, p.Close())
	before, err := os.ReadFile(path)
	must(t, err)
	for _, test := range []struct {
		name string
		c    Config
		says string
	}{
		{"none", testConfig(path), key.ID()},
		{"another", sealedConfig(path, sealing.GenerateMasterKey()), key.ID()},
		{"a plain file", sealedConfig(plain, key), "not encrypted"},
	} {
		for _, readOnly := range []bool{false, true} {
			test.c.ReadOnly = readOnly
			_, err := Open(t.Context(), test.c)
			mustBe(t, err, base.ErrSealed)
			if !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s: got %v, want %q in it", test.name, err, test.says)
			}
		}
	}
	after, err := os.ReadFile(path)
	must(t, err)
	if !bytes.Equal(before, after) {
		t.Error("a refused file was changed, want it unchanged")
	}
	if entries, _ := os.ReadDir(folder); len(entries) != 2 {
		t.Errorf("got %v, want the two files alone", entries)
	}
}

// The new file is made in the folder where the link leads, which may be on another disk.
func TestASealedFileIsMadeBehindALinkToAnotherDisk(t *testing.T) {
	folder, err := os.MkdirTemp("/dev/shm", "souvenir-*") //nolint:usetesting // another disk than that of t.TempDir
	if err != nil {
		t.Skipf("there is no second file system: %v", err)
	}
	defer os.RemoveAll(folder)
	link := filepath.Join(t.TempDir(), "a.db")
	must(t, os.Symlink(filepath.Join(folder, "a.db"), link))
	fillSealed(t, openTest(t, sealedConfig(link, sealing.GenerateMasterKey())), 1)
	if _, err := os.Stat(filepath.Join(folder, "a.db")); err != nil {
		t.Errorf("got %v, want the file behind the link", err)
	}
}

func TestADamagedPageOfASealedFileIsFound(t *testing.T) {
	longtest.Only(t)
	folder, key := t.TempDir(), sealing.GenerateMasterKey()
	path := filepath.Join(folder, "a.db")
	d := openTest(t, sealedConfig(path, key))
	fillSealed(t, d, 100)
	must(t, d.Close())
	whole, err := os.ReadFile(path)
	must(t, err)
	all := func(tx base.Tx) error {
		var sum int64
		err := tx.QueryRow(`SELECT sum(length(data)) + (SELECT count(name) FROM item) FROM item`).Scan(&sum)
		if err == nil {
			err = Sound(tx)
		}
		return err
	}
	count := (len(whole) - sealing.HeaderSize) / pages.Size
	damage := map[string]func(b []byte, page int){
		"a flipped bit": func(b []byte, page int) { b[pages.At(int64(page))+int64(17*page)%4096] ^= 4 },
		"a swapped page": func(b []byte, page int) {
			other := (page + 1) % count
			copy(b[pages.At(int64(page)):][:pages.Size], whole[pages.At(int64(other)):])
		},
	}
	for name, change := range damage {
		for page := range count {
			b := bytes.Clone(whole)
			change(b, page)
			must(t, os.WriteFile(path, b, 0o600))
			d, err := Open(t.Context(), sealedConfig(path, key))
			if err == nil {
				err = d.Read(t.Context(), all)
				_ = d.Close()
			}
			mustBe(t, err, base.ErrCorrupt)
			if t.Failed() {
				t.Fatalf("%s, page %d of %d", name, page, count)
			}
		}
	}
}

func TestAMasterKeyIsChangedWhileTheFileIsOpen(t *testing.T) {
	path, old, next := newFile(t), sealing.GenerateMasterKey(), sealing.GenerateMasterKey()
	d := openTest(t, sealedConfig(path, old))
	fillSealed(t, d, 10)
	other := openTest(t, sealedConfig(path, old)) // like another process
	must(t, d.ChangeMasterKey(t.Context(), next))
	for _, d := range []*DB{d, other} {
		must(t, d.Write(t.Context(), insert(fmt.Sprintf("%p", d))))
		c, err := d.openReader(t.Context()) // one more connection
		must(t, err)
		must(t, c.close())
	}
	_, err := Open(t.Context(), sealedConfig(path, old))
	mustBe(t, err, base.ErrSealed)
	third := openTest(t, sealedConfig(path, next))
	if n := countRows(t, third); n != 10 {
		t.Errorf("got %d rows, want 10", n)
	}
	must(t, third.ChangeMasterKey(t.Context(), sealing.GenerateMasterKey()))
}

func TestAFileIsSealedAndOpenedAgain(t *testing.T) {
	folder, key := t.TempDir(), sealing.GenerateMasterKey()
	plain, sealed, again := filepath.Join(folder, "p.db"), filepath.Join(folder, "s.db"), filepath.Join(folder, "a'.db")
	d := openTest(t, testConfig(plain))
	fillSealed(t, d, 300)
	must(t, d.CopyInto(t.Context(), sealed, key))
	mustExist := d.CopyInto(t.Context(), sealed, key)
	mustBe(t, mustExist, os.ErrExist)
	s := openTest(t, sealedConfig(sealed, key))
	must(t, s.Write(t.Context(), insert("one more")))
	must(t, s.Read(t.Context(), Sound))
	must(t, s.CopyInto(t.Context(), again, sealing.MasterKey{}))
	a := openTest(t, testConfig(again))
	must(t, a.Write(t.Context(), insert("and another")))
	must(t, a.Read(t.Context(), Sound))
	for _, d := range []*DB{d, s, a} {
		if n := countRows(t, d); n != 300 {
			t.Errorf("%s: got %d rows, want 300", d.path, n)
		}
	}
}

// SQLite without the keys, such as its shell, leaves the log of a killed program alone, since it cannot read it.
func TestAnotherProgramLeavesTheLogOfASealedFileAlone(t *testing.T) {
	folder, key := t.TempDir(), sealing.GenerateMasterKey()
	path, killed := filepath.Join(folder, "a.db"), filepath.Join(folder, "killed.db")
	d := openTest(t, sealedConfig(path, key))
	fillSealed(t, d, 100)
	for _, suffix := range []string{"", "-wal"} {
		content, err := os.ReadFile(path + suffix)
		must(t, err)
		must(t, os.WriteFile(killed+suffix, content, 0o600))
	}
	if c, err := connect(fileDSN(killed, modeReadWrite), nil); err == nil {
		if _, err := c.header(); err == nil {
			t.Error("got no error from SQLite without the key, want one")
		}
		must(t, c.close())
	}
	if _, err := Open(t.Context(), testConfig(killed)); err == nil {
		t.Error("got no error without the key, want one")
	}
	again := openTest(t, sealedConfig(killed, key))
	if n := countRows(t, again); n != 100 {
		t.Errorf("got %d rows, want all 100", n)
	}
}
