package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// On a full disk not even deleting would work: a deletion is written into the log first. So a file beside the
// database holds some disk space in reserve. A write that makes room and finds none releases it, and it is taken
// again once there is space.

// probeBytes is how much must fit on a full disk before it no longer counts as full.
const probeBytes = 256 << 10

func (d *DB) reservePath() string { return d.path + "-reserve" }

// writeOnFullDisk runs a write, and records whether the disk had room.
func (d *DB) writeOnFullDisk(ctx context.Context, fn func(db.Tx) error) error {
	err := d.writer.write(ctx, fn)
	freeing := db.IsFreeing(ctx)
	// The log gets half of the reserve, then almost all of it.
	for _, try := range []struct{ part, segments int64 }{{2, 16}, {8, 1999}} {
		if !errors.Is(err, db.ErrFull) || !freeing || !d.makeRoom(ctx, try.part) {
			break
		}
		err = d.writer.write(ctx, withoutMerging(try.segments, fn))
	}
	switch {
	case errors.Is(err, db.ErrFull):
		d.full.Store(true)
	case err == nil && !freeing && d.full.Load():
		d.full.Store(false)
	}
	return err
}

// makeRoom makes the space of the log reusable, and gives the reserve back to the disk, except for a part of what
// remains of it: one half, or one eighth. The log grows into what it gives back; the rest is for the file, which may
// have to grow when the log is copied into it. Without that, a log that fills the disk could never be emptied. False:
// neither was possible.
func (d *DB) makeRoom(ctx context.Context, part int64) bool {
	if d.memory {
		return false
	}
	held := walSize(d.reservePath())
	released := d.reserve > 0 && os.Remove(d.reservePath()) == nil
	if released && held >= d.reserve {
		d.log.WarnContext(ctx, "the disk is full; reserved space is used for deleting", "path", d.path)
	}
	// A deletion shrinks the log only once it is copied into the file.
	err := d.writer.exclusive(ctx, func() error {
		if released {
			defer d.keepPart(part)
		}
		return d.writer.checkpoint(walPatience)
	})
	return released || err == nil
}

// keepPart takes a part of the remaining reserve again.
func (d *DB) keepPart(part int64) {
	f, err := os.OpenFile(d.reservePath(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return // another process holds it
	}
	defer f.Close()
	_ = fill(f, d.reserve) // up to where the disk is full
	if info, err := f.Stat(); err == nil {
		_ = f.Truncate(info.Size() / part)
	}
}

// takeReserve takes the reserve, if it is not held already. An error: there is not enough space.
func (d *DB) takeReserve() (err error) {
	if d.memory || d.reserve <= 0 || d.writer == nil {
		return nil
	}
	if info, err := os.Stat(d.reservePath()); err == nil && info.Size() >= d.reserve {
		return nil
	}
	part, err := os.CreateTemp(filepath.Dir(d.path), filepath.Base(d.path)+"-reserve-*")
	if err != nil {
		return full(err)
	}
	defer func() { _ = os.Remove(part.Name()) }() // already gone if it became the reserve
	if err := errors.Join(fill(part, d.reserve), part.Close()); err != nil {
		return full(err)
	}
	// The same amount must stay free, or the reserve itself would fill the disk.
	if err := d.probe(max(d.reserve, probeBytes)); err != nil {
		return err
	}
	return os.Rename(part.Name(), d.reservePath())
}

// fill writes size bytes to a file and syncs it: some file systems allocate space only then.
func fill(f *os.File, size int64) error {
	block := make([]byte, 256<<10)
	for left := size; left > 0; left -= int64(len(block)) {
		if _, err := f.Write(block[:min(left, int64(len(block)))]); err != nil {
			return err
		}
	}
	return f.Sync()
}

// probe checks whether there is room for size bytes beside the file.
func (d *DB) probe(size int64) error {
	f, err := os.CreateTemp(filepath.Dir(d.path), ".souvenir-probe-*")
	if err != nil {
		return full(err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	return full(errors.Join(fill(f, size), f.Close()))
}

// Room returns an ErrFull while the disk has no room for writes, and an ErrReadOnly while it is read-only. After a
// problem, it checks again at most every roomEvery.
func (d *DB) Room(ctx context.Context) error {
	if err := d.begin(ctx); err != nil {
		return err
	}
	defer d.end()
	if d.memory || d.writer == nil {
		return nil
	}
	d.room.Lock()
	defer d.room.Unlock()
	if d.roomError == nil || time.Since(
		d.roomAsked) >= d.roomEvery { // the check writes to the disk, and calls are not limited
		d.roomError = d.lookForRoom()
		d.roomAsked = time.Now()
	}
	return d.roomError
}

func (d *DB) lookForRoom() error {
	if d.full.Load() {
		if err := d.probe(probeBytes); err != nil {
			return fmt.Errorf("sqlite: %s: %w", d.path, err)
		}
		d.full.Store(false)
	}
	if err := d.takeReserve(); errors.Is(err, db.ErrFull) {
		return fmt.Errorf("sqlite: %s: %w", d.path, err)
	}
	return d.lookForFile()
}

// lookForFile returns an ErrReadOnly if the disk no longer accepts a file beside the database: systems make a failing
// disk read-only. It looks at most every roomEvery.
func (d *DB) lookForFile() error {
	if d.roomError == nil && time.Since(d.fileMade) < d.roomEvery {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(d.path), ".souvenir-probe-*")
	if errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("sqlite: %s: %w: %w", d.path, db.ErrReadOnly, err)
	}
	d.fileMade = time.Now()
	if err != nil {
		return nil //nolint:nilerr // a folder that takes no new files may still hold a file that is written to
	}
	_ = f.Close()
	_ = os.Remove(f.Name())
	return nil
}
