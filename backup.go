package souvenir

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/records/audit"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/internal/storefile"
)

// Backups, and how a store is restored from one. Without a backup, Recover reads the damaged file.

// BackupOptions change how [Upkeep.Backup] and [Upkeep.BackupTo] work. Nil means the zero value.
type BackupOptions struct {
	// Progress receives the stage "copy", counted in pages of the file. Nil disables it.
	Progress Progress
}

// copied adapts a Progress to the storage layer, nil for none.
func copied(progress Progress) func(done, total int) {
	if progress == nil {
		return nil
	}
	return func(done, total int) { progress("copy", done, total) }
}

// Backup writes a copy of the whole store, as it is at one moment, to a new file, while others read and write. The copy
// is a store itself: [Open] opens it, and [Restore] copies it to a new store. It appears under its name only once it is
// complete and durable; after an error or the end of the context nothing of it remains. It has the permissions of the
// store's file.
//
// The path must not exist, nor the path with -wal, -shm or -journal appended: ErrConflict. A full disk is ErrFull, a
// missing folder ErrNotFound, one that is not writable ErrInvalid. An in-memory store can be backed up, too; its other
// calls wait meanwhile.
//
// It is for the Store that Open returned; a view gets ErrForbidden.
func (h *Upkeep) Backup(ctx context.Context, path string, options *BackupOptions) (err error) {
	defer setGoNames[struct{}](&err, "path", "path")
	s, err := h.operator(ctx, "Backup")
	if err != nil {
		return err
	}
	if err := checkNewPath("path", path); err != nil {
		return err
	}
	if options == nil {
		options = &BackupOptions{}
	}
	s.renewKey(ctx)
	err = newFileError("path", path, s.db.Upkeep().Backup(ctx, path, copied(options.Progress)))
	details := audit.Details{}
	if info, failed := os.Stat(path); failed == nil {
		details["bytes"] = info.Size()
	}
	return s.noteAlone(ctx, err, event{"backup", "store", "", details})
}

// BackupTo writes the file that [Upkeep.Backup] would create to w, and returns the number of bytes. An error of w ends
// it and is the cause of the returned error. The copy is first made beside the store's file (or, if that folder is not
// writable, in the system's temporary folder), so that a slow w does not hold a snapshot of the store open; that needs
// as much disk space again.
//
// It is for the Store that Open returned; a view gets ErrForbidden.
func (h *Upkeep) BackupTo(ctx context.Context, w io.Writer, options *BackupOptions) (_ int64, err error) {
	defer setGoNames[struct{}](&err, "w", "w")
	s, err := h.operator(ctx, "BackupTo")
	if err != nil {
		return 0, err
	}
	if w == nil {
		return 0, invalid("w", "{} is nil; give a writer")
	}
	if options == nil {
		options = &BackupOptions{}
	}
	s.renewKey(ctx)
	snapshot, err := s.db.Upkeep().Copy(ctx, copied(options.Progress))
	if err != nil {
		return 0, newFileError("path", s.db.Upkeep().Path, err)
	}
	n, err := io.Copy(w, untilDone{ctx, snapshot})
	if closed := snapshot.Close(); err == nil {
		err = closed
	}
	return n, s.noteAlone(ctx, wrap(err), event{"backup", "store", "", audit.Details{"bytes": n}})
}

// renewKey takes over a changed master key. If that fails, the backup continues with the previous key.
func (s *Store) renewKey(ctx context.Context) {
	file, inFile := s.engine.(db.Encrypted[MasterKey])
	if s.options.MasterKeyNow == nil || s.options.MasterKey.IsZero() || !inFile {
		return
	}
	key, err := s.options.MasterKeyNow(ctx)
	if err == nil && !key.IsZero() {
		err = file.TakeMasterKey(ctx, key)
	}
	if err != nil {
		s.log.Warn("the backup needs the previous master key: the current one could not be applied", "error", err)
	}
}

// untilDone is a reader that fails once its context ends.
type untilDone struct {
	ctx context.Context
	io.Reader
}

