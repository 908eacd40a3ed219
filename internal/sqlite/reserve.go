package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	if errors.Is(err, ErrFull) && freeing && d.makeRoom(ctx) {
		err = d.writer.write(ctx, fn)
	}
	switch {
	case errors.Is(err, ErrFull):
		d.full.Store(true)
	case err == nil && !freeing && d.full.Load():
		d.full.Store(false)
	}
	return err
}

// makeRoom gives the reserve back to the disk, and makes the space of the log reusable. False: neither was
// possible.
func (d *DB) makeRoom(ctx context.Context) bool {
	if d.memory {
		return false
	}
	released := d.reserve > 0 && os.Remove(d.reservePath()) == nil
	if released {
		d.log.Warn("the disk is full; reserved space is used for deleting", "path", d.path)
	}
	// A deletion shrinks the log only once it is copied into the file.
	err := d.writer.exclusive(ctx, func() error { return d.writer.checkpoint(walPatience) })
	return released || err == nil
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
	defer func() { _ = os.Remove(part.Name()) }() // which is gone if it became the reserve
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

// Room returns an ErrFull while the disk has no room for writes. After a problem, it checks again at most every
// roomEvery.
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
	if err := d.takeReserve(); errors.Is(err, ErrFull) {
		return fmt.Errorf("sqlite: %s: %w", d.path, err)
	}
	return nil
}
