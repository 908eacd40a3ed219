package souvenir

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/records/audit"
	"github.com/souvenir-ai/souvenir/internal/recovery"
	"github.com/souvenir-ai/souvenir/internal/recovery/salvage"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/internal/storefile"
)

// Backups, and ways to get a store back: from a backup (Restore), or without one from the damaged file (Recover).

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

// RecoveryOptions change how [Recover] works. Nil means the zero value.
type RecoveryOptions struct {
	// Embedder makes the vectors of the new store, in the background and each time it is opened. Nil means [Builtin].
	Embedder Embedder

	// MasterKey is the key of the damaged file and of the new store. The zero value means that they are not encrypted.
	MasterKey MasterKey

	// UserKeys are the user keys of the damaged store, if it has any; without a Place, the ring beside it. The new store
	// belongs to the same ring, so open it with UserKeys.Place.
	UserKeys UserKeys

	// Progress receives the stages "read" and "copy", counted in tables, and the stages of [Upkeep.Check]. Nil means no
	// progress reports.
	Progress Progress
}

// RecoveryReport describes what [Recover] recovered.
type RecoveryReport struct {
	OK     bool                      `json:"ok"`     // everything stored is in the new store, and verified
	Tables map[string]RecoveredTable `json:"tables"` // by name; tables with recovered or lost rows
	// problems of the file, and rows made in place of lost ones; never nil
	Notes []string    `json:"notes"`
	Check CheckReport `json:"check"` // of the new store: damaged, lost and unverified rows
}

// RecoveredTable counts the recovered and lost rows of a table.
type RecoveredTable struct {
	Rows    int `json:"rows"`    // that are in the new store
	Stray   int `json:"stray"`   // of these: found in pages that are no longer referenced
	Cut     int `json:"cut"`     // of these: truncated, since the end could not be read
	Damaged int `json:"damaged"` // of these, or of their lists: not as they were stored
	Lost    int `json:"lost"`    // stored, but missing
	// readable, but left out: the row they belong to is lost, or they contradict another row
	Refused int `json:"refused"`
}

// Recover makes a new store, out, from everything still readable in a damaged one, in, even if [Open] refuses it. It
// reads the pages of the file and of the write-ahead log beside it without SQLite: it finds rows behind damaged pages
// anywhere in the file, and leaves out rows that the file marks as deleted. The file itself does not change; no program
// may write to it meanwhile, and this one must not have it open.
//
// Rows that differ from what was stored never count as verified: the report lists them, and [Upkeep.Check] of the new
// store reports them until they are deleted or accepted. Lost memories are restored to their newest past version, if
// there is one. Passages, full text and vectors are rebuilt, except the caller's own vectors. Sessions and codes are
// left out: people sign in again.
//
// If the path out exists, the error is ErrConflict. A file without any part of a store is ErrForeign, one of a newer
// version ErrNewer.
func Recover(ctx context.Context, in, out string, options *RecoveryOptions) (_ RecoveryReport, err error) {
	defer setGoNames[RecoveryOptions](&err, "in", "in", "out", "out")
	if options == nil {
		options = &RecoveryOptions{}
	}
	progress := options.Progress
	if progress == nil {
		progress = func(string, int, int) {}
	}
	report := RecoveryReport{Tables: map[string]RecoveredTable{}, Notes: []string{},
		Check: CheckReport{Findings: []Finding{}, Checked: map[string]int{}, Damaged: []DamagedRow{}}}
	if in == "" || in == ":memory:" {
		return report, invalid("in", "{} is %s; give the path of the damaged file", show(in))
	}
	if err := cmp.Or(checkPath("in", in), checkFree("out", out)); err != nil {
		return report, err
	}
	file, err := salvage.Open(in, options.MasterKey)
	if errors.Is(err, salvage.ErrNoFile) {
		return report, invalid("in", "{} %q cannot be recovered: %v", in, err)
	}
	if errors.Is(err, salvage.ErrKey) {
		return report, causedBy(err, newError(KindMasterKey, "in", "{} %q cannot be recovered: %v", in, err))
	}
	if err != nil {
		return report, newFileError("in", in, err)
	}
	defer file.Close()
	known, err := fs.Glob(storefile.Config("", time.Now).Migrations, "*.sql")
	if err != nil {
		return report, wrap(err)
	}
	if file.Sound() && file.Application() != 0 && file.Application() != storefile.ApplicationID {
		return report, newError(KindForeign, "in", "{} %q is a file of another program", in)
	}
	if file.Version() > len(known) {
		return report, newError(KindNewer, "in",
			"{} %q has schema version %d, but this program supports up to %d; use a newer program", in, file.Version(),
			len(known))
	}
	version := file.Version()
	if version <= 0 {
		version = len(known)
	}
	config := storefile.Config("", time.Now)
	config.MasterKey = options.MasterKey
	keys := options.UserKeys
	if err := keys.check(); err != nil {
		return report, err
	}
	if keys != (UserKeys{}) && keys.Place == "" {
		keys.Place = UserKeysFile(in)
	}
	r := recoverer{Recovery: recovery.New(file, version, config, progress), in: in, out: out,
		options: RecoveryOptions{Embedder: options.Embedder, MasterKey: options.MasterKey, UserKeys: keys,
			Progress: progress},
		report: &report}
	err = r.run(ctx)
	report.Notes = r.Notes
	for name, count := range r.Counts {
		report.Tables[name] = RecoveredTable(count)
	}
	report.OK = err == nil && r.complete()
	return report, err
}

