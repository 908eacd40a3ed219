package sqlite

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestFullDiskLeavesTheStoreUsable(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("cannot make a small disk: %v", err)
	}
	t.Cleanup(func() { must(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	path := filepath.Join(dir, "test.db")
	db := openTest(t, testConfig(path))
	t.Cleanup(func() { _ = db.Close() })

	ballast := filepath.Join(dir, "ballast")
	must(t, os.WriteFile(ballast, make([]byte, 2<<20), 0o644))
	stored := 0
	fill := func(tx *Tx) error {
		_, err := tx.Exec("INSERT INTO item (data) VALUES (?)", make([]byte, 100<<10))
		return err
	}
	var err error
	for err == nil {
		if err = db.Write(t.Context(), fill); err == nil {
			stored++
		}
	}
	mustBe(t, err, ErrFull)
	if n := len(names(t, db)); n != stored || n == 0 {
		t.Errorf("on the full disk %d items can be read, want the %d answered ones", n, stored)
	}

	must(t, os.Remove(ballast)) // room for some, not for everything
	must(t, db.Write(t.Context(), insert("before")))
	errs := group(t, db, insert("a"), func(tx *Tx) error {
		for {
			if err := fill(tx); err != nil {
				return err
			}
		}
	}, insert("b"))
	must(t, errs[0])
	mustBe(t, errs[1], ErrFull)
	must(t, errs[2])
	must(t, db.Close())

	db = openTest(t, testConfig(path))
	t.Cleanup(func() { _ = db.Close() })
	if n := len(names(t, db)); n != stored+3 {
		t.Errorf("%d items are stored, want %d", n, stored+3)
	}
}
