package dbtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// upkeep checks the operations for maintenance on a sound database.
func upkeep(t *testing.T, d db.DB) {
	u := d.Upkeep()
	partition := place(t, d)
	write(t, d, func(tx db.Tx) error {
		_, err := addMemory(tx, partition, "m", "{}")
		return err
	})
	if name, version, _ := strings.Cut(u.Name, " "); name == "" || version == "" {
		t.Errorf("Name: got %q, want a name and a version", u.Name)
	}
	is(t, "Room", u.Room(t.Context()), nil)
	unless := func(part bool) error { // the error for a part that the engine may lack
		if part {
			return nil
		}
		return db.ErrUnsupported
	}
	is(t, "Compact", u.Compact(t.Context()), unless(u.Space != nil))
	is(t, "Flush", u.Flush(t.Context()), unless(u.File != nil))
	is(t, "RebuildIndexes", u.RebuildIndexes(t.Context()), unless(u.Check != nil))
	is(t, "Scratch", db.Scratch(t.Context(), d, func(tx db.Tx) error {
		problems, err := u.Damage(tx, 10)
		equal(t, "damage", fmt.Sprint(problems), "[]")
		broken, err2 := u.Broken(tx)
		equal(t, "broken references", fmt.Sprint(broken), "[]")
		size, err3 := u.Size(tx)
		equal(t, "a size", size.Database > size.Free && size.Free >= 0 && size.Log >= 0, u.Space != nil)
		return errors.Join(err, err2, err3)
	}), nil)
	is(t, "Scratch with a context that has ended", db.Scratch(canceled(t), d, func(db.Tx) error { return nil }),
		context.Canceled)
	for err, want := range map[error]bool{db.ErrCorrupt: true, context.Canceled: false, db.ErrBusy: false, nil: false,
		db.ErrUnavailable: false} {
		if got := u.Damaged(err); got != want {
			t.Errorf("Damaged(%v): got %t, want %t", err, got, want)
		}
	}
}

// copies checks Backup and Copy where the engine has them.
func copies(t *testing.T, d db.DB) {
	u := d.Upkeep()
	dir := t.TempDir()
	path := filepath.Join(dir, "copy")
	files := func() (names []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	if err := u.Backup(t.Context(), path, nil); errors.Is(err, db.ErrUnsupported) {
		_, err := u.Copy(t.Context(), nil)
		is(t, "Copy without Backup", err, db.ErrUnsupported)
		equal(t, "files", fmt.Sprint(files()), "[]")
		return
	} else if err != nil {
		t.Fatal(err)
	}
	is(t, "Backup to a path that exists", u.Backup(t.Context(), path, nil), fs.ErrExist)
	is(t, "Backup with a context that has ended", u.Backup(canceled(t), filepath.Join(dir, "other"), nil),
		context.Canceled)
	equal(t, "files", fmt.Sprint(files()), "[copy]")
	last := 0
	snapshot, err := u.Copy(t.Context(), func(done, total int) { last = total - done })
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, snapshot)
	is(t, "reading and closing a snapshot", errors.Join(err, snapshot.Close()), nil)
	equal(t, "a snapshot has bytes, and its progress ends", fmt.Sprint(n > 0, last), "true 0")
}