// recoverer is a run of [Recover].
type recoverer struct {
	*recovery.Recovery
	in, out string
	options RecoveryOptions
	report  *RecoveryReport
}

// checkFree refuses the path of an existing file, and a path with another file's log beside it.
func checkFree(argument, path string) error {
	if err := checkNewPath(argument, path); err != nil {
		return err
	}
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if _, err := os.Lstat(path + suffix); err == nil {
			return newFileError(argument, path, &fs.PathError{Op: "create", Path: path + suffix, Err: fs.ErrExist})
		}
	}
	return nil
}

// run makes the new store beside its final path, and renames it when it is complete.
func (r *recoverer) run(ctx context.Context) error {
	folder, err := os.MkdirTemp(filepath.Dir(r.out), ".souvenir-recover-*")
	if err != nil {
		return newFileError("out", r.out, err)
	}
	defer os.RemoveAll(folder)
	part := filepath.Join(folder, "store.db")
	if err := r.Read(ctx); err != nil {
		return wrap(err)
	}
	if err := r.Write(ctx, part); err != nil {
		return newFileError("out", r.out, err)
	}
	if r.Rows == 0 {
		return newError(KindForeign, "in", "{} %q has no readable rows of a store", r.in)
	}
	if err := r.finish(ctx, part); err != nil {
		return newFileError("out", r.out, err)
	}
	if err := checkFree("out", r.out); err != nil { // another process may have created it meanwhile
		return err
	}
	if err := os.Link(part, r.out); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return newFileError("out", r.out, err)
		}
		return newFileError("out", r.out, os.Rename(part, r.out))
	}
	return nil
}

// finish migrates the new store, rebuilds the derived data, and checks all of it.
func (r *recoverer) finish(ctx context.Context, path string) error {
	if err := bindRecovered(ctx, path, r.options); err != nil {
		return err
	}
	s, err := Open(ctx, path, &Options{Embedder: r.options.Embedder, MasterKey: r.options.MasterKey, IndexMemory: -1,
		UserKeys: r.options.UserKeys})
	if err != nil {
		return err
	}
	err = r.Mend(ctx, s.db)
	if err == nil {
		r.report.Check, err = s.Upkeep().Check(ctx, &CheckOptions{Repair: true, Progress: r.options.Progress})
	}
	if closed := s.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	for _, d := range r.report.Check.Damaged {
		r.CountDamaged(d.Table, d.Lost)
	}
	return nil
}

// complete reports whether everything stored is in the new store, and verified.
func (r *recoverer) complete() bool {
	complete := r.report.Check.OK
	for _, t := range r.Counts {
		complete = complete && t.Refused == 0 && t.Cut == 0
	}
	return complete
}
