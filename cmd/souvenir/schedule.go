package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/metrics"
)

// schedule makes backups of a server's store in a folder, verifies each by restoring it, and keeps the newest.
type schedule struct {
	of       location // the store, beside which the ring with user keys is
	dir      string
	every    time.Duration
	keep     int
	note     func(metrics.Backup) // after each, and at the start
	now      func() time.Time
	last     *atomic.Pointer[metrics.Backup] // the last one noted
	announce func(every time.Duration)       // at the start, and when admins have changed it
	often    *atomic.Int64                   // the last one announced
}

// state returns the function that reports the state of the backups to admins; nil: none are made.
func (b *schedule) state() func() server.Backups {
	if b.dir == "" {
		return nil
	}
	last, often := &atomic.Pointer[metrics.Backup]{}, &atomic.Int64{}
	often.Store(int64(b.every))
	b.last, b.often = last, often
	return func() server.Backups {
		s := server.Backups{Every: time.Duration(often.Load())}
		if noted := last.Load(); noted != nil {
			s.Made, s.Failed = noted.Made, noted.Err != nil
		}
		return s
	}
}

const (
	backupRetry = 15 * time.Minute // after a failure
	backupFloor = time.Minute      // the least time between backups
	lookAgain   = 30 * time.Second // how long a change of the settings takes to be seen
)

// check refuses settings that cannot work. A database is backed up by its own tools.
func (b schedule) check(db location) error {
	switch {
	case b.dir == "":
		return nil
	case db.isDatabase():
		e := db.engine()
		return misused("--backup-to is given, but --db is a %s database: back it up with %s", e.name, e.backup)
	case b.every < backupFloor:
		return misused("--backup-every is %s; give %s or more, such as 24h", b.every, backupFloor)
	case b.keep < 1:
		return misused("--keep-backups is %d; give 1 or more", b.keep)
	}
	if info, err := os.Stat(b.dir); err != nil || !info.IsDir() {
		return misused("--backup-to is %q, which is not a folder; create it, on another disk than the store's", b.dir)
	}
	return nil
}

// start begins the backups and returns a function that ends them and waits.
func (b schedule) start(ctx context.Context, store *souvenir.Store, log *slog.Logger) (stop func()) {
	if b.dir == "" {
		return func() {}
	}
	warnOfRings(b.dir, log)
	ctx, cancel := context.WithCancel(actingAs(withReadOnlyRings(ctx, b.of), souvenir.ViaUpkeep))
	var running sync.WaitGroup
	running.Go(func() { b.repeat(ctx, store, log, lookAgain) })
	return func() {
		cancel()
		running.Wait()
	}
}

// repeat makes backups until the context ends. It rereads the settings at intervals of at most look.
func (b schedule) repeat(ctx context.Context, store *souvenir.Store, log *slog.Logger, look time.Duration) {
	b = b.asSet(ctx, store)
	b.announce(b.every)
	since, pause := time.Now(), b.due(b.report(nil, 0))
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(max(0, pause-time.Since(since)), look)):
		}
		if set := b.asSet(ctx, store); set.every != b.every || set.keep != b.keep {
			log.Info("the backup schedule has changed", "every", set.every, "keep", set.keep)
			b = set
			b.announce(b.every)
			since, pause = time.Now(), b.due(b.look())
		}
		if time.Since(since) < pause {
			continue
		}
		began := time.Now()
		d, err := b.run(ctx, store)
		if ctx.Err() != nil {
			return
		}
		since, pause = time.Now(), b.every
		if err != nil {
			pause = min(b.every, backupRetry)
			log.Error("the backup failed; earlier ones are kept", "folder", b.dir, "error", err, "again in", pause)
		} else {
			log.Info("made a backup and verified it by restoring it", "file", d.Backup, "bytes", d.Bytes, "memories", d.Memories,
				"took", time.Since(began).Round(time.Millisecond))
			b.anchor(ctx, store, log)
		}
		b.report(err, time.Since(began))
	}
}

// asSet returns the schedule with the settings that admins have changed.
func (b schedule) asSet(ctx context.Context, store *souvenir.Store) schedule {
	c, err := store.Upkeep().Configuration(ctx)
	if err == nil && c.BackupEvery > 0 && c.KeepBackups > 0 {
		b.every, b.keep = c.BackupEvery, c.KeepBackups
	}
	return b
}

