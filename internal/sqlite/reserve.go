package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// On a full disk nothing could be deleted either: what is deleted is written into the log first. So a file beside the database holds some
// room, which is let go when a write that makes room finds none, and taken again once there is some.

type freeingKey struct{}

// Freeing marks the writes of a context as ones that make room: on a full disk they may use what is held in reserve.
func Freeing(ctx context.Context) context.Context { return context.WithValue(ctx, freeingKey{}, true) }

func isFreeing(ctx context.Context) bool { return ctx.Value(freeingKey{}) != nil }

// probeBytes is how much must fit onto a disk that was full, for it not to count as full any more.
const probeBytes = 256 << 10

func (db *DB) reservePath() string { return db.path + "-reserve" }

// writeOnFullDisk runs a write, and notes how it fared with the disk's room.
func (db *DB) writeOnFullDisk(ctx context.Context, fn func(*Tx) error) error {
	err := db.writer.write(ctx, fn)
	freeing := isFreeing(ctx)
	if errors.Is(err, ErrFull) && freeing && db.makeRoom(ctx) {
		err = db.writer.write(ctx, fn)
	}
	switch {
	case errors.Is(err, ErrFull):
		db.full.Store(true)
	case err == nil && !freeing && db.full.Load():
		db.full.Store(false)
	}
	return err
}

// makeRoom gives the room that is held back to the disk, and that of the log to be written anew. False: neither could be done.
func (db *DB) makeRoom(ctx context.Context) bool {
	if db.memory {
		return false
	}
	released := db.reserve > 0 && os.Remove(db.reservePath()) == nil
	if released {
		db.log.Warn("the disk is full; room held in reserve is used for deleting", "path", db.path)
	}
	// What has been deleted makes the log small again only when it is copied into the file.
	err := db.writer.exclusive(ctx, func() error { return db.writer.checkpoint(walPatience) })
	return released || err == nil
}

// takeReserve holds room back, if it is not held already. An error: there is not enough.
func (db *DB) takeReserve() (err error) {
	if db.memory || db.reserve <= 0 || db.writer == nil {
		return nil
	}
	if info, err := os.Stat(db.reservePath()); err == nil && info.Size() >= db.reserve {
		return nil
	}
	part, err := os.CreateTemp(filepath.Dir(db.path), filepath.Base(db.path)+"-reserve-*")
	if err != nil {
		return full(err)
	}
	defer func() { _ = os.Remove(part.Name()) }() // which is gone where it became the reserve
	if err := errors.Join(fill(part, db.reserve), part.Close()); err != nil {
		return full(err)
	}
	// As much again must be free, or the reserve itself would fill the disk.
	if err := db.probe(max(db.reserve, probeBytes)); err != nil {
		return err
	}
	return os.Rename(part.Name(), db.reservePath())
}

// fill writes so many bytes to a file, and has them reach the disk: some file systems give out room only then.
func fill(f *os.File, size int64) error {
	block := make([]byte, 256<<10)
	for left := size; left > 0; left -= int64(len(block)) {
		if _, err := f.Write(block[:min(left, int64(len(block)))]); err != nil {
			return err
		}
	}
	return f.Sync()
}

// probe looks whether there is room for so many bytes beside the file.
func (db *DB) probe(size int64) error {
	f, err := os.CreateTemp(filepath.Dir(db.path), ".souvenir-probe-*")
	if err != nil {
		return full(err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	return full(errors.Join(fill(f, size), f.Close()))
}

// Room is an ErrFull while the disk has no room for what is written. It looks anew each time it is asked while something was amiss.
func (db *DB) Room(ctx context.Context) error {
	if err := db.begin(ctx); err != nil {
		return err
	}
	defer db.end()
	if db.memory || db.writer == nil {
		return nil
	}
	db.room.Lock()
	defer db.room.Unlock()
	if db.roomError == nil || time.Since(db.roomAsked) >= db.roomEvery { // looking writes to the disk, and anybody may ask
		db.roomError = db.lookForRoom()
		db.roomAsked = time.Now()
	}
	return db.roomError
}

func (db *DB) lookForRoom() error {
	if db.full.Load() {
		if err := db.probe(probeBytes); err != nil {
			return fmt.Errorf("sqlite: %s: %w", db.path, err)
		}
		db.full.Store(false)
	}
	if err := db.takeReserve(); errors.Is(err, ErrFull) {
		return fmt.Errorf("sqlite: %s: %w", db.path, err)
	}
	return nil
}
