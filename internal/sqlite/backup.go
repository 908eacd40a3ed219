package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// stepPages is how many pages are copied between two checks of the context: 1 MiB.
const stepPages = 256

// pageCopy is a running copy of a database, page by page (https://www.sqlite.org/c3ref/backup_finish.html).
type pageCopy interface {
	step(pages int) (more bool, err error)
	progress() (left, total int) // pages
	finish() error
}

// Backup writes the database, as it is at one moment, to a new file, while others read and write. The file gets its
// name only when it is complete and on disk; after an error nothing of it remains. If the path exists, or has a log
// next to it that SQLite would take for the new file's, the error is fs.ErrExist. Progress, which may be nil, counts
// pages. If the file is written meanwhile, its log grows until the copy is done.
func (d *DB) Backup(ctx context.Context, path string, progress func(done, total int)) error {
	path, err := absolute(path)
	if err != nil {
		return err
	}
	if err := mustBeFree(path); err != nil {
		return err
	}
	part, err := d.copyBeside(ctx, filepath.Dir(path), filepath.Base(path)+".part-*", progress)
	if err != nil {
		return err
	}
	defer removeCopy(part)
	if err := mustBeFree(path); err != nil { // another process may have been faster
		return err
	}
	if err := publish(part, path); err != nil {
		return full(err)
	}
	return full(syncFolder(filepath.Dir(path)))
}

// Copy makes a copy like Backup and returns it open for reading. The copy has no name, or loses it when closed.
func (d *DB) Copy(ctx context.Context, progress func(done, total int)) (io.ReadCloser, error) {
	const pattern = ".souvenir-snapshot-*"
	dir := os.TempDir()
	if !d.memory {
		dir = filepath.Dir(d.path) // which has room for a database, unlike many folders for temporary files
	}
	part, err := d.copyBeside(ctx, dir, pattern, progress)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		part, err = d.copyBeside(ctx, os.TempDir(), pattern, progress)
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(part)
	if err != nil {
		removeCopy(part)
		return nil, err
	}
	_ = os.Remove(part) // where open files can be removed, even a killed process does not leave it behind
	return &CopiedFile{f}, nil
}

// CopiedFile is a copy of a database. Closing it deletes it.
type CopiedFile struct{ *os.File }

// Close deletes the copy.
func (f *CopiedFile) Close() error {
	err := f.File.Close()
	removeCopy(f.Name())
	return err
}

// copyBeside copies the database into a new file of a folder, synced, and returns its path.
func (d *DB) copyBeside(ctx context.Context, dir, pattern string, progress func(done, total int)) (path string,
	err error) {
	return d.makeCopy(dir, pattern, d, func(path string) error { return d.copyInto(ctx, path, progress) })
}

// makeCopy lets fill write a new file in a folder, encrypted like another database, syncs the file and returns its
// path.
func (d *DB) makeCopy(dir, pattern string, as *DB, fill func(path string) error) (path string, err error) {
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return "", full(err)
	}
	whole := false
	defer func() {
		if !whole { // also when progress panics
			removeCopy(f.Name())
		}
	}()
	_, headed := as.writeHeader(f)
	if err := errors.Join(f.Chmod(d.copyMode()), headed, f.Close()); err != nil {
		return "", full(err)
	}
	if err := fill(f.Name()); err != nil {
		return "", err
	}
	if err := syncFile(f.Name()); err != nil {
		return "", full(err)
	}
	whole = true
	return f.Name(), nil
}

// copyMode returns the permissions of a copy: those of the file, and always reading and writing for its owner.
func (d *DB) copyMode() fs.FileMode {
	const owner = 0o600
	if info, err := os.Stat(d.path); err == nil && !d.memory {
		return info.Mode().Perm() | owner
	}
	return owner
}

// copyInto copies the database into an empty file.
func (d *DB) copyInto(ctx context.Context, path string, progress func(done, total int)) error {
	if progress == nil {
		progress = func(int, int) {}
	}
	return d.Read(ctx, func(tx db.Tx) error {
		// The transaction keeps its snapshot through all steps; otherwise each commit would restart the copy.
		var version int
		if err := tx.QueryRow("PRAGMA schema_version").Scan(&version); err != nil {
			return err
		}
		c, err := copyPages(tx.(*Tx).conn.raw, d.dsn(path, modeReadWrite))
		if err != nil {
			return classify("backup to "+path, err)
		}
		finished := false
		defer func() {
			if !finished { // progress has panicked
				_ = c.finish()
			}
		}()
		for before, more := -1, true; more && err == nil; {
			if more, err = c.step(stepPages); err == nil {
				left, total := c.progress()
				if more && left == before {
					err = fmt.Errorf("sqlite: backup to %s: %w", path, db.ErrBusy)
				}
				before = left
				progress(total-left, total)
			}
			if ctx.Err() != nil {
				err = ctx.Err()
			}
		}
		finished = true
		if ended := c.finish(); err == nil {
			err = ended
		}
		return classify("backup to "+path, err)
	})
}

// mustBeFree refuses the path of an existing file, and one with another file's log beside it: SQLite would replay
// that log into the new file.
func mustBeFree(path string) error {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if _, err := os.Lstat(path + suffix); err == nil {
			return &fs.PathError{Op: "create", Path: path + suffix, Err: fs.ErrExist}
		}
	}
	return nil
}

// publish gives a finished file its name, unless the name is taken.
func publish(part, path string) error {
	err := os.Link(part, path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	// The file system has no hard links. If two processes want the name at the same time, the other could take it
	// between the check and the renaming.
	if err := mustBeFree(path); err != nil {
		return err
	}
	return os.Rename(part, path)
}

func removeCopy(path string) {
	_ = os.Remove(path)
	_ = os.Remove(path + "-journal")
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// syncFolder makes a new name in a folder durable. Systems that cannot sync folders keep names without it.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return nil //nolint:nilerr // a folder that may be written but not read
	}
	err = f.Sync()
	_ = f.Close()
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EIO) {
		return err
	}
	return nil
}

// full classifies the system's errors for a full disk.
func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("%w: %w", db.ErrFull, err)
	}
	return err
}
