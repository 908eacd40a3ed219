package sqlite

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	base "github.com/souvenir-ai/souvenir/internal/db"
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
	fill := func(tx base.Tx) error {
		_, err := tx.Exec("INSERT INTO item (data) VALUES (?)", make([]byte, 100<<10))
		return err
	}
	var err error
	for err == nil {
		if err = db.Write(t.Context(), fill); err == nil {
			stored++
		}
	}
	mustBe(t, err, base.ErrFull)
	if n := len(names(t, db)); n != stored || n == 0 {
		t.Errorf("on the full disk %d items can be read, want the %d answered ones", n, stored)
	}

	must(t, os.Remove(ballast)) // room for some, not for everything
	must(t, db.Write(t.Context(), insert("before")))
	errs := group(t, db, insert("a"), func(tx base.Tx) error {
		for {
			if err := fill(tx); err != nil {
				return err
			}
		}
	}, insert("b"))
	must(t, errs[0])
	mustBe(t, errs[1], base.ErrFull)
	must(t, errs[2])
	must(t, db.Close())

	db = openTest(t, testConfig(path))
	t.Cleanup(func() { _ = db.Close() })
	if n := len(names(t, db)); n != stored+3 {
		t.Errorf("%d items are stored, want %d", n, stored+3)
	}
}

func TestOnAFullDiskTheReserveLetsThingsBeDeleted(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=12m"); err != nil {
		t.Skipf("cannot make a small disk: %v", err)
	}
	t.Cleanup(func() { must(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	config := testConfig(filepath.Join(dir, "test.db"))
	config.Reserve = 2 << 20
	db := openTest(t, config)
	t.Cleanup(func() { _ = db.Close() })
	db.roomEvery = 0
	must(t, db.Room(t.Context()))
	var err error
	for err == nil {
		err = db.Write(t.Context(), func(tx base.Tx) error {
			_, err := tx.Exec("INSERT INTO item (data) VALUES (?)", make([]byte, 10<<10))
			return err
		})
	}
	mustBe(t, err, base.ErrFull)
	ballast := filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	must(t, err)
	for err == nil { // to the last byte
		_, err = f.Write(make([]byte, 512))
	}
	must(t, f.Close())
	mustBe(t, db.Room(t.Context()), base.ErrFull)
	remove := func(tx base.Tx) error {
		_, err := tx.Exec("DELETE FROM item WHERE id IN (SELECT id FROM item ORDER BY id LIMIT 20)")
		return err
	}
	if err := db.Write(t.Context(), remove); err == nil {
		t.Fatal("without the reserve there is room; the test proves nothing, want an error")
	}
	for range 10 {
		must(t, db.Write(base.Freeing(t.Context()), remove))
	}
	must(t, os.Remove(ballast))
	// In parts, as the store does: deleted data is overwritten, which goes through the log.
	for left := 1; left > 0; {
		must(t, db.Write(base.Freeing(t.Context()), func(tx base.Tx) error {
			if err := remove(tx); err != nil {
				return err
			}
			return tx.QueryRow("SELECT count(*) FROM item").Scan(&left)
		}))
	}
	must(t, db.Compact(t.Context()))
	must(t, db.Room(t.Context()))
	if info, err := os.Stat(filepath.Join(dir, "test.db-reserve")); err != nil || info.Size() != config.Reserve {
		t.Errorf("once there is room, the reserve is not taken again: %v, want no error and size %v", err, config.Reserve)
	}
	must(t, db.Write(t.Context(), insert("after")))
}

// When a disk fails, the system makes it read-only under open files. A read-only mount over the folder simulates that.
func TestADiskThatBecomesReadOnlyIsNoticed(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("cannot make a disk: %v", err)
	}
	t.Cleanup(func() { must(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	db := openTest(t, testConfig(filepath.Join(dir, "test.db")))
	t.Cleanup(func() { _ = db.Close() })
	db.roomEvery = 0
	must(t, db.Room(t.Context()))
	must(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_RDONLY, "size=4m"))
	mustBe(t, db.Room(t.Context()), base.ErrReadOnly)
	must(t, syscall.Unmount(dir, syscall.MNT_DETACH))
	must(t, db.Room(t.Context()))
	if left, err := filepath.Glob(filepath.Join(dir, ".souvenir-probe-*")); err != nil || len(left) != 0 {
		t.Errorf("the checks left %v, %v; want nothing", left, err)
	}
}
