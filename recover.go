package souvenir

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/souvenir-ai/souvenir/internal/recovery"
	"github.com/souvenir-ai/souvenir/internal/recovery/salvage"
	"github.com/souvenir-ai/souvenir/internal/storefile"
)

// How a store is recovered from its damaged file, without a backup.

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
// left out: people sign in again. If the file was last used more than two days ago, what has expired since stays for a
// day (see [Upkeep.Purge]).
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