// due returns how long it is until the next backup, by the newest in the folder.
func (b schedule) due(newest metrics.Backup) time.Duration {
	if newest.Made.IsZero() {
		return 0
	}
	return min(max(0, b.every-b.now().Sub(newest.Made)), b.every) // a clock that was ahead must not stop backups
}

// report passes the state of the folder to the metrics.
func (b schedule) report(failed error, took time.Duration) metrics.Backup {
	r := b.look()
	r.Err, r.Duration = failed, took
	b.note(r)
	return r
}

// look returns the state of the folder.
func (b schedule) look() (r metrics.Backup) {
	names, err := backups(b.dir)
	if r.Kept = len(names); err == nil && r.Kept > 0 {
		newest := names[len(names)-1]
		r.Made, _ = backupMade(newest)
		if info, err := os.Stat(filepath.Join(b.dir, newest)); err == nil {
			r.Bytes = info.Size()
		}
	}
	return r
}

// run makes one backup, and then deletes the oldest ones. A backup gets its name only once it is verified, so that no
// file that cannot be restored takes the place of one that can.
func (b schedule) run(ctx context.Context, store *souvenir.Store) (d drilled, err error) {
	path := filepath.Join(b.dir, backupPrefix+b.now().UTC().Format(backupTime)+backupSuffix)
	made, rehearsed := path+unverified, filepath.Join(b.dir, scheduledDrill)
	ctx = withKeyAnew(ctx) // another process may have changed it
	if err := b.claim(ctx, store); err != nil {
		return d, err
	}
	if err := b.clear(); err != nil {
		return d, err
	}
	if err := store.Upkeep().Backup(ctx, made, nil); err != nil {
		return d, err
	}
	if err = os.Mkdir(rehearsed, 0o700); err == nil {
		d, err = drill(ctx, made, rehearsed, nil)
	}
	err = errors.Join(err, os.RemoveAll(rehearsed))
	switch {
	case ctx.Err() != nil:
		return d, errors.Join(ctx.Err(), os.Remove(made))
	case err == nil && !d.OK:
		err = fmt.Errorf("the backup was restored, and its check found %d problems, including: %s; the store itself may be "+
			"damaged: run \"souvenir check\"", d.Problems, d.First)
	}
	if err != nil {
		// It stays for inspection, under one name, so that failures do not fill the disk.
		return d, errors.Join(err, os.Rename(made, filepath.Join(b.dir, backupPrefix+"failed"+unverified)))
	}
	if err := os.Rename(made, path); err != nil {
		return d, err
	}
	d.Backup = path
	return d, b.forget()
}

// scheduledDrill is the folder in which a backup is restored. Its name is always the same, so that the next backup
// finds it after a crash, and other drills in the folder are left alone.
const scheduledDrill = ".souvenir-scheduled-drill"

// clear deletes the files that a server left when it was killed during a backup. Otherwise a server that is killed in
// each backup, for lack of memory, would fill the disk.
func (b schedule) clear() error {
	entries, err := os.ReadDir(b.dir)
	for _, e := range entries {
		name, _, is := strings.Cut(e.Name(), unverified)
		if _, made := backupMade(name); is && made && e.Type().IsRegular() || e.Name() == scheduledDrill {
			err = errors.Join(err, os.RemoveAll(filepath.Join(b.dir, e.Name())))
		}
	}
	return err
}

// forget deletes the oldest backups beyond those to keep. A backup dated in the future was made while the clock was
// wrong. It is older than its date and goes first: it must not take the place of one that was just made.
func (b schedule) forget() error {
	names, err := backups(b.dir)
	now := b.now().UTC().Format(backupTime)
	from := slices.IndexFunc(names, func(name string) bool { return name > backupPrefix+now+backupSuffix })
	if from >= 0 {
		names = slices.Concat(names[from:], names[:from])
	}
	for err == nil && len(names) > b.keep {
		err = os.Remove(filepath.Join(b.dir, names[0]))
		names = names[1:]
	}
	return err
}