func (r untilDone) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// Restoration says which backup [Restore] copies, and where to.
type Restoration struct {
	From string // a store's file: a backup, or any other readable one
	To   string // the file to create; it must not exist

	MasterKey MasterKey // of both; the zero value: neither is encrypted

	// Progress receives the stages "check" and "copy" (counted in pages of the file). Nil disables it.
	Progress Progress
}

// Restore creates a new store from a backup. The backup is checked before anything is written: a file that is not a
// store is ErrForeign, a damaged one ErrCorrupt, one of a newer version ErrNewer. The backup stays unchanged; an older
// version is upgraded when the new store is opened. As with [Upkeep.Backup], the new file appears once it is complete,
// and an existing path is ErrConflict. To replace a store, close it and move its file away first.
func Restore(ctx context.Context, r Restoration) (err error) {
	defer setGoNames[Restoration](&err)
	if r.From == "" || r.From == ":memory:" {
		return invalid("From", "{} is %s; give the path of a backup", show(r.From))
	}
	if err := checkPath("From", r.From); err != nil {
		return err
	}
	if err := checkNewPath("To", r.To); err != nil {
		return err
	}
	file, err := openBackup(ctx, r.From, r.MasterKey, r.Progress)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := file.Backup(ctx, r.To, copied(r.Progress)); err != nil {
		return newFileError("To", r.To, err)
	}
	err = openError("To", r.To, noteRestore(ctx, r.To, r.MasterKey))
	if err != nil { // a restored store needs the entry in its log, and the next try needs the path
		for _, suffix := range []string{"", "-wal", "-shm"} {
			_ = os.Remove(r.To + suffix)
		}
	}
	return err
}

// openBackup opens the file of a store for reading, and checks it.
func openBackup(ctx context.Context, path string, key MasterKey, progress Progress) (_ *sqlite.DB, err error) {
	file, err := sqlite.Open(ctx, sqlite.Config{
		Path: path, ReadOnly: true, AnyVersion: true, ApplicationID: storefile.ApplicationID, Migrations: sqlite.Migrations(),
		MasterKey: key,
	})
	if errors.Is(err, db.ErrOlder) {
		return nil, invalid("From", "{} is %s, which is empty and not a backup", show(path))
	}
	if err != nil {
		return nil, openError("From", path, err)
	}
	if progress != nil {
		progress("check", 0, 1)
	}
	if err := file.Read(ctx, sqlite.Sound); err != nil {
		_ = file.Close()
		return nil, wrap(err)
	}
	if progress != nil {
		progress("check", 1, 1)
	}
	return file, nil
}

// noteRestore adds an entry to the audit log of a restored file. A file of an older version stays as it is.
func noteRestore(ctx context.Context, path string, key MasterKey) error {
	config := storefile.Config(path, time.Now)
	config.MasterKey = key
	config.ReadOnly = true
	file, err := sqlite.Open(ctx, config)
	if err == nil {
		err = file.Close()
	}
	if errors.Is(err, db.ErrOlder) {
		return nil
	}
	if err != nil {
		return err
	}
	config.ReadOnly = false
	if file, err = sqlite.Open(ctx, config); err != nil {
		return err
	}
	defer file.Close()
	of := Store{shared: &shared{clock: time.Now}, operator: true}
	return file.Write(ctx, func(tx db.Tx) error { return of.note(ctx, tx, nil, event{"restore", "store", "", nil}) })
}

// checkNewPath checks the path of a file to create.
func checkNewPath(argument, path string) error {
	if path == "" || path == ":memory:" {
		return invalid(argument, "{} is %s; give the path of a file that does not exist yet", show(path))
	}
	return checkPath(argument, path)
}

// newFileError is like wrap, for errors of creating a file.
func newFileError(argument, path string, err error) error {
	var cause *fs.PathError
	if errors.As(err, &cause) && errors.Is(err, fs.ErrExist) {
		return causedBy(err, newError(KindConflict, argument,
			"{} %q cannot be written: %q already exists and is not overwritten", path, cause.Path))
	}
	return openError(argument, path, err)
}
